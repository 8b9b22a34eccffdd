//! A drive of a model, with its firmware and its time, that an engine on another thread of this server runs.

use crate::leg::task::{Begun, End, Source, Task};
use flashyard_blk::{Completion, Operation, Payload, VolumeInfo, VolumeRequest};
use flashyard_live::Client;
use flashyard_service::Failure;

/// An engine that runs; dropped, it ends in order.
pub trait RunsDrive: Send {}

impl<T: Send> RunsDrive for T {}

/// A volume of an engine that runs on another thread.
pub struct OpenDrive {
    /// The way to it.
    pub client: Client,
    /// The volume.
    pub info: VolumeInfo,
    /// Its engine, which runs as long as this is kept.
    pub engine: Box<dyn RunsDrive>,
    /// For messages.
    pub name: String,
}

/// A drive that is served here.
pub(crate) struct DriveLeg {
    client: Client,
    info: VolumeInfo,
    arrived: Vec<Completion>,
    /// Ends after the client's way to it.
    _engine: Box<dyn RunsDrive>,
}

impl DriveLeg {
    pub(crate) fn new(drive: OpenDrive) -> Self {
        Self { client: drive.client, info: drive.info, arrived: Vec::new(), _engine: drive.engine }
    }

    pub(crate) fn info(&self) -> &VolumeInfo {
        &self.info
    }

    pub(crate) fn begin(&mut self, task: Task, source: Source<'_>) -> Begun {
        let Task { order, operation, first, count, .. } = task;
        let payload = match (operation, source) {
            (Operation::Write, Source::Bytes(bytes)) => Payload::Bytes(bytes.to_vec()),
            (Operation::Write, Source::Zeros) => Payload::Zeros,
            _ => Payload::None,
        };
        let request = VolumeRequest { volume: self.info.id, operation, first, count, source: 0 };
        match self.client.submit(order.into(), request, payload) {
            Ok(()) => Begun::UnderWay,
            Err(_) => Begun::Ended(Err(Failure::Gone)),
        }
    }

    /// Takes what has come; says why if it answers no more.
    pub(crate) fn poll(&mut self, into: &mut Vec<End>) -> Option<String> {
        let gone = self.client.take(&mut self.arrived).err();
        for Completion { token, result, bytes } in self.arrived.drain(..) {
            into.push(End { order: token as u32, result: result.map_err(|error| Failure::from(&error)), bytes });
        }
        gone.map(|_| "the engine of its drive has ended".to_owned())
    }
}

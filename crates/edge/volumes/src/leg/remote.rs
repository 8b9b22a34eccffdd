//! A namespace of an NVMe/TCP target. The end of its connection is the end of the leg: it is not connected again, as writes
//! that were under way may have happened or not.

use crate::leg::task::{BLOCK, Begun, End, Source, Task};
use flashyard_blk::{Completion, Operation, Payload, Volume, VolumeInfo, VolumeRequest};
use flashyard_live::RemoteNamespace;
use flashyard_service::Failure;
use flashyard_units::SimTime;
use std::time::{Duration, Instant};

/// How long commands may be under way without an answer to any. Source: \[A\] what Linux gives a command.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connected namespace.
pub(crate) struct RemoteLeg {
    namespace: RemoteNamespace,
    info: VolumeInfo,
    under_way: u32,
    /// When something was last asked while nothing was under way, or came.
    heard: Instant,
    /// Whether something has come to its socket.
    is_ready: bool,
    arrived: Vec<Completion>,
    /// Why it has ended.
    ended: Option<String>,
}

impl RemoteLeg {
    pub(crate) fn new(namespace: RemoteNamespace) -> Self {
        let info = namespace.info();
        let (arrived, heard) = (Vec::new(), Instant::now());
        Self { namespace, info, under_way: 0, heard, is_ready: true, arrived, ended: None }
    }

    pub(crate) fn namespace(&mut self) -> &mut RemoteNamespace {
        &mut self.namespace
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.info.limits.blocks
    }

    pub(crate) fn request_blocks(&self) -> u32 {
        self.info.limits.request_blocks
    }

    /// Something has come to its socket, or it takes more.
    pub(crate) fn ready(&mut self) {
        self.is_ready = true;
    }

    pub(crate) fn begin(&mut self, task: Task, source: Source<'_>) -> Begun {
        let Task { order, operation, first, count, .. } = task;
        let payload = match (operation, source) {
            (Operation::Write, Source::Bytes(bytes)) => Payload::Bytes(bytes.to_vec()),
            (Operation::Write, Source::Zeros) => Payload::Zeros,
            _ => Payload::None,
        };
        debug_assert!(operation != Operation::Read || task.bytes() == count as usize * BLOCK);
        let request = VolumeRequest { volume: self.info.id, operation, first, count, source: 0 };
        if self.under_way == 0 {
            self.heard = Instant::now();
        }
        match self.namespace.submit(SimTime::ZERO, order.into(), &request, payload) {
            Ok(()) => {
                self.under_way += 1;
                Begun::UnderWay
            }
            Err(error) => {
                self.ended = Some(error.to_string());
                Begun::Ended(Err(Failure::Gone))
            }
        }
    }

    /// Takes what has come; says why if it answers no more.
    pub(crate) fn poll(&mut self, into: &mut Vec<End>) -> Option<String> {
        if std::mem::take(&mut self.is_ready) && self.ended.is_none() {
            if let Err(error) = self.namespace.advance(SimTime::ZERO, &mut self.arrived) {
                self.ended = Some(error.to_string());
            }
            for Completion { token, result, bytes } in self.arrived.drain(..) {
                self.under_way -= 1;
                let result = result.map_err(|error| Failure::from(&error));
                into.push(End { order: token as u32, result, bytes });
                self.heard = Instant::now();
            }
        }
        if self.under_way > 0 && self.ended.is_none() && self.heard.elapsed() > PATIENCE {
            self.ended = Some(format!("no answer for {} s", PATIENCE.as_secs()));
        }
        self.ended.clone()
    }
}

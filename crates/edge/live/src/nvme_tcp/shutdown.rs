//! Controllers that hosts shut down: drives whose write cache is volatile are flushed first.

use crate::front::Context;
use flashyard_blk::{Operation, Payload, VolumeRequest};
use flashyard_nvmf::target::{Shutdown, Target, shut_down, take_shutdowns};
use flashyard_units::VolumeId;
use std::collections::BTreeMap;

/// Tags of such flushes begin here: those of commands lie far below.
const TAGS: u64 = 1 << 63;

/// Shutdowns whose flushes are under way.
#[derive(Default)]
pub(super) struct Shutdowns {
    /// The shutdown that each flush is of.
    flushes: BTreeMap<u64, Shutdown>,
    flushes_made: u64,
}

impl Shutdowns {
    /// Begins those that hosts have asked for; `volume_of` gives the volume of a subsystem.
    pub(super) fn begin(
        &mut self,
        target: &mut Target,
        volume_of: impl Fn(usize) -> VolumeId,
        context: &mut Context<'_>,
    ) {
        for shutdown in take_shutdowns(target) {
            let volumes: Vec<VolumeId> =
                context.namespaces(volume_of(shutdown.subsystem)).into_iter().map(|info| info.volume).collect();
            for volume in volumes {
                if context.volume(volume).is_none_or(|info| info.protected) {
                    continue;
                }
                let flush = VolumeRequest { volume, operation: Operation::Flush, first: 0, count: 0, source: 0 };
                let tag = TAGS + self.flushes_made;
                match context.submit(tag, flush, Payload::None) {
                    Ok(()) => {
                        self.flushes_made += 1;
                        self.flushes.insert(tag, shutdown);
                    }
                    Err(refused) => tracing::debug!(%refused, %volume, "a drive is not flushed before a shutdown"),
                }
            }
            self.settle(target, shutdown);
        }
    }

    /// A request was answered; returns whether it was one of these flushes.
    pub(super) fn answered(&mut self, target: &mut Target, tag: u64) -> bool {
        let Some(shutdown) = self.flushes.remove(&tag) else { return false };
        self.settle(target, shutdown);
        true
    }

    fn settle(&self, target: &mut Target, shutdown: Shutdown) {
        if self.flushes.values().all(|other| *other != shutdown) {
            shut_down(target, shutdown);
        }
    }
}

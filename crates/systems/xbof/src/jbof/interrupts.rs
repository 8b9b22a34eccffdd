//! Completions whose interrupts are coalesced: from the completion entry in the host's memory to its driver.

use super::enclosure::{Enclosure, Event};
use flashyard_host::Posted;
use flashyard_stats::Cause;
use flashyard_units::{DriveId, SimTime};

/// The completion entry of a request is in the host's memory; its interrupt may wait for others.
pub(super) fn posted(enclosure: &mut Enclosure, now: SimTime, id: u32) {
    let drive = enclosure.requests[id as usize].drive;
    match enclosure.interrupts[drive.index()].post(now, id, &enclosure.config.host.interface) {
        Posted::Signal => signal(enclosure, now, drive),
        Posted::Due(at) => enclosure.runner.queue.push(at, Event::Interrupt { drive }),
        Posted::Waits => {}
    }
}

/// The aggregation time of a drive's completions may be over.
pub(super) fn aggregated(enclosure: &mut Enclosure, now: SimTime, drive: DriveId) {
    if enclosure.interrupts[drive.index()].is_due(now, &enclosure.config.host.interface) {
        signal(enclosure, now, drive);
    }
}

/// The drive interrupts its host, which hears of all completions that waited for that.
fn signal(enclosure: &mut Enclosure, now: SimTime, drive: DriveId) {
    let host = &enclosure.config.host;
    let heard = now + host.interface.notice() + host.complete_latency;
    for (id, posted) in enclosure.interrupts[drive.index()].signal() {
        enclosure.journeys[id as usize].time.add(Cause::Host, now.since(posted));
        enclosure.runner.queue.push(heard, Event::Finished { request: id });
    }
}

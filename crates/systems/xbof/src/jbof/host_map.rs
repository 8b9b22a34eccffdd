//! The map of open-channel drives, which the host keeps: a page of it that the host does not hold comes by a command of its
//! own, as any other data of the drive.
//!
//! Source: [P] source of xbof §3.1: the host's software and memory take the place of the drives'. What a command costs is
//! what each command of the host costs; what the host computes for one of a page beyond that is left out [A].

use super::enclosure::{Enclosure, Event};
use flashyard_ssd::DriveEvent;
use flashyard_units::{DriveId, SimTime};

/// Sends the host's command `event` to `drive`, through the driver on a core of its host. The software that looked the page
/// up has a core already, and sends the command at once: it does not queue behind requests that have yet to get one [A].
pub(super) fn send(enclosure: &mut Enclosure, now: SimTime, drive: DriveId, event: DriveEvent) {
    let host = &enclosure.config.host;
    let driver = host.clock.span_of(host.driver_cycles);
    enclosure.host_of(drive).run(now, driver);
    let arrives = now + driver + enclosure.submit_latency;
    let generation = enclosure.drives[drive.index()].generation() as u16;
    enclosure.runner.queue.push(arrives, Event::Drive { drive, generation, event });
}

//! A JBOF as a world that serves: each drive is a volume, and its number is that of both.
//!
//! Inside, drives are bare numbers; here they become those of the seam.

use super::config::drive_of;
use super::live::LiveJbof;
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits, VolumeRequest, check};
use flashyard_flash::{Layout, SLOT_BYTES, Slot};
use flashyard_ftl::SuperblockContents;
use flashyard_kernel::{FreeRun, Pace, World};
use flashyard_served::{Capacity, Control, Effect, Gauges, Health, Presence, Refused, Served};
use flashyard_units::{DriveId, SimTime, VolumeId};

/// Events between two looks whether a client still waits, where no clock rules.
const EVENTS_PER_LOOK: u64 = 2;

impl World for LiveJbof {
    // Compiled where it is used: a second loop over the events in this crate would keep the compiler from making one
    // piece of the loop of simulations, which costs a third of their speed.
    #[inline]
    fn run(&mut self, pace: &mut dyn Pace, events_max: u64) -> u64 {
        self.run(pace, events_max)
    }

    fn now(&self) -> SimTime {
        self.now()
    }

    fn next_due(&self) -> Option<SimTime> {
        self.next_due()
    }

    fn steps(&self) -> u64 {
        self.steps()
    }
}

impl Served for LiveJbof {
    fn volumes(&self) -> Vec<VolumeInfo> {
        let volume = |id: VolumeId| VolumeInfo {
            id,
            block_bytes: SLOT_BYTES,
            limits: self.limits(DriveId::new(id.get())),
            protected: self.config(DriveId::new(id.get())).power_loss_protection,
        };
        VolumeId::first(self.drives()).map(volume).collect()
    }

    fn drives_of(&self, volume: VolumeId) -> Vec<DriveId> {
        vec![drive_of(volume)]
    }

    fn drives(&self) -> u16 {
        self.drives()
    }

    fn layout(&self, drive: DriveId) -> Layout {
        *self.layout(drive)
    }

    fn contents(&self, drive: DriveId) -> Vec<SuperblockContents> {
        self.contents(drive)
    }

    fn place(&self, volume: VolumeId, block: u64) -> Option<(DriveId, Slot)> {
        let drive = drive_of(volume);
        // A drive has less than 2^32 slots.
        Some((drive, self.place(drive, block as u32)))
    }

    fn recoverable(&self, drive: DriveId) -> Vec<Slot> {
        self.world.enclosure.drives[drive.index()].recoverable().collect()
    }

    fn latest(&self) -> SimTime {
        Self::LAST
    }

    fn submit(&mut self, now: SimTime, token: u32, request: &VolumeRequest) -> Result<(), Refused> {
        self.check_time(now);
        let VolumeRequest { volume, operation, first, count, source } = *request;
        let volumes = self.drives();
        if volume.get() >= volumes {
            return Err(Refused::NoVolume { volume, volumes });
        }
        let drive = drive_of(volume);
        check(request, &self.limits(drive))?;
        // A drive has less than 2^32 slots: what was checked is no further.
        let range = if operation == Operation::Flush { (0, 0) } else { (first as u32, count) };
        self.world.take_in(now, token, drive, operation, range, source as u32);
        self.world.settle(now);
        self.world.gather();
        Ok(())
    }

    fn control(&mut self, now: SimTime, control: Control) -> Result<(), Refused> {
        self.control(now, control).map_err(|refused| Refused::Control { reason: refused.to_string() })
    }

    fn take_effects(&mut self, into: &mut Vec<Effect>) {
        if let Some(book) = &mut self.world.book {
            into.append(&mut book.effects);
        }
    }

    // As `run` above.
    #[inline]
    fn run_in_progress(&mut self, events_max: u64) -> u64 {
        let mut events = 0;
        while events < events_max && self.in_progress() > 0 {
            let handled = self.run(&mut FreeRun, EVENTS_PER_LOOK);
            if handled == 0 {
                break;
            }
            events += handled;
        }
        events
    }

    fn in_flight(&self) -> u32 {
        self.in_flight()
    }

    fn in_progress(&self) -> u32 {
        self.in_progress()
    }

    fn keeps(&self, token: u32) -> bool {
        self.keeps(token)
    }

    fn presence(&self, drive: DriveId) -> Presence {
        self.presence(drive)
    }

    fn is_pulled(&self, drive: DriveId) -> bool {
        self.is_pulled(drive)
    }

    fn health(&self, drive: DriveId, now: SimTime) -> Health {
        self.health(drive, now)
    }

    fn capacity(&self, drive: DriveId) -> Option<Capacity> {
        self.capacity(drive)
    }

    fn erase_counts(&self, drive: DriveId) -> Vec<u32> {
        self.erase_counts(drive).collect()
    }

    fn retired(&self, drive: DriveId) -> Vec<u32> {
        self.retired(drive).collect()
    }

    fn gauges(&mut self, now: SimTime) -> Gauges {
        self.gauges(now)
    }
}

impl LiveJbof {
    fn limits(&self, drive: DriveId) -> VolumeLimits {
        VolumeLimits::new(self.slots(drive).into(), self.remaps(drive))
    }
}

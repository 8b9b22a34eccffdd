//! A JBOF as a world that serves: each drive is a volume, and its number is that of both.
//!
//! Inside, drives are bare numbers and have their own words for what is done to them; here they become those of the seam.

use super::control::Control as DriveControl;
use super::gauges::{
    Capacity as DriveCapacity, DriveGauges as GaugesOfDrive, Gauges as JbofGauges, Health as DriveHealth,
    Presence as DrivePresence,
};
use super::live::{LiveEffect, LiveJbof};
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits, VolumeRequest, check};
use flashyard_flash::{Layout, SLOT_BYTES};
use flashyard_ftl::SuperblockContents;
use flashyard_kernel::{Pace, World};
use flashyard_served::{
    Capacity, Control, CoreLoan, DriveGauges, Effect, Gauges, Health, MemoryLoan, Presence, Refused, Served,
};
use flashyard_units::{DriveId, SimTime, VolumeId};

impl World for LiveJbof {
    // Compiled where it is used: a second loop over the events in this crate would keep the compiler from making one piece
    // of the loop of simulations, which costs a third of their speed.
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
            limits: self.limits(id.get()),
            protected: self.config(id.get()).power_loss_protection,
        };
        VolumeId::first(self.drives()).map(volume).collect()
    }

    fn drive_of(&self, volume: VolumeId) -> DriveId {
        DriveId::new(volume.get())
    }

    fn drives(&self) -> u16 {
        self.drives()
    }

    fn layout(&self, drive: DriveId) -> Layout {
        *self.layout(drive.get())
    }

    fn contents(&self, drive: DriveId) -> Vec<SuperblockContents> {
        self.contents(drive.get())
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
        check(request, &self.limits(volume.get()))?;
        // A drive has less than 2^32 slots: what was checked is no further.
        let range = if operation == Operation::Flush { (0, 0) } else { (first as u32, count) };
        self.world.take_in(now, token, volume.get(), operation, range, source as u32);
        self.world.settle(now);
        self.world.gather();
        Ok(())
    }

    fn control(&mut self, now: SimTime, control: Control) -> Result<(), Refused> {
        self.control(now, control.into()).map_err(|refused| Refused::Control { reason: refused.to_string() })
    }

    fn take_effects(&mut self, into: &mut Vec<Effect>) {
        if let Some(book) = &mut self.world.book {
            into.extend(book.effects.drain(..).map(Effect::from));
        }
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
        self.presence(drive.get()).into()
    }

    fn is_pulled(&self, drive: DriveId) -> bool {
        self.is_pulled(drive.get())
    }

    fn health(&self, drive: DriveId, now: SimTime) -> Health {
        self.health(drive.get(), now).into()
    }

    fn capacity(&self, drive: DriveId) -> Option<Capacity> {
        self.capacity(drive.get()).map(Capacity::from)
    }

    fn erase_counts(&self, drive: DriveId) -> Vec<u32> {
        self.erase_counts(drive.get()).collect()
    }

    fn retired(&self, drive: DriveId) -> Vec<u32> {
        self.retired(drive.get()).collect()
    }

    fn gauges(&mut self, now: SimTime) -> Gauges {
        let segment_bytes = self.segment_bytes();
        let JbofGauges { at, span, drives, processor_lent, memory_lent, harvests } = self.gauges(now);
        let cores = |(lender, borrower, cores)| CoreLoan {
            lender: DriveId::new(lender),
            borrower: DriveId::new(borrower),
            cores,
        };
        let memory = memory_lent.into_iter().map(|lent| MemoryLoan {
            lender: DriveId::new(lent.loan.lender),
            borrower: DriveId::new(lent.borrower),
            segments: lent.segments,
        });
        Gauges {
            at,
            span,
            drives: drives.into_iter().map(DriveGauges::from).collect(),
            processor_lent: processor_lent.into_iter().map(cores).collect(),
            memory_lent: memory.collect(),
            segment_bytes,
            harvests,
        }
    }
}

impl LiveJbof {
    fn limits(&self, drive: u16) -> VolumeLimits {
        VolumeLimits { blocks: self.slots(drive).into(), remaps: self.remaps(drive) }
    }
}

impl From<LiveEffect> for Effect {
    #[inline]
    fn from(effect: LiveEffect) -> Self {
        match effect {
            LiveEffect::Payload { drive, movement } => Self::Payload { drive: DriveId::new(drive), movement },
            LiveEffect::Answered { token, at, answer } => Self::Answered { token, at, answer },
            LiveEffect::Gone { drive } => Self::Gone { volume: VolumeId::new(drive) },
            LiveEffect::Back { drive } => Self::Back { volume: VolumeId::new(drive) },
        }
    }
}

impl From<Control> for DriveControl {
    fn from(control: Control) -> Self {
        match control {
            Control::Pull { drive } => Self::Pull { drive: drive.get() },
            Control::Insert { drive } => Self::Insert { drive: drive.get() },
            Control::PowerOff => Self::PowerOff,
            Control::PowerOn => Self::PowerOn,
            Control::Link { drive, up } => Self::Link { drive: drive.get(), up },
            Control::Hang { drive, span } => Self::Hang { drive: drive.get(), span },
            Control::Harvest { on } => Self::Harvest { on },
            Control::Age { drive, raw_bit_error_rate } => Self::Age { drive: drive.get(), raw_bit_error_rate },
            Control::Wear { drive, level } => Self::Wear { drive: drive.get(), level },
            Control::Degrade { drive, on } => Self::Degrade { drive: drive.get(), on },
            Control::Retire { drive, rate, retries } => Self::Retire { drive: drive.get(), rate, retries },
            Control::Reinstate { drive, rate, retries } => Self::Reinstate { drive: drive.get(), rate, retries },
            Control::Retired { drive, superblock } => Self::Retired { drive: drive.get(), superblock },
            Control::Drop { token } => Self::Drop { token },
        }
    }
}

impl From<DrivePresence> for Presence {
    fn from(presence: DrivePresence) -> Self {
        match presence {
            DrivePresence::Ready => Self::Ready,
            DrivePresence::NoPower => Self::NoPower,
            DrivePresence::NoLink => Self::NoLink,
            DrivePresence::Starting => Self::Starting,
        }
    }
}

impl From<DriveHealth> for Health {
    fn from(of: DriveHealth) -> Self {
        let DriveHealth {
            reads,
            writes,
            read_bytes,
            write_bytes,
            busy,
            breaks,
            erases_mean,
            erases_max,
            host_slots,
            programmed_slots,
            raw_bit_error_rate,
            page_reads,
            read_retries,
            media_errors,
            endurance,
            spare_superblocks,
            retired_superblocks,
            worn_out,
            degraded,
        } = of;
        Self {
            reads,
            writes,
            read_bytes,
            write_bytes,
            busy,
            breaks,
            erases_mean,
            erases_max,
            host_slots,
            programmed_slots,
            raw_bit_error_rate,
            page_reads,
            read_retries,
            media_errors,
            endurance,
            spare_superblocks,
            retired_superblocks,
            worn_out,
            degraded,
        }
    }
}

impl From<DriveCapacity> for Capacity {
    fn from(of: DriveCapacity) -> Self {
        let DriveCapacity {
            raw_slots,
            physical_slots,
            mapped_slots,
            states,
            retires_at,
            degraded,
            page_reads,
            read_retries,
        } = of;
        Self { raw_slots, physical_slots, mapped_slots, states, retires_at, degraded, page_reads, read_retries }
    }
}

impl From<GaugesOfDrive> for DriveGauges {
    fn from(of: GaugesOfDrive) -> Self {
        let GaugesOfDrive {
            presence,
            pulled,
            depth,
            ios,
            read_bytes,
            write_bytes,
            latency,
            processor,
            lent,
            bus,
            die,
            memory,
            misses,
            redirected,
            health,
        } = of;
        Self {
            presence: presence.into(),
            pulled,
            depth,
            ios,
            read_bytes,
            write_bytes,
            latency,
            processor,
            lent,
            bus,
            die,
            memory,
            misses,
            redirected,
            health: health.into(),
        }
    }
}

//! A mirror as a world that serves: one volume, whose bytes lie on both drives.

use crate::config::VOLUME;
use crate::live::LiveMirror;
use crate::marks::DriveCounters;
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits, VolumeRequest, check};
use flashyard_flash::{Layout, SLOT_BYTES, Slot};
use flashyard_ftl::SuperblockContents;
use flashyard_kernel::{FreeRun, Pace, World};
use flashyard_served::{Capacity, Control, DriveGauges, Effect, Gauges, Health, Presence, Refused, Served};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{DriveId, SimSpan, SimTime, VolumeId};

/// Events between two looks whether a client still waits, where no clock rules.
const EVENTS_PER_LOOK: u64 = 2;

impl World for LiveMirror {
    fn run(&mut self, pace: &mut dyn Pace, events_max: u64) -> u64 {
        self.run(pace, events_max)
    }

    fn now(&self) -> SimTime {
        self.world.runner.now()
    }

    fn next_due(&self) -> Option<SimTime> {
        self.world.runner.queue.next_time()
    }

    fn steps(&self) -> u64 {
        self.world.steps
    }
}

impl Served for LiveMirror {
    fn volumes(&self) -> Vec<VolumeInfo> {
        let protected = self.world.config.drives.iter().all(|drive| drive.power_loss_protection);
        vec![VolumeInfo { id: VOLUME, block_bytes: SLOT_BYTES, limits: self.limits(), protected }]
    }

    fn drives_of(&self, _volume: VolumeId) -> Vec<DriveId> {
        DriveId::first(2).collect()
    }

    fn drives(&self) -> u16 {
        2
    }

    fn layout(&self, drive: DriveId) -> Layout {
        *self.world.drives[drive.index()].data.ftl.layout()
    }

    fn contents(&self, drive: DriveId) -> Vec<SuperblockContents> {
        self.world.drives[drive.index()].data.contents()
    }

    fn place(&self, _volume: VolumeId, block: u64) -> Option<(DriveId, Slot)> {
        // A drive has less than 2^32 slots.
        let block = block as u32;
        let side = |drive: DriveId| &self.world.sides[drive.index()];
        let drive = DriveId::first(2).find(|&drive| side(drive).serves && !side(drive).stale.contains(block))?;
        Some((drive, self.world.drives[drive.index()].data.ftl.lookup(block)))
    }

    fn latest(&self) -> SimTime {
        Self::LAST
    }

    fn submit(&mut self, now: SimTime, token: u32, request: &VolumeRequest) -> Result<(), Refused> {
        self.check_time(now);
        let VolumeRequest { volume, operation, first, count, .. } = *request;
        if volume.get() > 0 {
            return Err(Refused::NoVolume { volume, volumes: 1 });
        }
        check(request, &self.limits())?;
        // A drive has less than 2^32 slots: what was checked is no further.
        let (first, count) = if operation == Operation::Flush { (0, 0) } else { (first as u32, count) };
        self.take_in(now, token, operation, first, count);
        Ok(())
    }

    fn control(&mut self, now: SimTime, control: Control) -> Result<(), Refused> {
        self.check_time(now);
        match control {
            Control::Pull { drive } => {
                let drive = self.check_power(drive)?;
                self.world.cut_power(now, drive, SimTime::MAX);
                self.book_mut().pulled[drive] = true;
            }
            Control::Insert { drive } => {
                let drive = check_drive(drive)?;
                self.give_power(now, drive);
            }
            Control::PowerOff => {
                DriveId::first(2).try_for_each(|drive| self.check_power(drive).map(|_| ()))?;
                (0..2).for_each(|drive| self.world.cut_power(now, drive, SimTime::MAX));
            }
            Control::PowerOn => (0..2).for_each(|drive| self.give_power(now, drive)),
            Control::Age { drive, raw_bit_error_rate: rate } => {
                if !(0.0..=0.5).contains(&rate) {
                    return Err(refused(format!("{rate} is no bit error rate, give 0 to 0.5")));
                }
                self.world.drives[check_drive(drive)?].data.flash.nand.set_raw_bit_error_rate(rate);
            }
            Control::Degrade { drive, on } => self.world.drives[check_drive(drive)?].data.ftl.set_degraded(on),
            Control::Drop { token } => self.world.drop_request(now, token),
            // Its drives lend each other nothing.
            Control::Harvest { .. } => {}
            Control::Link { .. }
            | Control::Hang { .. }
            | Control::Wear { .. }
            | Control::Retire { .. }
            | Control::Reinstate { .. }
            | Control::Retired { .. } => {
                let reason = "a mirror does not model this; pull a drive, or cut the power of both";
                return Err(refused(reason.to_owned()));
            }
        }
        self.after(now);
        Ok(())
    }

    fn take_effects(&mut self, into: &mut Vec<Effect>) {
        into.append(&mut self.book_mut().effects);
    }

    fn in_flight(&self) -> u32 {
        self.book().in_flight
    }

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

    fn in_progress(&self) -> u32 {
        self.in_progress()
    }

    /// The commands of a drive that is away have vanished, and those of one that is there are answered in their time.
    fn keeps(&self, _token: u32) -> bool {
        false
    }

    fn presence(&self, drive: DriveId) -> Presence {
        let side = &self.world.sides[drive.index()];
        match (side.off, side.serves) {
            (true, _) => Presence::NoPower,
            (false, true) => Presence::Ready,
            (false, false) => Presence::Starting,
        }
    }

    fn is_pulled(&self, drive: DriveId) -> bool {
        self.book().pulled[drive.index()]
    }

    fn health(&self, drive: DriveId, _now: SimTime) -> Health {
        let (side, data) = (&self.world.sides[drive.index()], &self.world.drives[drive.index()].data);
        let erases: Vec<u32> = data.ftl.erase_counts().collect();
        let (ftl, nand, counters) = (data.ftl.counters(), &data.flash.nand, data.counters());
        let (layout, exported) = (data.ftl.layout(), data.ftl.config().logical_slots);
        Health {
            reads: side.commands[0],
            writes: side.commands[1],
            read_bytes: counters.read_bytes,
            write_bytes: counters.write_bytes,
            busy: SimSpan::ZERO,
            breaks: side.breaks,
            erases_mean: erases.iter().map(|&count| u64::from(count)).sum::<u64>() as f64 / erases.len().max(1) as f64,
            erases_max: erases.iter().copied().max().unwrap_or(0),
            host_slots: ftl.host_slots,
            programmed_slots: ftl.programmed_slots(),
            mapped_slots: data.ftl.valid_counts().map(u64::from).sum(),
            raw_bit_error_rate: nand.config().raw_bit_error_rate,
            page_reads: nand.counters().page_reads,
            read_retries: nand.counters().read_retries,
            media_errors: counters.media_errors,
            endurance: data.ftl.config().endurance.filter(|_| data.flash.nand.config().wear.is_some()),
            spare_superblocks: layout.superblocks.saturating_sub(exported.div_ceil(layout.slots_per_superblock)),
            retired_superblocks: data.ftl.retired_superblocks(),
            worn_out: side.worn_out,
            degraded: data.ftl.degraded(),
        }
    }

    fn capacity(&self, _drive: DriveId) -> Option<Capacity> {
        None
    }

    fn erase_counts(&self, drive: DriveId) -> Vec<u32> {
        self.world.drives[drive.index()].data.ftl.erase_counts().collect()
    }

    fn retired(&self, drive: DriveId) -> Vec<u32> {
        let ftl = &self.world.drives[drive.index()].data.ftl;
        (0..ftl.layout().superblocks).filter(|&superblock| ftl.is_retired(superblock)).collect()
    }

    fn gauges(&mut self, now: SimTime) -> Gauges {
        use flashyard_measure::Streamed;
        let reading = self.world.reading(now);
        let book = self.book_mut();
        let before = book.reading.replace(reading);
        let latency = std::mem::take(&mut book.latency);
        let span = now.since(before.map_or(SimTime::ZERO, |before| before.at));
        let zero = [DriveCounters::default(); 2];
        let before = before.map_or(zero, |before| before.drives);
        let drives = DriveId::first(2).map(|drive| {
            let (before, after) = (&before[drive.index()], &reading.drives[drive.index()]);
            // A request is of the volume: its latency stands with the first drive.
            let latency = if drive.index() == 0 { latency.clone() } else { LatencyHistogram::new() };
            self.drive_gauges(drive, before, after, latency, now, span)
        });
        Gauges {
            at: now,
            span,
            drives: drives.collect(),
            processor_lent: Vec::new(),
            memory_lent: Vec::new(),
            segment_bytes: u64::from(SLOT_BYTES),
            harvests: false,
        }
    }
}

impl LiveMirror {
    fn limits(&self) -> VolumeLimits {
        VolumeLimits::new(self.world.config.blocks().into(), false)
    }

    fn check_time(&self, now: SimTime) {
        let next = self.next_due().unwrap_or(SimTime::MAX);
        assert!(self.now() <= now && now <= next, "asked at {now:?}, between {:?} and {next:?}", self.now());
    }

    fn check_power(&self, drive: DriveId) -> Result<usize, Refused> {
        let number = check_drive(drive)?;
        if self.world.config.drives[number].power_loss_protection {
            return Ok(number);
        }
        Err(refused(format!(
            "drive {drive} has no power-loss protection: a mirror does not copy back what it would lose"
        )))
    }

    fn give_power(&mut self, now: SimTime, drive: usize) {
        self.book_mut().pulled[drive] = false;
        self.world.sides[drive].off_until = now;
        self.world.power_on(now, drive);
    }

    fn drive_gauges(
        &self,
        drive: DriveId,
        before: &DriveCounters,
        after: &DriveCounters,
        latency: LatencyHistogram,
        now: SimTime,
        span: SimSpan,
    ) -> DriveGauges {
        let model = &self.world.drives[drive.index()];
        let geometry = &model.config().nand.geometry;
        // A power cut takes back what was booked for work that did not come about.
        let since = |after: SimSpan, before: SimSpan| SimSpan::from_ps(after.as_ps().saturating_sub(before.as_ps()));
        let share = |after, before, servers: u32| since(after, before).ratio_of(span * u64::from(servers)).min(1.0);
        DriveGauges {
            presence: self.presence(drive),
            pulled: self.is_pulled(drive),
            depth: self.world.sides[drive.index()].depth.level(),
            ios: after.commands - before.commands,
            read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
            write_bytes: after.write_bytes.saturating_sub(before.write_bytes),
            latency,
            processor: share(after.busy, before.busy, model.compute.cores()),
            lent: 0.0,
            bus: share(after.bus, before.bus, geometry.channels),
            die: share(after.die, before.die, geometry.dies()),
            memory: model.data.cache.local_use(model.config().mapping_cache_pages),
            accesses: after.accesses.saturating_sub(before.accesses),
            misses: after.misses.saturating_sub(before.misses),
            redirected: 0.0,
            health: self.health(drive, now),
        }
    }
}

fn check_drive(drive: DriveId) -> Result<usize, Refused> {
    let reason = || refused(format!("there is no drive {drive}, give 0 to 1"));
    (drive.index() < 2).then_some(drive.index()).ok_or_else(reason)
}

fn refused(reason: String) -> Refused {
    Refused::Control { reason }
}

//! Gauges of an enclosure that serves: figures of an interval, and the health log of each drive.
//!
//! Reading them changes nothing of what the enclosure does.

use super::live::LiveJbof;
use super::result::Servers;
use super::timeline::{DriveCounters, Reading};
use super::world::Jbof;
use flashyard_served::{Capacity, CoreLoan, DriveGauges, Gauges, Health, MemoryLoan, Presence};
use flashyard_ssd::WearStates;
use flashyard_stats::LatencyHistogram;
use flashyard_units::{DriveId, SimSpan, SimTime};
use std::collections::BTreeMap;

impl LiveJbof {
    /// All counters at `now`, which is not before the last event: for series finer than [`LiveJbof::gauges`].
    pub fn reading(&mut self, now: SimTime) -> Reading {
        let Jbof { enclosure, policy, bench, .. } = &mut self.world;
        Reading::of(enclosure, policy, &bench.totals, now)
    }

    /// Figures of the interval since the last call, or since the beginning. `now` is not before the last event.
    pub fn gauges(&mut self, now: SimTime) -> Gauges {
        let reading = self.reading(now);
        let Some(book) = &mut self.world.book else { unreachable!("an enclosure that serves has a book") };
        let before = book.reading.replace(reading.clone());
        let fresh = || LatencyHistogram::new();
        let latency: Vec<_> = book.latency.iter_mut().map(|latency| std::mem::replace(latency, fresh())).collect();
        let span = now.since(before.as_ref().map_or(SimTime::ZERO, |before| before.at));
        let zero = DriveCounters::default();
        let drives = latency.into_iter().enumerate().map(|(number, latency)| {
            let before = before.as_ref().map_or(&zero, |before| &before.drives[number]);
            self.drive_gauges(DriveId::new(number as u16), before, &reading.drives[number], latency, now, span)
        });
        let drives = drives.collect();
        let lent_before: BTreeMap<_, _> =
            before.iter().flat_map(|before| before.processor_lent.iter().copied()).collect();
        let processor_lent = reading.processor_lent.iter().map(|&((lender, borrower), lent)| {
            let earlier = lent_before.get(&(lender, borrower)).copied().unwrap_or_default();
            let cores = (lent - earlier).ratio_of(span);
            CoreLoan { lender, borrower, cores }
        });
        let harvest = self.world.policy.lending().map(|lending| &lending.harvest);
        let memory_lent = harvest.into_iter().flat_map(|harvest| harvest.loans()).map(|lent| MemoryLoan {
            lender: lent.loan.lender,
            borrower: lent.borrower,
            segments: lent.segments,
        });
        Gauges {
            at: now,
            span,
            drives,
            processor_lent: processor_lent.filter(|lent| lent.cores > 0.0).collect(),
            memory_lent: memory_lent.collect(),
            segment_bytes: self.segment_bytes(),
            harvests: harvest.is_some_and(|harvest| !harvest.is_paused()),
        }
    }

    fn drive_gauges(
        &self,
        number: DriveId,
        before: &DriveCounters,
        after: &DriveCounters,
        latency: LatencyHistogram,
        now: SimTime,
        span: SimSpan,
    ) -> DriveGauges {
        let Servers { cores, channels, dies } = self.servers(number);
        // A power cut takes back what was booked for work that did not come about.
        let since = |after: SimSpan, before: SimSpan| after.saturating_sub(before);
        let share = |after, before, servers: u32| since(after, before).ratio_of(span * u64::from(servers)).min(1.0);
        let cache = &self.world.enclosure.drives[number.index()].data.cache;
        let redirected = (after.redirected - before.redirected) as f64 / 1e6;
        DriveGauges {
            presence: self.presence(number),
            pulled: self.is_pulled(number),
            depth: self.world.book.as_ref().map_or(0, |book| book.asked[number.index()].depth),
            ios: after.totals.ios - before.totals.ios,
            read_bytes: after.totals.read_bytes - before.totals.read_bytes,
            write_bytes: after.totals.write_bytes - before.totals.write_bytes,
            latency,
            processor: share(after.busy, before.busy, cores),
            lent: share(after.lent, before.lent, cores),
            bus: share(after.bus, before.bus, channels),
            die: share(after.die, before.die, dies),
            memory: cache.local_use(self.config(number).mapping_cache_pages),
            accesses: after.accesses.saturating_sub(before.accesses),
            misses: after.misses.saturating_sub(before.misses),
            redirected: if span == SimSpan::ZERO { 0.0 } else { redirected / span.as_ps() as f64 },
            health: self.health(number, now),
        }
    }

    /// Whether `drive` is out of its slot: pulled, and not put back. Panics beyond the drives.
    pub fn is_pulled(&self, drive: DriveId) -> bool {
        self.pulled[drive.index()]
    }

    /// Whether `drive` serves. Panics beyond the drives.
    pub fn presence(&self, drive: DriveId) -> Presence {
        let Some(state) = &self.world.enclosure.resilience else { return Presence::Ready };
        let health = &state.health[drive.index()];
        match (health.powered, health.linked) {
            (false, _) => Presence::NoPower,
            (true, false) => Presence::NoLink,
            (true, true) if state.has_queues(drive) => Presence::Ready,
            (true, true) => Presence::Starting,
        }
    }

    /// The health log of `drive` up to `now`. Panics beyond the drives.
    pub fn health(&self, drive: DriveId, now: SimTime) -> Health {
        let world = &self.world;
        let data = &world.enclosure.drives[drive.index()].data;
        let totals = &world.bench.totals[drive.index()];
        let asked = world.book.as_ref().map(|book| book.asked[drive.index()]).unwrap_or_default();
        let (mut sum, mut most, mut count) = (0_u64, 0, 0_u64);
        for erases in data.ftl.erase_counts() {
            sum += u64::from(erases);
            most = most.max(erases);
            count += 1;
        }
        let ftl = data.ftl.counters();
        let (layout, exported) = (data.ftl.layout(), data.ftl.config().logical_slots);
        Health {
            reads: asked.reads,
            writes: asked.writes,
            read_bytes: totals.read_bytes,
            write_bytes: totals.write_bytes,
            busy: asked.busy_until(now),
            breaks: world.enclosure.resilience.as_ref().map_or(0, |state| state.health[drive.index()].breaks),
            erases_mean: sum as f64 / count.max(1) as f64,
            erases_max: most,
            host_slots: ftl.host_slots,
            programmed_slots: ftl.programmed_slots(),
            mapped_slots: data.ftl.valid_counts().map(u64::from).sum(),
            raw_bit_error_rate: data.flash.nand.config().raw_bit_error_rate,
            page_reads: data.flash.nand.counters().page_reads,
            read_retries: data.flash.nand.counters().read_retries,
            media_errors: data.counters().media_errors,
            endurance: data.ftl.config().endurance.filter(|_| data.flash.nand.config().wear.is_some()),
            spare_superblocks: layout.superblocks.saturating_sub(exported.div_ceil(layout.slots_per_superblock)),
            retired_superblocks: data.ftl.retired_superblocks(),
            worn_out: data.is_worn_out(),
            degraded: data.ftl.degraded(),
        }
    }

    /// State of `drive` for a manager of capacity; `None` where its flash does not wear. Too slow to be asked for
    /// a hundred times a second. Panics beyond the drives.
    pub fn capacity(&self, drive: DriveId) -> Option<Capacity> {
        let data = &self.world.enclosure.drives[drive.index()].data;
        let states = data.wear_states()?;
        let (layout, medium) = (data.ftl.layout(), data.flash.nand.counters());
        let slots = |superblocks: u32| u64::from(superblocks) * u64::from(layout.slots_per_superblock);
        Some(Capacity {
            raw_slots: slots(layout.superblocks),
            physical_slots: slots(layout.superblocks - states.retired),
            mapped_slots: data.ftl.valid_counts().map(u64::from).sum(),
            states,
            retires_at: data.ftl.config().retire_at,
            degraded: data.ftl.degraded(),
            page_reads: medium.page_reads,
            read_retries: medium.read_retries,
        })
    }

    /// Erases of each superblock of `drive`. Panics beyond the drives.
    pub fn erase_counts(&self, drive: DriveId) -> impl Iterator<Item = u32> + '_ {
        self.world.enclosure.drives[drive.index()].data.ftl.erase_counts()
    }

    /// Superblocks of `drive` by what reading them takes; `None` where its flash does not wear. Too slow to be asked
    /// for a hundred times a second. Panics beyond the drives.
    pub fn wear_states(&self, drive: DriveId) -> Option<WearStates> {
        self.world.enclosure.drives[drive.index()].data.wear_states()
    }

    /// Superblocks of `drive` that are retired. Panics beyond the drives.
    pub fn retired(&self, drive: DriveId) -> impl Iterator<Item = u32> + '_ {
        let ftl = &self.world.enclosure.drives[drive.index()].data.ftl;
        (0..ftl.layout().superblocks).filter(|&superblock| ftl.is_retired(superblock))
    }

    /// Cores, channels and dies of `drive`. Panics beyond the drives.
    pub fn servers(&self, drive: DriveId) -> Servers {
        let drive = &self.world.enclosure.drives[drive.index()];
        let geometry = &drive.config().nand.geometry;
        Servers { cores: drive.compute.cores(), channels: geometry.channels, dies: geometry.dies() }
    }

    /// Mapping memory of a segment, in bytes.
    pub fn segment_bytes(&self) -> u64 {
        u64::from(self.world.enclosure.config.harvest.pages_per_segment) * u64::from(flashyard_flash::SLOT_BYTES)
    }
}

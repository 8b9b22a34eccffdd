//! One drive that ages, a month at a time.

use super::config::{FleetConfig, FleetError};
use super::sampled::{exponential, normal};
use flashyard_flash::Geometry;
use flashyard_ftl::{Allocation, Ftl, FtlConfig};
use flashyard_kernel::Rng;
use flashyard_nand::{CountingMedium, EccStrength, ErrorRates, RetryRule, WearModel};
use flashyard_stats::LatencyHistogram;
use flashyard_units::SimSpan;

/// The piece of flash that stands for a drive. \[A\] small, so that a fleet's years take seconds; amplification depends on spare, not on size.
const GEOMETRY: Geometry = Geometry {
    channels: 1,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 96,
    pages_per_block: 32,
    page_bytes: 4096,
    pages_per_program: 1,
};

/// Days of a month. \[X\]
const DAYS: f64 = 30.0;
const SECONDS_OF_DAY: f64 = 86_400.0;

/// A month's load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Drive writes a day.
    pub writes_per_day: f64,
    /// Reads of pages a second and die.
    pub reads_per_second: f64,
}

/// A month of a drive, as its host and its log pages tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Mean erases of superblocks.
    pub erases: f64,
    /// Retries of a read, in the mean.
    pub retries: f64,
    /// Share of the spare superblocks that is retired.
    pub spare_used: f64,
    /// Write amplification of the month.
    pub amplification: f64,
    /// Drive writes a day.
    pub written: f64,
    /// Reads of pages a second and die.
    pub read: f64,
    /// Mean latency of reads in microseconds.
    pub mean_us: f64,
    /// 99th percentile of the latency of reads in microseconds.
    pub p99_us: f64,
    /// Share of the month for which a die worked.
    pub busy: f64,
}

/// Why a drive ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its superblocks are worn out.
    Wear,
    /// Another reason, which telemetry does not show.
    Other,
}

/// A drive.
pub struct AgeingDrive {
    ftl: Ftl,
    medium: CountingMedium,
    rng: Rng,
    wear: WearModel,
    /// Erases of each superblock count so many times.
    weakness: Vec<f64>,
    /// Erases at which each is retired.
    limits: Vec<u32>,
    spare: u32,
}

impl AgeingDrive {
    /// A drive that was filled and overwritten once at random.
    ///
    /// Errors: parameters that do not go together.
    pub fn new(config: &FleetConfig, mut rng: Rng) -> Result<Self, FleetError> {
        let ftl_config = FtlConfig {
            logical_slots: FtlConfig::logical_slots_for(&GEOMETRY, config.spare),
            allocation: Allocation::YoungestFirst,
            ..FtlConfig::default()
        };
        let wear = WearModel {
            rates: ErrorRates::tlc_2018(config.endurance),
            ecc: EccStrength { bits_per_4_kib: config.ecc_bits },
            rule: RetryRule::Halving,
            retention_days: 0.0,
        };
        wear.validate()?;
        let limit = wear.erases_beyond_retries(config.retries_max).unwrap_or(u32::from(u16::MAX));
        if limit == 0 {
            return Err(FleetError::BornRetired(config.retries_max));
        }
        let mut ftl = Ftl::new(&GEOMETRY, FtlConfig { filled_slots: ftl_config.logical_slots, ..ftl_config })?;
        let superblocks = ftl.layout().superblocks;
        let drive = config.quality[0] * normal(&mut rng);
        let weakness: Vec<f64> =
            (0..superblocks).map(|_| libm::exp(drive + config.quality[1] * normal(&mut rng))).collect();
        let limits = weakness.iter().map(|weakness| (f64::from(limit) / weakness).max(1.0) as u32).collect();
        let spare = superblocks - ftl_config.logical_slots.div_ceil(ftl.layout().slots_per_superblock);
        let mut medium = CountingMedium::default();
        for _ in 0..ftl_config.logical_slots {
            let slot = rng.below(ftl_config.logical_slots.into()) as u32;
            if ftl.age_write(slot, 0, &mut medium).is_err() {
                break;
            }
        }
        Ok(Self { ftl, medium, rng, wear, weakness, limits, spare })
    }

    /// Lives for a month and reports it, or ends in it.
    pub fn month(&mut self, config: &FleetConfig, load: Load) -> Result<Reading, Cause> {
        let amplification = self.pass(config, load)?;
        Ok(self.read(config, load, amplification))
    }

    /// Lives for a month without a report, or ends in it; returns the write amplification.
    pub fn pass(&mut self, config: &FleetConfig, load: Load) -> Result<f64, Cause> {
        let survives = libm::pow(1.0 - config.other_failures.clamp(0.0, 1.0), 1.0 / 12.0);
        if self.rng.unit() >= survives {
            return Err(Cause::Other);
        }
        let amplification = self.write(config, load)?;
        self.retire();
        if self.ftl.retired_superblocks() >= self.spare {
            return Err(Cause::Wear);
        }
        Ok(amplification)
    }

    /// Writes a part of the month and takes wear forward for the rest; returns the amplification.
    fn write(&mut self, config: &FleetConfig, load: Load) -> Result<f64, Cause> {
        let logical = self.ftl.config().logical_slots;
        let part = f64::from(config.fast_forward.max(1));
        let slots = (load.writes_per_day * DAYS * f64::from(logical) / part).max(1.0) as u64;
        let (before, counters): (Vec<u32>, _) = (self.ftl.erase_counts().collect(), *self.ftl.counters());
        for _ in 0..slots {
            let slot = self.rng.below(logical.into()) as u32;
            self.ftl.age_write(slot, 0, &mut self.medium).map_err(|_| Cause::Wear)?;
        }
        let amplification = self.ftl.counters().since(&counters).write_amplification();
        // Wear of the rest is spread evenly, as allocation of the youngest spreads it over months: a part would say who was first.
        let erased: u32 = self.ftl.erase_counts().zip(&before).map(|(now, before)| now - before).sum();
        let each = f64::from(erased) * (part - 1.0) / before.len() as f64;
        let counts: Vec<u32> = self.ftl.erase_counts().map(|now| now + (each + self.rng.unit()) as u32).collect();
        self.ftl.project_erase_counts(&counts);
        Ok(amplification)
    }

    fn retire(&mut self) {
        let worn: Vec<u32> = (0..)
            .zip(self.ftl.erase_counts().zip(&self.limits))
            .filter(|&(number, (erases, &limit))| erases >= limit && !self.ftl.is_retired(number))
            .map(|(number, _)| number)
            .collect();
        for number in worn {
            self.ftl.retire_early(number);
        }
    }

    /// Commands of the month at one die: each waits for those before it. Hosts hold commands back beyond a wait.
    fn read(&mut self, config: &FleetConfig, load: Load, amplification: f64) -> Reading {
        let retries: Vec<f64> = (0..)
            .zip(self.ftl.erase_counts().zip(&self.weakness))
            .filter(|&(number, _)| !self.ftl.is_retired(number))
            .map(|(_, (erases, weakness))| {
                let most = config.retries_max + 1;
                f64::from(self.wear.retries((f64::from(erases) * weakness) as u32, 0).min(most))
            })
            .collect();
        let writes_per_second = load.writes_per_day * config.die_pages / SECONDS_OF_DAY;
        let rate = writes_per_second + load.reads_per_second;
        let us = |span: SimSpan| span.as_us_f64();
        let (sense, program, erase) = (us(config.times.read), us(config.times.program), us(config.times.erase));
        let (mut wait, mut span, mut worked) = (0.0_f64, 0.0, 0.0);
        let mut latency = LatencyHistogram::new();
        let (mut sensed, mut reads) = (0.0, 0_u32);
        for _ in 0..config.commands {
            let gap = exponential(&mut self.rng) / rate * 1e6;
            span += gap;
            wait = (wait - gap).max(0.0).min(us(config.times.wait_max));
            let service = if self.rng.unit() * rate < load.reads_per_second {
                let retried = retries[self.rng.below(retries.len() as u64) as usize];
                sensed += retried;
                reads += 1;
                let service = sense * (1.0 + retried);
                latency.record(SimSpan::from_ns_f64((wait + service) * 1e3));
                service
            } else {
                let moved = (amplification - 1.0 + self.rng.unit()).max(0.0) as u32;
                let erased = f64::from(moved + 1) / f64::from(config.block_pages);
                let erases = f64::from(u8::from(self.rng.unit() < erased));
                f64::from(moved) * (sense + program) + program + erases * erase
            };
            wait += service;
            worked += service;
        }
        let count = self.weakness.len() as f64;
        Reading {
            erases: self.ftl.erase_counts().map(f64::from).sum::<f64>() / count,
            retries: sensed / f64::from(reads.max(1)),
            spare_used: f64::from(self.ftl.retired_superblocks()) / f64::from(self.spare.max(1)),
            amplification,
            written: load.writes_per_day,
            read: load.reads_per_second,
            mean_us: latency.mean_us(),
            p99_us: latency.percentile_us(0.99),
            busy: (worked / span).min(1.0),
        }
    }
}

//! The `[cvss]` section of scenarios: the drive, the host, and loads.

use crate::cvss::{DegradeRule, FilebenchLoad, FioLoad, HostConfig, PAGE_BYTES, StoreLoad, pages_of};
use flashyard_applications::filebench::PersonalityName;
use flashyard_describe::{Choice, RetryName, Scenario, ScenarioError, Section, Size};
use flashyard_ftl::ScoreWeights;
use flashyard_nand::{EccStrength, ErrorRates, WearModel};
use flashyard_units::SimSpan;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The sections; no command but the study reads them.
pub(super) static SECTIONS: [&Section; 1] = [&CVSS];

static CVSS: Section = Section::of::<CvssSection>("cvss", &[("cvss", &[])]);

/// The sections as they are read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sections {
    cvss: CvssSection,
}

/// All that the lives of the study have in common, and what they choose from.
#[derive(Clone, Debug)]
pub(crate) struct CvssScenario {
    /// Seed of the loads.
    pub(super) seed: u64,
    /// Drive, host and loads.
    pub(super) cvss: CvssSection,
}

/// Lives of a capacity-variant drive and its rivals, with a file system above them. A page is 1 MiB of the drive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CvssSection {
    /// The drive.
    pub(super) device: DeviceSection,
    /// The host above it.
    host: HostSection,
    /// Loads of fio by name.
    #[serde(default)]
    fio: BTreeMap<String, FioSection>,
    /// Loads of filebench by name, which is that of the personality.
    #[serde(default)]
    filebench: BTreeMap<String, FilebenchSection>,
    /// Loads of key-value stores by name.
    #[serde(default)]
    store: BTreeMap<String, StoreSection>,
}

/// The drive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceSection {
    /// Wrong bits that the code corrects in 4 KiB.
    #[schemars(range(min = 1, max = 16_384))]
    ecc_bits: u32,
    /// How retries follow from wear: halving, or by-erases (one for each 50 erases).
    retries: RetryName,
    /// Share of the first performance that a user may require of a variable drive.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0))]
    pub(super) requirement: f64,
    /// Whether the artifact's drive moves data that is read much out of worn flash.
    pub(super) exchange_read_hot: bool,
    /// Rule by which the artifact's drive is degraded: manager (too little spare space, or a reduction that failed) or drive (three quarters of
    /// its flash valid at a retirement, or a victim half valid).
    pub(super) degraded_by: Choice<DegradeRule>,
    /// Pages that a read senses beyond its end: the emulated drive of the source senses one.
    #[serde(default)]
    #[schemars(range(max = 64))]
    pub(super) pages_beyond: u32,
    /// Weights of invalid share, age and reads in equation 5.1.
    #[schemars(inner(range(min = 0.0, max = 1.0)))]
    weights: [f64; 3],
}

/// The host: its page cache, and what a request costs it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HostSection {
    /// Its page cache; without it requests pass to the drive.
    #[serde(default)]
    #[schemars(extend("x-minimum" = "0", "x-maximum" = "1 TiB"))]
    memory: Option<Size>,
    /// Share of it that may be dirty before the oldest is written back.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0))]
    dirty_share: f64,
    /// Time of a request that the page cache answers, in microseconds.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    request_us: f64,
}

/// One job of fio that is run again and again in one order: 16 KiB at random in one file, half of them reads.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FioSection {
    /// The file.
    #[schemars(extend("x-minimum" = "1 GB", "x-maximum" = "100 GB"))]
    data: Size,
    /// Exponent of Zipf's law over the requests' places, other than 1; a random map without it.
    #[serde(default)]
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 10))]
    skew: f64,
    /// Whether requests pass the page cache; writes are in place then.
    #[serde(default)]
    direct: bool,
    /// Requests of a direct job under way.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1024))]
    iodepth: u32,
    /// Data that the drive is asked to write between two timed stretches; where all is timed, data of a sample.
    #[schemars(extend("x-minimum" = "1 GB", "x-maximum" = "1000 TB"))]
    every: Size,
    /// Length of a timed stretch in virtual time, in milliseconds; without it the job is timed from end to end.
    #[schemars(range(min = 1, max = 60_000))]
    run_ms: Option<u32>,
}

fn one() -> u32 {
    1
}

/// Runs of a personality of filebench on CVFS, and random overwrites of its files between them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FilebenchSection {
    /// The personality: fileserver, netsfs or varmail.
    personality: Choice<PersonalityName>,
    /// Space of the drive that its files take when a run begins.
    #[schemars(extend("x-minimum" = "1 GB", "x-maximum" = "100 GB"))]
    data: Size,
    /// Data of the overwrites between two runs.
    #[schemars(extend("x-minimum" = "1 GB", "x-maximum" = "1000 TB"))]
    every: Size,
    /// Length of a run in virtual time, in milliseconds.
    #[schemars(range(min = 1, max = 60_000))]
    run_ms: u32,
}

/// A key-value store on CVFS: a merge tree with its log, memtable, levels and filters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StoreSection {
    /// Keys and values that are stored, each key once.
    #[schemars(extend("x-minimum" = "1 GB", "x-maximum" = "60 GB"))]
    data: Size,
    /// Bytes of a record: its key, its value, and what the store adds.
    #[schemars(range(min = 24, max = 4096))]
    record_bytes: u32,
    /// Share of requests that read.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    gets: f64,
    /// Share of requests that read and then write; what is left of both writes.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    changes: f64,
    /// Exponent of Zipf's law over the keys, other than 1; all alike without it.
    #[serde(default)]
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 10))]
    skew: f64,
    /// Data that the drive is asked to write between two timed stretches.
    #[schemars(extend("x-minimum" = "1 GB", "x-maximum" = "1000 TB"))]
    every: Size,
    /// Length of a timed stretch in virtual time, in milliseconds.
    #[schemars(range(min = 1, max = 60_000))]
    run_ms: u32,
}

impl FilebenchSection {
    fn load(&self) -> FilebenchLoad {
        FilebenchLoad {
            name: self.personality.0,
            pages: pages(self.data),
            run: SimSpan::from_ms(self.run_ms.into()),
            every_pages: self.every.0.get() / PAGE_BYTES,
        }
    }
}

impl FioSection {
    fn load(&self) -> FioLoad {
        FioLoad {
            pages: pages_of(self.data.0.get()),
            skew: self.skew,
            direct_depth: self.direct.then_some(self.iodepth),
            run: self.run_ms.map(|run_ms| SimSpan::from_ms(run_ms.into())),
            every_pages: self.every.0.get() / PAGE_BYTES,
        }
    }
}

impl StoreSection {
    fn load(&self) -> StoreLoad {
        StoreLoad {
            records: self.data.0.get() / u64::from(self.record_bytes),
            record_bytes: self.record_bytes,
            gets: self.gets,
            changes: self.changes,
            skew: self.skew,
            run: SimSpan::from_ms(self.run_ms.into()),
            every_pages: self.every.0.get() / PAGE_BYTES,
        }
    }
}

/// Whole pages of a load, whose data is at most 128 GB.
fn pages(data: Size) -> u32 {
    (data.0.get() / PAGE_BYTES) as u32
}

impl CvssScenario {
    /// The scenario with its section read.
    ///
    /// Errors: a scenario of another system.
    pub(super) fn of(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let Sections { cvss } = scenario.own()?;
        Ok(Self { seed: scenario.seed, cvss })
    }

    /// Refuses loads that have one name, and numbers that do not go together.
    ///
    /// Errors: the load, by its key.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let CvssSection { fio, filebench, store, .. } = &self.cvss;
        let message = || "another load has the name, too; give another one".to_owned();
        if let Some(name) = filebench.keys().find(|&name| fio.contains_key(name)) {
            return Err(wrong("filebench", name, "data", message()));
        }
        if let Some(name) = store.keys().find(|&name| fio.contains_key(name) || filebench.contains_key(name)) {
            return Err(wrong("store", name, "data", message()));
        }
        let of_zipf = |kind, name, skew: f64| {
            let message = || "Zipf's law is not drawn with 1; give 0.999 or 1.001".to_owned();
            if skew == 1.0 { Err(wrong(kind, name, "skew", message())) } else { Ok(()) }
        };
        for (name, section) in fio {
            of_zipf("fio", name, section.skew)?;
            if section.iodepth > 1 && !section.direct {
                let message = "buffered requests are carried out one at a time; give direct = true as well".to_owned();
                return Err(wrong("fio", name, "iodepth", message));
            }
        }
        for (name, section) in store {
            of_zipf("store", name, section.skew)?;
            if section.gets + section.changes > 1.0 {
                let message = "with gets it is more than all requests; give less".to_owned();
                return Err(wrong("store", name, "changes", message));
            }
        }
        Ok(())
    }

    /// Errors of the drive: the published power law with the chosen code and rule.
    pub(super) fn wear(&self) -> WearModel {
        WearModel {
            rates: ErrorRates::TLC_2018_AT_300,
            ecc: EccStrength { bits_per_4_kib: self.cvss.device.ecc_bits },
            rule: self.cvss.device.retries.rule(),
            retention_days: 0.0,
        }
    }

    /// Weights of equation 5.1.
    pub(super) fn weights(&self) -> ScoreWeights {
        let [invalid, age, reads] = self.cvss.device.weights;
        ScoreWeights { invalid, age, reads, ..ScoreWeights::default() }
    }

    /// The host.
    pub(super) fn host(&self) -> HostConfig {
        let HostSection { memory, dirty_share, request_us } = self.cvss.host;
        HostConfig { memory_bytes: memory.map_or(0, |memory| memory.0.get()), dirty_share, request_us }
    }

    /// A load of filebench, if that is its name.
    pub(super) fn filebench(&self, name: &str) -> Option<FilebenchLoad> {
        self.cvss.filebench.get(name).map(FilebenchSection::load)
    }

    /// A load of a store, if that is its name.
    pub(super) fn store(&self, name: &str) -> Option<StoreLoad> {
        self.cvss.store.get(name).map(StoreSection::load)
    }

    /// A load of fio.
    ///
    /// Errors: a name that is not there.
    pub(super) fn fio(&self, name: &str) -> Result<FioLoad, ScenarioError> {
        let none = || {
            let message = format!("there is no [cvss.fio.{name}], [cvss.filebench.{name}] or [cvss.store.{name}]");
            ScenarioError::value("cvss", message)
        };
        self.cvss.fio.get(name).map(FioSection::load).ok_or_else(none)
    }
}

/// A wrong value of a load.
fn wrong(kind: &str, name: &str, key: &'static str, message: String) -> ScenarioError {
    ScenarioError::In {
        path: format!("cvss.{kind}.{name}."),
        label: format!("[cvss.{kind}.{name}]"),
        source: Box::new(ScenarioError::value(key, message)),
    }
}

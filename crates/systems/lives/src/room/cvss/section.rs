//! The `[cvss]` section of scenarios: the drive, file systems as sets of causes, and loads.

use crate::cvss::{
    Cleaning, Discards, FileSystem, FileSystemConfig, FilebenchLoad, HostConfig, LOGICAL_PAGES, Load, MixName,
    PAGE_BYTES, PageLoad, Placement, Reuse, StoreLoad, TreeLoad,
};
use flashyard_applications::filebench::PersonalityName;
use flashyard_describe::{Choice, Policy, RetryName, Scenario, ScenarioError, Section, Size};
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
    /// Drive, file systems and loads.
    pub(super) cvss: CvssSection,
}

/// Lives of a capacity-variant drive and its rivals, with a file system above them. A page is 1 MiB of the drive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CvssSection {
    /// Host writes between two samples.
    #[schemars(extend("x-minimum" = "1 GB", "x-maximum" = "1000 TB"))]
    sample: Size,
    /// The drive.
    pub(super) device: DeviceSection,
    /// The host above it.
    host: HostSection,
    /// File systems by name, each one set of causes.
    file_system: BTreeMap<String, FileSystemSection>,
    /// Loads of overwritten pages by name.
    #[serde(default)]
    overwrites: BTreeMap<String, OverwritesSection>,
    /// Loads of filebench by name, which is that of the personality.
    #[serde(default)]
    filebench: BTreeMap<String, FilebenchSection>,
    /// Loads of key-value stores by name.
    #[serde(default)]
    store: BTreeMap<String, StoreSection>,
    /// Loads of log-structured merge trees by name, none of which is that of an overwriting load.
    #[serde(default)]
    tree: BTreeMap<String, TreeSection>,
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
    /// Share of the first performance that the tuned drive must keep.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0))]
    pub(super) requirement: f64,
    /// Space by what is used of it, when the user gives the rest back.
    #[schemars(range(max = 1000.0), extend("exclusiveMinimum" = 1))]
    pub(super) give_back_to: f64,
    /// Whether the artifact's drive moves data that is read much out of worn flash.
    pub(super) exchange_read_hot: bool,
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

/// A set of causes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileSystemSection {
    /// Where data goes: in-place or log.
    placement: Choice<Placement>,
    /// When the drive learns which data is no longer needed: immediate, idle (under load it never does) or
    /// limited(RATE), with the discards for each page written.
    discards: Policy<Discards>,
    /// How a log makes room when free sections are short: copying or threaded.
    cleaning: Choice<Cleaning>,
    /// Whether free sections lie scattered and a log takes any of them, in place of the next one by address.
    #[serde(default)]
    scattered: bool,
    /// Pages of a section.
    #[schemars(range(min = 1, max = 1024))]
    section_pages: u32,
}

/// Overwrites of pages, and reads of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OverwritesSection {
    /// Data in all.
    #[schemars(extend("x-minimum" = "1 MiB", "x-maximum" = "128 GB"))]
    data: Size,
    /// Pages that are overwritten together.
    #[schemars(range(min = 1, max = 65_536))]
    unit_pages: u32,
    /// Exponent of the writes' Zipf distribution over units; uniform ones without it.
    #[serde(default)]
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 10))]
    write_skew: f64,
    /// Exponent of the reads', over the same order of units; uniform ones without it.
    #[serde(default)]
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 10))]
    read_skew: f64,
    /// Whether a unit is a file that is deleted and made again.
    #[serde(default)]
    recreates: bool,
    /// Whether the load is one job of fio that is run again and again, reads and writes at random, half each, in one order;
    /// every unit is drawn independently otherwise.
    #[serde(default)]
    repeat: bool,
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
    /// Its clients: ycsb-a or ycsb-f.
    clients: Choice<MixName>,
    /// Records of 1,000 bytes.
    #[schemars(range(min = 1_000_000, max = 60_000_000))]
    records: u32,
    /// Data that the drive is asked to write between two timed stretches.
    #[schemars(extend("x-minimum" = "1 GB", "x-maximum" = "1000 TB"))]
    every: Size,
    /// Length of a timed stretch in virtual time, in milliseconds.
    #[schemars(range(min = 1, max = 60_000))]
    run_ms: u32,
}

/// A log-structured merge tree.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TreeSection {
    /// The data set, which is the last level.
    #[schemars(extend("x-minimum" = "1 MiB", "x-maximum" = "128 GB"))]
    data: Size,
    /// Pages of a file.
    #[schemars(range(min = 1, max = 4096))]
    file_pages: u32,
    /// Ratio of the sizes of levels.
    #[schemars(range(min = 2, max = 1000))]
    fan_out: u32,
    /// Share of the reads that find their key in data that was flushed lately; the others are spread over all files.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    read_recent: f64,
    /// Share of flushed data that a merge into the second level drops, because it was updated again.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    updated: f64,
    /// Reads of a record for each update of one.
    #[schemars(range(min = 0.0, max = 1000.0))]
    reads_per_update: f64,
}

impl FileSystemSection {
    fn config(&self) -> FileSystemConfig {
        FileSystemConfig {
            placement: self.placement.0,
            discards: self.discards.0,
            cleaning: self.cleaning.0,
            reuse: if self.scattered { Reuse::Scattered } else { Reuse::NextByAddress },
            section_pages: self.section_pages,
        }
    }
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

impl OverwritesSection {
    fn load(&self) -> PageLoad {
        PageLoad {
            // Whole units only.
            pages: pages(self.data) / self.unit_pages * self.unit_pages,
            unit_pages: self.unit_pages,
            write_skew: self.write_skew,
            read_skew: self.read_skew,
            recreates: self.recreates,
            repeats: self.repeat,
        }
    }
}

impl TreeSection {
    fn load(&self) -> TreeLoad {
        TreeLoad {
            data_pages: pages(self.data),
            file_pages: self.file_pages,
            fan_out: self.fan_out,
            read_recent: self.read_recent,
            updated: self.updated,
            reads_per_update: self.reads_per_update,
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

    /// Refuses loads that have one name, and those that the drive has no room for under some file system.
    ///
    /// Errors: the load, by its key.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let CvssSection { overwrites, tree, filebench, store, .. } = &self.cvss;
        let taken = |name: &&String| overwrites.contains_key(*name) || tree.contains_key(*name);
        let message = || "another load has the name, too; give another one".to_owned();
        if let Some(name) = filebench.keys().find(taken) {
            return Err(wrong("filebench", name, "data", message()));
        }
        if let Some(name) = store.keys().find(|name| taken(name) || filebench.contains_key(*name)) {
            return Err(wrong("store", name, "records", message()));
        }
        for (name, section) in overwrites {
            let load = section.load();
            if load.pages == 0 {
                let message = format!("{} pages are more than the load has; give less", load.unit_pages);
                return Err(wrong("overwrites", name, "unit_pages", message));
            }
            self.fits("overwrites", name, load.pages)?;
        }
        for (name, section) in tree {
            if overwrites.contains_key(name) {
                let message = format!("[cvss.overwrites.{name}] has the name, too; give another one");
                return Err(wrong("tree", name, "data", message));
            }
            self.fits("tree", name, section.load().pages())?;
        }
        Ok(())
    }

    fn fits(&self, kind: &str, name: &str, pages: u32) -> Result<(), ScenarioError> {
        for (file_system, section) in &self.cvss.file_system {
            let room = LOGICAL_PAGES.saturating_sub(FileSystem::kept(&section.config()));
            if pages > room {
                let message = format!(
                    "the load stores up to {pages} MiB at once, and [cvss.file_system.{file_system}] has room for {room} \
                     MiB; give less"
                );
                return Err(wrong(kind, name, "data", message));
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

    /// Model pages between two samples, at least one.
    pub(super) fn sample_pages(&self) -> u64 {
        self.cvss.sample.0.get() / PAGE_BYTES
    }

    /// A set of causes by its name.
    ///
    /// Errors: a name that is not there.
    pub(super) fn file_system(&self, name: &str) -> Result<FileSystemConfig, ScenarioError> {
        let section = self.cvss.file_system.get(name);
        let none = || ScenarioError::value("cvss.file_system", format!("there is no [cvss.file_system.{name}]"));
        section.map(FileSystemSection::config).ok_or_else(none)
    }

    /// A load of filebench, if that is its name.
    pub(super) fn filebench(&self, name: &str) -> Option<FilebenchLoad> {
        self.cvss.filebench.get(name).map(FilebenchSection::load)
    }

    /// A load of a store, if that is its name.
    pub(super) fn store(&self, name: &str) -> Option<StoreLoad> {
        self.cvss.store.get(name).map(|section| StoreLoad {
            mix: section.clients.0,
            records: section.records.into(),
            run: SimSpan::from_ms(section.run_ms.into()),
            every_pages: section.every.0.get() / PAGE_BYTES,
        })
    }

    /// A load by its name.
    ///
    /// Errors: a name that is not there.
    pub(super) fn load(&self, name: &str) -> Result<Load, ScenarioError> {
        let CvssSection { overwrites, tree, .. } = &self.cvss;
        let pages = overwrites.get(name).map(|section| Load::Pages(section.load()));
        let none =
            || ScenarioError::value("cvss", format!("there is no [cvss.overwrites.{name}] and no [cvss.tree.{name}]"));
        pages.or_else(|| Some(Load::Tree(tree.get(name)?.load()))).ok_or_else(none)
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

//! The lives of the study.

use crate::room::life::lived::LifeScenario;
use crate::room::life::lived::{CapacityName, live};
use crate::room::life::passes;
use flashyard_describe::Files;
use flashyard_describe::ScenarioError;
use flashyard_describe::Size;
use flashyard_describe::reproduce::{NamedRun, Number};
use flashyard_describe::{Choice, Policy};
use flashyard_describe::{PatternName, WorkloadSection};
use flashyard_flash::SLOT_BYTES;
use flashyard_ftl::{FtlConfig, VictimPolicy, VictimTies, WearLeveling};
use flashyard_report::LifeRecord;
use flashyard_units::Bytes;
use flashyard_workload::surrogates::{TABLE_BYTES, TRACES};

/// The four designs of the study. Source: [P] sheet wear-leveling §4.
pub(super) const NO: WearLeveling = WearLeveling::None;
/// Source: [P] the same.
pub(super) const OBP: WearLeveling = WearLeveling::OldBlockProtection { threshold: 4, protection: 8 };
/// Source: [P] the same.
pub(super) const DP: WearLeveling = WearLeveling::DualPool { threshold: 5 };
/// Source: [P] the same.
pub(super) const PWL: WearLeveling = WearLeveling::Progressive { percent: 50 };

/// Drive writes of the synthetic runs. Source: [P] sheet §6.
pub(super) const SYNTHETIC_DRIVE_WRITES: f64 = 100.0;

/// Extents of the bounded lives on the published drive. Source: [A] sheet §9.
const EXTENT_BYTES: u64 = 64 << 20;

/// The load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    /// Single pages: `traffic` % of writes go to `space` % of the footprint, which is `footprint` % of the drive.
    Hot { traffic: u32, space: u32, footprint: u32 },
    /// A trace of the table, by its place there.
    Trace(usize),
}

/// How a drive ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum End {
    /// It is written 100 times, and superblocks are never retired. The endurance sets the threshold of PWL.
    Never {
        /// Erases.
        endurance: u32,
    },
    /// Fixed capacity.
    Fixed,
    /// Variable capacity.
    Variable,
    /// Variable capacity; the file system relocates at most this many GiB of the published drive.
    Bounded(u32),
}

impl End {
    /// Whether no superblock is ever retired.
    pub(super) const fn is_never(self) -> bool {
        matches!(self, Self::Never { .. })
    }
}

/// How garbage collection chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Victims {
    /// Fewest valid slots; of equals the superblock that has waited longest. Source: [P] sheet §4, equals [C].
    Greedy,
    /// Fewest valid slots too, but of equals the superblock that came to its count last. The authors' public simulator
    /// (`ftlsim_random_DAGC.c`) takes such a victim under the heading cost-benefit, and has no score. Source: [C].
    CostBenefit,
    /// The greatest (1 - u) age / 2u. Source: [P] the source names LFS, where that is the score.
    Score,
}

impl Victims {
    /// Behind the name of a life.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Greedy => "",
            Self::CostBenefit => " newest of equals",
            Self::Score => " cost-benefit",
        }
    }
}

/// One life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LifeRun {
    pub(super) load: Load,
    pub(super) leveling: WearLeveling,
    pub(super) end: End,
    pub(super) victims: Victims,
}

/// Endurance for the threshold of PWL where nothing is retired. Source: [D] sheet wear-leveling §8.2, the threshold meets the mean at 80 to
/// 90 drive writes, as published.
const UNWORN_ENDURANCE: u32 = 500;

/// 100 drive writes of single pages without retirement.
pub(super) fn hot(traffic: u32, space: u32, footprint: u32, leveling: WearLeveling) -> LifeRun {
    let end = End::Never { endurance: UNWORN_ENDURANCE };
    LifeRun { load: Load::Hot { traffic, space, footprint }, leveling, end, victims: Victims::Greedy }
}

/// A life under a trace, by its place.
pub(super) fn trace(place: usize, end: End, leveling: WearLeveling) -> LifeRun {
    LifeRun { load: Load::Trace(place), leveling, end, victims: Victims::Greedy }
}

/// Lives under all traces.
pub(super) fn traces(end: End, leveling: WearLeveling) -> Vec<LifeRun> {
    (0..TRACES.len()).map(|place| trace(place, end, leveling)).collect()
}

/// The place of a trace in the table.
pub(super) fn place(name: &str) -> usize {
    TRACES.iter().position(|row| row.name == name).expect("the study knows its traces")
}

/// A number made of runs.
pub(super) type LifeNumber = Number<LifeRun, LifeRecord>;

impl NamedRun for LifeRun {
    type Base = LifeScenario;
    type Record = LifeRecord;

    fn name(&self) -> String {
        let load = match self.load {
            Load::Hot { traffic, space, footprint } => format!("{traffic}/{space} on {footprint} %"),
            Load::Trace(place) => TRACES[place].name.to_owned(),
        };
        let end = match self.end {
            End::Never { endurance: UNWORN_ENDURANCE } => "unworn".to_owned(),
            End::Never { endurance } => format!("unworn of {endurance} erases"),
            End::Fixed => "fixed".to_owned(),
            End::Variable => "variable".to_owned(),
            End::Bounded(gib) => format!("bounded {gib}"),
        };
        format!("{load} {end} {}{}", self.leveling, self.victims.suffix())
    }

    fn carry_out(
        &self,
        base: &LifeScenario,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<LifeRecord>, ScenarioError> {
        let mut scenario = base.clone();
        let geometry = flashyard_describe::drive::drive(&base.drive)?.nand.geometry;
        let slots = FtlConfig::logical_slots_for(&geometry, base.drive.over_provisioning);
        let bytes = u64::from(slots) * u64::from(SLOT_BYTES);
        let scaled = |published: u64| {
            let slots = u128::from(published) * u128::from(slots) / u128::from(TABLE_BYTES);
            // Below the drive's own slots.
            Size(Bytes::new(slots.max(1) as u64 * u64::from(SLOT_BYTES)))
        };
        let pass = scenario.workload.pass;
        scenario.workload = WorkloadSection { depth: Some(1), ..WorkloadSection::default() };
        match self.load {
            Load::Trace(place) => {
                scenario.workload.surrogate = Some(TRACES[place].name.to_owned());
                scenario.workload.pass = passes::times(&TRACES[place], pass);
            }
            Load::Hot { traffic, space, footprint } => {
                let workload = &mut scenario.workload;
                workload.pattern = Some(PatternName::HotCold);
                workload.size = Some(Size(Bytes::new(u64::from(SLOT_BYTES))));
                workload.read_share = Some(0.0);
                workload.hot_traffic = Some(f64::from(traffic) / 100.0);
                workload.hot_space = Some(f64::from(space) / 100.0);
                workload.span = Some(Size(Bytes::new(bytes * u64::from(footprint) / 100)));
            }
        }
        scenario.drive.wear_leveling = Some(Policy(self.leveling));
        let life = &mut scenario.life;
        life.retire = Some(!self.end.is_never());
        if let End::Never { endurance } = self.end {
            life.endurance = Some(endurance);
        }
        let is_fixed = self.end.is_never() || self.end == End::Fixed;
        life.capacity = Some(if is_fixed { CapacityName::Fixed } else { CapacityName::Variable });
        if let End::Bounded(gib) = self.end {
            life.relocation_bound = Some(scaled(u64::from(gib) << 30));
            life.extent = Some(scaled(EXTENT_BYTES));
        }
        match self.victims {
            Victims::Greedy => {}
            Victims::CostBenefit => life.ties = Some(Choice(VictimTies::NewestFirst)),
            Victims::Score => scenario.drive.victim = Choice(VictimPolicy::CostBenefit),
        }
        let drive_writes = self.end.is_never().then_some(SYNTHETIC_DRIVE_WRITES);
        live(&self.name(), &scenario, drive_writes, files, observer)
    }

    fn table(records: &[LifeRecord]) -> String {
        flashyard_report::lives_table(records)
    }
}

//! DRAM that caches lines of CXL memory, by different indices: `flashyard run ginkgo`, and the study of the Ginkgo article (IEEE Micro 45(6),
//! 2025).

mod charts;
mod numbers;
mod result;
mod runs;
mod section;

use crate::tiered::{TierKind, replay};
use crate::trace::Trace;
use flashyard_describe::reproduce::{NamedStudy, StudyError};
use flashyard_describe::{
    Carried, DesignInfo, Files, Measured, Observer, Room, Rooms, Run, Scenario, ScenarioError, Section, Study, Unknown,
    boxed, carried, fio_report,
};
use flashyard_report::Equipment;
use flashyard_units::{Named, SimSpan};
use runs::{Base, GinkgoRun};
use section::TieringSection;

/// The language of the study's scenario.
static LANGUAGE: Rooms = Rooms::new(&[&GinkgoRoom]);

const TEXT: &str = include_str!("../../../../../../scenarios/ginkgo/scenario.toml");

/// DRAM before CXL memory, by its index.
pub struct GinkgoRoom;

impl Room for GinkgoRoom {
    fn name(&self) -> &'static str {
        "ginkgo"
    }

    fn about(&self) -> &'static str {
        "DRAM that caches lines of a larger memory behind CXL, found by a direct map, in sets of ways, or by a learned index"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        TierKind::ALL.iter().map(|tier| DesignInfo::new(tier.name(), tier.about())).collect()
    }

    fn sections(&self) -> &'static [&'static Section] {
        &section::SECTIONS
    }

    fn has_drive(&self) -> bool {
        false
    }

    fn required(&self) -> &'static [&'static str] {
        &["designs", "tiering"]
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<section::Sections>(merged).map(drop)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        let tiering = TieringSection::of(scenario)?;
        tiering.check()?;
        tiering.chosen_program(scenario.seed).map(drop)
    }

    fn concerns(&self, key: &str, design: &str) -> bool {
        TierKind::by_name(design).is_none_or(|tier| section::reads(tier, key))
    }

    fn is_equipment(&self, section: &str, key: &str) -> bool {
        section == "tiering" && !matches!(key, "program" | "trace" | "window" | "train_share" | "filtered")
    }

    fn load_in_words(&self, scenario: &Scenario) -> String {
        let Ok(tiering) = TieringSection::of(scenario) else { return String::new() };
        match (&tiering.trace, &tiering.program) {
            (Some(trace), _) => format!("{trace}, once"),
            (None, program) => program.clone().unwrap_or_else(|| "nothing".to_owned()),
        }
    }

    fn carries(&self) -> &'static [Carried] {
        carried! { "../../../scenarios": "ginkgo": "scenario.toml"; }
    }

    fn run(&self) -> Option<Run> {
        Some(Run { declaration: &result::DECLARATION, design: run })
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: true, open: |ids, files| boxed(study(ids, files)) })
    }
}

/// Runs the tier called `name` of a scenario.
///
/// Errors: values outside their ranges, a trace that cannot be read, an observer that stops.
fn run(
    scenario: &Scenario,
    name: &str,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<Measured, ScenarioError> {
    let unknown = || ScenarioError::value("designs", Unknown::new("design", name, TierKind::names()).to_string());
    let tier = TierKind::by_name(name).ok_or_else(unknown)?;
    let tiering = TieringSection::of(scenario)?;
    let trace = tiering.trace.as_deref().map(|trace| Trace::new(files, "tiering.trace", trace));
    let tiers = [tier];
    let program = tiering.chosen_program(scenario.seed)?;
    let config = tiering.replay(program, trace.as_ref(), &tiers, scenario.seed);
    let replayed = replay(&config, observer)?.ok_or(ScenarioError::Interrupted)?;
    let figures = &replayed.tiers[0];
    let mean_ns = figures.times.mean_ns(&figures.counters, config.convention);
    Ok(Measured {
        design: name.to_owned(),
        detail: result::detail(figures),
        fio: fio_report(SimSpan::ZERO, &[], None, Vec::new()),
        equipment: Equipment {
            design: name.to_owned(),
            computes_on_host: true,
            load: Vec::new(),
            cores: 1,
            memory_share: 1.0,
            lenders_per_busy: 0.0,
        },
        result: result::result(&replayed, figures, mean_ns),
        jobs: None,
        scaling: Vec::new(),
        closed_loop: true,
        first_end_seconds: None,
        simulated_seconds: result::time(figures, mean_ns).as_secs_f64(),
    })
}

/// The study, for all numbers or for those named in `ids`.
///
/// Errors: an id that is not there.
fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<GinkgoRun>, StudyError> {
    let expectations = include_str!("../../../../../../scenarios/ginkgo/expected.toml");
    let study = NamedStudy::new(base(&[], files)?, files, expectations, numbers::numbers(), ids)?;
    Ok(study.with_charts(charts::sections))
}

/// All that runs have in common, with further settings.
///
/// Errors: settings that cannot be.
fn base(settings: &[String], files: &'static dyn Files) -> Result<Base, ScenarioError> {
    let scenario = LANGUAGE.resolve(TEXT, "scenarios/ginkgo/scenario.toml", settings, files)?.scenario;
    Ok(Base { seed: scenario.seed, tiering: TieringSection::of(&scenario)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::{NamedRun, assert_complete};

    const SMALL: [&str; 5] = [
        "tiering.slab_tree.btree.keys=20000",
        "tiering.gap_pagerank.pagerank.scale=14",
        "tiering.gap_components.cc.scale=14",
        "tiering.apex_map.apex.words=1000000",
        "tiering.window=0.5",
    ];

    fn small() -> Vec<String> {
        SMALL.map(str::to_owned).into()
    }

    #[test]
    fn every_row_of_the_sheet_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 17);
    }

    #[test]
    fn every_run_of_the_study_can_be_made() {
        let base = base(&small(), &NoFiles).expect("the settings are good");
        for run in &study(&[], &NoFiles).expect("the study is complete").runs {
            let record = run.carry_out(&base, &NoFiles, &mut |_| true).unwrap_or_else(|error| panic!("{error}"));
            let record = record.expect("it was not stopped");
            let of = |tier: TierKind| record.tier(tier);
            // An index that leaves the direct map alone where room is scarce has no more misses than that has blocks.
            assert!(of(TierKind::Ideal).conflicts <= of(TierKind::Alloy).conflicts, "{}", record.name);
            assert_eq!(of(TierKind::Ginkgo).bypasses, 0, "it was trained on what it saw");
            assert_eq!(of(TierKind::Alloy).double_percent, 0.0);
            assert!(of(TierKind::Unison).double_by_sram.is_sorted_by(|less, more| less >= more), "{}", record.name);
        }
    }

    #[test]
    fn blocks_that_training_did_not_see_go_to_cxl_memory() {
        let settings = [small(), vec!["tiering.train_share=0.1".to_owned()]].concat();
        let base = base(&settings, &NoFiles).expect("the settings are good");
        let program = base.tiering.program("apex", 1).expect("it is there");
        let wide = base.tiering.with_window(2.0);
        let config = wide.replay(program, None, &[TierKind::Ginkgo, TierKind::Alloy], 1);
        let replayed = replay(&config, &mut |_| true).expect("it runs").expect("it was not stopped");
        assert!(replayed.tiers[0].counters.bypasses > 0);
        assert_eq!(replayed.tiers[1].counters.bypasses, 0);
        assert!(replayed.tiers.iter().all(|tier| tier.broken().is_empty()));
    }

    #[test]
    fn a_training_on_nothing_knows_no_block() {
        let settings = [small(), vec!["tiering.train_share=0".to_owned()]].concat();
        let base = base(&settings, &NoFiles).expect("the settings are good");
        let program = base.tiering.program("apex", 1).expect("it is there");
        let config = base.tiering.replay(program, None, &[TierKind::Ginkgo, TierKind::Alloy], 1);
        let replayed = replay(&config, &mut |_| true).expect("it runs").expect("it was not stopped");
        let [ginkgo, alloy] = [0, 1].map(|number: usize| replayed.tiers[number].counters);
        assert!(ginkgo.accesses > 0 && ginkgo.bypasses == ginkgo.accesses, "{ginkgo:?}");
        assert_eq!(alloy.bypasses, 0, "a direct map is not trained");
    }

    #[test]
    fn every_tier_runs_and_wrong_values_are_refused_by_their_keys() {
        let resolved = |setting: &str| {
            let settings = [small(), vec![setting.to_owned()]].concat();
            LANGUAGE.resolve(TEXT, "x.toml", &settings, &NoFiles).map(|resolved| resolved.scenario)
        };
        let scenario = resolved("tiering.program=\"pagerank\"").expect("it is good");
        for name in TierKind::names() {
            let measured = run(&scenario, name, &NoFiles, &mut |_| true).expect("it runs");
            assert!(measured.result.laws.hold, "{name}: {:?}", measured.result.laws.broken);
            assert!(measured.simulated_seconds > 0.0);
        }
        for (setting, expected) in [
            ("tiering.program=\"btre\"", "did you mean \"btree\""),
            ("tiering.window=0", "tiering.window is 0"),
            ("tiering.block=\"96 B\"", "no power of two"),
            ("tiering.segments=1", "tiering.segments is 1"),
            ("tiering.dram.rows=3", "there is no key tiering.dram.rows"),
        ] {
            let found = resolved(setting).expect_err("it is wrong").to_string();
            assert!(found.contains(expected), "{expected:?} is not in {found}");
        }
        let refused =
            resolved("tiering.trace=\"x.csv\"").map(|scenario| run(&scenario, "alloy", &NoFiles, &mut |_| true));
        let refused = refused.expect("a file is opened when it is read").err().expect("there are no files");
        assert!(refused.to_string().contains("x.csv"), "{refused}");
    }
}

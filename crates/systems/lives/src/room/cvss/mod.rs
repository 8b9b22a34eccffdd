//! The capacity-variant storage study: lives of drives with a file system and programs above them.
//!
//! Numbers by subject: `closed` (arithmetic and shrinking), `numbers` (fio and filebench), `stores` (YCSB and traces). The scenario has
//! loads by name (`section`).

mod charts;
mod closed;
mod numbers;
mod runs;
mod section;
mod stores;

use crate::cvss::Design;
use flashyard_describe::Files;
use flashyard_describe::reproduce::NamedStudy;
use flashyard_describe::reproduce::StudyError;
use flashyard_describe::{DesignInfo, Room, Rooms, Scenario, ScenarioError, Section, Study, boxed};
use flashyard_units::Named;
use runs::CvssRun;
use section::CvssScenario;

/// The language of the study's scenario.
static LANGUAGE: Rooms = Rooms::new(&[&Cvss]);

/// Capacity-variant storage and its rivals.
pub struct Cvss;

impl Room for Cvss {
    fn name(&self) -> &'static str {
        "cvss"
    }

    fn about(&self) -> &'static str {
        "a drive that gives up worn capacity in place of performance, with the file system above it"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        let about = |design| match design {
            Design::Traditional => "fixed capacity, progressive wear leveling",
            Design::Literal => "variable capacity as the paper describes it",
            Design::Artifact => "variable capacity as the public artifact does it",
            Design::AutoStream => "the traditional drive with eight streams by access pattern",
        };
        Design::ALL.iter().map(|&design| DesignInfo::new(design.name(), about(design))).collect()
    }

    fn sections(&self) -> &'static [&'static Section] {
        &section::SECTIONS
    }

    /// The drive of the study is divided as published, and its designs are what differs in it.
    fn has_drive(&self) -> bool {
        false
    }

    fn required(&self) -> &'static [&'static str] {
        &["cvss"]
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<section::Sections>(merged).map(drop)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        CvssScenario::of(scenario)?.check()
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: true, open: |ids, files| boxed(study(ids, files)) })
    }
}

/// The study of the capacity-variant storage system, for all numbers or for those named in `ids`.
///
/// Errors: an id that is not there.
fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<CvssRun>, StudyError> {
    let text = include_str!("../../../../../../scenarios/cvss/scenario.toml");
    let base = CvssScenario::of(&LANGUAGE.resolve(text, "scenarios/cvss/scenario.toml", &[], files)?.scenario)?;
    let expectations = include_str!("../../../../../../scenarios/cvss/expected.toml");
    let mut numbers = closed::numbers();
    numbers.extend(numbers::numbers());
    numbers.extend(stores::numbers());
    Ok(NamedStudy::new(base, files, expectations, numbers, ids)?.with_charts(charts::sections))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cvss::{Below, FioConfig, FioLife};
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::assert_complete;

    #[test]
    fn every_row_of_the_sheet_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 22);
    }

    const TEXT: &str = include_str!("../../../../../../scenarios/cvss/scenario.toml");

    fn refused(text: &str, settings: &[&str]) -> String {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        LANGUAGE.resolve(text, "x.toml", &settings, &NoFiles).err().expect("it is wrong").to_string()
    }

    #[test]
    fn a_wrong_key_or_value_is_refused_with_its_line() {
        for (from, to, expected) in [
            ("seed = 1", "sede = 1", "x.toml, line 6: there is no key sede; did you mean seed?"),
            ("ecc_bits = 50", "ecc_bits = 0", "cvss.device.ecc_bits is 0; give a whole number from 1"),
            (
                "[cvss.fio.zipf-30]",
                "[cvss.fio.zipf-30.more]\nskew = 3\n[cvss.fio.zipf-30]",
                "there is no key cvss.fio.zipf-30.more",
            ),
            ("skew = 1.1 ", "skew = 1.0 ", "cvss.fio.zipf-30.skew: Zipf's law is not drawn with 1"),
            (
                "direct = true  ",
                "direct = false ",
                "cvss.fio.zipf-30-direct.iodepth: buffered requests are carried out one at a time",
            ),
            ("changes = 0.5 ", "changes = 0.6 ", "cvss.store.store-f.changes: with gets it is more than all requests"),
            ("[cvss.device]", "[drive]\ncores = 1\n[cvss.device]", "scenarios of cvss describe no drive"),
            (
                "[cvss.store.store-a]",
                "[cvss.store.\"1.5\"]",
                "cvss.store has a section \"1.5\"; give a name of letters",
            ),
            ("[cvss.store.store-a]", "[cvss.store.zipf-30]", "another load has the name, too"),
            ("record_bytes = 1024 ", "# ", "a key is missing: cvss.store.store-a.record_bytes"),
        ] {
            let found = refused(&TEXT.replacen(from, to, 1), &[]);
            assert!(found.starts_with("x.toml, line ") && found.contains(expected), "{expected:?} is not in {found}");
        }
    }

    #[test]
    fn a_wrong_setting_is_refused_by_its_name() {
        for (setting, expected) in [
            ("cvss.device.ecc_bits=70000", "cvss.device.ecc_bits is 70000; give a whole number from 1 to 16384"),
            ("cvss.fio.zipf-30=3", "give a section, [cvss.fio.zipf-30]"),
            ("cvss.store=3", "give sections with names, [cvss.store.NAME]"),
        ] {
            let found = refused(TEXT, &[setting]);
            assert!(found.starts_with(&format!("--set {setting}: ")) && found.contains(expected), "{found}");
        }
    }

    /// Parameters of the artifact's drive under fio.
    fn config(settings: &[&str]) -> FioConfig {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let resolved = LANGUAGE.resolve(TEXT, "x.toml", &settings, &NoFiles).expect("it is good");
        let base = CvssScenario::of(&resolved.scenario).expect("it is of this system");
        let run = runs::run(Design::Artifact, "zipf-30");
        let load = base.fio("zipf-30").expect("it is there");
        FioConfig { device: run.device(&base), host: base.host(), below: Below::PUBLISHED, load, seed: 1 }
    }

    #[test]
    fn what_the_schema_accepts_can_be_lived() {
        for settings in [
            ["cvss.device.ecc_bits=1", "cvss.fio.zipf-30.run_ms=1"],
            ["cvss.device.ecc_bits=16384", "cvss.fio.zipf-30.data=1 GB"],
            ["cvss.fio.zipf-30.skew=5e-324", "cvss.fio.zipf-30.data=100 GB"],
            ["cvss.fio.zipf-30.skew=1.9", "cvss.device.requirement=5e-324"],
            ["cvss.device.weights=[0.0, 0.0, 0.0]", "cvss.host.dirty_share=1.0"],
        ] {
            // A host that keeps all writes to itself is refused, which the next test is about.
            let config = config(&[settings[0], settings[1], "cvss.fio.zipf-30.every=1 GB", "cvss.host.memory=0 GiB"]);
            let mut life = FioLife::new(config).unwrap_or_else(|error| panic!("{settings:?}: {error}"));
            let mut looks = 0;
            let observer = &mut |_| {
                looks += 1;
                looks < 2
            };
            life.live(observer).unwrap_or_else(|error| panic!("{settings:?}: {error}"));
        }
    }

    #[test]
    fn a_load_that_the_host_keeps_to_itself_is_refused() {
        for skewed in [
            ["cvss.fio.zipf-30.data=1 GB", "cvss.fio.zipf-30.run_ms=1"],
            ["cvss.fio.zipf-30.skew=9.99", "cvss.host.memory=0 GiB"],
        ] {
            let told = FioLife::new(config(&skewed)).expect("it fits").live(&mut |_| true).err();
            assert!(told.is_some_and(|error| error.to_string().contains("takes in all writes")), "{skewed:?}");
        }
    }

    #[test]
    fn settings_reach_the_lives() {
        let (plain, other) = (config(&[]), config(&["cvss.device.ecc_bits=60", "cvss.fio.zipf-30.data=20 GB"]));
        assert_eq!((plain.device.wear.ecc.bits_per_4_kib, other.device.wear.ecc.bits_per_4_kib), (50, 60));
        assert!(plain.load.pages > other.load.pages, "{other:?}");
    }

    /// The first timed stretch of a direct job: requests a second, and the mean time of one in microseconds.
    fn first_stretch(iodepth: u32) -> (f64, f64) {
        let depth = format!("cvss.fio.zipf-30.iodepth={iodepth}");
        let direct =
            ["cvss.fio.zipf-30.direct=true", &depth, "cvss.fio.zipf-30.skew=0.0", "cvss.fio.zipf-30.run_ms=500"];
        let mut looks = 0;
        let observer = &mut |_| {
            looks += 1;
            looks < 2
        };
        let figures = FioLife::new(config(&direct)).expect("it fits").live(observer).expect("it lives");
        let timing = figures.samples[0].timing;
        (timing.requests_per_second, timing.operation_mean_us)
    }

    #[test]
    fn a_direct_request_alone_takes_the_sum_of_its_parts() {
        // Half reads and half writes of four pages on four dies, and 5 us of the host.
        let parts_us = 5.0 + (50.0 + 500.0) / 2.0;
        let (rate, mean_us) = first_stretch(1);
        assert!((mean_us / parts_us - 1.0).abs() < 0.05, "{mean_us} us");
        assert!((rate * mean_us / 1e6 - 1.0).abs() < 0.01, "{rate} requests/s of {mean_us} us");
    }

    #[test]
    fn direct_requests_under_way_fill_the_dies() {
        let most = 64.0 / (4.0 * (50e-6 + 500e-6) / 2.0);
        let (rate, mean_us) = first_stretch(128);
        assert!((0.6..1.0).contains(&(rate / most)), "{rate} requests/s, at most {most}");
        assert!((rate * mean_us / 1e6 / 128.0 - 1.0).abs() < 0.05, "{rate} requests/s of {mean_us} us");
    }
}

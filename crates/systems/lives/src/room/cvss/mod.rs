//! The capacity-variant storage study: lives of drives with the file system above them, under sets of causes.
//!
//! Numbers by subject: `closed` (arithmetic), `numbers` (overwrites), `trees` (YCSB and traces). The scenario has sets of
//! causes and loads by name (`section`).

mod charts;
mod closed;
mod numbers;
mod runs;
mod section;
mod trees;

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
            Design::Tuned => "the artifact's, with a required performance and a frontier for data that is read much",
            Design::AutoStream => "the traditional drive with eight streams by access pattern",
            Design::TtFlash => {
                "the traditional drive with a parity page for every seven, and garbage collection in turn"
            }
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
    numbers.extend(trees::numbers());
    Ok(NamedStudy::new(base, files, expectations, numbers, ids)?.with_charts(charts::sections))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cvss::{CvssConfig, CvssLife};
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
            ("ecc_bits = 50", "ecc_bits = 0", "x.toml, line 12: cvss.device.ecc_bits is 0; give a whole number from 1"),
            (
                "fan_out = 4 ",
                "fan_ut = 4 ",
                "x.toml, line 201: there is no key cvss.tree.trace38.fan_ut; did you mean cvss.tree.trace38.fan_out?",
            ),
            (
                "[cvss.device]",
                "[cvss.file_system.log.more]\nfan_out = 3\n[cvss.device]",
                "x.toml, line 12: there is no key cvss.file_system.log.more",
            ),
            (
                "placement = \"in-place\"",
                "placement = \"inplace\"",
                "did you mean \"in-place\"? It is one of in-place, log",
            ),
            (
                "limited(0.3)",
                "limited",
                "cvss.file_system.scattered-limited.discards: there is no \"limited\"; give immediate",
            ),
            ("limited(0.3)", "limited(-1)", "give immediate, idle or limited(RATE), with 0 to 1000000"),
            ("[cvss.device]", "[drive]\ncores = 1\n[cvss.device]", "scenarios of cvss describe no drive"),
            ("[cvss.tree.trace38]", "[cvss.tree.\"1.5\"]", "cvss.tree has a section \"1.5\"; give a name of letters"),
            ("[cvss.tree.trace38]", "[cvss.tree.zipf-30]", "[cvss.overwrites.zipf-30] has the name, too"),
            ("file_pages = 8 ", "# ", "a key is missing: cvss.tree.trace38.file_pages"),
        ] {
            let found = refused(&TEXT.replacen(from, to, 1), &[]);
            assert!(found.starts_with("x.toml, line ") && found.contains(expected), "{expected:?} is not in {found}");
        }
    }

    #[test]
    fn a_wrong_setting_is_refused_by_its_name() {
        for (setting, expected) in [
            ("cvss.device.ecc_bits=70000", "cvss.device.ecc_bits is 70000; give a whole number from 1 to 16384"),
            ("cvss.overwrites.zipf-30=3", "give a section, [cvss.overwrites.zipf-30]"),
            ("cvss.tree=3", "give sections with names, [cvss.tree.NAME]"),
            ("cvss.overwrites.zipf-70.data=128 GB", "cvss.overwrites.zipf-70.data: the load stores up to 122068 MiB"),
            ("cvss.overwrites.zipf-30.unit_pages=65536", "cvss.overwrites.zipf-30.unit_pages: 65536 pages are more"),
        ] {
            let found = refused(TEXT, &[setting]);
            assert!(found.starts_with(&format!("--set {setting}: ")) && found.contains(expected), "{found}");
        }
    }

    /// A life of the tuned drive under a log.
    fn config(settings: &[&str], load: &'static str) -> CvssConfig {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let resolved = LANGUAGE.resolve(TEXT, "x.toml", &settings, &NoFiles).expect("it is good");
        let base = CvssScenario::of(&resolved.scenario).expect("it is of this system");
        runs::run(Design::Tuned, "log", load).config(&base).expect("it has them")
    }

    #[test]
    fn what_the_schema_accepts_can_be_lived() {
        for (load, setting) in [
            ("zipf-30", "cvss.sample=1 GB"),
            ("zipf-30", "cvss.sample=1 TB"),
            ("zipf-30", "cvss.device.ecc_bits=1"),
            ("zipf-30", "cvss.device.ecc_bits=16384"),
            ("zipf-30", "cvss.device.requirement=5e-324"),
            ("zipf-30", "cvss.device.requirement=1.0"),
            ("zipf-30", "cvss.device.weights=[0.0, 0.0, 0.0]"),
            ("zipf-30", "cvss.file_system.log.section_pages=1"),
            ("zipf-30", "cvss.file_system.log.section_pages=1024"),
            ("zipf-30", "cvss.file_system.log.discards=limited(0)"),
            ("zipf-30", "cvss.file_system.log.discards=limited(1e6)"),
            ("zipf-30", "cvss.overwrites.zipf-30.data=4 MiB"),
            ("zipf-30", "cvss.overwrites.zipf-30.unit_pages=32768"),
            ("zipf-30", "cvss.overwrites.zipf-30.write_skew=5e-324"),
            ("zipf-30", "cvss.overwrites.zipf-30.write_skew=9.99"),
            ("zipf-30", "cvss.overwrites.zipf-30.read_skew=9.99"),
            ("zipf-30", "cvss.overwrites.zipf-30.repeat=true"),
            ("random-30", "cvss.overwrites.random-30.repeat=true"),
            ("trace38", "cvss.tree.trace38.data=1 MiB"),
            ("trace38", "cvss.tree.trace38.file_pages=1"),
            ("trace38", "cvss.tree.trace38.file_pages=1000"),
            ("trace38", "cvss.tree.trace38.fan_out=2"),
            ("trace38", "cvss.tree.trace38.fan_out=1000"),
            ("trace38", "cvss.tree.trace38.updated=1.0"),
            ("trace38", "cvss.tree.trace38.read_recent=1.0"),
        ] {
            // The least sizes of a load are those of one that is drawn, and would stay in a page cache.
            let [drawn, uncached] = ["cvss.overwrites.zipf-30.repeat=false", "cvss.host.memory=0 GiB"];
            let config =
                CvssConfig { give_back_to: Some(1.0 + f64::EPSILON), ..config(&[drawn, uncached, setting], load) };
            let mut life = CvssLife::new(config).unwrap_or_else(|error| panic!("{setting}: {error}"));
            let mut looks = 0;
            let observer = &mut |_| {
                looks += 1;
                looks < 2
            };
            life.live(observer).unwrap_or_else(|error| panic!("{setting}: {error}"));
        }
    }

    #[test]
    fn a_load_that_the_host_keeps_to_itself_is_refused() {
        let small = ["cvss.overwrites.zipf-30.repeat=false", "cvss.overwrites.zipf-30.data=4 MiB"];
        let told = CvssLife::new(config(&small, "zipf-30")).expect("it fits").live(&mut |_| true).err();
        assert!(told.is_some_and(|error| error.to_string().contains("page cache takes in all writes")));
    }

    #[test]
    fn settings_reach_the_lives() {
        let (plain, other) = (
            config(&[], "zipf-30"),
            config(&["cvss.device.ecc_bits=60", "cvss.overwrites.zipf-30.data=20 GB"], "zipf-30"),
        );
        assert_eq!((plain.device.wear.ecc.bits_per_4_kib, other.device.wear.ecc.bits_per_4_kib), (50, 60));
        assert!(plain.load.pages() > other.load.pages(), "{other:?}");
        assert_eq!(plain.sample_pages, 238_418);
    }
}

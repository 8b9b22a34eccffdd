//! The wear-leveling study: lives of drives with and without wear leveling, of fixed and of variable capacity.
//!
//! Numbers by subject: `synthetic` (erase-count distributions after 100 drive writes), `lifetimes` (surrogates of the
//! traces, from new to dead), `bounded` (lives whose file system may relocate a bounded amount).

mod bounded;
mod charts;
mod lifetimes;
mod runs;
mod synthetic;

use super::LIVES;
use super::lived::LifeScenario;
use flashyard_describe::DesignInfo;
use flashyard_describe::Files;
use flashyard_describe::reproduce::NamedStudy;
use flashyard_describe::reproduce::StudyError;
use runs::LifeRun;

/// The policies of the study.
pub(super) fn designs() -> Vec<DesignInfo> {
    let about = [
        (runs::NO, "no wear leveling"),
        (runs::OBP, "old block protection: a block that is much older than the mean takes data that stays"),
        (runs::DP, "dual pool: blocks of hot and of cold data trade places when they are worn differently"),
        (runs::PWL, "progressive wear leveling: from half of the endurance on, the more the older the drive is"),
    ];
    about.map(|(leveling, about)| DesignInfo::new(leveling.to_string(), about)).to_vec()
}

/// The wear-leveling study, for all numbers or for those named in `ids`.
///
/// Errors: an id that is not there.
pub(super) fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<LifeRun>, StudyError> {
    let text = include_str!("../../../../../../../scenarios/wear-leveling/scenario.toml");
    let base = LifeScenario::of(&LIVES.resolve(text, "scenarios/wear-leveling/scenario.toml", &[], files)?.scenario)?;
    let expectations = include_str!("../../../../../../../scenarios/wear-leveling/expected.toml");
    let mut numbers = synthetic::numbers();
    numbers.extend(lifetimes::numbers());
    numbers.extend(bounded::numbers());
    Ok(NamedStudy::new(base, files, expectations, numbers, ids)?.with_charts(charts::sections))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::NamedRun;
    use flashyard_describe::reproduce::Reproduction;
    use flashyard_describe::reproduce::assert_complete;
    use serde_json::Value;

    #[test]
    fn every_row_of_the_sheet_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 27);
    }

    #[test]
    fn a_life_read_back_from_text_gives_the_same_numbers() {
        let ids = ["mean-var-nowl-over-fix-pwl".to_owned()];
        let study = study(&ids, &NoFiles).expect("the study is complete");
        let life = |run: &LifeRun| {
            let mut scenario = study.base.clone();
            scenario.drive.blocks_per_plane = 120;
            scenario.life.endurance = Some(40);
            let life = run.carry_out(&scenario, study.files, &mut |_| true).expect("the run is valid");
            (run.name(), serde_json::to_value(life.expect("nobody stopped it")).expect("it is plain data"))
        };
        let finished: Vec<(String, Value)> = study.runs.iter().map(life).collect();
        let text = serde_json::to_string(&finished).expect("it is plain data");
        let again: Vec<(String, Value)> = serde_json::from_str(&text).expect("it was just written");
        let number = |finished| study.compare(finished).expect("the records are whole")[0].measured;
        assert!(number(&finished).is_some());
        assert_eq!(number(&finished), number(&again));
    }
}

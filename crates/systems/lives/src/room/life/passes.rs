//! How often a pass of a trace writes its footprint.

use flashyard_workload::surrogates::Characteristics;

/// Traces whose pass cannot be as long as that of the trace at hand, with the times that theirs writes their footprint.
///
/// Source: \[D\] a pass that writes each of the cold pages writes at least r/h times the footprint: 1.52 times for LM-TBE, 2.35 for MSN-BEFS,
/// 1.184 for DTRS (\[P\] sheet wear-leveling §6). The FF-SSD study repeats two of them 100 times (\[P\] sheet ff-ssd §7, rows 7 and 8), and
/// in the sheet's independent simulation its drive lives 202 drive writes of LM-TBE and 66 of MSN-BEFS (sheet wear-leveling §8.3), of which
/// 0.935 and 0.1227 are their footprints: at most 2.2 and 5.38 times. \[A\] the middle of both bounds.
///
/// Of DTRS an hour has 206,812 writes (\[C\] counted in shanealv/tinyTailFlash, `traces/parse.txt`), 6.3 GiB by its mean size. A day (\[X\])
/// of them writes 151 GiB, its footprint once, so that its pass is the least that r/h allows, rounded up.
const SHORTER: [(&str, f64); 3] = [("LM-TBE", 1.86), ("MSN-BEFS", 3.86), ("DTRS", 1.19)];

/// The length of a pass of `trace`, in footprints, where most traces have `usual`.
pub(super) fn times(trace: &Characteristics, usual: Option<f64>) -> Option<f64> {
    let shorter = SHORTER.iter().find(|(name, _)| *name == trace.name);
    usual.map(|usual| shorter.map_or(usual, |&(_, times)| times))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_workload::surrogates::TRACES;

    #[test]
    fn every_pass_is_long_enough_to_cover_its_footprint() {
        for trace in &TRACES {
            let times = times(trace, Some(5.8)).expect("there is a pass");
            assert!(times >= trace.hot_traffic_percent / trace.hot_space_percent, "{}", trace.name);
            assert_eq!(super::times(trace, None), None);
        }
    }

    #[test]
    fn a_hundred_passes_are_within_the_lives_of_the_traces_that_are_repeated_so_often() {
        for (name, drive_writes) in [("LM-TBE", 202.0), ("MSN-BEFS", 66.0)] {
            let trace = TRACES.iter().find(|trace| trace.name == name).expect("it is one of them");
            let times = times(trace, Some(5.8)).expect("there is a pass");
            assert!(100.0 * times * trace.footprint_gib / 256.0 < drive_writes, "{name}");
        }
    }
}

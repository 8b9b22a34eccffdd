//! How often a pass of a trace writes its footprint.

use flashyard_workload::surrogates::Characteristics;

/// The trace whose pass cannot be as long as that of the trace at hand.
const SHORTER: &str = "LM-TBE";

/// Times that a pass of it writes its footprint.
///
/// Source: \[D\] at least 1.52, for with r/h = 60.29/39.71 a pass that writes each of the cold pages writes r/h times the footprint; at most
/// 2.2, for the FF-SSD study repeats it 100 times (\[P\] sheet ff-ssd §7, row 7), its drive lives 202 drive writes of it in the sheet's
/// independent simulation (sheet wear-leveling §8.3), and 0.935 of the drive is its footprint. \[A\] the middle of both.
const SHORTER_TIMES: f64 = 1.86;

/// The length of a pass of `trace`, in footprints, where most traces have `usual`.
pub(super) fn times(trace: &Characteristics, usual: Option<f64>) -> Option<f64> {
    if trace.name == SHORTER { usual.map(|_| SHORTER_TIMES) } else { usual }
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
}

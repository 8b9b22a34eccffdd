//! Results that follow from the published rules without a simulation.

/// Time of one sense in microseconds. Source: [P] sheet §4.
const SENSE_US: f64 = 50.0;

/// Time of a mixed operation beside sensing, in microseconds, by which a drive with a requirement reckons: one retry of every read
/// leaves 0.8 of the performance. Source: [D] sheet cvss §8.3.
fn other_time_us() -> f64 {
    // (t + 50) / (t + 100) = 0.8.
    (0.8 * 2.0 * SENSE_US - SENSE_US) / (1.0 - 0.8)
}

/// Mean retries of a read at which the share `requirement` of the first performance is left.
/// Source: [A] sheet §9.
pub fn retries_allowed(requirement: f64) -> f64 {
    (other_time_us() + SENSE_US) * (1.0 / requirement - 1.0) / SENSE_US
}

/// Bytes that a host can write while wear is focused ideally, until spare space falls to its first share
/// `over_provisioning`: superblocks outside of the data wear one after the other and are retired at `erases`, nothing is
/// moved. Zero for data that never fitted. Source: [D] sheet §8.2.
pub fn ideal_focusing_bytes(raw_bytes: f64, data_bytes: f64, over_provisioning: f64, erases: u32) -> f64 {
    f64::from(erases) * (raw_bytes - (1.0 + over_provisioning) * data_bytes).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_retry_of_every_read_leaves_four_fifths() {
        assert!((other_time_us() - 150.0).abs() < 1e-9);
        assert!((retries_allowed(0.8) - 1.0).abs() < 1e-12 && retries_allowed(1.0) == 0.0);
    }

    #[test]
    fn the_published_28_terabytes_are_ideal_focusing() {
        let raw = 137.438_953_472e9;
        let bound = |data, erases| ideal_focusing_bytes(raw, data, 0.0737, erases) / 1e12;
        assert!((bound(38e9, 290) - 28.03).abs() < 0.01, "{}", bound(38e9, 290));
        assert!((bound(38e9, 267) - 25.8).abs() < 0.05 && (bound(90e9, 290) - 11.8).abs() < 0.05);
        assert_eq!(bound(130e9, 290), 0.0);
    }
}

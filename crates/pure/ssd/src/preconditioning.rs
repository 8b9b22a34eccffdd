//! Preconditioning: overwrites at random before a run, without timing, for a number of times or until the drive is
//! steady.

use flashyard_ftl::{Ftl, FtlCounters, WornOut};
use flashyard_kernel::Rng;
use flashyard_nand::CountingMedium;

/// Slots handed to the translation layer at once.
const BATCH: usize = 64;

/// Filled capacities that a round writes. Source: \[A\] a round of the specification is a minute of a test at most; an eighth of
/// the capacity is many superblocks, and takes longer on every drive of today.
const ROUND: f64 = 0.125;

/// Rounds in the window that is looked at. Source: \[X\] SNIA Solid State Storage Performance Test Specification 2.0.2, steady
/// state.
const WINDOW: usize = 5;

/// Rounds at most. Source: \[X\] as [`WINDOW`]: a test that is not steady after 25 rounds goes on with what it has.
const ROUNDS_MOST: usize = 25;

/// How far apart the rounds of a window may be, as a share of their mean. Source: \[X\] as [`WINDOW`].
const EXCURSION: f64 = 0.2;

/// How much the line of best fit may rise or fall over a window, as a share of the mean. Source: \[X\] as [`WINDOW`].
const SLOPE: f64 = 0.1;

/// Overwrites of the filled slots at random before a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overwrites {
    /// How often, on average.
    pub times: f64,
    /// Whether they go on after that until write amplification, to which the rate of writes is inverse, is steady by the rule of
    /// SNIA's specification: over five rounds it stays within a fifth of its mean, and the line through them within a tenth.
    /// A round is an eighth of the filled capacity; there are 25 at most.
    pub until_steady: bool,
}

impl Overwrites {
    /// So many and no more.
    pub const fn times(times: f64) -> Self {
        Self { times, until_steady: false }
    }

    /// Whether nothing is overwritten.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Overwrites the `filled` slots of a layer that maps `unit` of them in one piece. A drive that wears out on the way
    /// stays as it is then: it takes no write in time either.
    pub(crate) fn carry_out(&self, ftl: &mut Ftl, (filled, unit): (u64, u64), rng: &mut Rng) {
        let worn = write_at_random(ftl, (filled, unit), (filled as f64 * self.times) as u64, rng);
        if self.until_steady && worn.is_ok() {
            settle(ftl, (filled, unit), rng);
        }
    }
}

/// Writes rounds until they are alike.
fn settle(ftl: &mut Ftl, (filled, unit): (u64, u64), rng: &mut Rng) {
    let mut rounds = Vec::with_capacity(ROUNDS_MOST);
    while rounds.len() < ROUNDS_MOST && !is_steady(&rounds) {
        let before = *ftl.counters();
        if write_at_random(ftl, (filled, unit), (filled as f64 * ROUND) as u64, rng).is_err() {
            return;
        }
        rounds.push(amplification(&before, ftl.counters()));
    }
}

/// Slots programmed for each one of the host between two readings.
fn amplification(before: &FtlCounters, after: &FtlCounters) -> f64 {
    let host = after.host_slots - before.host_slots;
    let moved = after.moved_slots - before.moved_slots;
    (host + moved) as f64 / host.max(1) as f64
}

/// Whether the last rounds are steady by the rule of SNIA's specification.
fn is_steady(rounds: &[f64]) -> bool {
    let Some(window) = rounds.last_chunk::<WINDOW>() else { return false };
    let mean = window.iter().sum::<f64>() / WINDOW as f64;
    let (least, most) = window
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &round| (round.min(least), round.max(most)));
    // Rounds are numbered from the middle of the window.
    let place = |number: usize| number as f64 - (WINDOW - 1) as f64 / 2.0;
    let squares: f64 = (0..WINDOW).map(|number| place(number) * place(number)).sum();
    let slope = window.iter().enumerate().map(|(number, round)| place(number) * round).sum::<f64>() / squares;
    most - least <= EXCURSION * mean && (slope * (WINDOW - 1) as f64).abs() <= SLOPE * mean
}

/// Errors: when the drive is worn out.
fn write_at_random(ftl: &mut Ftl, (filled, unit): (u64, u64), slots: u64, rng: &mut Rng) -> Result<(), WornOut> {
    let mut medium = CountingMedium::default();
    let mut left = slots;
    let mut batch = Vec::with_capacity(BATCH);
    while left > 0 {
        let count = left.min(BATCH as u64);
        batch.clear();
        if unit == 1 {
            batch.extend((0..count).map(|_| rng.below(filled) as u32));
        } else {
            // A unit lies in one piece.
            let slots = |first: u64| (first..filled.min(first + unit)).map(|slot| slot as u32);
            (0..count.div_ceil(unit)).for_each(|_| batch.extend(slots(rng.below(filled.div_ceil(unit)) * unit)));
        }
        ftl.touch(&batch);
        ftl.age_writes(&batch, &mut medium)?;
        left -= count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::Geometry;
    use flashyard_ftl::FtlConfig;

    #[test]
    fn a_window_is_steady_within_a_fifth_and_a_tenth() {
        assert!(!is_steady(&[1.0; 4]));
        assert!(is_steady(&[1.0; 5]));
        assert!(is_steady(&[9.0, 1.0, 1.0, 1.0, 1.0, 1.0]), "what came before the window does not count");
        assert!(is_steady(&[0.96, 1.04, 1.0, 1.04, 0.96]));
        assert!(!is_steady(&[0.85, 1.06, 1.06, 1.06, 0.97]), "too far apart");
        // The line rises by 0.1 and a hair, the rounds stay close.
        let line = |rise: f64| [-2.0, -1.0, 0.0, 1.0, 2.0].map(|place| 1.0 + rise * place / 4.0);
        assert!(is_steady(&line(0.099)) && !is_steady(&line(0.101)));
    }

    #[test]
    fn a_drive_is_overwritten_until_it_amplifies_as_in_the_long_run() {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 200,
            pages_per_block: 128,
            page_bytes: 4096,
            pages_per_program: 1,
        };
        let filled = 200 * 128 * 85 / 100;
        let amplified = |overwrites: Overwrites| {
            let config = FtlConfig { logical_slots: filled, filled_slots: filled, ..FtlConfig::default() };
            let mut ftl = Ftl::new(&geometry, config).expect("the drive fits");
            let mut rng = Rng::named(1, "test");
            overwrites.carry_out(&mut ftl, (filled.into(), 1), &mut rng);
            let before = *ftl.counters();
            write_at_random(&mut ftl, (filled.into(), 1), u64::from(filled) / 4, &mut rng).expect("nothing wears out");
            amplification(&before, ftl.counters())
        };
        let long = amplified(Overwrites::times(8.0));
        let settled = amplified(Overwrites { times: 0.0, until_steady: true });
        assert!((settled - long).abs() < 0.1 * long, "{settled} against {long}");
        assert!(amplified(Overwrites::default()) < 0.7 * long, "a filled drive has no garbage yet");
    }
}

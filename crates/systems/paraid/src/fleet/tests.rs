//! Fleets of a few drives, and figures of predictions beside plain counts.

use super::*;
use flashyard_kernel::Rng;
use flashyard_units::SimSpan;
use proptest::prelude::*;

fn config() -> FleetConfig {
    FleetConfig {
        arrays: 4,
        drives: 3,
        months: 30,
        age_months: 0,
        age_alike: false,
        writes_per_day: 1.0,
        reads_per_write: 10.0,
        spread: [0.25, 0.15, 0.15],
        persistence: 0.7,
        endurance: 3000,
        quality: [0.1, 0.05],
        ecc_bits: 50,
        retries_max: 5,
        spare: 0.14,
        other_failures: 0.005,
        fast_forward: 60,
        die_pages: 7_812_500.0,
        block_pages: 1152,
        times: FlashTimes {
            read: SimSpan::from_us(60),
            program: SimSpan::from_us(600),
            erase: SimSpan::from_ms(3),
            wait_max: SimSpan::from_ms(50),
        },
        commands: 500,
        horizon: 3,
        budget: 0.05,
        placement: Placement::Even,
        seed: 1,
    }
}

fn drive(config: &FleetConfig) -> AgeingDrive {
    AgeingDrive::new(config, Rng::named(7, "test")).expect("it is possible")
}

#[test]
fn a_drive_gets_slower_and_ends_by_wear_at_about_its_endurance() {
    let config = FleetConfig { other_failures: 0.0, quality: [0.0, 0.02], ..config() };
    let mut drive = drive(&config);
    let load = Load { writes_per_day: 1.0, reads_per_second: 600.0 };
    let mut readings = Vec::new();
    let end = loop {
        match drive.month(&config, load) {
            Ok(reading) => readings.push(reading),
            Err(cause) => break cause,
        }
    };
    assert_eq!(end, Cause::Wear);
    let (first, last) = (readings[0], readings[readings.len() - 1]);
    // Reads need more than five retries from 89 % of the endurance on.
    assert!((2300.0..3000.0).contains(&last.erases), "{last:?}");
    assert!(first.retries <= 1.0 && last.retries > 4.0, "{first:?} {last:?}");
    assert!(last.mean_us > 2.0 * first.mean_us, "{first:?} {last:?}");
    assert!(
        readings.windows(2).all(|pair| pair[0].erases < pair[1].erases && pair[0].spare_used <= pair[1].spare_used)
    );
}

#[test]
fn fast_forward_ends_a_life_at_about_the_same_age() {
    let months = |fast_forward| {
        let config = FleetConfig { other_failures: 0.0, fast_forward, endurance: 400, ..config() };
        let mut drive = drive(&config);
        let load = Load { writes_per_day: 0.2, reads_per_second: 100.0 };
        (0..).find(|_| drive.month(&config, load).is_err()).expect("it ends")
    };
    let (whole, forward) = (months(1), months(12));
    assert!((i64::from(whole) - i64::from(forward)).abs() <= 1 + i64::from(whole) / 8, "{whole} {forward}");
}

#[test]
fn an_unloaded_queue_adds_no_wait() {
    let config = FleetConfig { other_failures: 0.0, ..config() };
    let load = Load { writes_per_day: 0.001, reads_per_second: 1.0 };
    let reading = drive(&config).month(&config, load).expect("it is new");
    assert!((reading.mean_us - 60.0).abs() < 1.0, "{reading:?}");
    assert!(reading.busy < 0.01, "{reading:?}");
}

#[test]
fn one_seed_gives_one_fleet_and_other_places_do_not_change_a_drive() {
    let one = live(&config(), None, &mut |_| true).expect("it lives");
    assert_eq!(one, live(&config(), None, &mut |_| true).expect("it lives"));
    let more = live(&FleetConfig { arrays: 5, ..config() }, None, &mut |_| true).expect("it lives");
    assert_eq!(one.drives, more.drives[..one.drives.len()]);
    let stopped = live(&config(), None, &mut |_| false).err();
    assert_eq!(stopped, Some(FleetError::Interrupted));
}

#[test]
fn a_fleet_in_use_begins_with_the_wear_of_its_age() {
    let spread = [0.25, 0.15, 0.0];
    let config = FleetConfig { other_failures: 0.0, quality: [0.0, 0.05], spread, age_months: 12, ..config() };
    let lived = |config: &FleetConfig| live(config, None, &mut |_| true).expect("it lives").drives;
    let new = lived(&FleetConfig { age_months: 0, ..config });
    assert!(new.iter().all(|life| life.age == 0));
    for age_alike in [false, true] {
        let used = lived(&FleetConfig { age_alike, ..config });
        let first = || used.iter().filter(|life| life.born == 0);
        assert!(first().all(|life| life.age <= 12) && first().any(|life| life.age > 0));
        let is_alike = first().all(|life| first().all(|other| life.array != other.array || life.age == other.age));
        assert_eq!(is_alike, age_alike);
        for (life, new) in first().zip(new.iter().filter(|life| life.born == 0)) {
            // It has the erases of a new drive of this place after as many months, but for the draws of latencies in between.
            let (now, then) = (life.readings[0].erases, new.readings[life.age as usize].erases);
            assert!((now / then - 1.0).abs() < 0.02, "{} months: {now} {then}", life.age);
        }
    }
}

#[test]
fn predictors_learn_from_some_arrays_alone() {
    let config = config();
    let fleet = live(&config, None, &mut |_| true).expect("it lives");
    let mut other = fleet.clone();
    for life in other.drives.iter_mut().filter(|life| life.array % 2 == 1) {
        for reading in &mut life.readings {
            reading.mean_us *= 3.0;
            reading.retries += 1.0;
        }
    }
    assert_eq!(train(Predictor::Learned, &config, &fleet), train(Predictor::Learned, &config, &other));
}

#[test]
fn placement_keeps_the_load_of_an_array() {
    let config = FleetConfig { placement: Placement::Both, other_failures: 0.0, months: 12, ..config() };
    let even = live(&config, None, &mut |_| true).expect("it lives");
    let model = train(Predictor::Last, &config, &even);
    let placed = live(&config, Some(&model), &mut |_| true).expect("it lives");
    for array in 0..config.arrays {
        for month in 0..6 {
            let sum = |fleet: &FleetLife| -> f64 {
                let of = |life: &DriveLife| {
                    life.readings.get(month).map_or(f64::NAN, |reading| reading.written + reading.read)
                };
                fleet.drives.iter().filter(|life| life.array == array && life.born == 0).map(of).sum()
            };
            assert!((sum(&even) / sum(&placed) - 1.0).abs() < 1e-9, "array {array}, month {month}");
        }
    }
    assert_ne!(even, placed);
}

proptest! {
    #[test]
    fn the_area_is_the_share_of_pairs_in_their_order(risks in prop::collection::vec((0_u8..6, any::<bool>()), 1..40)) {
        let risks: Vec<(f64, bool)> = risks.into_iter().map(|(risk, fails)| (f64::from(risk), fails)).collect();
        let (mut sum, mut pairs) = (0.0, 0.0);
        for &(risk, _) in risks.iter().filter(|risk| risk.1) {
            for &(other, _) in risks.iter().filter(|risk| !risk.1) {
                pairs += 1.0;
                sum += if risk > other { 1.0 } else if risk == other { 0.5 } else { 0.0 };
            }
        }
        let expected = if pairs > 0.0 { sum / pairs } else { 0.5 };
        prop_assert!((auc(&risks) - expected).abs() < 1e-12);
    }
}

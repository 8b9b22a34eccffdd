//! The months of a fleet.

use super::config::{FleetConfig, FleetError};
use super::drive::{AgeingDrive, Load};
use super::predict::Model;
use super::record::{DriveLife, FleetLife, is_judged};
use super::sampled::normal;
use flashyard_kernel::Rng;

/// Smallest and largest part of the load of an even placement that a drive gets. \[A\] stripes need most drives
const PARTS: (f64, f64) = (0.5, 1.5);

/// An array's place: the drive that is there now.
struct Place {
    drive: AgeingDrive,
    life: DriveLife,
    /// Part of the array's load for which its chunks are asked, by chance.
    heat: f64,
    deaths: u32,
}

/// Lives through the months of a fleet. With a model, its placement is by prediction. The observer hears of the share that is done and may
/// stop it.
///
/// Errors: parameters that do not go together, an observer that stops.
pub fn live(
    config: &FleetConfig,
    model: Option<&Model>,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<FleetLife, FleetError> {
    if config.arrays < 2 {
        return Err(FleetError::Arrays(config.arrays));
    }
    let mut fleet = FleetLife::default();
    for array in 0..config.arrays {
        live_array(config, array, model, &mut fleet)?;
        if !observer(f64::from(array + 1) / f64::from(config.arrays)) {
            return Err(FleetError::Interrupted);
        }
    }
    Ok(fleet)
}

fn new_drive(config: &FleetConfig, array: u32, place: u32, number: u32) -> Result<AgeingDrive, FleetError> {
    AgeingDrive::new(config, Rng::named(config.seed, &format!("fleet.drive.{array}.{place}.{number}")))
}

/// Months that a place was in use before the first one. Its random numbers are its own, so that drives and loads are those of a new fleet.
fn age_of(config: &FleetConfig, array: u32, place: u32) -> u32 {
    let name = if config.age_alike { format!("fleet.age.{array}") } else { format!("fleet.age.{array}.{place}") };
    Rng::named(config.seed, &name).below(u64::from(config.age_months) + 1) as u32
}

/// The drive of a place at the first month, with the number of those that ended there before and the months that it has lived.
fn drive_in_use(
    config: &FleetConfig,
    array: u32,
    place: u32,
    load: Load,
) -> Result<(AgeingDrive, u32, u32), FleetError> {
    let (mut drive, mut deaths, mut lived) = (new_drive(config, array, place, 0)?, 0, 0);
    for _ in 0..age_of(config, array, place) {
        lived += 1;
        if drive.pass(config, load).is_err() {
            deaths += 1;
            lived = 0;
            drive = new_drive(config, array, place, deaths)?;
        }
    }
    Ok((drive, deaths, lived))
}

fn live_array(
    config: &FleetConfig,
    array: u32,
    model: Option<&Model>,
    fleet: &mut FleetLife,
) -> Result<(), FleetError> {
    let mut rng = Rng::named(config.seed, &format!("fleet.array.{array}"));
    let base = libm::exp(config.spread[0] * normal(&mut rng));
    let life = |place, born, age| DriveLife { array, place, born, age, readings: Vec::new(), end: None };
    let mut places = Vec::new();
    for place in 0..config.drives {
        let heat = libm::exp(config.spread[1] * normal(&mut rng));
        let load = Load { writes_per_day: config.writes_per_day * base * heat, reads_per_second: 0.0 };
        let (drive, deaths, age) = drive_in_use(config, array, place, load)?;
        places.push(Place { drive, life: life(place, 0, age), heat, deaths });
    }
    let mut deviation = normal(&mut rng);
    for month in 0..config.months {
        let kept = config.persistence;
        deviation = kept * deviation + libm::sqrt(1.0 - kept * kept) * normal(&mut rng);
        let load = config.writes_per_day * base * libm::exp(config.spread[2] * deviation);
        let parts = parts(config, model.filter(|_| is_judged(array)), &places);
        let (mut sum, mut slowest, mut reads) = (0.0, 0.0_f64, 0.0);
        let mut ended_now = 0;
        for (at, [read_part, write_part]) in places.iter_mut().zip(parts) {
            let asked = load * at.heat;
            let pages = config.die_pages / 86_400.0;
            let load = Load {
                writes_per_day: asked * write_part,
                reads_per_second: asked * read_part * pages * config.reads_per_write,
            };
            match at.drive.month(config, load) {
                Ok(reading) => {
                    sum += reading.mean_us * reading.read;
                    reads += reading.read;
                    slowest = slowest.max(reading.mean_us);
                    at.life.readings.push(reading);
                }
                Err(cause) => {
                    at.deaths += 1;
                    ended_now += 1;
                    at.drive = new_drive(config, array, at.life.place, at.deaths)?;
                    let next = life(at.life.place, month + 1, 0);
                    let ended = std::mem::replace(&mut at.life, next);
                    fleet.drives.push(DriveLife { end: Some(cause), ..ended });
                }
            }
        }
        fleet.coincidences += u64::from(is_judged(array) && ended_now > 1);
        if is_judged(array) && reads > 0.0 {
            fleet.arrays.push([sum / reads, slowest]);
        }
    }
    fleet.drives.extend(places.into_iter().map(|place| place.life));
    fleet.drives.sort_by_key(|life| (life.array, life.place, life.born));
    Ok(())
}

/// Parts of reads and writes for each drive, 1 in the mean.
fn parts(config: &FleetConfig, model: Option<&Model>, places: &[Place]) -> Vec<[f64; 2]> {
    let even = vec![[1.0; 2]; places.len()];
    let Some(model) = model else { return even };
    let wished: Vec<[f64; 2]> = places
        .iter()
        .map(|place| match place.life.readings.as_slice() {
            [] => [f64::NAN; 2],
            readings => [1.0 / model.mean_us(readings), model.remaining(config, readings)],
        })
        .collect();
    let mut parts = even;
    let placed = config.placement.predicted();
    for kind in (0..2).filter(|&kind| placed[kind]) {
        let known: Vec<f64> = wished.iter().map(|wish| wish[kind]).filter(|wish| wish.is_finite()).collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        for (part, wish) in parts.iter_mut().zip(&wished) {
            if wish[kind].is_finite() && mean > 0.0 {
                part[kind] = (wish[kind] / mean).clamp(PARTS.0, PARTS.1);
            }
        }
        // The load of the array stays as it is: heat says how much of it each part stands for.
        let weighted: f64 = parts.iter().zip(places).map(|(part, place)| part[kind] * place.heat).sum();
        let whole: f64 = places.iter().map(|place| place.heat).sum();
        for part in &mut parts {
            part[kind] *= whole / weighted;
        }
    }
    parts
}

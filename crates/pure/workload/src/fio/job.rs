//! One job: the values of its options.

use super::text::Setting;
use super::value::{self, KbBase};
use crate::address::{AddressPattern, Zone};
use crate::sizes::SizeMix;
use flashyard_units::SimSpan;

pub use super::value::Extent;

/// A target that one direction of a job keeps below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Bytes a second.
    Bytes(u64),
    /// Requests of the smallest size a second.
    Requests(u64),
}

/// Targets for reads, writes and trims.
pub type Rates = [Option<Pace>; 3];

/// A job of a file: a section with the options of `[global]` under its own.
///
/// Arrays are for reads, writes and trims, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct FioJob {
    /// Name of the section, or the value of `name`.
    pub name: String,
    /// Line of the section, from 1.
    pub line: usize,
    /// The section's own options as they are written.
    pub options: Vec<(String, String)>,
    /// Which operations it makes.
    pub operations: [bool; 3],
    /// Whether it goes anywhere instead of on.
    pub random: bool,
    /// Request sizes.
    pub sizes: [SizeMix; 3],
    /// Percentage of reads where there are reads and writes.
    pub read_percent: u64,
    /// Where a random job goes, if not evenly anywhere.
    pub distribution: Option<AddressPattern>,
    /// Whether a random job that goes evenly anywhere takes each block once before it takes one again.
    pub random_map: bool,
    /// Requests in flight as the option says; see [`FioJob::depth`].
    pub iodepth: u32,
    /// Whether the engine submits and waits, so that one request is in flight whatever `iodepth` says.
    pub synchronous: bool,
    /// First byte.
    pub offset: Extent,
    /// Added to the offset for each clone but the first.
    pub offset_increment: Extent,
    /// Bytes addressed, from the offset; the rest of the drive without it.
    pub size: Option<Extent>,
    /// Bytes moved before the job ends, if not those of `size`.
    pub io_size: Option<Extent>,
    /// How often `size` is moved.
    pub loops: u64,
    /// Requests after which the job ends.
    pub requests: Option<u64>,
    /// Whether only `runtime` ends it.
    pub time_based: bool,
    /// Simulated time after the ramp that ends it.
    pub runtime: Option<SimSpan>,
    /// Simulated time that does not count.
    pub ramp: SimSpan,
    /// Simulated time before it begins.
    pub start_delay: SimSpan,
    /// Targets.
    pub rates: Rates,
    /// Whether requests come at random moments around the target instead of evenly.
    pub poisson: bool,
    /// Pause once `think_requests` have completed.
    pub think: SimSpan,
    /// Completions between pauses.
    pub think_requests: u64,
    /// Length of the samples of bandwidth in the results.
    pub sample: SimSpan,
    /// Clones: streams that do the same with other random numbers.
    pub clones: u32,
    /// Seed in place of the scenario's.
    pub seed: Option<u64>,
    /// Whether the results of its group are added up.
    pub group_reporting: bool,
    /// Number of its group, from 0.
    pub group: u32,
    /// Number of its stage, from 0: jobs begin when all of the stages before have ended.
    pub stage: u32,
    /// Whether the section says that a new stage begins.
    pub(super) stonewall: bool,
    /// Whether the section says that a new group begins.
    pub(super) new_group: bool,
    pub(super) base: KbBase,
}

impl Default for FioJob {
    /// Defaults of fio. \[C\] fio 3.33
    fn default() -> Self {
        Self {
            name: String::new(),
            line: 0,
            options: Vec::new(),
            operations: [true, false, false],
            random: false,
            sizes: std::array::from_fn(|_| SizeMix::Fixed(4096)),
            read_percent: 50,
            distribution: None,
            random_map: true,
            iodepth: 1,
            synchronous: true,
            offset: Extent::Bytes(0),
            offset_increment: Extent::Bytes(0),
            size: None,
            io_size: None,
            loops: 1,
            requests: None,
            time_based: false,
            runtime: None,
            ramp: SimSpan::ZERO,
            start_delay: SimSpan::ZERO,
            rates: [None; 3],
            poisson: false,
            think: SimSpan::ZERO,
            think_requests: 1,
            sample: SimSpan::from_ms(500),
            clones: 1,
            seed: None,
            group_reporting: false,
            group: 0,
            stage: 0,
            stonewall: false,
            new_group: false,
            base: KbBase(1024),
        }
    }
}

/// Engines that keep one request in flight. \[C\] fio 3.33, `--enghelp` and manual page
const SYNCHRONOUS: [&str; 8] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice", "sg"];

/// Engines that keep as many in flight as they are asked to.
const QUEUEING: [&str; 9] =
    ["libaio", "io_uring", "io_uring_cmd", "posixaio", "solarisaio", "windowsaio", "null", "xnvme", "libblkio"];

impl FioJob {
    /// Requests in flight at most.
    pub fn depth(&self) -> u32 {
        if self.synchronous { 1 } else { self.iodepth }
    }

    /// Whether a target holds the job back.
    pub fn is_paced(&self) -> bool {
        self.rates.iter().zip(self.operations).any(|(rate, used)| used && rate.is_some())
    }

    /// Gives a supported option its value.
    ///
    /// Errors: the fault of the value, and the accepted form.
    pub(super) fn apply(&mut self, setting: &Setting) -> Result<(), String> {
        let given = setting.value.as_deref();
        match setting.name.as_str() {
            "time_based" => self.time_based = value::switch(given)?,
            "group_reporting" => self.group_reporting = value::switch(given)?,
            "stonewall" | "wait_for_previous" => self.stonewall = value::switch(given)?,
            "new_group" => self.new_group = value::switch(given)?,
            "norandommap" => self.random_map = !value::switch(given)?,
            name => {
                let text = given.ok_or("has no value, write option=value")?;
                self.apply_value(name, text.trim_end())?;
            }
        }
        Ok(())
    }

    fn apply_value(&mut self, name: &str, text: &str) -> Result<(), String> {
        let base = self.base;
        let (second, microsecond) = (SimSpan::from_secs(1), SimSpan::from_us(1));
        match name {
            "rw" | "readwrite" => self.set_operations(text)?,
            "bs" | "blocksize" => each(text, &mut self.sizes, |text| size(text, base).map(SizeMix::Fixed))?,
            "bsrange" | "blocksize_range" => each(text, &mut self.sizes, |text| size_range(text, base))?,
            "bssplit" => each(text, &mut self.sizes, |text| size_split(text, base))?,
            "bwavgtime" => self.sample = SimSpan::from_ms(value::number(text, 1, 3_600_000)?),
            "iodepth" => self.iodepth = value::number(text, 1, 65_536)? as u32,
            "ioengine" => self.synchronous = is_synchronous(text)?,
            "direct" if text != "1" => return Err("there is no page cache here, give direct=1 or leave it out".into()),
            "direct" | "kb_base" => {}
            "name" => self.name = text.to_owned(),
            "size" => self.size = Some(above_zero(value::extent(text, base)?)?),
            "io_size" | "io_limit" => self.io_size = Some(above_zero(value::extent(text, base)?)?),
            "offset" => self.offset = value::extent(text, base)?,
            "offset_increment" => self.offset_increment = value::extent(text, base)?,
            "loops" => self.loops = value::number(text, 1, u64::from(u32::MAX))?,
            "number_ios" => self.requests = Some(value::number(text, 1, u64::MAX)?),
            "runtime" | "timeout" => {
                self.runtime = Some(value::time(text, second)?).filter(|&runtime| runtime > SimSpan::ZERO);
            }
            "ramp_time" => self.ramp = value::time(text, second)?,
            "startdelay" => self.start_delay = value::time(text, second)?,
            "rwmixread" => self.read_percent = value::number(text, 0, 100)?,
            "rwmixwrite" => self.read_percent = 100 - value::number(text, 0, 100)?,
            "random_distribution" => self.distribution = distribution(text)?,
            "rate" => each(text, &mut self.rates, |text| {
                let bytes = value::bytes(text, base)?;
                Ok((bytes > 0).then_some(Pace::Bytes(bytes)))
            })?,
            "rate_iops" => each(text, &mut self.rates, |text| {
                let requests = value::number(text, 0, 1_000_000_000)?;
                Ok((requests > 0).then_some(Pace::Requests(requests)))
            })?,
            "rate_process" => {
                self.poisson = match text {
                    "linear" => false,
                    "poisson" => true,
                    _ => return Err(format!("{text:?} is no process, give linear or poisson")),
                }
            }
            "numjobs" => self.clones = value::number(text, 1, 4096)? as u32,
            "thinktime" => self.think = value::time(text, microsecond)?,
            "thinktime_blocks" => self.think_requests = value::number(text, 1, u64::from(u32::MAX))?,
            "randseed" => self.seed = Some(value::number(text, 0, u64::MAX)?),
            _ => unreachable!("{name} is in the table of supported options and has no arm here"),
        }
        Ok(())
    }

    fn set_operations(&mut self, text: &str) -> Result<(), String> {
        let (operations, random) = match text {
            "read" => ([true, false, false], false),
            "write" => ([false, true, false], false),
            "trim" => ([false, false, true], false),
            "rw" | "readwrite" => ([true, true, false], false),
            "randread" => ([true, false, false], true),
            "randwrite" => ([false, true, false], true),
            "randtrim" => ([false, false, true], true),
            "randrw" => ([true, true, false], true),
            _ => {
                let modes = "read, write, trim, rw, readwrite, randread, randwrite, randtrim, randrw";
                return Err(format!("{text:?} is not supported, give one of {modes}"));
            }
        };
        (self.operations, self.random) = (operations, random);
        Ok(())
    }
}

fn is_synchronous(engine: &str) -> Result<bool, String> {
    if SYNCHRONOUS.contains(&engine) || QUEUEING.contains(&engine) {
        return Ok(SYNCHRONOUS.contains(&engine));
    }
    let known = [&QUEUEING[..], &SYNCHRONOUS[..]].concat().join(", ");
    Err(format!("{engine:?} is no engine that reads and writes drives, give one of {known}"))
}

fn above_zero(extent: Extent) -> Result<Extent, String> {
    match extent {
        Extent::Bytes(0) | Extent::Percent(0) => Err("0 is outside its range, give more than 0".to_owned()),
        _ => Ok(extent),
    }
}

/// Values for reads, writes and trims: one for all; two for reads and for the others; empty places stay as they are.
fn each<T: Clone>(text: &str, places: &mut [T; 3], parse: impl Fn(&str) -> Result<T, String>) -> Result<(), String> {
    let parts: Vec<&str> = text.split(',').collect();
    let shares: [&str; 3] = match parts.as_slice() {
        [all] => [all, all, all],
        [read, others] => [read, others, others],
        [read, write, trim] => [read, write, trim],
        _ => return Err(format!("{text:?} has {} parts, give at most three: reads, writes, trims", parts.len())),
    };
    if shares.iter().all(|share| share.is_empty()) {
        return Err("has no value".to_owned());
    }
    for (place, share) in places.iter_mut().zip(shares) {
        if !share.is_empty() {
            *place = parse(share)?;
        }
    }
    Ok(())
}

fn size(text: &str, base: KbBase) -> Result<u32, String> {
    let bytes = value::bytes(text, base)?;
    let fits = u32::try_from(bytes).ok().filter(|&bytes| bytes > 0);
    fits.ok_or_else(|| format!("{text:?} is outside its range, give 1 byte to less than 4g"))
}

/// Multiples of the smallest size up to the largest, evenly.
fn size_range(text: &str, base: KbBase) -> Result<SizeMix, String> {
    let wrong = || format!("{text:?} cannot be read, give two sizes, for example 4k-64k");
    let (low, high) = text.split_once('-').ok_or_else(wrong)?;
    let (low, high) = (size(low, base)?, size(high, base)?);
    if low > high {
        return Err(wrong());
    }
    if high / low > 4096 {
        return Err(format!("{text:?} holds more than 4096 sizes, give a smaller range"));
    }
    Ok(SizeMix::Weighted((1..=high / low).map(|multiple| (multiple * low, 1.0)).collect()))
}

/// Sizes with percentages; sizes without one share the rest.
fn size_split(text: &str, base: KbBase) -> Result<SizeMix, String> {
    let entries = text.split(':').map(|entry| {
        let (bytes, percent) = entry.split_once('/').unwrap_or((entry, ""));
        let percent = if percent.is_empty() { None } else { Some(value::number(percent, 0, 100)?) };
        Ok((size(bytes, base)?, percent))
    });
    let entries: Vec<(u32, Option<u64>)> = entries.collect::<Result<_, String>>()?;
    let shares = shares(entries.iter().map(|entry| entry.1)).map_err(|sum| {
        format!("the percentages of {text:?} add up to {sum}, give 100, or leave one out to fill the rest")
    })?;
    Ok(SizeMix::Weighted(entries.iter().map(|entry| entry.0).zip(shares).collect()))
}

/// Percentages with the missing ones filled in; the error is a sum that cannot be.
fn shares(percents: impl Iterator<Item = Option<u64>> + Clone) -> Result<Vec<f64>, u64> {
    let sum: u64 = percents.clone().flatten().sum();
    let missing = percents.clone().filter(Option::is_none).count();
    if sum > 100 || (missing == 0 && sum != 100) {
        return Err(sum);
    }
    let rest = (100 - sum) as f64 / missing.max(1) as f64;
    Ok(percents.map(|percent| percent.map_or(rest, |percent| percent as f64)).collect())
}

fn distribution(text: &str) -> Result<Option<AddressPattern>, String> {
    let (name, parameter) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
    // Default of the parameter in fio. [C] fio 3.33, fio.h
    let read = |default: f64, accepted: &str, fits: fn(f64) -> bool| match parameter {
        None => Ok(default),
        Some(text) => value::fraction(text, accepted, fits),
    };
    Ok(match name {
        "random" if parameter.is_none() => None,
        "zipf" => {
            let accepted = "an exponent above 0 and below 10, but not 1";
            let theta = read(1.1, accepted, |theta| theta > 0.0 && theta < 10.0 && theta != 1.0)?;
            Some(AddressPattern::Zipf { theta })
        }
        "pareto" => {
            let input = read(0.2, "an input above 0 and below 1", |input| input > 0.0 && input < 1.0)?;
            Some(AddressPattern::Pareto { input })
        }
        "normal" => {
            let percent = read(0.0, "a deviation in percent from 0 to below 100", |d| (0.0..100.0).contains(&d))?;
            Some(AddressPattern::Normal { percent })
        }
        "zoned" => Some(AddressPattern::Zones(zones(parameter.unwrap_or_default())?)),
        _ => {
            let known = "random, zipf:theta, pareto:input, normal:deviation or zoned:access/size:...";
            return Err(format!("{text:?} is not supported, give {known}"));
        }
    })
}

fn zones(text: &str) -> Result<Vec<Zone>, String> {
    let wrong = || {
        format!(
            "zones {text:?} cannot be read, give access/size:access/size:..., each of both adding up to 100 percent"
        )
    };
    let zones = text.split(':').map(|zone| {
        let (access, size) = zone.split_once('/').ok_or_else(wrong)?;
        Ok((value::number(access, 0, 100)?, value::number(size, 1, 100)?))
    });
    let zones: Vec<(u64, u64)> = zones.collect::<Result<_, String>>()?;
    if zones.iter().map(|zone| zone.0).sum::<u64>() != 100 || zones.iter().map(|zone| zone.1).sum::<u64>() != 100 {
        return Err(wrong());
    }
    Ok(zones
        .into_iter()
        .map(|(access, size)| Zone { traffic: access as f64 / 100.0, space: size as f64 / 100.0 })
        .collect())
}

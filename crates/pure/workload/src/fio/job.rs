//! One job: the values of its options.

use super::engine::Engine;
use super::lengths::BlockSizes;
use super::popular::Distribution;
use super::shapes;
use super::text::Setting;
use super::value::{self, KbBase};
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

/// Where a request of a random job goes that is not random, because of `rw=randread:8` and the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequencer {
    /// Where the last one ended.
    Sequential,
    /// Where the last one began.
    Identical,
}

/// `random_generator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomGenerator {
    /// Numbers of 32 bits.
    Tausworthe,
    /// Numbers of 64 bits.
    Tausworthe64,
    /// Each block once without a map.
    Lfsr,
}

/// A job of a file: a section with the options of `[global]` under its own.
///
/// Arrays are for reads, writes and trims, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct FioJob {
    /// Name of the section, or the value of `name`.
    pub name: String,
    /// Name of the section.
    pub(super) section: String,
    /// Number of its first clone among the jobs and clones of the file, from 1.
    pub number: u32,
    /// Line of the section, from 1.
    pub line: usize,
    /// The section's own options as they are written.
    pub options: Vec<(String, String)>,
    /// Which operations it makes.
    pub operations: [bool; 3],
    /// Whether it goes anywhere instead of on.
    pub random: bool,
    /// Request sizes.
    pub sizes: [BlockSizes; 3],
    /// Whether `sizes` are those of requests that go on and of random ones instead.
    pub sizes_by_order: bool,
    /// Percentage of reads where there are reads and writes.
    pub read_percent: u64,
    /// Where a random job goes.
    pub distribution: Distribution,
    /// Whether a random job that goes evenly anywhere takes each block once before it takes one again.
    pub random_map: bool,
    /// Generator of blocks; fio chooses without it.
    pub generator: Option<RandomGenerator>,
    /// Percentage of the requests of a random job that are random.
    pub random_percent: [u64; 3],
    /// One in so many requests of a random job is random.
    pub every: u64,
    /// Bytes that a sequential job leaves out between requests.
    pub step: i64,
    /// Where requests of a random job go that are not random.
    pub sequencer: Sequencer,
    /// Requests in flight as the option says; see [`FioJob::depth`].
    pub iodepth: u32,
    /// How requests are submitted.
    pub(super) engine: Engine,
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
    /// Seed in place of fio's; passes then go on with its numbers.
    pub seed: Option<u64>,
    /// Whether every run and every pass draws alike.
    pub repeat: bool,
    /// Whether every run draws alike whatever `repeat` says.
    pub repeat_all: bool,
    /// Name of the file, which seeds popular blocks, its directory, and the name that all files have.
    pub(super) file: [Option<String>; 3],
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
            section: String::new(),
            number: 1,
            line: 0,
            options: Vec::new(),
            operations: [true, false, false],
            random: false,
            sizes: std::array::from_fn(|_| BlockSizes::fixed(4096)),
            sizes_by_order: false,
            read_percent: 50,
            distribution: Distribution::Random,
            random_map: true,
            generator: None,
            random_percent: [100; 3],
            every: 1,
            step: 0,
            sequencer: Sequencer::Sequential,
            iodepth: 1,
            engine: Engine::Waits,
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
            repeat: true,
            repeat_all: false,
            file: [const { None }; 3],
            group_reporting: false,
            group: 0,
            stage: 0,
            stonewall: false,
            new_group: false,
            base: KbBase(1024),
        }
    }
}

impl FioJob {
    /// Requests in flight at most.
    pub fn depth(&self) -> u32 {
        if self.engine == Engine::Waits { 1 } else { self.iodepth }
    }

    /// Whether the engine submits and waits, so that one request is in flight whatever `iodepth` says.
    pub fn waits(&self) -> bool {
        self.engine == Engine::Waits
    }

    /// Whether the engine queues requests of a direction.
    pub(super) fn queues(&self, direction: usize) -> bool {
        self.engine.queues(direction, self.iodepth)
    }

    /// Whether what is trimmed is written.
    pub(super) fn trims_and_writes(&self) -> bool {
        self.operations[1] && self.operations[2]
    }

    /// Whether the job keeps a map of the blocks that it visited.
    pub(super) fn has_random_map(&self) -> bool {
        self.random && self.random_map && self.distribution == Distribution::Random
    }

    /// Offsets and clones count what a clone is among those of its job: fio numbers them from the last one down.
    pub(super) fn place_of(&self, clone: u32) -> u32 {
        if clone == 0 { 0 } else { self.clones.saturating_sub(clone) }
    }

    /// Name of the file of a clone, as fio has it.
    pub(super) fn file_name(&self, clone: u32) -> String {
        let [file, directory, format] = &self.file;
        let named = match (file, format) {
            // The first of several files.
            (Some(file), _) => file.split(':').next().unwrap_or_default().to_owned(),
            (None, Some(format)) => format.clone(),
            // A device may be named by its section.
            (None, None) if self.section.starts_with("/dev/") => self.section.clone(),
            (None, None) => format!("{}.{}.0", self.section, self.place_of(clone)),
        };
        directory.as_ref().map_or(named.clone(), |directory| format!("{directory}/{named}"))
    }

    /// The job with other random numbers than fio's: those of the generator that [`FioJob::source`] is given.
    pub fn drawn_anew(&self) -> Self {
        Self { repeat: false, repeat_all: false, seed: None, ..self.clone() }
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
            "randrepeat" => self.repeat = value::switch(given)?,
            "allrandrepeat" => self.repeat_all = value::switch(given)?,
            "bs_is_seq_rand" => self.sizes_by_order = value::switch(given)?,
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
            "bs" | "blocksize" => each(text, &mut self.sizes, |text, sizes| {
                Ok(BlockSizes { plain: shapes::size(text, base)?, ..sizes.clone() })
            })?,
            "bsrange" | "blocksize_range" => {
                each(text, &mut self.sizes, |text, sizes| shapes::size_range(text, base, sizes))?;
            }
            "bssplit" => each(text, &mut self.sizes, |text, sizes| shapes::size_split(text, base, sizes))?,
            "bwavgtime" => self.sample = SimSpan::from_ms(value::number(text, 1, 3_600_000)?),
            "iodepth" => self.iodepth = value::number(text, 1, 65_536)? as u32,
            "ioengine" => self.engine = Engine::named(text)?,
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
            "random_distribution" => self.distribution = shapes::distribution(text)?,
            "percentage_random" => each(text, &mut self.random_percent, |text, _| value::number(text, 0, 100))?,
            "random_generator" => self.generator = Some(generator(text)?),
            "rw_sequencer" => {
                self.sequencer = match text {
                    "sequential" => Sequencer::Sequential,
                    "identical" => Sequencer::Identical,
                    _ => return Err(format!("{text:?} is no order, give sequential or identical")),
                }
            }
            "filename" => self.file[0] = Some(text.to_owned()),
            "directory" => self.file[1] = Some(text.to_owned()),
            "filename_format" => self.file[2] = Some(text.to_owned()),
            "rate" => each(text, &mut self.rates, |text, _| {
                let bytes = value::bytes(text, base)?;
                Ok((bytes > 0).then_some(Pace::Bytes(bytes)))
            })?,
            "rate_iops" => each(text, &mut self.rates, |text, _| {
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
        let (name, behind) = text.split_once(':').map_or((text, None), |(name, behind)| (name, Some(behind)));
        let (operations, random) = match name {
            "read" => ([true, false, false], false),
            "write" => ([false, true, false], false),
            "trim" => ([false, false, true], false),
            "rw" | "readwrite" => ([true, true, false], false),
            "randread" => ([true, false, false], true),
            "randwrite" => ([false, true, false], true),
            "randtrim" => ([false, false, true], true),
            "randrw" => ([true, true, false], true),
            "trimwrite" => ([false, true, true], false),
            "randtrimwrite" => ([false, true, true], true),
            _ => {
                let modes = "read, write, trim, rw, readwrite, randread, randwrite, randtrim, randrw, trimwrite, \
                             randtrimwrite";
                return Err(format!("{text:?} is not supported, give one of {modes}"));
            }
        };
        (self.operations, self.random, self.every, self.step) = (operations, random, 1, 0);
        match behind {
            Some(behind) if random => self.every = value::number(behind, 1, u64::from(u32::MAX))?,
            Some(behind) => self.step = shapes::step(behind, self.base)?,
            None => {}
        }
        Ok(())
    }
}

fn generator(text: &str) -> Result<RandomGenerator, String> {
    Ok(match text {
        "tausworthe" => RandomGenerator::Tausworthe,
        "tausworthe64" => RandomGenerator::Tausworthe64,
        "lfsr" => RandomGenerator::Lfsr,
        _ => return Err(format!("{text:?} is no generator, give tausworthe, tausworthe64 or lfsr")),
    })
}

fn above_zero(extent: Extent) -> Result<Extent, String> {
    match extent {
        Extent::Bytes(0) | Extent::Percent(0) => Err("0 is outside its range, give more than 0".to_owned()),
        _ => Ok(extent),
    }
}

/// Values for reads, writes and trims: one for all; two for reads and for the others; empty places stay as they are.
fn each<T>(text: &str, places: &mut [T; 3], parse: impl Fn(&str, &T) -> Result<T, String>) -> Result<(), String> {
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
            *place = parse(share, place)?;
        }
    }
    Ok(())
}

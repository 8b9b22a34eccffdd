//! Results in the layout of `fio --output-format=json`, for the tools that read it.
//!
//! Keys, units and the meaning of buckets are those of fio 3.33 (\[C\], its output and manual page). Latency is from
//! the application's call to its return, all of it completion latency; figures that a simulation cannot know are zero:
//! processor shares, context switches, page faults, submission latency, merges. Times are simulated, counted from
//! the beginning of 1970: equal runs give equal bytes. `docs/fio.md` has the list.

use flashyard_stats::LatencyHistogram;
use serde::{Serialize, Serializer};

/// Work of a stream, or of several added up, in the measured window.
#[derive(Clone, Debug, Default)]
pub struct FioStream {
    /// Name of the job.
    pub name: String,
    /// Number of its group.
    pub group: u32,
    /// Whether streams of the group are added up.
    pub group_reporting: bool,
    /// The job's options as they are written.
    pub options: Vec<(String, String)>,
    /// Requests in flight at most.
    pub depth: u32,
    /// Time from its start in the window to its last completion, in seconds.
    pub seconds: f64,
    /// Reads, writes and trims.
    pub directions: [FioDirection; 3],
    /// Flushes.
    pub flushes: LatencyHistogram,
    /// Requests issued at depths 1, 2 to 3, 4 to 7, ... 64 and more.
    pub depths: [u64; 7],
}

/// Work in one direction.
#[derive(Clone, Debug, Default)]
pub struct FioDirection {
    /// Requests.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// Latency.
    pub latency: LatencyHistogram,
    /// Bytes a second, in samples of equal length.
    pub bandwidth: FioSamples,
    /// Requests a second, in the same samples.
    pub rate: FioSamples,
}

/// Samples of a figure over time; zero without any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FioSamples {
    /// Samples.
    pub count: u64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
}

/// Work of a drive in the measured window.
#[derive(Clone, Debug, Default)]
pub struct FioDisk {
    /// Drive name.
    pub name: String,
    /// Reads and writes.
    pub ios: [u64; 2],
    /// Sum of their latencies in milliseconds.
    pub ticks_ms: [f64; 2],
    /// Busy share.
    pub utilization: f64,
}

/// Everything that the layout is filled with.
#[derive(Clone, Debug, Default)]
pub struct FioRun {
    /// Name and version of the program.
    pub version: String,
    /// Simulated time at the end, in milliseconds.
    pub end_ms: u64,
    /// The options of `[global]`.
    pub globals: Vec<(String, String)>,
    /// Streams in the order in which they are reported.
    pub streams: Vec<FioStream>,
    /// Drives.
    pub disks: Vec<FioDisk>,
}

/// A result in fio's layout.
#[derive(Clone, Debug, Serialize)]
pub struct FioReport {
    #[serde(rename = "fio version")]
    version: String,
    timestamp: u64,
    timestamp_ms: u64,
    time: String,
    #[serde(rename = "global options")]
    globals: Pairs<String>,
    jobs: Vec<Job>,
    disk_util: Vec<Disk>,
}

/// A JSON object whose keys are data, in their order.
#[derive(Clone, Debug)]
struct Pairs<V>(Vec<(String, V)>);

impl<V: Serialize> Serialize for Pairs<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[derive(Clone, Debug, Serialize)]
struct Job {
    jobname: String,
    groupid: u32,
    error: u32,
    eta: u64,
    elapsed: u64,
    #[serde(rename = "job options")]
    options: Pairs<String>,
    read: Direction,
    write: Direction,
    trim: Direction,
    sync: Sync,
    job_runtime: u64,
    usr_cpu: f64,
    sys_cpu: f64,
    ctx: u64,
    majf: u64,
    minf: u64,
    iodepth_level: Pairs<f64>,
    iodepth_submit: Pairs<f64>,
    iodepth_complete: Pairs<f64>,
    latency_ns: Pairs<f64>,
    latency_us: Pairs<f64>,
    latency_ms: Pairs<f64>,
    latency_depth: u32,
    latency_target: u64,
    latency_percentile: f64,
    latency_window: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Direction {
    io_bytes: u64,
    io_kbytes: u64,
    bw_bytes: u64,
    bw: u64,
    iops: f64,
    runtime: u64,
    total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    slat_ns: Latency,
    clat_ns: Latency,
    lat_ns: Latency,
    bw_min: u64,
    bw_max: u64,
    bw_agg: f64,
    bw_mean: f64,
    bw_dev: f64,
    bw_samples: u64,
    iops_min: u64,
    iops_max: u64,
    iops_mean: f64,
    iops_stddev: f64,
    iops_samples: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Sync {
    total_ios: u64,
    lat_ns: Latency,
}

#[derive(Clone, Debug, Serialize)]
struct Latency {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percentile: Option<Pairs<u64>>,
}

#[derive(Clone, Debug, Serialize)]
struct Disk {
    name: String,
    read_ios: u64,
    write_ios: u64,
    read_merges: u64,
    write_merges: u64,
    read_ticks: u64,
    write_ticks: u64,
    in_queue: u64,
    util: f64,
}

/// fio's default `percentile_list`.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// Upper edges of the buckets of `latency_ns` and `latency_us`, in their unit; a bucket ends below its edge.
const EDGES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

impl FioReport {
    /// Lays out the figures of a run. Streams of a group that asks for it are added up.
    pub fn new(run: FioRun) -> Self {
        let streams = add_groups(run.streams);
        // Bandwidth of all streams of a group, to which bw_agg is the share.
        let whole = |group, index: usize| -> f64 {
            let of_group = streams.iter().filter(|stream| stream.group == group);
            of_group.map(|stream| rate(stream.directions[index].bytes, stream.seconds)).sum()
        };
        let job = |stream: &FioStream| job(stream, [0, 1, 2].map(|index| whole(stream.group, index)));
        Self {
            version: run.version,
            timestamp: run.end_ms / 1000,
            timestamp_ms: run.end_ms,
            time: date(run.end_ms / 1000),
            globals: Pairs(run.globals),
            jobs: streams.iter().map(job).collect(),
            disk_util: run.disks.iter().map(disk).collect(),
        }
    }
}

/// Adds up the streams of groups that are reported as one, under the name of their first job.
fn add_groups(streams: Vec<FioStream>) -> Vec<FioStream> {
    let mut added: Vec<FioStream> = Vec::new();
    for stream in streams {
        let whole = added
            .iter_mut()
            .find(|whole| whole.group == stream.group && whole.group_reporting && stream.group_reporting);
        match whole {
            Some(whole) => whole.add(&stream),
            None => added.push(stream),
        }
    }
    added
}

impl FioStream {
    fn add(&mut self, other: &Self) {
        self.seconds = self.seconds.max(other.seconds);
        self.depth = self.depth.max(other.depth);
        self.flushes.merge(&other.flushes);
        for (mine, theirs) in self.directions.iter_mut().zip(&other.directions) {
            mine.ios += theirs.ios;
            mine.bytes += theirs.bytes;
            mine.latency.merge(&theirs.latency);
            mine.bandwidth.add(theirs.bandwidth);
            mine.rate.add(theirs.rate);
        }
        self.depths.iter_mut().zip(other.depths).for_each(|(mine, theirs)| *mine += theirs);
    }
}

impl FioSamples {
    /// Streams run beside each other: means add up, and so do the squares of deviations.
    fn add(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.mean += other.mean;
        self.deviation = (self.deviation * self.deviation + other.deviation * other.deviation).sqrt();
        self.count += other.count;
    }
}

fn rate(amount: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount as f64 / seconds } else { 0.0 }
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1e3).ceil() as u64
}

fn job(stream: &FioStream, whole: [f64; 3]) -> Job {
    let [read, write, trim] = [0, 1, 2].map(|index| direction(&stream.directions[index], stream.seconds, whole[index]));
    let ios: u64 = stream.directions.iter().map(|direction| direction.ios).sum();
    let one_by_one = if ios > 0 { 100.0 } else { 0.0 };
    let batches = || {
        let names = ["0", "4", "8", "16", "32", "64", ">=64"];
        Pairs(names.map(|name| (name.to_owned(), if name == "4" { one_by_one } else { 0.0 })).to_vec())
    };
    let mut all = LatencyHistogram::new();
    stream.directions.iter().for_each(|direction| all.merge(&direction.latency));
    let [latency_ns, latency_us, latency_ms] = buckets(&all);
    Job {
        jobname: stream.name.clone(),
        groupid: stream.group,
        error: 0,
        eta: 0,
        elapsed: stream.seconds.ceil() as u64,
        options: Pairs(stream.options.clone()),
        read,
        write,
        trim,
        sync: Sync { total_ios: stream.flushes.count(), lat_ns: latency(&stream.flushes, false) },
        job_runtime: milliseconds(stream.seconds),
        usr_cpu: 0.0,
        sys_cpu: 0.0,
        ctx: 0,
        majf: 0,
        minf: 0,
        iodepth_level: depths(&stream.depths),
        iodepth_submit: batches(),
        iodepth_complete: batches(),
        latency_ns,
        latency_us,
        latency_ms,
        latency_depth: stream.depth,
        latency_target: 0,
        latency_percentile: 100.0,
        latency_window: 0,
    }
}

fn direction(direction: &FioDirection, seconds: f64, whole: f64) -> Direction {
    let bandwidth = rate(direction.bytes, seconds);
    let (samples, rates) = (direction.bandwidth, direction.rate);
    Direction {
        io_bytes: direction.bytes,
        io_kbytes: direction.bytes >> 10,
        bw_bytes: bandwidth as u64,
        bw: (bandwidth / 1024.0) as u64,
        iops: rate(direction.ios, seconds),
        runtime: if direction.ios > 0 { milliseconds(seconds) } else { 0 },
        total_ios: direction.ios,
        short_ios: 0,
        drop_ios: 0,
        slat_ns: latency(&LatencyHistogram::new(), false),
        clat_ns: latency(&direction.latency, true),
        lat_ns: latency(&direction.latency, false),
        bw_min: (samples.min / 1024.0) as u64,
        bw_max: (samples.max / 1024.0) as u64,
        bw_agg: if whole > 0.0 { (samples.mean / whole * 100.0).min(100.0) } else { 0.0 },
        bw_mean: samples.mean / 1024.0,
        bw_dev: samples.deviation / 1024.0,
        bw_samples: samples.count,
        iops_min: rates.min as u64,
        iops_max: rates.max as u64,
        iops_mean: rates.mean,
        iops_stddev: rates.deviation,
        iops_samples: rates.count,
    }
}

fn latency(latency: &LatencyHistogram, percentiles: bool) -> Latency {
    let ns = |us: f64| (us * 1e3).round() as u64;
    let percentile = |percent: f64| (format!("{percent:.6}"), ns(latency.percentile_us(percent / 100.0)));
    Latency {
        min: ns(latency.min_us()),
        max: ns(latency.max_us()),
        mean: latency.mean_us() * 1e3,
        stddev: latency.deviation_us() * 1e3,
        count: latency.count(),
        percentile: (percentiles && latency.count() > 0).then(|| Pairs(PERCENTILES.map(percentile).to_vec())),
    }
}

/// Percentages of requests in the buckets of nanoseconds, microseconds and milliseconds.
fn buckets(latency: &LatencyHistogram) -> [Pairs<f64>; 3] {
    let (mut ns, mut us, mut ms) = ([0_u64; 10], [0_u64; 10], [0_u64; 12]);
    let place = |value: u64| EDGES.iter().position(|&edge| value < edge);
    for (up_to_us, count) in latency.buckets() {
        let value = (up_to_us * 1e3).round() as u64;
        match (place(value), place(value / 1000), place(value / 1_000_000)) {
            (Some(index), ..) => ns[index] += count,
            (None, Some(index), _) => us[index] += count,
            (None, None, Some(index)) => ms[index] += count,
            (None, None, None) if value < 2_000_000_000 => ms[10] += count,
            (None, None, None) => ms[11] += count,
        }
    }
    let percent = |count: u64| rate(count * 100, latency.count() as f64);
    let names = EDGES.map(|edge| edge.to_string());
    let pairs = |counts: &[u64]| {
        let names = names.iter().cloned().chain(["2000".to_owned(), ">=2000".to_owned()]);
        Pairs(names.zip(counts).map(|(name, &count)| (name, percent(count))).collect())
    };
    [pairs(&ns), pairs(&us), pairs(&ms)]
}

fn depths(counts: &[u64; 7]) -> Pairs<f64> {
    let names = ["1", "2", "4", "8", "16", "32", ">=64"];
    let all: u64 = counts.iter().sum();
    let percent = |count: u64| rate(count * 100, all as f64);
    Pairs(names.iter().zip(counts).map(|(name, &count)| ((*name).to_owned(), percent(count))).collect())
}

fn disk(disk: &FioDisk) -> Disk {
    let [read_ticks, write_ticks] = disk.ticks_ms.map(|ms| ms.round() as u64);
    Disk {
        name: disk.name.clone(),
        read_ios: disk.ios[0],
        write_ios: disk.ios[1],
        read_merges: 0,
        write_merges: 0,
        read_ticks,
        write_ticks,
        in_queue: read_ticks + write_ticks,
        util: disk.utilization * 100.0,
    }
}

/// The date of a second of 1970, as `ctime` writes it. Simulated time ends in August.
fn date(second: u64) -> String {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [(&str, u64); 12] = [
        ("Jan", 31),
        ("Feb", 28),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    let days = second / 86_400;
    let (mut month, mut day) = ("Dec", days);
    for (name, length) in MONTHS {
        if day < length {
            month = name;
            break;
        }
        day -= length;
    }
    let weekday = WEEKDAYS[(days % 7) as usize];
    let (hour, minute, rest) = (second / 3600 % 24, second / 60 % 60, second % 60);
    format!("{weekday} {month} {:>2} {hour:02}:{minute:02}:{rest:02} 1970", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::SimSpan;

    /// A stream of reads with these latencies in nanoseconds, 4 KiB each, over one second.
    fn stream(latencies_ns: &[u64]) -> FioStream {
        let mut read = FioDirection { ios: latencies_ns.len() as u64, ..FioDirection::default() };
        read.bytes = read.ios * 4096;
        latencies_ns.iter().for_each(|&ns| read.latency.record(SimSpan::from_ns(ns)));
        let directions = [read, FioDirection::default(), FioDirection::default()];
        FioStream { name: "job".to_owned(), seconds: 1.0, directions, ..FioStream::default() }
    }

    fn report(streams: Vec<FioStream>) -> FioReport {
        FioReport::new(FioRun { streams, ..FioRun::default() })
    }

    fn used(pairs: &Pairs<f64>) -> Vec<(&str, f64)> {
        pairs.0.iter().filter(|pair| pair.1 > 0.0).map(|pair| (pair.0.as_str(), pair.1)).collect()
    }

    #[test]
    fn latencies_fall_into_the_buckets_of_fio() {
        let job = &report(vec![stream(&[1, 3, 999, 1_100, 70_000, 999_000, 1_900_000, 1_500_000_000])]).jobs[0];
        assert_eq!(used(&job.latency_ns), [("2", 12.5), ("4", 12.5), ("1000", 12.5)]);
        assert_eq!(used(&job.latency_us), [("2", 12.5), ("100", 12.5), ("1000", 12.5)]);
        assert_eq!(used(&job.latency_ms), [("2", 12.5), ("2000", 12.5)]);
        let slow = &report(vec![stream(&[2_500_000_000])]).jobs[0];
        assert_eq!(used(&slow.latency_ms), [(">=2000", 100.0)]);
    }

    #[test]
    fn percentiles_have_the_names_of_fio_and_directions_without_requests_have_none() {
        let job = &report(vec![stream(&[10_000; 1000])]).jobs[0];
        let percentiles = job.read.clat_ns.percentile.as_ref().expect("there were reads");
        let names: Vec<&str> = percentiles.0.iter().map(|pair| pair.0.as_str()).collect();
        assert_eq!((names[0], names[13], names[16], names.len()), ("1.000000", "99.500000", "99.990000", 17));
        assert!(percentiles.0.iter().all(|pair| pair.1.abs_diff(10_000) < 10));
        assert!(job.write.clat_ns.percentile.is_none() && job.read.lat_ns.percentile.is_none());
    }

    #[test]
    fn rates_use_the_time_of_the_job_and_kilobytes_are_binary() {
        let job = &report(vec![FioStream { seconds: 0.25, ..stream(&[10_000; 100]) }]).jobs[0];
        let read = &job.read;
        assert_eq!((read.io_bytes, read.io_kbytes, read.bw_bytes, read.bw), (409_600, 400, 1_638_400, 1600));
        assert_eq!((read.iops, read.runtime, job.write.runtime), (400.0, 250, 0));
    }

    #[test]
    fn streams_of_a_group_are_added_up_and_others_are_not() {
        let samples = |mean| FioSamples { count: 2, min: mean - 1.0, max: mean + 1.0, mean, deviation: 3.0 };
        let member = |group, mean| {
            let mut member = FioStream { group, group_reporting: true, ..stream(&[10_000; 10]) };
            member.directions[0].bandwidth = samples(mean);
            member
        };
        let found = report(vec![member(0, 2048.0), member(0, 4096.0), member(1, 1024.0), stream(&[5_000])]).jobs;
        let ios: Vec<u64> = found.iter().map(|job| job.read.total_ios).collect();
        assert_eq!(ios, [20, 10, 1]);
        let read = &found[0].read;
        assert_eq!((read.bw_min, read.bw_max, read.bw_mean, read.bw_samples), (1, 4, 6.0, 4));
        assert!((read.bw_dev - 18.0_f64.sqrt() / 1024.0).abs() < 1e-12);
    }

    #[test]
    fn dates_are_those_of_1970() {
        assert_eq!(date(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(date(86_399), "Thu Jan  1 23:59:59 1970");
        assert_eq!(date(31 * 86_400), "Sun Feb  1 00:00:00 1970");
        assert_eq!(date(212 * 86_400 + 3_661), "Sat Aug  1 01:01:01 1970");
    }
}

//! Metrics that several systems have. Rankings, the explorer and the findings of the page go by these.

use crate::figure::{Better, Metric, Needs, Unit};

/// Requests completed.
pub static IOS: Metric = Metric::count("ios", "Requests measured", "requests completed").column("requests");

/// Bytes read.
pub static READ_BYTES: Metric = Metric::count("read_bytes", "Data read", "bytes read").unit(Unit::Bytes);

/// Bytes written.
pub static WRITE_BYTES: Metric = Metric::count("write_bytes", "Data written", "bytes written").unit(Unit::Bytes);

/// Bytes read and written.
pub static MOVED_BYTES: Metric =
    Metric::count("moved_bytes", "Data measured", "bytes read and written").unit(Unit::Bytes);

/// Length of the measured window.
pub static WINDOW: Metric =
    Metric::number("window_seconds", "Measured window", Unit::Seconds, "length of the measured window in seconds");

/// Bytes a second.
pub static THROUGHPUT: Metric =
    Metric::number("throughput_bytes_per_s", "Throughput", Unit::BytesPerSecond, "bytes read and written a second")
        .better(Better::More)
        .terminal("throughput\nGB/s", 1e9, 2);

/// Requests a second.
pub static IOPS: Metric = Metric::number("iops", "Requests", Unit::PerSecond, "requests a second")
    .column("requests_per_s")
    .better(Better::More)
    .terminal("requests\nk/s", 1e3, 1);

const fn latency(key: &'static str, title: &'static str, about: &'static str) -> Metric {
    Metric::maybe(key, title, Unit::Microseconds, about).better(Better::Less).needs(Needs::EqualLoad)
}

/// Mean latency, from the application's call to its return. In a closed loop it follows from throughput, so it needs no
/// equal load to be ranked.
pub static LATENCY_MEAN: Metric = latency("latency_us.mean", "Latency, mean", "mean latency in microseconds")
    .column("latency_mean_us")
    .needs(Needs::Nothing)
    .terminal("mean\nus", 1.0, 1);

/// Median latency.
pub static LATENCY_P50: Metric = latency("latency_us.p50", "Latency, p50", "median latency in microseconds")
    .column("latency_p50_us")
    .terminal("p50\nus", 1.0, 1);

/// 99th percentile of latency.
pub static LATENCY_P99: Metric = latency("latency_us.p99", "Latency, p99", "99th percentile in microseconds")
    .column("latency_p99_us")
    .terminal("p99\nus", 1.0, 1);

/// 99.9th percentile of latency.
pub static LATENCY_P999: Metric = latency("latency_us.p999", "Latency, p99.9", "99.9th percentile in microseconds")
    .column("latency_p999_us")
    .terminal("p99.9\nus", 1.0, 1);

/// 99.99th percentile of latency.
pub static LATENCY_P9999: Metric = latency("latency_us.p9999", "Latency, p99.99", "99.99th percentile in microseconds")
    .column("latency_p9999_us")
    .terminal("p99.99\nus", 1.0, 1);

/// Longest latency.
pub static LATENCY_MAX: Metric = latency("latency_us.max", "Latency, longest", "longest latency in microseconds")
    .column("latency_max_us")
    .terminal("max\nus", 1.0, 1);

/// Busy share of the cores of drives.
pub static PROCESSOR_UTILIZATION: Metric =
    Metric::number("processor_utilization", "Drive cores busy", Unit::Share, "busy share of the drive's cores")
        .column("processor_busy_share")
        .percent("drive\ncores %");

/// Busy share of flash.
pub static FLASH_UTILIZATION: Metric = Metric::number(
    "flash_utilization",
    "Flash busy",
    Unit::Share,
    "the busier of buses and arrays: an array is busy while it senses, programs or erases",
)
.column("flash_busy_share")
.percent("flash\nbusy %");

/// Misses of the mapping.
pub static MAPPING_MISS_RATIO: Metric =
    Metric::maybe("mapping_miss_ratio", "Mapping misses", Unit::Share, "mapping misses for each mapping access")
        .better(Better::Less)
        .percent("map\nmisses %");

/// Slots written to flash for each slot written.
pub static WRITE_AMPLIFICATION: Metric = Metric::maybe(
    "write_amplification",
    "Write amplification",
    Unit::Ratio,
    "slots written to flash for each slot written to the drive",
)
.column("write_amplification_ratio")
.better(Better::Less)
.terminal("write\nampl.", 1.0, 2);

/// Energy.
pub static ENERGY: Metric = Metric::number("energy_joules", "Energy of drives", Unit::Joules, "energy in joules");

/// Energy for the data moved.
pub static ENERGY_PER_GB: Metric = Metric::maybe(
    "energy_joules_per_gb",
    "Energy of drives per GB",
    Unit::Joules,
    "energy in joules for each 10⁹ bytes read or written",
)
.or_absent("nothing was moved")
.better(Better::Less)
.needs(Needs::WorkInDrives)
.terminal("drives\nJ/GB", 1.0, 2);

/// Price of the parts.
pub static PRICE: Metric =
    Metric::number("bom_dollars", "Price of drives", Unit::Dollars, "price of the drive's parts in US dollars")
        .better(Better::Less)
        .needs(Needs::WorkInDrives)
        .terminal("drives\n$", 1.0, 0);

/// Throughput for the money.
pub static THROUGHPUT_PER_DOLLAR: Metric = Metric::number(
    "throughput_bytes_per_s_per_dollar",
    "Throughput per dollar",
    Unit::BytesPerSecondPerDollar,
    "bytes read and written a second for each dollar",
)
.better(Better::More)
.needs(Needs::WorkInDrives)
.terminal("MB/s\nper $", 1e6, 2);

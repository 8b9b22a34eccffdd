//! Which options of fio are taken, which have no effect here and which are refused, each with its reason.

use super::error::FioError;
use crate::words::nearest;

/// Treatment of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It means here what it means to fio.
    Supported,
    /// It is accepted and named in the result: it concerns parts that are not simulated.
    Ignored,
    /// It is an error: without it the job would be another one.
    Refused,
}

/// Every option with a meaning here, or another spelling of one.
const SUPPORTED: &[&str] = &[
    "allrandrepeat",
    "blocksize",
    "blocksize_range",
    "bs",
    "bs_is_seq_rand",
    "bsrange",
    "bssplit",
    "bwavgtime",
    "direct",
    "directory",
    "filename",
    "filename_format",
    "group_reporting",
    "io_limit",
    "io_size",
    "iodepth",
    "ioengine",
    "kb_base",
    "loops",
    "name",
    "new_group",
    "norandommap",
    "number_ios",
    "numjobs",
    "offset",
    "offset_increment",
    "percentage_random",
    "ramp_time",
    "random_distribution",
    "random_generator",
    "randrepeat",
    "randseed",
    "rate",
    "rate_iops",
    "rate_process",
    "readwrite",
    "runtime",
    "rw",
    "rw_sequencer",
    "rwmixread",
    "rwmixwrite",
    "size",
    "startdelay",
    "stonewall",
    "thinktime",
    "thinktime_blocks",
    "time_based",
    "timeout",
    "wait_for_previous",
];

/// Every option that is accepted without effect, by its subject.
const IGNORED: &[(&str, &[&str])] = &[
    (
        "a drive is addressed, not a file",
        &[
            "allow_file_create",
            "allow_mounted_write",
            "create_fsync",
            "create_on_open",
            "create_serialize",
            "fadvise_hint",
            "fallocate",
            "file_service_type",
            "openfiles",
            "overwrite",
            "unlink",
        ],
    ),
    (
        "data is not carried",
        &[
            "buffer_compress_chunk",
            "buffer_compress_percentage",
            "buffer_pattern",
            "dedupe_percentage",
            "refill_buffers",
            "scramble_buffers",
            "zero_buffers",
        ],
    ),
    (
        "the submitting program costs what the host profile says",
        &[
            "clocksource",
            "cpus_allowed",
            "cpus_allowed_policy",
            "fixedbufs",
            "force_async",
            "gtod_cpu",
            "gtod_reduce",
            "hipri",
            "iomem",
            "lockmem",
            "mem",
            "nice",
            "nonvectored",
            "numa_cpu_nodes",
            "numa_mem_policy",
            "prio",
            "prioclass",
            "registerfiles",
            "sqthread_poll",
            "sqthread_poll_cpu",
            "thread",
            "userspace_reap",
        ],
    ),
    ("there is no page cache", &["invalidate"]),
    ("the random map always has its memory", &["softrandommap"]),
    ("nothing fails", &["continue_on_error", "error_dump", "exitall_on_error"]),
    (
        "results have one form",
        &[
            "clat_percentiles",
            "description",
            "disable_clat",
            "disable_lat",
            "disable_slat",
            "disk_util",
            "iopsavgtime",
            "lat_percentiles",
            "log_avg_msec",
            "log_hist_msec",
            "per_job_logs",
            "percentile_list",
            "slat_percentiles",
            "write_bw_log",
            "write_hist_log",
            "write_iops_log",
            "write_lat_log",
        ],
    ),
];

/// Well-known options that are refused, with an alternative.
const REFUSED: &[(&str, &str)] = &[
    ("buffered", "there is no page cache here: leave it out or write direct=1"),
    ("end_fsync", "flushes are not issued: leave it out"),
    ("fdatasync", "flushes are not issued: leave it out"),
    ("filesize", "a drive is addressed, not a file: give size"),
    ("flow", "jobs are independent of each other: give rate or rate_iops"),
    ("fsync", "flushes are not issued: leave it out"),
    ("include", "files are not included: write their options here"),
    ("iodepth_batch", "requests are submitted one by one: leave it out"),
    ("iodepth_batch_complete", "requests complete one by one: leave it out"),
    ("iodepth_batch_complete_max", "requests complete one by one: leave it out"),
    ("iodepth_batch_complete_min", "requests complete one by one: leave it out"),
    ("iodepth_batch_submit", "requests are submitted one by one: leave it out"),
    ("iodepth_low", "a free place is filled at once: leave it out"),
    ("latency_target", "the depth is not searched for: run one file for each iodepth"),
    ("nrfiles", "a job has one drive: give numjobs and offset_increment"),
    ("read_iolog", "name the trace in the scenario: workload.trace"),
    ("sync", "flushes are not issued: leave it out"),
    ("thinktime_blocks_type", "pauses count completions: leave it out"),
    ("unified_rw_reporting", "reads, writes and trims are reported apart: leave it out"),
    ("verify", "data is not carried, so there is nothing to verify: leave it out"),
    ("wait_for", "a job waits for all before it: write stonewall"),
    ("zonemode", "zones of a zoned drive are not modelled: leave it out"),
];

/// All options that have a line in the tables, with a word on why where they are not supported.
pub fn options() -> impl Iterator<Item = (&'static str, Treatment, &'static str)> {
    let supported = SUPPORTED.iter().map(|&name| (name, Treatment::Supported, ""));
    let ignored =
        IGNORED.iter().flat_map(|&(why, names)| names.iter().map(move |&name| (name, Treatment::Ignored, why)));
    let refused = REFUSED.iter().map(|&(name, why)| (name, Treatment::Refused, why));
    supported.chain(ignored).chain(refused)
}

/// Treatment of the option called `name`.
///
/// Errors: an option that is refused or unknown, with an alternative.
pub(super) fn treatment(line: usize, name: &str) -> Result<Treatment, FioError> {
    match options().find(|option| option.0 == name) {
        Some((_, Treatment::Refused, instead)) => {
            Err(FioError::new(line, name, format!("is not supported: {instead}")))
        }
        Some((_, treatment, _)) => Ok(treatment),
        None => Err(FioError::new(line, name, unknown(name))),
    }
}

fn unknown(name: &str) -> String {
    let known = options().filter(|option| option.1 != Treatment::Refused).map(|option| option.0);
    match nearest(name, known) {
        Some(known) => format!("is not supported; did you mean {known}?"),
        None => format!("is not supported; supported are {}", SUPPORTED.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_is_treated_in_two_ways() {
        let mut names: Vec<&str> = options().map(|option| option.0).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn an_unknown_option_gets_the_nearest_name_or_the_list() {
        assert_eq!(unknown("iodeph"), "is not supported; did you mean iodepth?");
        assert_eq!(unknown("bandwidth_log").split("; ").nth(1).map(|text| &text[..13]), Some("supported are"));
    }

    #[test]
    fn a_refused_option_says_what_to_do() {
        let error = treatment(3, "fsync").expect_err("it is refused").to_string();
        assert!(error.starts_with("line 3: fsync: is not supported: flushes are not issued"), "{error}");
    }

    #[test]
    fn the_page_lists_every_option() {
        let page = include_str!("../../../../../docs/fio.md");
        for (name, ..) in options() {
            assert!(page.contains(&format!("`{name}`")), "docs/fio.md does not say what becomes of {name}");
        }
    }
}

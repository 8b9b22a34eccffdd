//! Our requests of job files are fio's, one by one: offset, length and direction, over three passes.
//!
//! `fio/jobs.txt` holds the job files and `fio/orders.txt` what fio made of them in each of two runs;
//! `tests/live/record-fio.py` writes it. The tests of the program run fio itself where it is installed.

use flashyard_blk::{Operation, TraceRecord};
use flashyard_kernel::Rng;
use flashyard_workload::RequestSource;
use flashyard_workload::fio::{FioJob, FioJobs};
use std::fmt::Write;

const JOBS: &str = include_str!("fio/jobs.txt");
const ORDERS: &str = include_str!("fio/orders.txt");

/// A job file of the list.
struct JobFile {
    name: &'static str,
    drive: Option<u64>,
    take: usize,
    jobs: FioJobs,
}

fn job_files() -> Vec<JobFile> {
    let parts = JOBS.split("\n== ").skip(1);
    let read = |part: &'static str| {
        let (head, body) = part.split_once('\n').expect("a file has lines");
        let mut words = head.split(' ');
        let name = words.next().expect("a file has a name");
        let settings: Vec<(&str, u64)> = words
            .map(|word| word.split_once('=').expect("settings have values"))
            .map(|(key, value)| (key, value.parse().expect("values are numbers")))
            .collect();
        let setting = |name| settings.iter().find(|setting| setting.0 == name).map(|setting| setting.1);
        let engine = if setting("drive").is_some() { "psync" } else { "null" };
        let text = format!("[global]\nioengine={engine}\n{body}");
        let jobs = FioJobs::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let take = setting("take").map_or(usize::MAX, |take| take as usize);
        JobFile { name, drive: setting("drive"), take, jobs }
    };
    parts.map(read).collect()
}

/// The requests of a clone. A file of the null engine ends where the range ends.
fn requests(job: &FioJob, clone: u32, drive: Option<u64>, take: usize) -> Vec<TraceRecord> {
    let capacity = drive.unwrap_or_else(|| job.range(1 << 40, clone).expect("it fits").end);
    let mut source = job.source(capacity, clone, Rng::named(1, "unused")).expect("it fits");
    std::iter::from_fn(|| source.next_request().expect("time does not end here")).take(take).collect()
}

/// The line of `fio/orders.txt` of a stream.
fn line(name: &str, number: usize, records: &[TraceRecord]) -> String {
    let (mut hash, mut first) = (0xcbf2_9ce4_8422_2325_u64, String::new());
    for (index, record) in records.iter().enumerate() {
        let request = record.request;
        let direction = match request.operation {
            Operation::Read => 0,
            Operation::Write => 1,
            _ => 2,
        };
        for value in [direction, request.offset_bytes, u64::from(request.len_bytes)] {
            hash = (hash ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        }
        if index < 64 {
            let letter = ['r', 'w', 't'][direction as usize];
            write!(first, " {letter}{:x}+{:x}", request.offset_bytes, request.len_bytes).expect("text takes it");
        }
    }
    format!("{name} {number} {} {hash:016x}{first}", records.len())
}

#[test]
fn the_requests_of_every_job_file_are_those_of_fio() {
    let mut golden = ORDERS.lines().filter(|line| !line.starts_with('#'));
    let (mut files, mut wrong) = (0, Vec::new());
    for file in job_files() {
        let clones = file.jobs.jobs.iter().flat_map(|job| (0..job.clones).map(move |clone| (job, clone)));
        for (index, (job, clone)) in clones.enumerate() {
            let found = line(file.name, index + 1, &requests(job, clone, file.drive, file.take));
            let expected = golden.next().unwrap_or("");
            if found != expected {
                wrong.push(format!("fio:  {expected}\nhere: {found}"));
            }
        }
        files += 1;
    }
    assert!(wrong.is_empty(), "{} streams differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(golden.next().is_none() && files >= 60, "{files} files");
}

//! Job files of fio and results in its layout, compared with fio itself.

use flashyard_blk::Operation;
use flashyard_conformance::{has_program, skip};
use flashyard_kernel::Rng;
use flashyard_workload::RequestSource;
use flashyard_workload::fio::FioJobs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SCENARIO: &str = "scenarios/fio/scenario.toml";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the crate is three levels deep").to_owned()
}

fn flashyard(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_flashyard");
    Command::new(program).args(arguments).current_dir(root()).output().expect("the program starts")
}

fn has_fio() -> bool {
    has_program("fio", "our reading of job files and our results were not compared with fio's")
}

fn fio(directory: &Path, arguments: &[&str]) -> Output {
    Command::new("fio").args(arguments).current_dir(directory).output().expect("fio starts")
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

fn write(directory: &Path, name: &str, content: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, content).expect("it can be written");
    path.to_str().expect("the path is text").to_owned()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in: {text}"))
}

fn refused(output: &Output, parts: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    for part in parts {
        assert!(error.contains(part), "{part:?} is missing in: {error}");
    }
    assert!(output.stdout.is_empty(), "nothing is printed besides the error");
}

/// Options that are taken here, one job each.
const ACCEPTED: [&str; 38] = [
    "rw=randrw\nrwmixwrite=30",
    "readwrite=readwrite",
    "rw=randtrim",
    "bs=4k,8k,",
    "bs=,8k",
    "blocksize=4kib",
    "bsrange=4k-64k,8k-16k",
    "bssplit=4k/10:64k/50:32k/40",
    "bssplit=2k/50:4k/50,4k/90:8k/10",
    "bssplit=4k/50:8k/:16k",
    "ioengine=libaio\niodepth=16\ndirect=1",
    "size=20%\noffset=10%\noffset_increment=5%",
    "size=1.5g\nio_size=2g\nloops=3",
    "size=1m\nio_limit=2m\nnumber_ios=7",
    "runtime=1m30s\ntime_based",
    "timeout=500ms\nramp_time=100us\nstartdelay=1.5",
    "rw=randread\nrandom_distribution=zipf:1.2",
    "rw=randread\nrandom_distribution=zipf",
    "rw=randread\nrandom_distribution=pareto:0.2",
    "rw=randread\nrandom_distribution=normal:20",
    "rw=randread\nrandom_distribution=zoned:60/10:30/20:8/30:2/40",
    "rw=randread\nrandom_distribution=random\nnorandommap",
    "norandommap=1\nrandseed=7",
    "rate=1m,500k,2m",
    "rate=,1m",
    "rate_iops=100,200\nrate_process=poisson",
    "thinktime=10ms\nthinktime_blocks=4",
    "numjobs=4\ngroup_reporting\nnew_group\nstonewall",
    "name=other\ndescription=text\nkb_base=1000",
    "bwavgtime=20\niopsavgtime=20\ndisk_util=0",
    "thread\nfilename=/dev/null\ninvalidate=0\nrandrepeat=0\nsoftrandommap=1\nrandom_generator=lfsr",
    "rw=randtrimwrite\nallrandrepeat=1\nrandom_generator=tausworthe64\nfilename_format=file\ndirectory=.",
    "rw=randrw:8\nrw_sequencer=identical\npercentage_random=70,20\nbs_is_seq_rand=1",
    "rw=trimwrite:8k",
    "rw=randread\nrandom_distribution=pareto:0.3:0.5",
    "refill_buffers\nscramble_buffers=0\nzero_buffers\ngtod_reduce=1\nnice=1\noverwrite=1\nunlink=1",
    "fallocate=none\nfadvise_hint=0\ncreate_serialize=0\ncreate_on_open=1\nopenfiles=1\nfile_service_type=random",
    "percentile_list=50:99\nclat_percentiles=1\nlog_avg_msec=10\nper_job_logs=0 ; the end # of it",
];

#[test]
fn what_is_accepted_here_is_accepted_by_fio() {
    let directory = directory();
    let files = ["mixed.fio", "read-latency.fio"].map(|name| root().join("scenarios/fio").join(name));
    let samples = files.map(|file| std::fs::read_to_string(file).expect("the file is there"));
    let jobs = ACCEPTED.iter().map(|options| format!("[job]\n{options}\n"));
    let compares = has_fio();
    for text in jobs.chain(samples) {
        FioJobs::parse(&text).unwrap_or_else(|error| panic!("{error} in: {text}"));
        if !compares {
            continue;
        }
        let path = write(directory.path(), "sample.fio", &text);
        let output = fio(directory.path(), &["--parse-only", &path]);
        let messages = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(output.status.success() && !messages.concat().contains("Bad option"), "{messages:?} for: {text}");
    }
}

#[test]
fn jobs_move_as_many_bytes_in_as_many_requests_as_in_fio() {
    let directory = directory();
    let jobs = [
        ("rw=read\nsize=1m", 1 << 20, 256),
        ("rw=read\nbs=1k\nsize=1mb", 1 << 20, 1024),
        ("rw=read\nbs=1000\nsize=1mib", 1_000_000, 1000),
        ("rw=write\nkb_base=1000\nbs=1k\nsize=1m", 1_000_000, 1000),
        ("rw=randwrite\nsize=1m\nloops=3", 3 << 20, 768),
        ("rw=randread\nsize=1m\nio_size=2500k", 2500 << 10, 625),
        ("rw=read\nsize=8m\nnumber_ios=77", 77 << 12, 77),
        ("rw=randread\nsize=4m\nbs=16k\nnorandommap", 4 << 20, 256),
        ("rw=write\nsize=4m\nbs=,32k", 4 << 20, 128),
        ("rw=trim\nsize=4m\nbs=8k", 4 << 20, 512),
    ];
    let compares = has_fio();
    for (options, expected_bytes, expected_ios) in jobs {
        let text = format!("[job]\nioengine=null\n{options}\n");
        let job = FioJobs::parse(&text).expect("it is good").jobs.remove(0);
        let mut source = job.source(1 << 30, 0, Rng::named(1, "test")).expect("it fits");
        let (mut bytes, mut ios) = (0, 0);
        while let Some(record) = source.next_request().expect("time does not end here") {
            bytes += u64::from(record.request.len_bytes);
            ios += 1;
        }
        assert_eq!((bytes, ios), (expected_bytes, expected_ios), "{options}");
        if !compares {
            continue;
        }
        let path = write(directory.path(), "sample.fio", &text);
        let theirs = json(&fio(directory.path(), &["--output-format=json", &path]))["jobs"][0].clone();
        let sum = |key: &str| -> u64 {
            ["read", "write", "trim"].iter().filter_map(|direction| theirs[direction][key].as_u64()).sum()
        };
        assert_eq!((bytes, ios), (sum("io_bytes"), sum("total_ios")), "{options}");
    }
}

/// Direction, offset and length of a request.
type Triple = (u64, u64, u64);

/// The requests that fio makes of a job file, stream by stream. They are in its logs of latencies, which the null engine
/// and psync write in the order of issue.
fn requests_of_fio(job: &str, drive: Option<u64>) -> Vec<Vec<Triple>> {
    let directory = directory();
    if let Some(bytes) = drive {
        let file = std::fs::File::create(directory.path().join("drive")).expect("it can be made");
        file.set_len(bytes).expect("it can be long");
    }
    let logs = "write_lat_log=log\nlog_offset=1\ndisable_clat=1\ndisable_slat=1\n";
    let path = write(directory.path(), "job.fio", &job.replacen("[global]\n", &format!("[global]\n{logs}"), 1));
    let output = fio(directory.path(), &[&path]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let log = |number: usize| std::fs::read_to_string(directory.path().join(format!("log_lat.{number}.log"))).ok();
    let request = |line: &str| -> Triple {
        let fields: Vec<u64> = line.split(", ").map(|field| field.parse().expect("a log holds numbers")).collect();
        (fields[2], fields[4], fields[3])
    };
    (1..).map_while(log).map(|text| text.lines().map(request).collect()).collect()
}

/// The recorded job files (`tests/fio_orders.rs` of the crate of workloads) once more, against fio itself.
#[test]
fn requests_of_job_files_are_those_of_fio_one_by_one() {
    if !has_fio() {
        return;
    }
    let version = String::from_utf8_lossy(&fio(&root(), &["--version"]).stdout).trim().to_owned();
    if version != "fio-3.33" {
        // Later versions make other seeds.
        return skip("fio", &format!("it is {version}, not fio-3.33"), "our requests were not compared with fio's");
    }
    let list = root().join("crates/pure/workload/tests/fio/jobs.txt");
    let list = std::fs::read_to_string(list).expect("the list is there");
    let mut files = 0;
    for part in list.split("\n== ").skip(1) {
        let (head, body) = part.split_once('\n').expect("a file has lines");
        let setting = |name: &str| -> Option<u64> {
            let value = head.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            value.map(|value| value.parse().expect("settings are numbers"))
        };
        let (drive, take) = (setting("drive"), setting("take"));
        let engine = if drive.is_some() { "psync" } else { "null" };
        let text = format!("[global]\nioengine={engine}\n{body}");
        let theirs = requests_of_fio(&text, drive);
        let jobs = FioJobs::parse(&text).expect("it is good").jobs;
        let clones = jobs.iter().flat_map(|job| (0..job.clones).map(move |clone| (job, clone)));
        assert_eq!(theirs.len(), clones.clone().count(), "{head}");
        for ((job, clone), theirs) in clones.zip(theirs) {
            let capacity = drive.unwrap_or_else(|| job.range(1 << 40, clone).expect("it fits").end);
            let mut source = job.source(capacity, clone, Rng::named(1, "unused")).expect("it fits");
            let next = || source.next_request().expect("time does not end here");
            let ours = std::iter::from_fn(next).map(|record| {
                let direction = match record.request.operation {
                    Operation::Read => 0,
                    Operation::Write => 1,
                    _ => 2,
                };
                (direction, record.request.offset_bytes, u64::from(record.request.len_bytes))
            });
            // Where only time ends a job, our requests have no end.
            let limit = take.map_or(usize::MAX, |take| theirs.len().min(take as usize));
            let ours: Vec<Triple> = ours.take(limit).collect();
            let theirs = &theirs[..theirs.len().min(limit)];
            let differs = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs);
            assert!(
                differs.is_none() && ours.len() == theirs.len(),
                "{head}, clone {clone}: from request {differs:?} on"
            );
        }
        files += 1;
    }
    assert!(files >= 70, "{files} files");
}

/// Every path of a document with the JSON type at its end; the keys of options are the job's.
fn paths(value: &Value, path: &str, found: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    };
    found.insert(path.to_owned(), kind);
    match value {
        Value::Object(_) if path.ends_with("options") => {}
        Value::Object(map) => map.iter().for_each(|(key, value)| paths(value, &format!("{path}/{key}"), found)),
        Value::Array(list) => list.iter().for_each(|value| paths(value, &format!("{path}[]"), found)),
        _ => {}
    }
}

#[test]
fn every_key_that_fio_prints_is_there_with_its_type() {
    let directory = directory();
    let job = "[global]\nioengine=psync\nsize=1m\nbs=4k\n[mixed]\nrw=randrw\nfilename=data\n";
    let path = write(directory.path(), "job.fio", job);
    let (mut theirs, mut ours) = (BTreeMap::new(), BTreeMap::new());
    let printed = flashyard(&["run", SCENARIO, "--fio", &path, "--json-fio", "--set", "designs=[\"conv\"]"]);
    let ours_document = json(&printed);
    paths(&ours_document, "", &mut ours);
    assert!(ours.len() > 150, "{} paths", ours.len());
    if !has_fio() {
        return;
    }
    let theirs_document = json(&fio(directory.path(), &["--output-format=json", &path]));
    paths(&theirs_document, "", &mut theirs);
    for (path, kind) in &theirs {
        assert_eq!(ours.get(path), Some(kind), "fio prints {path}");
    }
    for (path, kind) in &ours {
        // fio leaves disk_util empty where the file system has no disk of its own.
        assert!(theirs.get(path) == Some(kind) || path.starts_with("/disk_util"), "fio does not print {path}");
    }
    assert!(theirs.len() > 150, "{} paths", theirs.len());
}

#[test]
fn the_layout_needs_one_design_or_a_directory() {
    refused(
        &flashyard(&["run", SCENARIO, "--json-fio"]),
        &["one design, not 2", "--set 'designs=[\"conv\"]'", "--out"],
    );
    let directory = directory();
    let out = directory.path().to_str().expect("the path is text");
    let cut = ["--set", "run.measure=2 ms", "--set", "run.warmup=0 ms"];
    let output = flashyard(&[&["run", SCENARIO, "--json-fio", "--out", out][..], &cut].concat());
    assert!(output.status.success() && output.stdout.is_empty());
    for name in ["fio-conv.json", "fio-xbof.json"] {
        let text = std::fs::read_to_string(directory.path().join(name)).expect("it is written");
        let document: Value = serde_json::from_str(&text).expect("it is JSON");
        let names: Vec<&str> =
            document["jobs"].as_array().into_iter().flatten().filter_map(|job| job["jobname"].as_str()).collect();
        assert_eq!(names, ["database", "log"]);
        assert_eq!(document["disk_util"].as_array().map(Vec::len), Some(4));
    }
}

#[test]
fn a_job_file_takes_the_place_of_any_workload() {
    let directory = directory();
    let job = "[job]\nrw=randread\nnumber_ios=50\nunlink=0\niodepth=8\n";
    let path = write(directory.path(), "job.fio", job);
    let demo =
        ["run", "scenarios/demo/scenario.toml", "--set", "designs=[\"conv\"]", "--set", "run.warm_mapping_requests=0"];
    let report = json(&flashyard(&[&demo[..], &["--json", "--fio", &path]].concat()));
    assert_eq!(report["designs"][0]["ios"], 6 * 50);
    let workload = report["workload"].as_str().expect("it is text");
    for part in
        ["job.fio (job of depth 1) on each of 6 drives", "without effect here: unlink", "psync if none is named"]
    {
        assert!(workload.contains(part), "{part:?} is missing in: {workload}");
    }
    refused(&flashyard(&[&demo[..], &["--fio", "nowhere.fio"]].concat()), &["nowhere.fio", "cannot be read"]);
    let wrong = write(directory.path(), "wrong.fio", "[job]\nrw=randread\niodepht=8\n");
    refused(
        &flashyard(&[&demo[..], &["--fio", &wrong]].concat()),
        &["wrong.fio: line 3: iodepht: is not supported; did you mean iodepth?"],
    );
}

//! Valgrind's cachegrind beside our caches: the same stream of a real program, and every count alike.
//!
//! Lackey writes the stream down and cachegrind simulates it, in two runs of one program, which valgrind gives the same addresses.
//! Cachegrind's rules: an access that crosses into the next line is one access, which misses when either line does and brings both in; what a
//! first level misses goes to the last one, which both first levels share; a change of a place counts as a read.

use flashyard_conformance::has_program;
use flashyard_memory::{Lookup, SetAssociative};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Bytes and ways of the first levels and of the last: small ones, so that all of them miss.
const LEVELS: [(u64, u32); 3] = [(8 << 10, 2), (4 << 10, 4), (64 << 10, 8)];

/// The program under both tools.
const PROGRAM: [&str; 2] = ["/bin/ls", "/"];

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    accesses: u64,
    first_misses: u64,
    last_misses: u64,
}

struct Caches {
    instructions: SetAssociative,
    data: SetAssociative,
    last: SetAssociative,
}

fn misses(cache: &mut SetAssociative, address: u64, bytes: u64) -> bool {
    let (first, last) = (address / 64, (address + bytes - 1) / 64);
    // Both lines are touched, whatever the first one says.
    (first..=last).fold(false, |missed, line| matches!(cache.access(line, false), Lookup::Miss(_)) | missed)
}

impl Caches {
    fn access(&mut self, is_instruction: bool, address: u64, bytes: u64, counts: &mut Counts) {
        counts.accesses += 1;
        let first = if is_instruction { &mut self.instructions } else { &mut self.data };
        if misses(first, address, bytes) {
            counts.first_misses += 1;
            counts.last_misses += u64::from(misses(&mut self.last, address, bytes));
        }
    }
}

fn valgrind(arguments: &[String]) -> Command {
    let mut command = Command::new("valgrind");
    // The length of the environment moves the stack.
    command.env_clear().env("PATH", "/usr/bin:/bin").args(arguments).args(PROGRAM);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

#[test]
fn our_caches_and_cachegrind_count_alike() {
    if !has_program("valgrind", "our caches against cachegrind") {
        return;
    }
    let directory = tempfile::tempdir().expect("there is room");
    let file = directory.path().join("cachegrind.out");
    let level = |name: &str, (bytes, ways): (u64, u32)| format!("--{name}={bytes},{ways},64");
    let mut arguments = vec!["--tool=cachegrind".to_owned(), "--cache-sim=yes".to_owned()];
    arguments.extend(["I1", "D1", "LL"].iter().zip(LEVELS).map(|(name, size)| level(name, size)));
    arguments.push(format!("--cachegrind-out-file={}", file.display()));
    let done = valgrind(&arguments).stderr(Stdio::null()).status().expect("it starts");
    assert!(done.success(), "{done}");
    let found = std::fs::read_to_string(&file).expect("it has written its counts");
    let numbers = |prefix: &str| -> Vec<String> {
        let line = found.lines().find_map(|line| line.strip_prefix(prefix)).expect("the line is there");
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(numbers("events: "), ["Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw"]);
    let theirs: Vec<u64> = numbers("summary: ").iter().map(|text| text.parse().expect("a number")).collect();

    let arguments = ["--tool=lackey", "--trace-mem=yes", "--basic-counts=no"].map(str::to_owned);
    let mut lackey = valgrind(&arguments).stderr(Stdio::piped()).spawn().expect("it starts");
    let cache = |(bytes, ways)| SetAssociative::new(bytes, ways).expect("it has sets");
    let [instructions, data, last] = LEVELS.map(cache);
    let mut caches = Caches { instructions, data, last };
    let mut counts = [Counts::default(), Counts::default(), Counts::default()];
    let lines = BufReader::new(lackey.stderr.take().expect("it is piped")).lines();
    for line in lines.map(|line| line.expect("it is text")) {
        // " L 1ffeffe7e,8" and "I  0023C790,2"; what else valgrind says begins with "==".
        let Some((kind, place)) = line.trim_start().split_once(' ').filter(|_| !line.starts_with('=')) else {
            continue;
        };
        let Some((address, bytes)) = place.trim().split_once(',') else { continue };
        let address = u64::from_str_radix(address, 16).expect("an address");
        // Cachegrind takes no more than a line of an access.
        let bytes = bytes.parse::<u64>().expect("a size").min(64);
        let which = match kind {
            "I" => 0,
            "L" | "M" => 1,
            "S" => 2,
            other => panic!("{other:?} is no access"),
        };
        caches.access(which == 0, address, bytes, &mut counts[which]);
    }
    assert!(lackey.wait().expect("it ends").success());
    let ours = counts.map(|one| [one.accesses, one.first_misses, one.last_misses]).concat();
    assert!(ours.iter().all(|&count| count > 100), "{ours:?} is too little to compare");
    assert_eq!(ours, theirs);
}

//! The insides of a drive in words, for telemetry: lines of a name and a value.

use crate::media::Life;
use flashyard_served::Health;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Figures that the words are made of.
pub(super) struct Seen<'a> {
    pub(super) health: &'a Health,
    pub(super) life: &'a Life,
    pub(super) superblocks: u32,
    /// Bytes of the drive that no namespace has.
    pub(super) free_bytes: u64,
    /// By namespace: its size, and its blocks that hold something.
    pub(super) namespaces: &'a [(u32, u64, u64)],
    pub(super) self_tests: &'a str,
    /// Of each superblock.
    pub(super) erases: &'a [u32],
}

/// Data areas 1 to 3: counters, what is under way, erases.
pub(super) fn texts(seen: &Seen<'_>) -> [String; 3] {
    let Seen { health, life, superblocks, free_bytes, namespaces, self_tests, erases } = seen;
    let mut counters = String::from("flashyard telemetry 1\n");
    let mut line = |name: &str, value: &dyn Display| counters += &format!("{name}: {value}\n");
    line("read bytes", &life.read_bytes);
    line("written bytes", &life.write_bytes);
    line("reads", &life.reads);
    line("writes", &life.writes);
    line("busy us", &life.busy_us);
    line("powered ms", &life.powered_ms);
    line("power cycles", &life.power_cycles);
    line("unsafe shutdowns", &life.unsafe_shutdowns);
    line("media errors", &life.media_errors);
    line("page reads", &life.page_reads);
    line("read retries", &life.read_retries);
    line("units written by hosts since the start", &health.host_slots);
    line("units programmed since the start", &health.programmed_slots);
    let amplification = match health.host_slots {
        0 => "none".to_owned(),
        slots => format!("{:.3}", health.programmed_slots as f64 / slots as f64),
    };
    line("write amplification since the start", &amplification);
    line("units that hold something", &health.mapped_slots);
    line("superblocks", superblocks);
    line("spare superblocks", &health.spare_superblocks);
    line("retired superblocks", &health.retired_superblocks);
    line("erases, mean", &format!("{:.3}", health.erases_mean));
    line("erases, most", &health.erases_max);
    line("raw bit error rate", &format!("{:e}", health.raw_bit_error_rate));
    line("worn out", &health.worn_out);
    line("degraded", &health.degraded);
    line("bytes that no namespace has", free_bytes);
    for (nsid, blocks, used) in *namespaces {
        line(&format!("namespace {nsid}"), &format!("{blocks} blocks, {used} in use"));
    }
    let mut by_erases = BTreeMap::<u32, u32>::new();
    erases.iter().for_each(|&erases| *by_erases.entry(erases).or_default() += 1);
    let lines = by_erases.into_iter().map(|(erases, count)| format!("superblocks erased {erases} times: {count}\n"));
    [counters, format!("self-test: {self_tests}\n"), lines.collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_come_first_and_superblocks_are_counted_by_their_erases() {
        let health = Health { host_slots: 100, programmed_slots: 150, ..Health::default() };
        let [first, second, third] = texts(&Seen {
            health: &health,
            life: &Life { read_bytes: 77, ..Life::default() },
            superblocks: 4,
            free_bytes: 4096,
            namespaces: &[(1, 10, 3)],
            self_tests: "none",
            erases: &[3, 0, 3, 1],
        });
        assert!(first.starts_with("flashyard telemetry 1\nread bytes: 77\n"), "{first}");
        assert!(first.contains("write amplification since the start: 1.500\n"), "{first}");
        assert!(first.ends_with("bytes that no namespace has: 4096\nnamespace 1: 10 blocks, 3 in use\n"), "{first}");
        assert_eq!(second, "self-test: none\n");
        let erased =
            ["superblocks erased 0 times: 1", "superblocks erased 1 times: 1", "superblocks erased 3 times: 2"];
        assert_eq!(third.lines().collect::<Vec<_>>(), erased);
    }
}

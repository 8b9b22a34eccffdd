//! Plans on bytes, and the world beside closed forms.

use super::*;
use crate::member::RateConfig;
use flashyard_service::parity::{power, product};
use flashyard_units::{ByteRate, Named, SimSpan};
use proptest::prelude::*;

/// An array of eight drives of sheet paraid §4 behind 100 Gb/s, with links of 25 Gb/s.
fn config(path: ParityPath, width: usize, parities: usize, full_share: f64) -> ParityConfig {
    ParityConfig {
        path,
        width,
        parities,
        chunk: 64 << 10,
        full_share,
        partial: 64 << 10,
        depth: 64,
        host_rate: ByteRate::from_mb(12_500),
        drive_rate: ByteRate::from_mb(3_125),
        hop: SimSpan::from_us(2),
        capsule: 128,
        host_cores: 8,
        host_combines: ByteRate::from_mb(10_000),
        drive_combines: ByteRate::from_mb(8_000),
        drive: RateConfig {
            capacity: 1 << 40,
            read_rate: ByteRate::new(3_575_000_000),
            write_rate: ByteRate::new(1_449_000_000),
            small_rate: ByteRate::new(783_000_000),
            read_latency: SimSpan::from_us(80),
            write_latency: SimSpan::from_us(20),
        },
        warmup: SimSpan::from_ms(40),
        measure: SimSpan::from_ms(200),
        seed: 1,
    }
}

fn run(config: ParityConfig) -> ParityFigures {
    let figures = ParityWorld::new(config).expect("it is possible").run(&mut |_| true).expect("it runs");
    assert!(figures.broken.is_empty(), "{:?}", figures.broken);
    figures
}

/// A drive as the plan's steps change it, a byte for a chunk.
#[derive(Clone, Default)]
struct Node {
    media: u8,
    /// New data that came from the host.
    new: Option<u8>,
    /// Old content that was read.
    old: Option<u8>,
    /// Sums for both parities.
    sums: [u8; 2],
    is_written: bool,
}

/// The factor of a role in a parity: P is the sum, Q that of 2^i times chunk i.
fn factor(parity: usize, role: usize) -> u8 {
    if parity == 0 { 1 } else { power(role as u8) }
}

/// Carries a plan out on bytes, in an order that a draw chooses among those that it allows, and returns the media.
fn carried_out(
    plan: &Plan,
    kind: Kind,
    before: &[u8],
    new: &[u8],
    parities: usize,
    draws: &mut dyn FnMut() -> usize,
) -> Vec<u8> {
    let data = before.len() - parities;
    let mut nodes: Vec<Node> = before.iter().map(|&media| Node { media, ..Node::default() }).collect();
    // Old content that the host read, by role.
    let mut fetched = vec![0_u8; before.len()];
    let mut made = vec![0_u8; parities];
    let is_full = kind == Kind::Full;
    let mut waits = plan.waits().to_vec();
    let mut ready: Vec<u16> = (0..waits.len() as u16).filter(|&step| waits[usize::from(step)] == 0).collect();
    let mut done = 0;
    while !ready.is_empty() {
        let step = ready.swap_remove(draws() % ready.len());
        done += 1;
        match plan.steps()[usize::from(step)] {
            Action::Deliver { role } => {
                let at = usize::from(role);
                nodes[at].new = Some(new[at]);
                if is_full {
                    for parity in 0..parities {
                        nodes[at].sums[parity] ^= product(factor(parity, at), new[at]);
                    }
                }
            }
            Action::DeliverParity { role } => nodes[usize::from(role)].new = Some(made[usize::from(role) - data]),
            Action::Fetch { role } => {
                fetched[usize::from(role)] = nodes[usize::from(role)].old.expect("it was read before");
            }
            Action::Pass { from, to, parity } => {
                let (sum, parity) = (nodes[usize::from(from)].sums[usize::from(parity)], usize::from(parity));
                nodes[usize::from(to)].sums[parity] ^= sum;
            }
            Action::Read { role } => {
                let node = &mut nodes[usize::from(role)];
                assert!(!node.is_written, "old content is read before it is replaced");
                node.old = Some(node.media);
                if usize::from(role) >= data {
                    node.sums[usize::from(role) - data] ^= node.media;
                }
            }
            Action::Combine { role } if !is_full && usize::from(role) < data => {
                let at = usize::from(role);
                let change = nodes[at].old.expect("it was read") ^ nodes[at].new.expect("it came");
                for parity in 0..parities {
                    nodes[at].sums[parity] ^= product(factor(parity, at), change);
                }
            }
            Action::CombineInHost { .. } => {
                for (parity, made) in made.iter_mut().enumerate() {
                    *made = match kind {
                        Kind::Full => (0..data).fold(0, |sum, at| sum ^ product(factor(parity, at), new[at])),
                        Kind::Partial(role) => {
                            let at = usize::from(role);
                            fetched[data + parity] ^ product(factor(parity, at), fetched[at] ^ new[at])
                        }
                    };
                }
            }
            Action::Write { role } => {
                let at = usize::from(role);
                let content = if at < data { nodes[at].new } else { nodes[at].new.or(Some(nodes[at].sums[at - data])) };
                nodes[at].media = content.expect("there is something to write");
                nodes[at].is_written = true;
            }
            Action::Command { .. } | Action::Complete { .. } | Action::Combine { .. } => {}
        }
        for &next in plan.followers(step) {
            waits[usize::from(next)] -= 1;
            if waits[usize::from(next)] == 0 {
                ready.push(next);
            }
        }
    }
    assert_eq!(done, plan.steps().len(), "every step is reached");
    nodes.iter().map(|node| node.media).collect()
}

/// A stripe with its parities.
fn stripe(data: &[u8], parities: usize) -> Vec<u8> {
    let parity = |parity| data.iter().enumerate().fold(0, |sum, (at, &byte)| sum ^ product(factor(parity, at), byte));
    data.iter().copied().chain((0..parities).map(parity)).collect()
}

proptest! {
    #[test]
    fn every_plan_leaves_the_parity_of_its_data_in_any_order_of_steps(
        width in 2_usize..=20, parities in 1_usize..=2, path in 0_usize..4, partial in prop::option::of(0_usize..20),
        bytes in prop::collection::vec(any::<u8>(), 40), order in prop::collection::vec(any::<u16>(), 1..64),
    ) {
        prop_assume!(parities < width);
        let (path, data) = (ParityPath::ALL[path], width - parities);
        let mut at = 0;
        let mut draws = || { at += 1; usize::from(order[at % order.len()]) };
        let before = stripe(&bytes[..data], parities);
        let (kind, new): (Kind, Vec<u8>) = match partial {
            None => (Kind::Full, bytes[20..20 + data].to_vec()),
            Some(role) => {
                let role = role % data;
                let mut new = bytes[..data].to_vec();
                new[role] = bytes[20 + role];
                (Kind::Partial(role as u8), new)
            }
        };
        let plan = Plan::new(path, kind, data, parities);
        prop_assert_eq!(carried_out(&plan, kind, &before, &new, parities, &mut draws), stripe(&new, parities));
    }
}

#[test]
fn throughput_comes_close_to_its_closed_form_and_never_passes_it() {
    for path in ParityPath::ALL.iter().copied() {
        for (width, parities, full) in [
            (4, 1, 1.0),
            (8, 1, 1.0),
            (24, 1, 1.0),
            (24, 2, 1.0),
            (4, 1, 0.0),
            (16, 1, 0.0),
            (48, 2, 0.0),
            (16, 1, 0.5),
        ] {
            let config = config(path, width, parities, full);
            let figures = run(config);
            let limit = bound(&config);
            let share = figures.bytes as f64 / figures.measured.as_secs_f64() / limit.bytes_per_s;
            assert!(share < 1.03, "{path:?} {width}+{parities} {full}: {share:.3} of {limit:?}");
            assert!(share > 0.8, "{path:?} {width}+{parities} {full}: {share:.3} of {limit:?}");
        }
    }
}

#[test]
fn bytes_on_the_host_link_are_those_of_the_closed_form() {
    for (path, full, out, back) in [
        (ParityPath::Host, 1.0, 8.0 / 7.0, 0.0),
        (ParityPath::Chain, 1.0, 1.0, 0.0),
        (ParityPath::Host, 0.0, 2.0, 2.0),
        (ParityPath::Star, 0.0, 1.0, 0.0),
    ] {
        let figures = run(config(path, 8, 1, full));
        let of = |bytes: u64| bytes as f64 / figures.bytes as f64;
        let (sent, received) = (of(figures.carried.host_out), of(figures.carried.host_in));
        assert!((sent - out).abs() < 0.03 && (received - back).abs() < 0.03, "{path:?} {full}: {sent} {received}");
    }
}

#[test]
fn an_unloaded_write_takes_the_sum_of_its_parts() {
    let mut config = config(ParityPath::Host, 2, 1, 0.0);
    config.depth = 1;
    let figures = run(config);
    let (host, drive) = (config.host_rate.get() as f64 * 15.0 / 16.0, config.drive_rate.get() as f64 * 15.0 / 16.0);
    let wire = |rate: f64| 65_664.0 / rate * 1e6;
    let capsule = 128.0 / drive * 1e6;
    let hops = 4.0 * 2.0;
    let read = 65_536.0 / 3.575e9 * 1e6 + 80.0;
    let written = 65_536.0 / 1.449e9 * 1e6 + 20.0;
    // Both reads come back at once: the second waits for the first to pass the host's link.
    let combined = 2.0 * 65_536.0 / 10e9 * 1e6;
    let expected = capsule + read + wire(drive) + combined + wire(drive) + written + capsule + hops;
    let slack = 2.0 * wire(host);
    let mean = figures.latency.mean_us();
    assert!(mean > expected - 1.0 && mean < expected + slack + 1.0, "{mean} {expected}");
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let of = |seed| {
        let figures = run(ParityConfig { seed, full_share: 0.3, ..config(ParityPath::Tree, 9, 2, 0.0) });
        (figures.writes, figures.bytes, figures.carried, figures.latency.max_us().to_bits())
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn impossible_arrays_are_refused() {
    let refused = |config| ParityWorld::new(config).err().expect("it is impossible").to_string();
    assert!(refused(config(ParityPath::Host, 1, 1, 1.0)).contains("1 chunks"));
    assert!(refused(config(ParityPath::Host, 65, 1, 1.0)).contains("65 chunks"));
    let large = ParityConfig { partial: 1 << 20, ..config(ParityPath::Host, 4, 1, 1.0) };
    assert!(refused(large).contains("1048576 bytes"));
}

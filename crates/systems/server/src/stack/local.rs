//! Stacks of local storage in a cloud. Section numbers are those of L. Yang et al., "Here, There and Everywhere: The Past, the Present
//! and the Future of Local Storage in Cloud", FAST 2026.

use super::{Cores, Network, Part, Pool, Price, Stage, Table, Tiers, Way};
use flashyard_units::SimSpan;

/// A network volume of the standard class. Source: \[D\] LATTE costs 2.1 where its volume scales and little is asked of it, of which
/// 1 is the drive's, and 13 with the most requests always to be had, a million a second (\[P\] §6.2).
const EBS_PRICE: Price = Price { fixed: 1.1, for_million: 10.9 };

/// The guest's driver takes a request from its application to the queue. Source: \[A\] half of what a Linux kernel takes for
/// a request of NVMe with libaio.
pub(super) const GUEST_SUBMITS: Stage = Stage::Delay { time: SimSpan::from_ns(1000), part: Part::Guest };

/// The time of [`GUEST_INTERRUPT`]. Source: \[A\] sheet alibaba-local-storage §8.
const INTERRUPT_TIME: SimSpan = SimSpan::from_ns(2000);

/// The interrupt in the guest.
pub(super) const GUEST_INTERRUPT: Stage = Stage::Interrupt { time: INTERRUPT_TIME };

/// A guest that polls sees a completion. Source: \[A\] a loop over a queue.
pub(super) const GUEST_POLLS: Stage = Stage::Delay { time: SimSpan::from_ns(200), part: Part::Guest };

/// An exit of the guest, or the injection of an interrupt. Source: \[A\] sheet §8.
pub(super) const VM_EXIT: Stage = Stage::Delay { time: SimSpan::from_ns(1500), part: Part::Host };

/// Half of the two switches at a completion of a polling process: its signal to the guest (E), and the interrupt there (F). Source:
/// \[P\] §3.2, both take an extra 5 to 12 us; their middle, 8.5 us, and its halves are \[A\].
const SWITCH: SimSpan = SimSpan::from_ns(4250);

/// The signal: a system call of the process. It takes none of the core's time that limits the rate, for signals are suppressed under load. Source: \[A\].
const SIGNAL: Stage = Stage::Delay { time: SWITCH, part: Part::Host };

/// The part of the interrupt that the hypervisor takes before the guest does. Source: \[P\] figure 5 counts it with the guest.
const INJECTION: Stage =
    Stage::Delay { time: SimSpan::from_ps(SWITCH.as_ps() - INTERRUPT_TIME.as_ps()), part: Part::Guest };

/// One thread of the host for each virtual drive: the hypervisor's for virtio. It serves 440,000 requests a second of
/// eight drives, so each takes 18.18 us of it, of which 7.73 us are work. Source: \[P\] §3.1, 440 thousand a second and
/// 340 % of a core; \[D\] sheet §7.1; that the rest is waiting for switches is \[A\].
pub(super) const KERNEL_THREAD: Pool = Pool { cores: Cores::WhileBusy, ..Pool::shared("host threads", 1, 1) };

/// A core that polls for each virtual drive. Source: \[P\] §7.4: eight cores for eight drives.
pub(super) const VHOST: Pool = Pool { cores: Cores::Always, ..Pool::shared("vhost cores", 1, 1) };

/// Work of a polling core for a request. Source: \[D\] sheet §7.1, from 4,608 thousand a second of eight cores: 1.736 us, an
/// input; the halves are \[A\].
pub(super) const VHOST_HALF: SimSpan = SimSpan::from_ns(868);

pub(super) const PHYSICAL: Table = Table {
    about: "the machine itself: an operating system on a drive",
    pools: &[],
    stages: &[GUEST_SUBMITS, Stage::Storage, GUEST_INTERRUPT],
    network: None,
    tiers: None,
    below: None,
    price: None,
};

pub(super) const KERNEL: Table = Table {
    about: "virtio through the host's kernel: exits, system calls and interrupts for each request",
    pools: &[KERNEL_THREAD],
    stages: &[
        GUEST_SUBMITS,
        VM_EXIT,
        // Parsing, the system call and the block layer; then the interrupt, its system call and the injection.
        Stage::Work { pool: 0, time: SimSpan::from_ns(9090), part: Part::Host },
        Stage::Storage,
        Stage::Work { pool: 0, time: SimSpan::from_ns(9090), part: Part::Host },
        VM_EXIT,
        GUEST_INTERRUPT,
    ],
    network: None,
    tiers: None,
    below: None,
    price: None,
};

pub(super) const ESPRESSO: Table = Table {
    about: "a polling process of the host for each virtual drive; the guest hears by an interrupt",
    pools: &[VHOST],
    stages: &[
        GUEST_SUBMITS,
        Stage::Work { pool: 0, time: VHOST_HALF, part: Part::Host },
        Stage::Storage,
        Stage::Work { pool: 0, time: VHOST_HALF, part: Part::Host },
        SIGNAL,
        INJECTION,
        GUEST_INTERRUPT,
    ],
    network: None,
    tiers: None,
    below: None,
    price: None,
};

pub(super) const ESPRESSO_M: Table = Table {
    about: "as espresso, with a guest that polls for completions",
    pools: &[VHOST],
    stages: &[
        GUEST_SUBMITS,
        Stage::Work { pool: 0, time: VHOST_HALF, part: Part::Host },
        Stage::Storage,
        Stage::Work { pool: 0, time: VHOST_HALF, part: Part::Host },
        GUEST_POLLS,
    ],
    network: None,
    tiers: None,
    below: None,
    price: None,
};

/// Limits of DOPPIO. Source: \[P\] table 4: 661 thousand requests a second and 4.1 GB/s of a virtual function; \[D\] sheet §7.2:
/// 1.32 million a second and eight lanes of PCIe 3 (7.88 GB/s) of a card. All are inputs.
pub(super) const DOPPIO: Table = Table {
    about: "a card of fixed function for two drives: data goes through its buffer",
    pools: &[
        Pool::shared("virtual function", 1, 1),
        Pool::shared("card engine", 1, 2),
        Pool::shared("function's way down", 1, 1),
        Pool::shared("function's way up", 1, 1),
        Pool::shared("card's way down", 1, 2),
        Pool::shared("card's way up", 1, 2),
    ],
    stages: &[
        GUEST_SUBMITS,
        Stage::Work { pool: 0, time: SimSpan::from_ps(1_512_859), part: Part::Card },
        Stage::Work { pool: 1, time: SimSpan::from_ps(757_576), part: Part::Card },
        Stage::Carry { pool: 2, bytes_per_us: 4100, way: Way::Down, part: Part::Card },
        Stage::Carry { pool: 4, bytes_per_us: 7880, way: Way::Down, part: Part::Card },
        Stage::Storage,
        Stage::Carry { pool: 5, bytes_per_us: 7880, way: Way::Up, part: Part::Card },
        Stage::Carry { pool: 3, bytes_per_us: 4100, way: Way::Up, part: Part::Card },
        GUEST_INTERRUPT,
    ],
    network: None,
    tiers: None,
    below: None,
    price: None,
};

/// Cores of RISTRETTO's card. Source: \[P\] §5, four cores of 2.5 GHz and four drives a card, a poller of each drive on a core of its own; \[D\] sheet §7.3, from 7,385
/// thousand a second of eight drives: 1.083 us of a core for a request, an input; the halves are \[A\].
const CARD_CORES: Pool = Pool::shared("card core", 1, 1);
/// See [`CARD_CORES`].
const CARD_HALF: SimSpan = SimSpan::from_ps(541_500);

/// Half of what the card's engine adds: 2 us more than the drive in all, less the work of the core. Source: \[D\] sheet §7.3.
const ENGINE_HALF: Stage = Stage::Delay { time: SimSpan::from_ps(458_500), part: Part::Card };

/// The time between two requests of one queue of RISTRETTO. Source: \[P\] table 6: 550 thousand a second of one job, an input;
/// that it is the queue which limits them is \[A\].
const CARD_QUEUE: SimSpan = SimSpan::from_ps(1_818_182);

pub(super) const RISTRETTO: Table = Table {
    about: "a card with an engine and four cores for four drives: data goes straight to the guest",
    pools: &[CARD_CORES, Pool::of_queues("card queues")],
    stages: &[
        GUEST_SUBMITS,
        ENGINE_HALF,
        Stage::Turn { pool: 1, time: CARD_QUEUE },
        Stage::Work { pool: 0, time: CARD_HALF, part: Part::Card },
        Stage::Storage,
        Stage::Work { pool: 0, time: CARD_HALF, part: Part::Card },
        ENGINE_HALF,
        GUEST_INTERRUPT,
    ],
    network: None,
    tiers: None,
    below: None,
    price: Some(Price { fixed: 1.0, for_million: 0.0 }),
};

/// Work of a card's core for a request of LATTE itself: location map, and the rule for a write. Source: \[P\] sheet §3.2, 200 ns
/// at most for the rule; the map's 100 ns are \[A\].
const LATTE_WORK: Stage = Stage::Work { pool: 0, time: SimSpan::from_ns(300), part: Part::Card };

/// LATTE on the cores of RISTRETTO's card. Its orders to the drive go as RISTRETTO's requests do, but for the guest and the
/// engine in front of it; those to the network volume go as requests of such volumes do.
pub(super) const LATTE: Table = Table {
    about: "latte: a drive behind ristretto in front of an ebs, writes to either, copies of what is read twice",
    pools: &[CARD_CORES, Pool::of_queues("card queues")],
    stages: &[GUEST_SUBMITS, ENGINE_HALF, LATTE_WORK, Stage::Storage, ENGINE_HALF, GUEST_INTERRUPT],
    network: EBS.network,
    tiers: Some(Tiers {
        front: &[
            Stage::Turn { pool: 1, time: CARD_QUEUE },
            Stage::Work { pool: 0, time: CARD_HALF, part: Part::Card },
            Stage::Storage,
            Stage::Work { pool: 0, time: CARD_HALF, part: Part::Card },
        ],
        back: &[Stage::Storage],
        chooses: true,
    }),
    below: None,
    price: Some(Price { fixed: 1.0 + EBS_PRICE.fixed, ..EBS_PRICE }),
};

pub(super) const CSAL: Table = Table {
    about: "csal: the same two, all writes to the drive and flushed later, no copies of what is read",
    tiers: match LATTE.tiers {
        Some(tiers) => Some(Tiers { chooses: false, ..tiers }),
        None => None,
    },
    ..LATTE
};

const NETWORKED: &[Stage] = &[GUEST_SUBMITS, Stage::Storage, GUEST_INTERRUPT];

pub(super) const EBS: Table = Table {
    about: "a network volume of the standard class",
    pools: &[],
    stages: NETWORKED,
    network: Some(Network {
        // [D] sheet §7.5: 190 to 275 thousand, 225 taken
        requests_per_second: 225_000,
        bytes_per_us: 4000,
        medians: [SimSpan::from_ns(120_000), SimSpan::from_ns(100_000)],
        sigma: 0.3,
        tail_share: 0.01,
        tail_factor: 5.0,
    }),
    tiers: None,
    below: None,
    price: Some(EBS_PRICE),
};

pub(super) const EBSX: Table = Table {
    about: "a network volume of the fast class: persistent memory behind 100 Gb/s",
    pools: &[Pool::of_queues("volume queues")],
    // [P] table 6: 450 thousand a second of one job, an input
    stages: &[
        GUEST_SUBMITS,
        Stage::Turn { pool: 0, time: SimSpan::from_ps(2_222_222) },
        Stage::Storage,
        GUEST_INTERRUPT,
    ],
    network: Some(Network {
        // [P] §6.1: a million requests a second, 6 GB/s, 30 us; reads are [A]
        requests_per_second: 1_000_000,
        bytes_per_us: 6000,
        medians: [SimSpan::from_ns(60_000), SimSpan::from_ns(30_000)],
        sigma: 0.3,
        tail_share: 0.01,
        tail_factor: 5.0,
    }),
    tiers: None,
    below: None,
    price: Some(Price { fixed: 19.0, for_million: 0.0 }),
};

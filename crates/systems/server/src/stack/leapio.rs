//! LeapIO and its rivals. Section numbers are those of H. Li et al., "LeapIO: Efficient and Portable Virtual NVMe Storage on ARM
//! SoCs", ASPLOS 2020.

use super::local::{GUEST_INTERRUPT, GUEST_POLLS, GUEST_SUBMITS, KERNEL_THREAD, VHOST, VHOST_HALF, VM_EXIT};
use super::{Cores, Part, Pool, Stage, Table, Way};
use flashyard_units::SimSpan;

/// A program of the guest fills an entry of its queue. Source: \[A\] as long as to look at a completion ([`GUEST_POLLS`]).
const PROGRAM_SUBMITS: Stage = Stage::Delay { time: SimSpan::from_ns(200), part: Part::Guest };

/// The interrupt of a virtual drive whose guest does not poll: the exit of the guest. Source: \[A\] sheet leapio §9.
const VIRTUAL_INTERRUPT: Stage = Stage::Delay { time: SimSpan::from_ns(2000), part: Part::Host };

/// Virtual drives that share the core of a runtime: all. Source: \[P\] §5, one core with two loops.
const ALL: u32 = crate::config::DRIVES_MAX;

/// Cores of the guest. Source: \[P\] §5.
const GUEST_CORES: Pool = Pool::shared("guest cores", 8, 1);

/// The core of the runtime on the host.
const RUNTIME: Pool = Pool { cores: Cores::Always, ..Pool::shared("runtime core", 1, ALL) };

/// The core of a runtime on a card.
const CARD_RUNTIME: Pool = Pool::shared("runtime core of the card", 1, ALL);

/// Half of what the runtime takes for a request, in either of its loops. Source: \[D\] sheet §8, from 0.65 million a second of one core: 1.54 us,
/// an input; the halves are \[A\].
const RUNTIME_HALF: SimSpan = SimSpan::from_ns(770);

/// Time on a core of the card in percent of that on the host: a clock of three quarters, an input. Source: \[P\] §5.2, 25 % lower frequency; that work
/// takes as many cycles is \[A\].
const CARD_PERCENT: u64 = 133;

/// See [`RUNTIME_HALF`] and [`CARD_PERCENT`].
const CARD_HALF: SimSpan = SimSpan::from_ps(RUNTIME_HALF.as_ps() * CARD_PERCENT / 100);

/// An access of the card to memory of the host. Source: \[P\] §5.2.
const FAR: SimSpan = SimSpan::from_us(5);

/// Entries of a queue that one access brings. Source: \[A\] sheet §8.
const FETCHED: u32 = 16;

/// A message of RDMA one way. Source: \[A\] sheet §9.
const RDMA: Stage = Stage::Delay { time: SimSpan::from_us(3), part: Part::Network };

/// 100 Gb/s of Ethernet. Source: \[P\] §4.
const NETWORK_RATE: u64 = 12_500;

/// The link of the client in each direction.
const LINK_DOWN: Pool = Pool::shared("link down", 1, ALL);
/// See [`LINK_DOWN`].
const LINK_UP: Pool = Pool::shared("link up", 1, ALL);

const fn to_runtime(pool: usize) -> Stage {
    Stage::Work { pool, time: RUNTIME_HALF, part: Part::Host }
}

const fn services(pool: usize, part: Part) -> Stage {
    Stage::Services { pool, percent: 100, part }
}

/// Orders to a drive of this server.
const HERE: Option<&[Stage]> = Some(&[Stage::Storage]);

pub(super) const PASS_THROUGH: Table = Table {
    below: HERE,
    ..Table::local(
        "pass-through: the guest owns the drive and polls its queues",
        &[GUEST_CORES],
        &[PROGRAM_SUBMITS, services(0, Part::Guest), Stage::Storage, GUEST_POLLS],
    )
};

pub(super) const PASS_THROUGH_OS: Table = Table {
    below: HERE,
    ..Table::local(
        "pass-through, with an operating system in the guest that takes interrupts",
        &[GUEST_CORES],
        &[GUEST_SUBMITS, services(0, Part::Guest), Stage::Storage, GUEST_INTERRUPT],
    )
};

/// The kernel's work is that of the local stack through it, and each doorbell is one exit more. Source: \[A\].
pub(super) const FULL_VIRTUALIZATION: Table = Table::local(
    "full virtualization: doorbells exit to the host, whose kernel carries requests out",
    &[KERNEL_THREAD],
    &[
        PROGRAM_SUBMITS,
        VM_EXIT,
        VM_EXIT,
        Stage::Work { pool: 0, time: SimSpan::from_ns(9090), part: Part::Host },
        Stage::Storage,
        Stage::Work { pool: 0, time: SimSpan::from_ns(9090), part: Part::Host },
        VM_EXIT,
        GUEST_INTERRUPT,
    ],
);

/// Half of the work of a polling process on this source's server. Source: \[D\] that of the cloud's, at 2.9 GHz, in as many cycles
/// of 4.0 GHz (sheet leapio §8: a clock of 3 GHz is a quarter lower, as [`CARD_PERCENT`] has it).
const FAST_VHOST_HALF: SimSpan = SimSpan::from_ps(VHOST_HALF.as_ps() * 29 / 40);

pub(super) const VIRTUAL_HOST: Table = Table::local(
    "virtual host: virtio, a polling process of the host, and a guest that polls",
    &[VHOST],
    &[
        PROGRAM_SUBMITS,
        Stage::Work { pool: 0, time: FAST_VHOST_HALF, part: Part::Host },
        Stage::Storage,
        Stage::Work { pool: 0, time: FAST_VHOST_HALF, part: Part::Host },
        GUEST_POLLS,
    ],
);

pub(super) const LEAPIO: Table = Table {
    below: HERE,
    ..Table::local(
        "leapio: its runtime polls the guest's queues from a core of the host",
        &[RUNTIME],
        &[PROGRAM_SUBMITS, to_runtime(0), services(0, Part::Host), Stage::Storage, to_runtime(0), GUEST_POLLS],
    )
};

pub(super) const LEAPIO_OS: Table = Table {
    below: HERE,
    ..Table::local(
        "leapio, with an operating system in the guest that takes interrupts",
        &[RUNTIME],
        &[
            GUEST_SUBMITS,
            to_runtime(0),
            services(0, Part::Host),
            Stage::Storage,
            to_runtime(0),
            VIRTUAL_INTERRUPT,
            GUEST_INTERRUPT,
        ],
    )
};

/// The core waits for what it fetches; it does not wait for completions that it has sent. Source: \[A\].
pub(super) const LEAPIO_SOC: Table = Table {
    below: HERE,
    ..Table::local(
        "leapio on a card: its runtime reaches the host's memory over a link",
        &[CARD_RUNTIME],
        &[
            PROGRAM_SUBMITS,
            Stage::Gather { pool: 0, time: FAR, most: FETCHED, part: Part::Card },
            Stage::Work { pool: 0, time: CARD_HALF, part: Part::Card },
            Stage::Services { pool: 0, percent: CARD_PERCENT, part: Part::Card },
            Stage::Storage,
            Stage::Work { pool: 0, time: CARD_HALF, part: Part::Card },
            Stage::Delay { time: FAR, part: Part::Card },
            GUEST_POLLS,
        ],
    )
};

/// The client's part of LeapIO and of the polling target: a runtime of its own, and a guest with an operating system. Source: \[P\] §5.1 (4):
/// a client is the runtime of its target's kind; that those two are alike is \[A\].
const CLIENT: &[Stage] = &[
    GUEST_SUBMITS,
    to_runtime(0),
    services(0, Part::Host),
    Stage::Storage,
    to_runtime(0),
    VIRTUAL_INTERRUPT,
    GUEST_INTERRUPT,
];

const DOWN: Stage = Stage::Carry { pool: 1, bytes_per_us: NETWORK_RATE, way: Way::Down, part: Part::Network };
const UP: Stage = Stage::Carry { pool: 2, bytes_per_us: NETWORK_RATE, way: Way::Up, part: Part::Network };

/// Half of the kernel's work for a request of its target, on any of many cores. The client is the kernel's too (\[P\] §5.1 (4): the
/// client of this target's kind), so there is no runtime in between. Source: \[X\] some ten microseconds more than a local drive in
/// all, of which [`RDMA`] takes six; the halves of the rest, and those of a half, are \[A\].
const TARGET_HALF: SimSpan = SimSpan::from_ns(1000);

/// The interrupt before each half. Source: see [`TARGET_HALF`].
const TARGET_INTERRUPT: Stage = Stage::Delay { time: SimSpan::from_ns(1000), part: Part::Network };

pub(super) const KERNEL_NOF: Table = Table {
    below: Some(&[
        DOWN,
        RDMA,
        TARGET_INTERRUPT,
        Stage::Work { pool: 3, time: TARGET_HALF, part: Part::Network },
        Stage::Storage,
        TARGET_INTERRUPT,
        Stage::Work { pool: 3, time: TARGET_HALF, part: Part::Network },
        UP,
        RDMA,
    ]),
    ..Table::local(
        "a drive of another server, behind the NVMe-oF target of its kernel",
        // [P] §5: 18 cores
        &[GUEST_CORES, LINK_DOWN, LINK_UP, Pool { for_each_leg: true, ..Pool::shared("kernel of the target", 18, 1) }],
        &[GUEST_SUBMITS, services(0, Part::Guest), Stage::Storage, GUEST_INTERRUPT],
    )
};

/// Half of the work of a polling target. Source: \[A\] a third less than a runtime's: it serves one link.
const POLLING_HALF: SimSpan = SimSpan::from_ns(500);

/// The source's target of this kind is unstable for a reason that it does not describe; this one is stable.
pub(super) const USER_NOF: Table = Table {
    below: Some(&[
        DOWN,
        RDMA,
        Stage::Work { pool: 3, time: POLLING_HALF, part: Part::Network },
        Stage::Storage,
        Stage::Work { pool: 3, time: POLLING_HALF, part: Part::Network },
        UP,
        RDMA,
    ]),
    ..Table::local(
        "a drive of another server, behind a polling NVMe-oF target",
        &[RUNTIME, LINK_DOWN, LINK_UP, Pool { for_each_leg: true, ..Pool::shared("core of the target", 1, 1) }],
        CLIENT,
    )
};

pub(super) const REMOTE: Table = Table {
    below: Some(&[
        DOWN,
        RDMA,
        Stage::Work { pool: 3, time: RUNTIME_HALF, part: Part::Network },
        Stage::Storage,
        Stage::Work { pool: 3, time: RUNTIME_HALF, part: Part::Network },
        UP,
        RDMA,
    ]),
    ..Table::local(
        "leapio on two servers: a drive behind the runtime of another one",
        &[RUNTIME, LINK_DOWN, LINK_UP, Pool { for_each_leg: true, ..Pool::shared("runtime core of the other", 1, 1) }],
        CLIENT,
    )
};

/// The other server's card reaches its own drive without the host. Source: \[P\] §5.2 (2).
pub(super) const REMOTE_SOC: Table = Table {
    below: Some(&[
        DOWN,
        RDMA,
        Stage::Work { pool: 3, time: CARD_HALF, part: Part::Network },
        Stage::Storage,
        Stage::Work { pool: 3, time: CARD_HALF, part: Part::Network },
        UP,
        RDMA,
    ]),
    ..Table::local(
        "leapio on two servers, with the other one's runtime on a card",
        &[RUNTIME, LINK_DOWN, LINK_UP, Pool { for_each_leg: true, ..Pool::shared("card core of the other", 1, 1) }],
        CLIENT,
    )
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Time of a lone request of no bytes beside its drive.
    fn lone(table: &Table) -> SimSpan {
        let span = |stage: &Stage| match *stage {
            Stage::Work { time, .. } | Stage::Delay { time, .. } | Stage::Interrupt { time } => time,
            _ => SimSpan::ZERO,
        };
        table.stages.iter().chain(table.below.unwrap_or_default()).map(span).sum()
    }

    #[test]
    fn a_drive_behind_the_kernels_target_is_ten_microseconds_away() {
        assert_eq!(lone(&KERNEL_NOF) - lone(&PASS_THROUGH_OS), SimSpan::from_us(10));
    }

    #[test]
    fn a_polling_process_takes_as_many_cycles_on_either_sources_server() {
        let half = |clock_mhz: u64, half: SimSpan| half.as_ps() * clock_mhz;
        assert_eq!(half(2900, VHOST_HALF), half(4000, FAST_VHOST_HALF));
    }
}

//! Stacks: the stages between a guest and its storage, one table each.
//!
//! A stage says who runs it, how long that takes, and what it waits for. All stacks go through the same machine
//! (`path.rs`): a new one is a table here. Section numbers are those of L. Yang et al., "Here, There and Everywhere: The Past,
//! the Present and the Future of Local Storage in Cloud", FAST 2026.

use flashyard_units::{Named, SimSpan};

/// The stack between a guest and its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// No virtualization: the driver of an operating system on the machine itself.
    Physical,
    /// Virtio through the kernel of the host (§3.1).
    Kernel,
    /// A polling process of the host for each virtual drive (§3.2).
    Espresso,
    /// As [`Stack::Espresso`], with a guest that polls for completions (§3.2).
    EspressoM,
    /// A card of fixed function with two drives, virtual functions and a buffer of its own (§4).
    Doppio,
    /// A card with an engine of fixed function and four cores for four drives (§5).
    Ristretto,
    /// A network volume of the standard class (§6.1).
    Ebs,
    /// A network volume of the fast class (§6.1).
    Ebsx,
    /// A drive behind RISTRETTO in front of a network volume of the standard class, under LATTE (§6.2).
    Latte,
    /// As [`Stack::Latte`], under LATTE's ancestor: every write goes to the drive, and no read is copied there (§6.2).
    Csal,
}

impl Named for Stack {
    const ALL: &'static [Self] = &[
        Self::Physical,
        Self::Kernel,
        Self::Espresso,
        Self::EspressoM,
        Self::Doppio,
        Self::Ristretto,
        Self::Ebs,
        Self::Ebsx,
        Self::Latte,
        Self::Csal,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Physical => "physical",
            Self::Kernel => "kernel",
            Self::Espresso => "espresso",
            Self::EspressoM => "espresso-m",
            Self::Doppio => "doppio",
            Self::Ristretto => "ristretto",
            Self::Ebs => "ebs",
            Self::Ebsx => "ebsx",
            Self::Latte => "latte",
            Self::Csal => "csal",
        }
    }
}

/// The part of the server to which a stage's time is booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The guest: its driver and its interrupts.
    Guest,
    /// The host: exits of the guest, system calls, a polling process.
    Host,
    /// A card: its engine, its cores, its buffer.
    Card,
    /// The network, and the service behind it.
    Network,
}

/// Interchangeable servers: cores, the engine of a card, a direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// Name, for reports.
    pub name: &'static str,
    /// How many there are.
    pub servers: u32,
    /// Virtual drives that share them.
    pub drives: u32,
    /// Whether each queue of the guest has so many of its own.
    pub for_each_queue: bool,
    /// Whether they are cores of the host, and busy whether there is work or not.
    pub cores: Cores,
}

impl Pool {
    /// `servers` for so many virtual drives, whatever queues these have, that are no cores of the host.
    const fn shared(name: &'static str, servers: u32, drives: u32) -> Self {
        Self { name, servers, drives, for_each_queue: false, cores: Cores::None }
    }

    /// One for each queue of a virtual drive.
    const fn of_queues(name: &'static str) -> Self {
        Self { name, servers: 1, drives: 1, for_each_queue: true, cores: Cores::None }
    }
}

/// Cores of the host that a pool takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    /// It is something else.
    None,
    /// Their busy time counts.
    WhileBusy,
    /// They poll: all of them count, always.
    Always,
}

/// A stage of a request's way.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// A server of a pool is busy for `time` with each request.
    Work { pool: usize, time: SimSpan, part: Part },
    /// A server of a pool is busy for `time` with each request, which goes on as soon as its turn begins: a limit of rate.
    Turn { pool: usize, time: SimSpan },
    /// Time passes, and nothing is occupied.
    Delay { time: SimSpan, part: Part },
    /// An interrupt of the guest, which completions of one queue may share.
    Interrupt { time: SimSpan },
    /// The bytes of a request in one direction keep a pool of one server busy, at `bytes_per_us`.
    Carry { pool: usize, bytes_per_us: u64, way: Way, part: Part },
    /// The storage, or the service in front of it, carries the request out.
    Storage,
}

/// The direction in which bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To storage: those of writes.
    Down,
    /// To the guest: those of reads.
    Up,
}

/// A network volume behind a stack.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Requests a second that the volume may have.
    pub requests_per_second: u64,
    /// Bytes a microsecond in each direction.
    pub bytes_per_us: u64,
    /// Median time of a read and of a write in the network and the service, without queueing.
    pub medians: [SimSpan; 2],
    /// Standard deviation of the logarithm of that time.
    pub sigma: f64,
    /// Share of requests that take [`Network::tail_factor`] times as long.
    pub tail_share: f64,
    /// See [`Network::tail_share`].
    pub tail_factor: f64,
}

/// The stages of a stack and the pools that they name.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// In one line.
    pub about: &'static str,
    /// Servers.
    pub pools: &'static [Pool],
    /// The way of a request, with [`Stage::Storage`] once.
    pub stages: &'static [Stage],
    /// The volume behind it; `None` for drives of the server alone.
    pub network: Option<Network>,
    /// The service in front of a drive and that volume.
    pub tiers: Option<Tiers>,
    /// The cost of a volume of 4 TB; `None` where the source has no price.
    pub price: Option<Price>,
}

/// A price each month, in units of that of RISTRETTO's drive. Source: \[P\] table 6, 4 TB.
#[derive(Clone, Copy, Debug)]
pub struct Price {
    /// Whatever is asked of it.
    pub fixed: f64,
    /// For each million requests a second that its network volume has carried out.
    pub for_million: f64,
}

impl Price {
    /// The price with so many requests a second of the network volume.
    pub(crate) fn at(self, requests_per_second: f64) -> f64 {
        self.fixed + self.for_million * requests_per_second / 1e6
    }
}

/// A network volume of the standard class. Source: \[D\] LATTE costs 2.1 where its volume scales and little is asked of it, of which
/// 1 is the drive's, and 13 with the most requests always to be had, a million a second (\[P\] §6.2).
const EBS_PRICE: Price = Price { fixed: 1.1, for_million: 10.9 };

/// A service with a drive of the server as its front end, and a network volume as its back end.
#[derive(Clone, Copy, Debug)]
pub struct Tiers {
    /// The way of its orders to the drive, with [`Stage::Storage`] once.
    pub front: &'static [Stage],
    /// The way of its orders to the network volume, with [`Stage::Storage`] once.
    pub back: &'static [Stage],
    /// Whether it is LATTE with its rule and its copies; otherwise every write goes to the drive, and no copy is made.
    pub chooses: bool,
}

/// The guest's driver takes a request from its application to the queue. Source: \[A\] half of what a Linux kernel takes for
/// a request of NVMe with libaio.
const GUEST_SUBMITS: Stage = Stage::Delay { time: SimSpan::from_ns(1000), part: Part::Guest };

/// The interrupt in the guest. Source: \[A\] sheet alibaba-local-storage §8.
const GUEST_INTERRUPT: Stage = Stage::Interrupt { time: SimSpan::from_ns(2000) };

/// A guest that polls sees a completion. Source: \[A\] a loop over a queue.
const GUEST_POLLS: Stage = Stage::Delay { time: SimSpan::from_ns(200), part: Part::Guest };

/// An exit of the guest, or the injection of an interrupt. Source: \[A\] sheet §8.
const VM_EXIT: Stage = Stage::Delay { time: SimSpan::from_ns(1500), part: Part::Host };

/// One thread of the host for each virtual drive: the hypervisor's for virtio. It serves 440,000 requests a second of
/// eight drives, so each takes 18.18 us of it, of which 7.73 us are work. Source: \[P\] §3.1, 440 thousand a second and
/// 340 % of a core; \[D\] sheet §7.1; that the rest is waiting for switches is \[A\].
const KERNEL_THREAD: Pool =
    Pool { name: "host threads", servers: 1, drives: 1, for_each_queue: false, cores: Cores::WhileBusy };

/// A core that polls for each virtual drive. Source: \[P\] §7.4: eight cores for eight drives.
const VHOST: Pool = Pool { name: "vhost cores", servers: 1, drives: 1, for_each_queue: false, cores: Cores::Always };

/// Work of a polling core for a request. Source: \[D\] sheet §7.1, from 4,608 thousand a second of eight cores: 1.736 us, an
/// input; the halves are \[A\].
const VHOST_HALF: SimSpan = SimSpan::from_ns(868);

const PHYSICAL: Table = Table {
    about: "the machine itself: an operating system on a drive",
    pools: &[],
    stages: &[GUEST_SUBMITS, Stage::Storage, GUEST_INTERRUPT],
    network: None,
    tiers: None,
    price: None,
};

const KERNEL: Table = Table {
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
    price: None,
};

const ESPRESSO: Table = Table {
    about: "a polling process of the host for each virtual drive; the guest hears by an interrupt",
    pools: &[VHOST],
    stages: &[
        GUEST_SUBMITS,
        Stage::Work { pool: 0, time: VHOST_HALF, part: Part::Host },
        Stage::Storage,
        Stage::Work { pool: 0, time: VHOST_HALF, part: Part::Host },
        VM_EXIT,
        GUEST_INTERRUPT,
    ],
    network: None,
    tiers: None,
    price: None,
};

const ESPRESSO_M: Table = Table {
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
    price: None,
};

/// Limits of DOPPIO. Source: \[P\] table 4: 661 thousand requests a second and 4.1 GB/s of a virtual function; \[D\] sheet §7.2:
/// 1.32 million a second and eight lanes of PCIe 3 (7.88 GB/s) of a card. All are inputs.
const DOPPIO: Table = Table {
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
    price: None,
};

/// Cores of RISTRETTO's card. Source: \[P\] §5, four cores of 2.5 GHz and four drives a card; \[D\] sheet §7.3, from 7,385
/// thousand a second of eight drives: 1.083 us of a core for a request, an input; the halves are \[A\].
const CARD_CORES: Pool = Pool::shared("card cores", 4, 4);
/// See [`CARD_CORES`].
const CARD_HALF: SimSpan = SimSpan::from_ps(541_500);

/// Half of what the card's engine adds: 2 us more than the drive in all, less the work of the core. Source: \[D\] sheet §7.3.
const ENGINE_HALF: Stage = Stage::Delay { time: SimSpan::from_ps(458_500), part: Part::Card };

/// The time between two requests of one queue of RISTRETTO. Source: \[P\] table 6: 550 thousand a second of one job, an input;
/// that it is the queue which limits them is \[A\].
const CARD_QUEUE: SimSpan = SimSpan::from_ps(1_818_182);

const RISTRETTO: Table = Table {
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
    price: Some(Price { fixed: 1.0, for_million: 0.0 }),
};

/// Work of a card's core for a request of LATTE itself: location map, and the rule for a write. Source: \[P\] sheet §3.2, 200 ns
/// at most for the rule; the map's 100 ns are \[A\].
const LATTE_WORK: Stage = Stage::Work { pool: 0, time: SimSpan::from_ns(300), part: Part::Card };

/// LATTE on the cores of RISTRETTO's card. Its orders to the drive go as RISTRETTO's requests do, but for the guest and the
/// engine in front of it; those to the network volume go as requests of such volumes do.
const LATTE: Table = Table {
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
    price: Some(Price { fixed: 1.0 + EBS_PRICE.fixed, ..EBS_PRICE }),
};

const CSAL: Table = Table {
    about: "csal: the same two, all writes to the drive and flushed later, no copies of what is read",
    tiers: match LATTE.tiers {
        Some(tiers) => Some(Tiers { chooses: false, ..tiers }),
        None => None,
    },
    ..LATTE
};

const NETWORKED: &[Stage] = &[GUEST_SUBMITS, Stage::Storage, GUEST_INTERRUPT];

const EBS: Table = Table {
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
    price: Some(EBS_PRICE),
};

const EBSX: Table = Table {
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
    price: Some(Price { fixed: 19.0, for_million: 0.0 }),
};

impl Table {
    /// The time of the guest's interrupt; `None` for one that polls.
    pub(crate) fn interrupt(&self) -> Option<SimSpan> {
        self.stages.iter().find_map(|stage| match stage {
            Stage::Interrupt { time } => Some(*time),
            _ => None,
        })
    }
}

impl Stack {
    /// Its stages.
    pub fn table(self) -> &'static Table {
        match self {
            Self::Physical => &PHYSICAL,
            Self::Kernel => &KERNEL,
            Self::Espresso => &ESPRESSO,
            Self::EspressoM => &ESPRESSO_M,
            Self::Doppio => &DOPPIO,
            Self::Ristretto => &RISTRETTO,
            Self::Ebs => &EBS,
            Self::Ebsx => &EBSX,
            Self::Latte => &LATTE,
            Self::Csal => &CSAL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_reaches_storage_once_and_names_its_pools() {
        for stack in Stack::ALL {
            let table = stack.table();
            let tiers = table.tiers.iter().flat_map(|tiers| [tiers.front, tiers.back]);
            let ways: Vec<_> = std::iter::once(table.stages).chain(tiers).collect();
            for way in &ways {
                let storage = way.iter().filter(|stage| matches!(stage, Stage::Storage)).count();
                assert_eq!(storage, 1, "{stack:?}");
            }
            for stage in ways.concat() {
                if let Stage::Work { pool, .. } | Stage::Carry { pool, .. } | Stage::Turn { pool, .. } = stage {
                    assert!(pool < table.pools.len(), "{stack:?}");
                }
                if let Stage::Carry { pool, .. } = stage {
                    assert_eq!(table.pools[pool].servers, 1, "{stack:?}: a direction of a link is one server");
                }
            }
        }
    }
}

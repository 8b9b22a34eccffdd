//! Stacks: the stages between a guest and its storage, one table each.
//!
//! A stage says who runs it, how long that takes, and what it waits for. All stacks go through the same machine
//! (`path.rs`): a new one is a table, of a cloud's local storage (`local.rs`) or of LeapIO and its rivals (`leapio.rs`).

mod leapio;
mod local;

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
    /// The guest owns the drive and polls its queues (sheet leapio §5, PT).
    PassThrough,
    /// As [`Stack::PassThrough`], with an operating system in the guest that takes interrupts.
    PassThroughOs,
    /// A drive that the hypervisor emulates through the host's kernel (FV).
    FullVirtualization,
    /// Virtio, with a polling process of the host and a guest that polls (VH).
    VirtualHost,
    /// LeapIO's runtime on a core of the host, and a guest that polls.
    LeapIo,
    /// As [`Stack::LeapIo`], with an operating system in the guest that takes interrupts.
    LeapIoOs,
    /// As [`Stack::LeapIo`], with the runtime on the cores of a card.
    LeapIoSoc,
    /// A drive of another server behind the target of its kernel (κNoF).
    KernelNof,
    /// A drive of another server behind a polling target (uNoF).
    UserNof,
    /// A drive of another server behind a runtime of LeapIO.
    LeapIoRemote,
    /// As [`Stack::LeapIoRemote`], with the other server's runtime on the cores of a card.
    LeapIoRemoteSoc,
}

impl Stack {
    /// Those of a cloud's local storage.
    pub const LOCAL: &'static [Self] = &[
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

    /// LeapIO and its rivals.
    pub const LEAPIO: &'static [Self] = &[
        Self::PassThrough,
        Self::PassThroughOs,
        Self::FullVirtualization,
        Self::VirtualHost,
        Self::LeapIo,
        Self::LeapIoOs,
        Self::LeapIoSoc,
        Self::KernelNof,
        Self::UserNof,
        Self::LeapIoRemote,
        Self::LeapIoRemoteSoc,
    ];
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
        Self::PassThrough,
        Self::PassThroughOs,
        Self::FullVirtualization,
        Self::VirtualHost,
        Self::LeapIo,
        Self::LeapIoOs,
        Self::LeapIoSoc,
        Self::KernelNof,
        Self::UserNof,
        Self::LeapIoRemote,
        Self::LeapIoRemoteSoc,
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
            Self::PassThrough => "pass-through",
            Self::PassThroughOs => "pass-through-os",
            Self::FullVirtualization => "full-virtualization",
            Self::VirtualHost => "virtual-host",
            Self::LeapIo => "leapio",
            Self::LeapIoOs => "leapio-os",
            Self::LeapIoSoc => "leapio-soc",
            Self::KernelNof => "nvmeof-kernel",
            Self::UserNof => "nvmeof-user",
            Self::LeapIoRemote => "leapio-remote",
            Self::LeapIoRemoteSoc => "leapio-remote-soc",
        }
    }
}

/// The part of the server to which a stage's time is booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The guest: its driver and its interrupts, and what a hypervisor takes for these behind a polling process.
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
    /// Whether each leg of a virtual drive's services has a pool of its own: it is part of another server.
    pub for_each_leg: bool,
    /// Whether they are cores of the host, and busy whether there is work or not.
    pub cores: Cores,
}

impl Pool {
    /// `servers` for so many virtual drives, whatever queues these have, that are no cores of the host.
    const fn shared(name: &'static str, servers: u32, drives: u32) -> Self {
        Self { name, servers, drives, for_each_queue: false, for_each_leg: false, cores: Cores::None }
    }

    /// One for each queue of a virtual drive.
    const fn of_queues(name: &'static str) -> Self {
        Self { for_each_queue: true, ..Self::shared(name, 1, 1) }
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
    /// A server of a pool is busy for `time` with up to `most` requests at once, those that have come before it begins.
    Gather { pool: usize, time: SimSpan, most: u32, part: Part },
    /// A server of a pool runs the services of a scenario, which take `percent` of the time that they take on the fastest core.
    Services { pool: usize, percent: u64, part: Part },
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
    /// The way of an order of a scenario's services to its drive, with [`Stage::Storage`] once. `None` for stacks that run none.
    pub below: Option<&'static [Stage]>,
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

impl Table {
    /// A local stack without services.
    const fn local(about: &'static str, pools: &'static [Pool], stages: &'static [Stage]) -> Self {
        Self { about, pools, stages, network: None, tiers: None, below: None, price: None }
    }

    /// Whether orders of services leave the server.
    pub(crate) fn is_remote(&self) -> bool {
        self.below.is_some_and(|below| below.len() > 1)
    }

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
            Self::Physical => &local::PHYSICAL,
            Self::Kernel => &local::KERNEL,
            Self::Espresso => &local::ESPRESSO,
            Self::EspressoM => &local::ESPRESSO_M,
            Self::Doppio => &local::DOPPIO,
            Self::Ristretto => &local::RISTRETTO,
            Self::Ebs => &local::EBS,
            Self::Ebsx => &local::EBSX,
            Self::Latte => &local::LATTE,
            Self::Csal => &local::CSAL,
            Self::PassThrough => &leapio::PASS_THROUGH,
            Self::PassThroughOs => &leapio::PASS_THROUGH_OS,
            Self::FullVirtualization => &leapio::FULL_VIRTUALIZATION,
            Self::VirtualHost => &leapio::VIRTUAL_HOST,
            Self::LeapIo => &leapio::LEAPIO,
            Self::LeapIoOs => &leapio::LEAPIO_OS,
            Self::LeapIoSoc => &leapio::LEAPIO_SOC,
            Self::KernelNof => &leapio::KERNEL_NOF,
            Self::UserNof => &leapio::USER_NOF,
            Self::LeapIoRemote => &leapio::REMOTE,
            Self::LeapIoRemoteSoc => &leapio::REMOTE_SOC,
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
            let ways: Vec<_> = std::iter::once(table.stages).chain(tiers).chain(table.below).collect();
            for way in &ways {
                let storage = way.iter().filter(|stage| matches!(stage, Stage::Storage)).count();
                assert_eq!(storage, 1, "{stack:?}");
            }
            for stage in ways.concat() {
                if let Stage::Work { pool, .. }
                | Stage::Carry { pool, .. }
                | Stage::Turn { pool, .. }
                | Stage::Gather { pool, .. }
                | Stage::Services { pool, .. } = stage
                {
                    assert!(pool < table.pools.len(), "{stack:?}");
                }
                if let Stage::Carry { pool, .. } = stage {
                    assert_eq!(table.pools[pool].servers, 1, "{stack:?}: a direction of a link is one server");
                }
            }
        }
    }
}

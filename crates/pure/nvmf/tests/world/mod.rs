//! A host, a target and a memory backend, joined by streams of bytes.

use flashyard_nvme::admin::{AdminCommand, GetLogPage};
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::nvm::{BlockRange, CopyRange, Direction, DsmRange, NvmCommand};
use flashyard_nvme::protection::{Metadata, split};
use flashyard_nvme::{Sqe, Status};
use flashyard_nvmf::Output;
use flashyard_nvmf::initiator::{self, Connection, Data, InitiatorConfig};
use flashyard_nvmf::target::{
    self, Command, Limits, Namespace, Port, Security, Session, Subsystem, Target, TargetConfig,
};
use flashyard_units::SimTime;
use zerocopy::IntoBytes;

pub(crate) const NQN: &str = "nqn.2026-01.test:jbof";
pub(crate) const HOST: &str = "nqn.2026-01.test:host";
pub(crate) const BLOCK: usize = 4096;

/// One connection: both ends.
pub(crate) struct Link {
    pub(crate) host: Connection,
    pub(crate) host_effects: initiator::Effects,
    pub(crate) session: Session,
    pub(crate) effects: target::Effects,
}

pub(crate) struct World {
    pub(crate) now: SimTime,
    pub(crate) target: Target,
    pub(crate) config: InitiatorConfig,
    pub(crate) links: Vec<Link>,
    pub(crate) disk: Vec<u8>,
    /// Whether each write that came had to be on the medium at its completion.
    pub(crate) forced: Vec<bool>,
    /// The record of reservations that was kept last, and whether none can be kept any more.
    pub(crate) kept: Vec<u8>,
    pub(crate) keeps_nothing: bool,
    /// State of the generator that cuts streams; zero does not cut.
    cuts: u64,
}

pub(crate) fn target_config(limits: Limits) -> TargetConfig {
    let port = |id, service| Port { id, address: [192, 0, 2, 1].into(), service, security: Security::None };
    let mut namespace = Namespace::new(1, 1024, 12);
    namespace.nguid = [0x11; 16];
    namespace.uuid = [0x22; 16];
    TargetConfig {
        ports: vec![port(1, 4420), port(2, 4421)],
        subsystems: vec![Subsystem::new(NQN, "0001", vec![namespace])],
        limits,
        entropy: [9; 32],
    }
}

impl World {
    pub(crate) fn new(limits: Limits, change: impl FnOnce(&mut InitiatorConfig)) -> Self {
        Self::with(target_config(limits), change)
    }

    pub(crate) fn with(target: TargetConfig, change: impl FnOnce(&mut InitiatorConfig)) -> Self {
        let mut config = InitiatorConfig::new(HOST, NQN);
        config.queue_entries = 32;
        config.io_queues = 2;
        change(&mut config);
        Self {
            now: SimTime::ZERO,
            target: Target::new(target).expect("the configuration is right"),
            config,
            links: Vec::new(),
            disk: vec![0; 1024 * BLOCK],
            forced: Vec::new(),
            kept: Vec::new(),
            keeps_nothing: false,
            cuts: 0,
        }
    }

    pub(crate) fn cut_with(&mut self, seed: u64) {
        self.cuts = seed | 1;
    }

    pub(crate) fn admin(&mut self) -> &mut Connection {
        &mut self.links[0].host
    }

    /// An admin and an I/O connection through port 1.
    pub(crate) fn connect(&mut self) {
        let admin = self.open(1, None);
        assert!(self.links[admin].host.is_ready(), "{:?}", self.links[admin].host_effects.failure);
        let io = self.open(1, Some(1));
        assert!(self.links[io].host.is_ready(), "{:?}", self.links[io].host_effects.failure);
    }

    /// An admin connection, or an I/O connection of the first admin connection.
    pub(crate) fn open(&mut self, port: u16, queue: Option<u16>) -> usize {
        self.open_of(0, port, queue)
    }

    /// An admin connection, or an I/O connection of the admin connection `admin`.
    pub(crate) fn open_of(&mut self, admin: usize, port: u16, queue: Option<u16>) -> usize {
        let mut host_effects = initiator::Effects::default();
        let host = match queue {
            None => Connection::admin(self.config.clone(), self.now, &mut host_effects),
            Some(queue) => Connection::io(&self.links[admin].host, queue, self.now, &mut host_effects),
        };
        let session = Session::new(&mut self.target, port);
        self.links.push(Link { host, host_effects, session, effects: target::Effects::default() });
        self.settle();
        self.links.len() - 1
    }

    /// Moves bytes until nothing moves.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut is_quiet = true;
            for index in 0..self.links.len() {
                let to_target = self.take(index, true);
                let link = &mut self.links[index];
                if !to_target.is_empty() {
                    link.session.receive(&mut self.target, self.now, &to_target, &mut link.effects);
                }
                let commands: Vec<_> = link.effects.commands.drain(..).collect();
                for mut command in commands {
                    if let NvmCommand::Write { fua, .. }
                    | NvmCommand::WriteZeroes { fua, .. }
                    | NvmCommand::Copy { fua, .. } = command.operation
                    {
                        self.forced.push(fua);
                    }
                    let second = command.second.take();
                    let (tag, status, payload) = serve(&mut self.disk, command);
                    link.session.complete(&mut self.target, tag, status, payload, &mut link.effects);
                    if let Some(write) = second {
                        let (tag, status, payload) = match status.is_success() {
                            true => serve(&mut self.disk, *write),
                            false => (write.tag, Status::ABORTED_FUSED_FAILED, write.payload),
                        };
                        link.session.complete(&mut self.target, tag, status, payload, &mut link.effects);
                    }
                }
                let to_host = self.take(index, false);
                let link = &mut self.links[index];
                link.host.receive(&to_host, &mut link.host_effects);
                is_quiet &= to_target.is_empty() && to_host.is_empty();
            }
            while let Some(change) = target::next_change(&mut self.target) {
                if !self.keeps_nothing {
                    self.kept = change.record(&self.target).encode();
                }
                target::settle_change(&mut self.target, change, !self.keeps_nothing);
            }
            let wakes: Vec<_> = self.target.take_wakes().collect();
            for link in self.links.iter_mut().filter(|link| wakes.contains(&link.session.id())) {
                link.session.poll(&mut self.target, &mut link.effects);
                is_quiet = false;
            }
            if is_quiet {
                break;
            }
        }
    }

    /// The next bytes of one direction, perhaps not all.
    fn take(&mut self, index: usize, from_host: bool) -> Vec<u8> {
        let at_most = match self.cuts {
            0 => usize::MAX,
            _ => {
                self.cuts = self.cuts.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let chance = self.cuts >> 33;
                if chance.is_multiple_of(3) { 1 + chance as usize % 40 } else { 1 + chance as usize % 9000 }
            }
        };
        let link = &mut self.links[index];
        drain(if from_host { &mut link.host_effects.output } else { &mut link.effects.output }, at_most)
    }

    /// Runs one command on the I/O connection: status and data.
    pub(crate) fn run(
        &mut self,
        nsid: u32,
        operation: NvmCommand,
        data: Vec<u8>,
        data_bytes: u32,
    ) -> (Status, Vec<u8>) {
        let data = match operation.direction() {
            Direction::ToController => Data::ToController(data),
            Direction::ToHost => Data::ToHost(data_bytes),
            Direction::None => Data::None,
        };
        let done = self.run_on(1, operation.encode(0, nsid), data);
        assert_eq!(self.links[1].host.outstanding(), 0);
        done
    }

    /// Runs one command on a connection: status and data.
    pub(crate) fn run_on(&mut self, link: usize, sqe: Sqe, data: Data) -> (Status, Vec<u8>) {
        let (status, _, data) = self.completion_on(link, sqe, data);
        (status, data)
    }

    /// Runs one command on a connection: status, result and data.
    pub(crate) fn completion_on(&mut self, link: usize, sqe: Sqe, data: Data) -> (Status, u64, Vec<u8>) {
        let place = link;
        let link = &mut self.links[place];
        link.host.submit_entry(77, sqe, data, &mut link.host_effects).expect("the queue has room");
        self.settle();
        let link = &mut self.links[place];
        let done = link.host_effects.completions.pop().expect("the command must finish");
        assert_eq!(done.token, 77);
        (done.status, done.result, done.data)
    }

    /// Runs one admin command on the first connection: status, result and data.
    pub(crate) fn admin_command(&mut self, command: AdminCommand, data: Data) -> (Status, u64, Vec<u8>) {
        let link = &mut self.links[0];
        link.host.submit_entry(88, command.encode(0), data, &mut link.host_effects).expect("the queue has room");
        self.settle();
        let done = self.links[0].host_effects.completions.pop().expect("the command must finish");
        assert_eq!(done.token, 88);
        (done.status, done.result, done.data)
    }

    /// A log page of the first connection.
    pub(crate) fn log(&mut self, page: u8, len_bytes: u32) -> Vec<u8> {
        let get = GetLogPage { page, len_bytes: len_bytes.into(), ..GetLogPage::default() };
        let (status, _, data) = self.admin_command(AdminCommand::GetLogPage(get), Data::ToHost(len_bytes));
        assert_eq!(status, Status::SUCCESS);
        data
    }

    /// Events that the first connection received.
    pub(crate) fn events(&mut self) -> Vec<AsyncEvent> {
        self.settle();
        std::mem::take(&mut self.links[0].host_effects.events)
    }

    pub(crate) fn write(&mut self, lba: u64, data: &[u8]) {
        let range = BlockRange { lba, blocks: (data.len() / BLOCK) as u32 };
        let (status, _) = self.run(1, NvmCommand::Write { range, fua: false }, data.to_vec(), 0);
        assert_eq!(status, Status::SUCCESS);
    }

    pub(crate) fn read(&mut self, lba: u64, blocks: u32) -> Vec<u8> {
        let range = BlockRange { lba, blocks };
        let (status, data) = self.run(1, NvmCommand::Read { range, fua: false }, Vec::new(), blocks * BLOCK as u32);
        assert_eq!(status, Status::SUCCESS);
        data
    }
}

/// A Copy to `first`, and its data.
pub(crate) fn copy(first: u64, sources: &[BlockRange]) -> (NvmCommand, Vec<u8>) {
    let command = NvmCommand::Copy { first, ranges: sources.len() as u16, format: 0, protection: 0, fua: false };
    (command, sources.iter().flat_map(|&source| CopyRange::new(source).as_bytes().to_vec()).collect())
}

/// The first bytes that wait.
pub(crate) fn drain(output: &mut Output, at_most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for slice in output.slices() {
        let len = slice.len().min(at_most - bytes.len());
        bytes.extend_from_slice(&slice[..len]);
    }
    output.advance(bytes.len());
    bytes
}

/// Executes a command on memory.
pub(crate) fn serve(disk: &mut [u8], mut command: Command) -> (target::Tag, Status, Vec<u8>) {
    let bytes = |range: BlockRange| {
        let start = range.lba as usize * BLOCK;
        start..start + range.blocks as usize * BLOCK
    };
    let status = match command.operation {
        NvmCommand::Read { range, .. } => {
            // Metadata, where it goes with the data, is the same of all blocks.
            let metadata = (command.data_bytes / range.blocks) as usize - BLOCK;
            for block in disk[bytes(range)].chunks(BLOCK) {
                command.payload.extend_from_slice(block);
                command.payload.extend(std::iter::repeat_n(0xAB, metadata));
            }
            Status::SUCCESS
        }
        NvmCommand::Write { range, .. } => {
            if command.protection.is_some_and(|it| it.carries(Metadata::Opaque) && !it.action) {
                split(&mut command.payload, BLOCK);
            }
            disk[bytes(range)].copy_from_slice(&command.payload);
            Status::SUCCESS
        }
        NvmCommand::Compare { range, .. } if disk[bytes(range)] != command.payload[..] => Status::COMPARE_FAILURE,
        NvmCommand::WriteZeroes { range, .. } => {
            disk[bytes(range)].fill(0);
            Status::SUCCESS
        }
        NvmCommand::Copy { first, .. } => {
            let mut to = first as usize * BLOCK;
            for source in CopyRange::decode_all(&command.payload).map(|source| bytes(source.range())) {
                disk.copy_within(source.clone(), to);
                to += source.len();
            }
            Status::SUCCESS
        }
        NvmCommand::DatasetManagement { deallocate: true, .. } | NvmCommand::ZoneManagementSend { .. } => {
            for range in DsmRange::decode_all(&command.payload) {
                disk[bytes(range.range())].fill(0);
            }
            Status::SUCCESS
        }
        _ => Status::SUCCESS,
    };
    (command.tag, status, command.payload)
}

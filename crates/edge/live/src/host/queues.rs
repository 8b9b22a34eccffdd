//! The queues of a host: a socket and a machine each, and the admin commands that set them up.

use crate::clock::WallClock;
use crate::stream::{Opening, Stream};
use crate::tls::TlsError;
use flashyard_nvme::admin::{AdminCommand, GetLogPage, Identify};
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::nvm::NvmCommand;
use flashyard_nvme::{IDENTIFY_BYTES, NSID_ALL, Sqe, Status};
use flashyard_nvmf::initiator::{
    Completion, Connection, ConnectionError, ControllerInfo, Data, Effects, InitiatorConfig, Token,
};
use flashyard_nvmf::tls::SharedKey;
use flashyard_units::SimTime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Bytes read from a socket at once.
const READ_BYTES: usize = 256 * 1024;
/// Slices of one vectored write at most.
const SLICES_MAX: usize = 64;

/// How long a queue that waits for an answer looks for it before it leaves the processor to others. [A] Fast drives answer within
/// it, and to be woken takes a part of it.
const LOOKING: Duration = Duration::from_micros(50);
/// The longest rest of a queue: times of its own run out meanwhile.
const REST_MAX: Duration = Duration::from_millis(100);

/// Why a host cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// There is no server at that address.
    #[error("{address}: no connection")]
    Connect {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The connection is not secured by TLS, as it was to be.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The connection was lost.
    #[error("the connection was lost")]
    Lost(#[source] io::Error),
    /// The other side does not follow the protocol, or does not let this host in.
    #[error(transparent)]
    Protocol(#[from] ConnectionError),
    /// Nothing came for too long.
    #[error("no answer for {0:?}")]
    Silent(Duration),
    /// The controller has no namespace, or no queue for I/O.
    #[error("the controller offers {0}")]
    Nothing(&'static str),
    /// The controller does not do what an admin command asks for.
    #[error("the controller refuses {}: {}", command.name(), status.name_for(false).unwrap_or("a status of the vendor"))]
    Refused {
        /// Which.
        command: AdminCommand,
        /// The status that it gives.
        status: Status,
    },
}

/// One queue: a socket and its machine.
pub(crate) struct Queue {
    socket: Stream,
    pub(crate) machine: Connection,
    pub(crate) effects: Effects,
    buffer: Vec<u8>,
    clock: WallClock,
}

impl Queue {
    fn connect(
        address: SocketAddr,
        keys: &[SharedKey],
        make: impl FnOnce(&mut Effects) -> Connection,
        patience: Duration,
    ) -> Result<Self, HostError> {
        let failed = |source| HostError::Connect { address, source };
        let socket = TcpStream::connect_timeout(&address, patience).map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let socket = mio::net::TcpStream::from_std(socket);
        let mut socket = if keys.is_empty() { Stream::Plain(socket) } else { Stream::connect(socket, keys.to_vec())? };
        let begun = Instant::now();
        while socket.open()? == Opening::Waits {
            if begun.elapsed() > patience {
                return Err(HostError::Silent(patience));
            }
        }
        let mut effects = Effects::default();
        let machine = make(&mut effects);
        let mut queue = Self { socket, machine, effects, buffer: vec![0; READ_BYTES], clock: WallClock::begin() };
        queue.wait(patience, Queue::is_ready)?;
        Ok(queue)
    }

    /// Registers its socket for whatever happens to it.
    pub(crate) fn register(&mut self, registry: &mio::Registry, token: mio::Token) -> io::Result<()> {
        registry.register(self.socket.socket(), token, mio::Interest::READABLE | mio::Interest::WRITABLE)
    }

    fn is_ready(&mut self) -> bool {
        self.machine.is_ready()
    }

    /// Sends and receives until `over`.
    fn wait(&mut self, patience: Duration, mut over: impl FnMut(&mut Self) -> bool) -> Result<(), HostError> {
        let begun = Instant::now();
        loop {
            self.turn()?;
            if over(self) {
                return Ok(());
            }
            let idle = begun.elapsed();
            if idle > patience {
                return Err(HostError::Silent(patience));
            }
            self.rest(idle, patience - idle)?;
        }
    }

    /// Leaves the processor to others until the socket has something, at most for `most`, where there has been nothing for `idle`.
    pub(crate) fn rest(&mut self, idle: Duration, most: Duration) -> Result<(), HostError> {
        if idle < LOOKING {
            return Ok(());
        }
        let most = Timespec { tv_sec: 0, tv_nsec: most.min(REST_MAX).as_nanos() as _ };
        let sends = self.effects.output.pending_bytes() > 0;
        let wanted = if sends { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        match poll(&mut [PollFd::new(self.socket.socket(), wanted)], Some(&most)) {
            Err(error) if error != rustix::io::Errno::INTR => Err(HostError::Lost(error.into())),
            _ => Ok(()),
        }
    }

    /// Sends what waits and takes what has come.
    pub(crate) fn turn(&mut self) -> Result<(), HostError> {
        self.machine.expire(self.clock.now(), &mut self.effects);
        self.send()?;
        loop {
            match self.socket.read(&mut self.buffer) {
                Ok(0) => return Err(HostError::Lost(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => {
                    self.machine.receive(&self.buffer[..count], &mut self.effects);
                    if let Some(failure) = self.effects.failure.take() {
                        // Best effort: reports the controller's mistake to it.
                        let _ = self.send();
                        return Err(failure.into());
                    }
                    if count < self.buffer.len() {
                        return self.send();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(HostError::Lost(error)),
            }
        }
    }

    pub(crate) fn send(&mut self) -> Result<(), HostError> {
        while self.effects.output.pending_bytes() > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut count = 0;
            for (slice, bytes) in slices.iter_mut().zip(self.effects.output.slices()) {
                *slice = IoSlice::new(bytes);
                count += 1;
            }
            match self.socket.write_vectored(&slices[..count]) {
                Ok(sent) => self.effects.output.advance(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(HostError::Lost(error)),
            }
        }
        match self.socket.flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(HostError::Lost(error)),
            _ => Ok(()),
        }
    }
}

/// A host that is connected to one controller: its admin queue and its I/O queues.
pub struct Host {
    pub(super) admin: Queue,
    pub(crate) queues: Vec<Queue>,
    pub(super) patience: Duration,
}

impl Host {
    /// Connects to the subsystem that `config` names, with all its queues; by TLS if it has a key.
    ///
    /// Errors: no server there, one without TLS or without that key, not let in, no answer within `patience`, no queue for I/O.
    pub fn connect(address: SocketAddr, config: InitiatorConfig, patience: Duration) -> Result<Self, HostError> {
        let key = config.tls_key.as_ref();
        let keys = key.map(|key| key.keys_for(&config.host_nqn, &config.subsystem_nqn)).unwrap_or_default();
        let admin =
            Queue::connect(address, &keys, |effects| Connection::admin(config, SimTime::ZERO, effects), patience)?;
        let granted = admin.machine.controller().io_queues;
        if granted == 0 {
            return Err(HostError::Nothing("no queue for I/O"));
        }
        let io = |number| {
            Queue::connect(
                address,
                &keys,
                |effects| Connection::io(&admin.machine, number, SimTime::ZERO, effects),
                patience,
            )
        };
        let queues = (1..=granted).map(io).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { admin, queues, patience })
    }

    /// The controller's properties.
    pub fn controller(&self) -> &ControllerInfo {
        self.admin.machine.controller()
    }

    /// Carries out one command on the first queue and waits for it. `data` goes with writes and compares, `data_bytes`
    /// come with reads.
    ///
    /// Errors: the connection fails, or no answer comes. A command that fails is none: look at its status.
    pub fn command(
        &mut self,
        nsid: u32,
        operation: NvmCommand,
        data: Vec<u8>,
        data_bytes: u32,
    ) -> Result<Completion, HostError> {
        const TOKEN: Token = u64::MAX;
        let queue = &mut self.queues[0];
        let submitted = queue.machine.submit(TOKEN, nsid, operation, data, data_bytes, &mut queue.effects);
        debug_assert!(submitted.is_ok(), "one command at a time");
        queue.wait(self.patience, |queue| !queue.effects.completions.is_empty())?;
        queue.effects.completions.pop().ok_or(HostError::Silent(self.patience))
    }

    /// Carries out a command of any kind on the first queue and waits for it; identifier and data pointer of `entry` are
    /// filled in.
    ///
    /// Errors: as [`Host::command`].
    pub fn entry(&mut self, entry: Sqe, data: Data) -> Result<Completion, HostError> {
        let queue = &mut self.queues[0];
        let submitted = queue.machine.submit_entry(Token::MAX, entry, data, &mut queue.effects);
        debug_assert!(submitted.is_ok(), "one command at a time");
        queue.wait(self.patience, |queue| !queue.effects.completions.is_empty())?;
        queue.effects.completions.pop().ok_or(HostError::Silent(self.patience))
    }

    /// Carries out two commands as one fused operation on the first queue, and waits for both; what [`Host::entry`] fills in is filled in
    /// here, and so is the flag of each.
    ///
    /// Errors: as [`Host::command`].
    pub fn fused(&mut self, first: (Sqe, Data), second: (Sqe, Data)) -> Result<[Completion; 2], HostError> {
        let queue = &mut self.queues[0];
        for (token, (mut entry, data)) in [(0, first), (1, second)] {
            // Source: NVM Express Base 2.0, figure 87: 01b is the first command, 10b the second.
            entry.flags |= 1 << token;
            let submitted = queue.machine.submit_entry(token, entry, data, &mut queue.effects);
            debug_assert!(submitted.is_ok(), "one operation at a time");
        }
        queue.wait(self.patience, |queue| queue.effects.completions.len() > 1)?;
        let mut done = std::mem::take(&mut queue.effects.completions);
        done.sort_by_key(|done| done.token);
        <[Completion; 2]>::try_from(done).map_err(|_| HostError::Silent(self.patience))
    }

    /// Sends one command on the first queue and does not wait for it: for hosts that leave while commands are under way.
    ///
    /// Errors: the connection fails. A full queue sends nothing.
    pub fn send(&mut self, nsid: u32, operation: NvmCommand, data: Vec<u8>, data_bytes: u32) -> Result<(), HostError> {
        let queue = &mut self.queues[0];
        if queue.machine.submit(0, nsid, operation, data, data_bytes, &mut queue.effects).is_err() {
            return Ok(());
        }
        queue.send()
    }

    /// Asks for the end of the command that the first queue has under `command_id`; returns whether it was aborted.
    ///
    /// Errors: the connection fails, or no answer comes.
    pub fn abort(&mut self, command_id: u16) -> Result<bool, HostError> {
        // The admin queue is not the first I/O queue: neither has the other's completions.
        let entry = AdminCommand::Abort { sq_id: 1, command_id }.encode(0);
        let admin = &mut self.admin;
        let submitted = admin.machine.submit_entry(0, entry, Data::None, &mut admin.effects);
        debug_assert!(submitted.is_ok(), "one command at a time");
        admin.wait(self.patience, |admin| !admin.effects.completions.is_empty())?;
        let done = admin.effects.completions.pop().ok_or(HostError::Silent(self.patience))?;
        Ok(done.status.is_success() && done.result & 1 == 0)
    }

    /// The first `len_bytes` of a log page (at least 4, a multiple of 4), zeros where it has fewer.
    ///
    /// Errors: the connection fails, or no answer comes; a controller without the page.
    pub fn log_page(&mut self, page: u8, len_bytes: u32) -> Result<Vec<u8>, HostError> {
        let get = GetLogPage { page, nsid: NSID_ALL, len_bytes: len_bytes.into(), ..GetLogPage::default() };
        self.ask(AdminCommand::GetLogPage(get), Data::ToHost(len_bytes)).map(|done| done.data)
    }

    /// Events that the controller has announced since the last call, heard while the host waited for answers on its admin queue.
    pub fn take_events(&mut self) -> Vec<AsyncEvent> {
        std::mem::take(&mut self.admin.effects.events)
    }

    /// A structure of Identify about a namespace, 4096 bytes, by its number of [`cns`](flashyard_nvme::admin::cns).
    ///
    /// Errors: the connection fails, or no answer comes; a controller without it.
    pub fn identify(&mut self, cns: u8, nsid: u32) -> Result<Vec<u8>, HostError> {
        let identify = Identify { cns, nsid, ..Identify::default() };
        self.ask(AdminCommand::Identify(identify), Data::ToHost(IDENTIFY_BYTES as u32)).map(|done| done.data)
    }

    /// Sets a feature for as long as the controller, or the drive, keeps it; `values` are dwords 11 and 12.
    ///
    /// Errors: the connection fails, or no answer comes; a controller that does not take it.
    pub fn set_feature(&mut self, feature: u8, values: [u32; 2]) -> Result<(), HostError> {
        let values = [values[0], values[1], 0, 0, 0];
        self.ask(AdminCommand::SetFeatures { feature, save: false, values }, Data::None).map(drop)
    }

    /// Carries out an admin command without data, and waits for its completion, of whatever status.
    ///
    /// Errors: the connection fails, or no answer comes.
    pub fn admin(&mut self, command: AdminCommand) -> Result<Completion, HostError> {
        self.carry_out(command, Data::None)
    }

    /// Carries out an admin command with data for the controller, likewise.
    ///
    /// Errors: as [`Host::admin`].
    pub fn admin_with(&mut self, command: AdminCommand, data: Vec<u8>) -> Result<Completion, HostError> {
        self.carry_out(command, Data::ToController(data))
    }

    /// Carries out an admin command that has to succeed.
    fn ask(&mut self, command: AdminCommand, data: Data) -> Result<Completion, HostError> {
        let done = self.carry_out(command, data)?;
        if done.status.is_success() { Ok(done) } else { Err(HostError::Refused { command, status: done.status }) }
    }

    fn carry_out(&mut self, command: AdminCommand, data: Data) -> Result<Completion, HostError> {
        let admin = &mut self.admin;
        let submitted = admin.machine.submit_entry(0, command.encode(0), data, &mut admin.effects);
        debug_assert!(submitted.is_ok(), "one command at a time");
        admin.wait(self.patience, |admin| !admin.effects.completions.is_empty())?;
        admin.effects.completions.pop().ok_or(HostError::Silent(self.patience))
    }

    /// Waits for `count` of the commands that were sent.
    ///
    /// Errors: the connection fails, or they do not come.
    pub fn ended(&mut self, count: usize) -> Result<Vec<Completion>, HostError> {
        let queue = &mut self.queues[0];
        queue.wait(self.patience, |queue| queue.effects.completions.len() >= count)?;
        Ok(std::mem::take(&mut queue.effects.completions))
    }
}

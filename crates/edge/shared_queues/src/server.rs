//! The server: guests come and go, one thread polls their queues.

use crate::memory::{DATA_MAX, ENTRIES_MAX, Shared};
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_runtime::{
    BLOCK_BYTES, Doorbells, DriveIo, GuestWindow, Host, HostAddress, Namespace, PageMap, Runtime, SocAddress, SocWindow,
};
use flashyard_service::{Failure, PassThrough, Service};
use flashyard_services::{Below, Prioritized, Shares, Tree};
use flashyard_units::{SimSpan, SimTime, VolumeId};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{SendFlags, send};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Bytes of a block.
const BLOCK: usize = BLOCK_BYTES as usize;
/// Memory of the runtime itself: 64 MiB on pages of 2 MiB. \[A\]
const PAGE: u64 = 2 << 20;
/// See [`PAGE`].
const PAGES: u64 = 32;
/// Where a guest's window begins in the host's space, times its number and one more.
const WINDOW_BITS: u32 = 40;
/// Where the runtime's own memory begins there.
const CARD: u64 = 1 << 56;
/// Longest sleep of a server that is kicked.
const SLEEP: Duration = Duration::from_millis(50);
/// Polls between two looks whether guests have come or gone.
const LOOK_EVERY: u32 = 256;

/// Offers of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Blocks of the drive, in memory.
    pub blocks: u64,
    /// Guests that may be there at once, each with an equal part of the drive.
    pub guests: u32,
    /// Services that pass everything on, for their cost.
    pub services: u32,
    /// Entries that one access to a guest's queue brings, 1 to 64.
    pub fetch: usize,
    /// Time that such an access takes beside its own.
    pub far_access: Duration,
    /// Whether the server sleeps until a guest kicks it, and wakes guests the same way.
    pub kicked: bool,
}

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A number outside its range.
    #[error("{name} is {value}, give {least} to {most}")]
    Range {
        /// Which one.
        name: &'static str,
        /// The value given.
        value: u64,
        /// The least possible.
        least: u64,
        /// The most possible.
        most: u64,
    },
    /// The socket.
    #[error("guests cannot be taken in")]
    Io(#[from] io::Error),
}

/// Counts of a server that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Guests that have connected.
    pub guests: u64,
    /// Commands completed.
    pub completed: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Accesses that brought commands.
    pub fetches: u64,
    /// Time in which the runtime had work.
    pub busy: Duration,
}

/// The right of a guest to be there, which ends with it.
struct Seat(Arc<AtomicU32>);

impl Seat {
    /// One of `most`; `None` where all are taken.
    fn take(taken: &Arc<AtomicU32>, most: u32) -> Option<Self> {
        let more = |count: u32| (count < most).then_some(count + 1);
        taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(|_| Self(Arc::clone(taken)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// News for the polling thread.
enum News {
    Arrived { shared: Shared, entries: u32, data_bytes: u64, stream: UnixStream, seat: Seat },
    Kicked,
    Left { connection: u64 },
}

/// Guests and the drive, as the runtime sees them.
struct Live {
    guests: Vec<Option<Shared>>,
    drive: Vec<u8>,
    own: Vec<u8>,
    far_access: Duration,
    /// Guests with completions that they have not been woken for.
    to_wake: Vec<usize>,
    kicked: bool,
}

/// A place in memory.
enum Place {
    Guest(usize, usize),
    Own(usize),
}

impl Live {
    fn place(at: HostAddress) -> Place {
        match at.get().checked_sub(CARD) {
            Some(at) => Place::Own(at as usize),
            None => {
                let guest = (at.get() >> WINDOW_BITS) as usize - 1;
                Place::Guest(guest, (at.get() & ((1 << WINDOW_BITS) - 1)) as usize)
            }
        }
    }

    fn carry_out(&mut self, io: &DriveIo) {
        let from = io.first as usize * BLOCK;
        let Some(blocks) = self.drive.get_mut(from..from + io.count as usize * BLOCK) else { return };
        match (io.operation, io.at.map(Self::place)) {
            (Operation::Read, Some(Place::Guest(guest, at))) => {
                self.guests[guest].iter().for_each(|shared| shared.write(at, blocks));
            }
            (Operation::Read, Some(Place::Own(at))) => self.own[at..at + blocks.len()].copy_from_slice(blocks),
            (Operation::Write, Some(Place::Guest(guest, at))) => {
                self.guests[guest].iter().for_each(|shared| shared.read(at, blocks));
            }
            (Operation::Write, Some(Place::Own(at))) => blocks.copy_from_slice(&self.own[at..at + blocks.len()]),
            (Operation::Write | Operation::Trim, None) => blocks.fill(0),
            _ => {}
        }
    }
}

impl Host for Live {
    #[inline]
    fn doorbells(&mut self, guest: usize) -> Doorbells {
        match &self.guests[guest] {
            Some(shared) => Doorbells { tail: shared.tail(), head: shared.head() },
            None => Doorbells { tail: 0, head: 0 },
        }
    }

    #[inline]
    fn fetch(&mut self, guest: usize, first: u32, into: &mut [[u8; 64]]) {
        if !self.far_access.is_zero() {
            let begun = Instant::now();
            while begun.elapsed() < self.far_access {
                std::hint::spin_loop();
            }
        }
        self.guests[guest].iter().for_each(|shared| shared.submissions(first, into));
    }

    #[inline]
    fn complete(&mut self, guest: usize, slot: u32, entry: [u8; 16]) {
        self.guests[guest].iter().for_each(|shared| shared.set_completion(slot, entry));
        if self.kicked && !self.to_wake.contains(&guest) {
            self.to_wake.push(guest);
        }
    }

    #[inline]
    fn begin(&mut self, io: &DriveIo) -> Option<Result<(), Failure>> {
        self.carry_out(io);
        Some(Ok(()))
    }

    fn ended(&mut self) -> Option<(u32, Result<(), Failure>)> {
        None
    }

    fn put(&mut self, at: HostAddress, bytes: &[u8]) {
        if let Place::Own(at) = Self::place(at) {
            self.own[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn get(&mut self, at: HostAddress, into: &mut [u8]) {
        match Self::place(at) {
            Place::Own(at) => into.copy_from_slice(&self.own[at..at + into.len()]),
            Place::Guest(guest, at) => self.guests[guest].iter().for_each(|shared| shared.read(at, into)),
        }
    }
}

/// A connected guest.
struct Connection {
    number: u64,
    stream: UnixStream,
    /// Its part of the drive.
    part: u64,
    _seat: Seat,
}

/// Serves guests that come to `listener` until `stop` says so.
///
/// Errors: numbers outside their ranges, and those of the socket.
pub fn serve(listener: UnixListener, options: Options, mut stop: impl FnMut() -> bool) -> Result<Served, ServeError> {
    let range = |name, value: u64, least, most| match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(ServeError::Range { name, value, least, most }),
    };
    range("--guests", options.guests.into(), 1, 256)?;
    range("--services", options.services.into(), 0, 64)?;
    range("--fetch", options.fetch as u64, 1, 64)?;
    range("blocks of the drive", options.blocks, options.guests.into(), u64::from(u32::MAX))?;
    let (sender, news) = channel();
    let acceptor = sender.clone();
    let taken = Arc::new(AtomicU32::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (sender, taken) = (acceptor.clone(), Arc::clone(&taken));
            std::thread::spawn(move || {
                if let Err(error) = welcome(stream, options, &taken, &sender) {
                    tracing::debug!(%error, "a guest did not come in");
                }
            });
        }
    });
    if options.services == 0 {
        return Ok(Polling::new(options, PassThrough, news, sender).run(&mut stop));
    }
    let open = || Box::new(Prioritized::new(Shares { most: 65_536, ..Shares::published(u16::MAX) }));
    let count = options.services as usize;
    let below = |number: usize| {
        if number + 1 < count { Below::Service(number + 1) } else { Below::Leg(flashyard_service::Leg(0)) }
    };
    let nodes = (0..count).map(|number| (open() as Box<dyn Service + Send>, vec![below(number)])).collect();
    let chain = Tree::new(nodes).expect("a chain is a tree");
    Ok(Polling::new(options, chain, news, sender).run(&mut stop))
}

/// Makes the memory of a guest and tells it where that is.
fn welcome(mut stream: UnixStream, options: Options, taken: &Arc<AtomicU32>, sender: &Sender<News>) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut line = String::new();
    BufReader::new(Read::take(&mut stream, 64)).read_line(&mut line)?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let asked = match words.as_slice() {
        ["queues", entries, data] => entries.parse::<u32>().ok().zip(data.parse::<u64>().ok()),
        _ => None,
    };
    let fits =
        |&(entries, data): &(u32, u64)| (2..=ENTRIES_MAX).contains(&entries) && (4096..=DATA_MAX).contains(&data);
    let Some((entries, data_bytes)) = asked.filter(fits) else {
        return writeln!(stream, "refused say: queues ENTRIES BYTES");
    };
    let Some(seat) = Seat::take(taken, options.guests) else {
        return writeln!(stream, "refused {} guests are there already", options.guests);
    };
    let memory = memfd_create("flashyard-queues", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let file = File::from(memory);
    file.set_len(Shared::bytes(entries, data_bytes))?;
    // A guest that made it shorter would end the server with a bus error.
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    writeln!(stream, "memory {path} {} {}", options.blocks / u64::from(options.guests), options.kicked)?;
    stream.read_exact(&mut [0])?;
    stream.set_read_timeout(None)?;
    let shared = Shared::map(file, entries, data_bytes)?;
    let news = News::Arrived { shared, entries, data_bytes, stream, seat };
    sender.send(news).map_err(|_| io::Error::other("the server has ended"))
}

struct Polling<S> {
    options: Options,
    runtime: Runtime<Live, S>,
    connections: Vec<Option<Connection>>,
    news: Receiver<News>,
    sender: Sender<News>,
    arrived: u64,
    busy: Duration,
    began: Instant,
}

impl<S: Service> Polling<S> {
    fn new(options: Options, service: S, news: Receiver<News>, sender: Sender<News>) -> Self {
        let live = Live {
            guests: Vec::new(),
            drive: vec![0; options.blocks as usize * BLOCK],
            own: vec![0; (PAGES * PAGE) as usize],
            far_access: options.far_access,
            to_wake: Vec::new(),
            kicked: options.kicked,
        };
        let info = VolumeInfo {
            id: VolumeId::new(0),
            block_bytes: BLOCK_BYTES,
            limits: VolumeLimits::new(options.blocks, false),
            protected: true,
        };
        let pages = (0..PAGES).map(|page| SocAddress::new(page * PAGE)).collect();
        let memory = (PageMap::new(PAGE, pages), SocWindow::new(HostAddress::new(CARD), PAGES * PAGE));
        Self {
            options,
            runtime: Runtime::new(live, service, options.fetch, memory, &[info]),
            connections: Vec::new(),
            news,
            sender,
            arrived: 0,
            busy: Duration::ZERO,
            began: Instant::now(),
        }
    }

    fn run(mut self, stop: &mut impl FnMut() -> bool) -> Served {
        let mut looks = 0;
        loop {
            looks += 1;
            if looks >= LOOK_EVERY {
                looks = 0;
                if stop() {
                    break;
                }
                while let Ok(news) = self.news.try_recv() {
                    self.hear(news);
                }
            }
            if self.poll() > 0 {
                continue;
            }
            if self.options.kicked {
                looks = LOOK_EVERY;
                match self.news.recv_timeout(SLEEP) {
                    Ok(news) => self.hear(news),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
                }
            }
        }
        let totals = self.runtime.totals();
        Served {
            guests: self.arrived,
            completed: totals.completed,
            failed: totals.failed,
            fetches: totals.fetches,
            busy: self.busy,
        }
    }

    /// One turn of the runtime; returns the commands that it has worked on.
    #[inline]
    fn poll(&mut self) -> u64 {
        let begun = Instant::now();
        let worked = self.runtime.poll(SimTime::ZERO + SimSpan::from_ns((begun - self.began).as_nanos() as u64));
        if worked > 0 {
            self.busy += begun.elapsed();
            let counts = [self.runtime.totals().completed, self.busy.as_nanos() as u64];
            let live = self.runtime.host_mut();
            live.guests.iter().flatten().for_each(|shared| shared.set_counts(counts));
            for guest in std::mem::take(&mut live.to_wake) {
                // A guest that has gone is heard of by its reader, and one that takes nothing has bytes that wake it.
                let connection = self.connections.get(guest).and_then(Option::as_ref);
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                connection.into_iter().for_each(|connection| _ = send(&connection.stream, b"i", flags));
            }
        }
        worked
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Arrived { shared, entries, data_bytes, stream, seat } => {
                if let Err(error) = self.take_in(shared, (entries, data_bytes), stream, seat) {
                    tracing::warn!(%error, "a guest did not come in");
                }
            }
            News::Kicked => {}
            News::Left { connection } => {
                let is_it = |of: &Option<Connection>| of.as_ref().is_some_and(|of| of.number == connection);
                if let Some(guest) = self.connections.iter().position(is_it) {
                    // The drive works at once: nothing of the guest is under way.
                    self.runtime.remove(guest);
                    self.connections[guest] = None;
                    self.runtime.host_mut().guests[guest] = None;
                }
            }
        }
    }

    fn take_in(
        &mut self,
        shared: Shared,
        (entries, data_bytes): (u32, u64),
        stream: UnixStream,
        seat: Seat,
    ) -> io::Result<()> {
        let taken: Vec<u64> = self.connections.iter().flatten().map(|of| of.part).collect();
        let Some(part) = (0..u64::from(self.options.guests)).find(|part| !taken.contains(part)) else {
            return Err(io::Error::other(format!("{} guests are there already", self.options.guests)));
        };
        let blocks = self.options.blocks / u64::from(self.options.guests);
        let reader = stream.try_clone()?;
        // Another guest may have had it. The first ones come in the order of parts.
        if part < self.arrived {
            let (from, bytes) = ((part * blocks) as usize * BLOCK, blocks as usize * BLOCK);
            self.runtime.host_mut().drive[from..from + bytes].fill(0);
        }
        // The window depends on the number, which the runtime gives.
        let free = self.connections.iter().position(Option::is_none).unwrap_or(self.connections.len());
        let window = GuestWindow::new(HostAddress::new((free as u64 + 1) << WINDOW_BITS), data_bytes);
        let number = self.runtime.add(entries, window, Namespace { first: part * blocks, blocks });
        debug_assert_eq!(number, free, "places are used again in order");
        let connection = Connection { number: self.arrived, stream, part, _seat: seat };
        let guests = &mut self.runtime.host_mut().guests;
        if number == guests.len() {
            guests.push(Some(shared));
            self.connections.push(Some(connection));
        } else {
            (guests[number], self.connections[number]) = (Some(shared), Some(connection));
        }
        let (connection, sender) = (self.arrived, self.sender.clone());
        self.arrived += 1;
        std::thread::spawn(move || read(reader, connection, &sender));
        Ok(())
    }
}

/// Hears a guest's kicks, and its end.
fn read(mut stream: UnixStream, connection: u64, sender: &Sender<News>) {
    let mut bytes = [0; 64];
    while matches!(stream.read(&mut bytes), Ok(count) if count > 0) {
        if sender.send(News::Kicked).is_err() {
            return;
        }
    }
    let _ = sender.send(News::Left { connection });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Guest;
    use std::sync::atomic::AtomicBool;

    /// Commands of the test: a socket's buffer holds a few hundred single bytes. \[A\]
    const COMMANDS: u16 = 2000;
    /// Patience for one of them. \[A\]
    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn a_guest_that_reads_nothing_does_not_stop_the_server() {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("the name is free");
        let options =
            Options { blocks: 64, guests: 2, services: 0, fetch: 8, far_access: Duration::ZERO, kicked: true };
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let server = std::thread::spawn(move || serve(listener, options, || stop.load(Ordering::Relaxed)));
        let mut guest = Guest::connect(&path, 8, 4096).expect("the server takes it in");
        for number in 0..COMMANDS {
            guest.read(0, 1, number, 0).expect("the server hears of it");
            let asked = Instant::now();
            // It looks at its memory alone, and leaves the bytes that wake it where they are.
            while guest.poll().is_none() {
                assert!(asked.elapsed() < PATIENCE, "the server stands still after {number} commands");
                std::thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
        let served = server.join().expect("it ends").expect("it has served");
        assert_eq!((served.guests, served.completed, served.failed), (1, COMMANDS.into(), 0));
    }
}

//! A server that lends pieces of its storage: it posts what is free, promises it to consumers that ask, and serves each agreement over NVMe/TCP by an engine
//! of its own, under a name that has the agreement's number. Source: sheet leapio §3.6 (5).
//!
//! When an agreement ends, its engine ends: connections are closed and what was under way is done. Then the pieces are zeroed, and then they are free. So
//! no consumer reaches a piece that is another one's, however late it is.

use crate::agile::board::{self, Post};
use crate::agile::consumers::Consumers;
use crate::agile::pieces::Pieces;
use crate::agile::wire::{self, Clock, Heard, Lines, Name, Said, Word};
use crate::engine::{Export, VolumeEngine, VolumeHandle, Window};
use crate::leg::{LegState, Storage};
use crate::opening::Opening;
use crate::services::Services;
use crate::stack::Stack;
use flashyard_billboard::{Agreement, Message, Producer};
use flashyard_live::FrontEnds;
use flashyard_service::PassThrough;
use flashyard_units::{SimSpan, SimTime};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Lets hosts reach the only volume of some front ends at an address, under an NVMe qualified name; returns where it listens.
pub type ExportsPiece = Arc<dyn Fn(&mut FrontEnds, SocketAddr, &str) -> Result<SocketAddr, String> + Send + Sync>;

/// How often a server looks which agreements have ended.
const STEP: Duration = Duration::from_millis(50);
/// How often a consumer is told that the server leaves.
const TELL: Duration = Duration::from_secs(1);
/// Time after which a post that has failed is tried again.
const POST_AGAIN: Duration = Duration::from_secs(1);
/// A post counts for so many times the span between two.
const KEPT_POSTS: u64 = 3;
/// A connection that says nothing for so long is closed, and may be made again.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// How a server lends.
pub(crate) struct LendPlan {
    /// Name of the server.
    pub(crate) server: String,
    /// Beginning of NVMe qualified names.
    pub(crate) nqn: String,
    pub(crate) board: SocketAddr,
    pub(crate) listen: SocketAddr,
    pub(crate) lease: SimSpan,
    pub(crate) post_every: Duration,
    /// Requests and bytes a second that it can serve.
    pub(crate) iops: Option<u64>,
    pub(crate) bandwidth: Option<u64>,
}

/// An agreement that is served.
struct Lent {
    pieces: Vec<u32>,
    address: SocketAddr,
    nqn: String,
    mib: u32,
    stop: Arc<AtomicBool>,
    handle: VolumeHandle,
    thread: JoinHandle<()>,
    /// There while threads may write to the file.
    file: Weak<File>,
}

struct State {
    producer: Producer,
    pieces: Pieces,
    /// Those that it knows something of.
    consumers: Consumers,
    lent: BTreeMap<Agreement, Lent>,
    /// Agreements that have ended, and whose pieces are not free yet.
    clearing: u32,
    leaves: bool,
}

struct Shared {
    plan: LendPlan,
    clock: Clock,
    /// The run of the program.
    run: u64,
    opening: Opening,
    exports: ExportsPiece,
    state: Mutex<State>,
}

/// A server that lends.
pub(crate) struct Lender(Arc<Shared>);

impl Lender {
    /// Begins to lend.
    ///
    /// Errors: an address that cannot be listened on, or no thread.
    pub(crate) fn start(
        plan: LendPlan,
        pieces: Pieces,
        opening: Opening,
        exports: ExportsPiece,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(plan.listen)?;
        // Promises of an earlier run hold nobody up: what it served has ended with it, and this one serves other names.
        let producer = Producer::new(pieces.count(), plan.lease);
        let state = State {
            producer,
            pieces,
            consumers: Consumers::default(),
            lent: BTreeMap::new(),
            clearing: 0,
            leaves: false,
        };
        let run = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let clock = Clock::begin();
        let shared = Arc::new(Shared { plan, clock, run, opening, exports, state: Mutex::new(state) });
        let of_thread = Arc::clone(&shared);
        wire::listen(listener, "lender", move |lines| converse(&of_thread, lines))?;
        for (name, work) in [("leases", watch as fn(&Arc<Shared>)), ("posts", post)] {
            let of_thread = Arc::clone(&shared);
            std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&of_thread))?;
        }
        Ok(Self(shared))
    }

    /// Promises nothing new, and tells consumers to move what they have here.
    pub(crate) fn leave(&self) {
        let mut state = self.0.state();
        if std::mem::replace(&mut state.leaves, true) {
            return;
        }
        let told = state.producer.leave(self.0.clock.now()).len();
        drop(state);
        tracing::info!(server = %self.0.plan.server, agreements = told, "the server leaves: its consumers move what they have here");
        if let Err(problem) = board::withdraw(self.0.plan.board, &self.0.plan.server) {
            tracing::warn!(problem, "the post is not withdrawn, and ends with its time");
        }
    }

    /// Whether no agreement is left, after [`Lender::leave`].
    pub(crate) fn has_left(&self) -> bool {
        let state = self.0.state();
        state.leaves && state.lent.is_empty() && state.clearing == 0
    }

    /// Agreements that are served, with their MiB, for people.
    pub(crate) fn agreements(&self) -> Vec<String> {
        let state = self.0.state();
        state.lent.values().map(|lent| format!("{} ({} MiB)", lent.nqn, lent.mib)).collect()
    }
}

impl State {
    /// Forgets consumers of which nothing is promised, served or released a while ago.
    fn forget_consumers(&mut self, now: SimTime) {
        let Self { consumers, producer, lent, .. } = self;
        let serves = |number| lent.keys().any(|agreement| agreement.consumer == number);
        consumers.keep(|number| producer.knows(now, number) || serves(number));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name_of(&self, state: &State, agreement: Agreement) -> Name {
        let consumer = state.consumers.name(agreement.consumer).to_owned();
        Name { consumer, incarnation: agreement.incarnation, number: agreement.number }
    }

    /// The answer to a line; `told` gets the agreement that the connection is about.
    ///
    /// Errors: what is wrong with the line, in words.
    fn answer(self: &Arc<Self>, line: &str, told: &mut BTreeMap<Agreement, Instant>) -> Result<Said, String> {
        let Said { name, word } = Said::parse(line)?;
        let now = self.clock.now();
        let mut state = self.state();
        let agreement = |consumer| Agreement { consumer, incarnation: name.incarnation, number: name.number };
        let word = match word {
            Word::Ask { mib, asked, lease_ms } => {
                let agreement =
                    state.consumers.number(&name.consumer).map(agreement).ok_or("there are too many consumers")?;
                match self.ask(&mut state, now, agreement, (mib, asked, lease_ms)) {
                    Ok(word) => {
                        told.entry(agreement).or_insert_with(Instant::now);
                        word
                    }
                    Err(why) => {
                        state.forget_consumers(now);
                        Word::Refuse { why }
                    }
                }
            }
            Word::Release => {
                // A name without a number gets one: its question may come later, over another connection, and is refused then.
                if let Some(agreement) = state.consumers.number(&name.consumer).map(agreement) {
                    told.remove(&agreement);
                    state.producer.receive(now, Message::Release { agreement });
                }
                Word::Released
            }
            _ => return Err("a consumer says ask or release".to_owned()),
        };
        Ok(Said { name, word })
    }

    /// Errors: why a question is refused.
    fn ask(
        self: &Arc<Self>,
        state: &mut State,
        now: SimTime,
        agreement: Agreement,
        (mib, asked, lease_ms): (u32, SimTime, u32),
    ) -> Result<Word, String> {
        let has = state.producer.has(now, agreement);
        if !has && state.lent.contains_key(&agreement) {
            return Err("the lease has ended".to_owned());
        }
        if !has && self.plan.lease < SimSpan::from_ms(lease_ms.into()) {
            return Err(format!("a lease here is {} s, not {lease_ms} ms", self.plan.lease.as_secs_f64()));
        }
        let space = state.pieces.needed(mib);
        if mib == 0 || !has && space > state.pieces.free() {
            let free = state.pieces.mib(state.pieces.free());
            return Err(format!("{mib} MiB are not free: {free} MiB are"));
        }
        let message = Message::Ask { agreement, space, asked };
        let Some(Message::Confirm { asked, begun, .. }) = state.producer.receive(now, message) else {
            return Err(if state.leaves { "it leaves" } else { "it has no room, or it was released" }.to_owned());
        };
        if !state.lent.contains_key(&agreement) {
            match self.serve(state, agreement, mib) {
                Ok(lent) => _ = state.lent.insert(agreement, lent),
                Err(problem) => {
                    state.producer.receive(now, Message::Release { agreement });
                    return Err(problem);
                }
            }
        }
        let Lent { address, nqn, .. } = &state.lent[&agreement];
        Ok(Word::Confirm { asked, begun, run: self.run, address: *address, nqn: nqn.clone() })
    }

    /// Serves pieces for an agreement.
    ///
    /// Errors: why it cannot.
    fn serve(&self, state: &mut State, agreement: Agreement, mib: u32) -> Result<Lent, String> {
        let Name { consumer, incarnation, number } = self.name_of(state, agreement);
        let nqn = format!("{}{}.lent.{consumer}.{incarnation:08x}.{number}", self.plan.nqn, self.plan.server);
        let opening = self.opening.for_another();
        let (pieces, storage) = state.pieces.take(mib, opening.wake())?;
        let file = match &storage {
            Storage::File(file) => file.downgrade(),
            _ => Weak::new(),
        };
        let leg = LegState::new(storage, state.pieces.name());
        let (stop, at) = (Arc::new(AtomicBool::new(false)), SocketAddr::new(self.plan.listen.ip(), 0));
        let (made, answer) = channel();
        let of_thread = (Arc::clone(&self.exports), nqn.clone(), Arc::clone(&stop));
        let begun = std::thread::Builder::new().name("lent".to_owned()).spawn(move || {
            let (exports, nqn, stop) = of_thread;
            match engine(opening, leg, &exports, at, &nqn) {
                Ok((engine, address)) => {
                    // The lender waits for it.
                    let _ = made.send(Ok((address, engine.handle())));
                    if let Err(error) = engine.run(|_| stop.load(Ordering::Relaxed)) {
                        tracing::error!(nqn, %error, "what was lent is not served any more");
                    }
                }
                Err(problem) => _ = made.send(Err(problem)),
            }
        });
        let result = begun.map_err(|error| error.to_string());
        let result = result.and_then(|thread| {
            let answer = answer.recv().unwrap_or_else(|_| Err("its engine has ended".to_owned()))?;
            Ok((thread, answer))
        });
        match result {
            Ok((thread, (address, handle))) => {
                tracing::info!(nqn, %address, mib, "space is lent");
                Ok(Lent { pieces, address, nqn, mib, stop, handle, thread, file })
            }
            Err(problem) => {
                // They are zeros still.
                state.pieces.give_back(&pieces);
                Err(problem)
            }
        }
    }

    /// Ends what is served for an agreement, and zeroes its pieces.
    fn clear(&self, lent: Lent) {
        let Lent { pieces, nqn, mib, stop, handle, thread, file, .. } = lent;
        stop.store(true, Ordering::Relaxed);
        // It wakes, and has ended then.
        let _ = handle.call(|_| ());
        let _ = thread.join();
        while file.strong_count() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let zeroing = self.state().pieces.zeroing(&pieces);
        let zeroed = zeroing.and_then(|zeroing| zeroing.run());
        let mut state = self.state();
        state.clearing -= 1;
        match zeroed {
            Ok(()) => {
                state.pieces.give_back(&pieces);
                tracing::info!(nqn, mib, "what was lent is zeroed and free");
            }
            Err(error) => tracing::error!(nqn, %error, "pieces cannot be zeroed, and are not lent again"),
        }
    }
}

/// An engine for one piece of storage, and where it listens.
///
/// Errors: in words.
fn engine(
    opening: Opening,
    leg: LegState,
    exports: &ExportsPiece,
    at: SocketAddr,
    nqn: &str,
) -> Result<(VolumeEngine, SocketAddr), String> {
    let waker = opening.waker();
    let stack = Stack::new(nqn.to_owned(), Services::None(PassThrough), vec![leg]);
    let export =
        Export { name: nqn.to_owned(), stack: 0, class: 0, window: Window { number: 0, of: 1, read_only: false } };
    let engine = VolumeEngine::new(vec![stack], vec![export], opening).map_err(|error| error.to_string());
    let mut engine = engine?;
    // The first one to set it.
    let _ = waker.set(engine.fronts_mut().waker());
    let address = exports(engine.fronts_mut(), at, nqn)?;
    Ok((engine, address))
}

/// Talks with a consumer.
fn converse(shared: &Arc<Shared>, mut lines: Lines) {
    let mut told: BTreeMap<Agreement, Instant> = BTreeMap::new();
    let mut heard = Instant::now();
    while heard.elapsed() < IDLE_MAX {
        let answer = match lines.hear(STEP) {
            Heard::Line(line) => {
                heard = Instant::now();
                let answer = shared.answer(&line, &mut told).map(|said| said.json());
                Some(answer.unwrap_or_else(|error| json!({ "message": "error", "error": error })))
            }
            Heard::TooLong => Some(json!({ "message": "error", "error": wire::TOO_LONG })),
            Heard::Nothing => None,
            Heard::Ended => return,
        };
        let mut sayings: Vec<_> = answer.into_iter().collect();
        let state = shared.state();
        if state.leaves {
            let now = shared.clock.now();
            told.retain(|&agreement, _| state.producer.has(now, agreement));
            for (&agreement, at) in told.iter_mut().filter(|(_, at)| at.elapsed() >= TELL) {
                *at = Instant::now();
                sayings.push(Said { name: shared.name_of(&state, agreement), word: Word::Leaving }.json());
            }
        }
        drop(state);
        if sayings.iter().any(|saying| lines.say(saying).is_err()) {
            return;
        }
    }
}

/// Ends what has no promise any more.
fn watch(shared: &Arc<Shared>) {
    loop {
        std::thread::sleep(STEP);
        let mut state = shared.state();
        let now = shared.clock.now();
        state.forget_consumers(now);
        let over: Vec<Agreement> =
            state.lent.keys().copied().filter(|&agreement| !state.producer.has(now, agreement)).collect();
        for agreement in over {
            let Some(lent) = state.lent.remove(&agreement) else { continue };
            state.clearing += 1;
            let of_thread = Arc::clone(shared);
            std::thread::spawn(move || of_thread.clear(lent));
        }
    }
}

/// Posts what is free: in its time, and when that has changed.
fn post(shared: &Arc<Shared>) {
    let plan = &shared.plan;
    let (mut last, mut due, mut failing) = (None, Instant::now(), false);
    let mut work = Work { at: Instant::now(), of: BTreeMap::new() };
    loop {
        std::thread::sleep(STEP);
        let mut state = shared.state();
        let now = shared.clock.now();
        // Pieces that are not zeroed yet are not free.
        let free = state.producer.free(now).min(state.pieces.free());
        let (mib, leaves) = (state.pieces.mib(free), state.leaves);
        drop(state);
        if leaves {
            return;
        }
        let is_due = Instant::now() >= due;
        if !is_due && (failing || last == Some(mib)) {
            continue;
        }
        let (iops, bandwidth) = work.rates(shared);
        let span_ms = plan.post_every.as_millis() as u64;
        let post = Post {
            server: plan.server.clone(),
            address: plan.listen,
            free_mib: mib,
            free_iops: plan.iops.map(|all| all.saturating_sub(iops)),
            free_bandwidth: plan.bandwidth.map(|all| all.saturating_sub(bandwidth)),
            lease_ms: (plan.lease.as_ns() / 1_000_000) as u32,
            keep_ms: (span_ms * KEPT_POSTS).min(3_600_000) as u32,
        };
        match board::post(plan.board, &post) {
            Ok(()) => {
                if std::mem::take(&mut failing) {
                    tracing::info!(board = %plan.board, "the billboard takes posts again");
                }
                (last, due) = (Some(mib), Instant::now() + plan.post_every);
            }
            Err(problem) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(problem, "nothing can be posted, which is tried again and again");
                }
                due = Instant::now() + POST_AGAIN;
            }
        }
    }
}

/// The work that consumers have done here, as it was seen last.
struct Work {
    at: Instant,
    /// Requests and bytes by agreement.
    of: BTreeMap<Agreement, (u64, u64)>,
}

impl Work {
    /// Requests and bytes a second since this was asked last.
    fn rates(&mut self, shared: &Shared) -> (u64, u64) {
        let handles: Vec<(Agreement, VolumeHandle)> =
            shared.state().lent.iter().map(|(&agreement, lent)| (agreement, lent.handle.clone())).collect();
        let (mut sums, mut seen) = ((0, 0), BTreeMap::new());
        for (agreement, handle) in handles {
            // One that ends meanwhile does no more work.
            let Ok(status) = handle.call(|engine| engine.status()) else { continue };
            let carried = status.iter().flat_map(|volume| &volume.legs).map(|leg| leg.carried);
            let now = carried.fold((0, 0), |(orders, bytes), carried| {
                (orders + carried.orders.iter().sum::<u64>(), bytes + carried.bytes.iter().sum::<u64>())
            });
            let before = self.of.get(&agreement).copied().unwrap_or_default();
            sums = (sums.0 + now.0.saturating_sub(before.0), sums.1 + now.1.saturating_sub(before.1));
            seen.insert(agreement, now);
        }
        let seconds = self.at.elapsed().as_secs_f64().max(1e-3);
        (self.at, self.of) = (Instant::now(), seen);
        ((sums.0 as f64 / seconds) as u64, (sums.1 as f64 / seconds) as u64)
    }
}

//! A server that borrows: it reads the billboard, asks candidates one by one until one confirms, connects to what that serves, and renews the lease on a
//! thread of its own. Source: sheet leapio §3.6 (5).

use crate::agile::board::{self, Post};
use crate::agile::wire::{Clock, Heard, Lines, Name, Said, Word};
use crate::leg::{BLOCK, LegState, Loan, RemoteLeg, Storage, Terms, Throttle};
use flashyard_billboard::{Agreement, Board, Consumer, Message, Offer};
use flashyard_blk::VolumeLimits;
use flashyard_kernel::Rng;
use flashyard_live::RemoteNamespace;
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_units::{SimSpan, SimTime};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Patience with the rack when a server begins: lenders may begin at the same time. Source: \[A\].
const BEGIN_PATIENCE: Duration = Duration::from_secs(5);
/// Time between two looks at the billboard meanwhile.
const BEGIN_STEP: Duration = Duration::from_millis(200);
/// Patience for the answer of a lender, and for the end of what is released.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a keeper listens at a time.
const STEP: Duration = Duration::from_millis(50);
/// A lease is asked for again so many times in the half of it that is left.
const ASKS: u64 = 4;
/// Lenders that are asked at most.
const ASKED_MAX: usize = 32;

/// An agreement that is known to its lender, maybe.
struct Kept {
    /// It is to be released.
    is_over: bool,
}

struct State {
    consumer: Consumer,
    /// Names of lenders, by their numbers.
    lenders: Vec<String>,
    kept: BTreeMap<Agreement, Kept>,
    rng: Rng,
}

struct Shared {
    /// Name of the server.
    server: String,
    clock: Clock,
    state: Mutex<State>,
}

/// A server that borrows.
#[derive(Clone)]
pub(crate) struct Borrower(Arc<Shared>);

impl Borrower {
    /// One that has nothing.
    pub(crate) fn new(server: &str) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Another one every millisecond: a server forgets its agreements with its process.
        let incarnation = since.as_millis() as u32;
        // The server is no candidate for itself: its own number comes first. Leases are as long as lenders say.
        let state = State {
            consumer: Consumer::new(0, incarnation, SimSpan::ZERO),
            lenders: vec![server.to_owned()],
            kept: BTreeMap::new(),
            rng: Rng::named(since.as_nanos() as u64, "borrower"),
        };
        Self(Arc::new(Shared { server: server.to_owned(), clock: Clock::begin(), state: Mutex::new(state) }))
    }

    /// Borrows when the server begins, with patience for lenders that begin as well. Where nobody lends, the leg is absent, and says why.
    pub(crate) fn first(&self, terms: Terms, beside: &[LegState]) -> LegState {
        let (terms, begun) = (Arc::new(terms), Instant::now());
        let held = |leg: &LegState| Some(leg.loan.as_ref()?.held.as_ref()?.1.clone());
        let avoid: Vec<String> = beside.iter().filter(|leg| leg.gone.is_none()).filter_map(held).collect();
        loop {
            match self.borrow(&terms, &avoid) {
                Ok(leg) => return leg,
                Err(problem) if begun.elapsed() > BEGIN_PATIENCE => {
                    let blocks = (u64::from(terms.mib) << 20) / BLOCK as u64;
                    let limits = VolumeLimits { blocks, remaps: false, request_blocks: u32::MAX, read_only: false };
                    let leg = LegState::new(Storage::Absent(limits), "to be borrowed".to_owned());
                    let loan = Some(Loan { terms, held: None, to: None });
                    return LegState { gone: Some(problem), is_new: true, loan, ..leg };
                }
                Err(_) => std::thread::sleep(BEGIN_STEP),
            }
        }
    }

    /// Borrows from a server that is none of `avoid`.
    ///
    /// Errors: why nobody lends, in words.
    pub(crate) fn borrow(&self, terms: &Arc<Terms>, avoid: &[String]) -> Result<LegState, String> {
        let posts = board::read(terms.board)?;
        let mut problems = Vec::new();
        for post in self.candidates(terms, &posts, avoid) {
            match self.agree(&post, terms) {
                Ok(leg) => return Ok(leg),
                Err(problem) => problems.push(format!("{}: {problem}", post.server)),
            }
        }
        let mib = terms.mib;
        let beside = if avoid.is_empty() { String::new() } else { format!(" beside {}", avoid.join(" and ")) };
        Err(match (posts.len(), &problems[..]) {
            (count, []) => format!(
                "no server lends {mib} MiB{beside}: the billboard at {} has {count} posts, and none of another server with so \
                 much free",
                terms.board
            ),
            (_, problems) => format!("no server lends {mib} MiB{beside}: {}", problems.join("; ")),
        })
    }

    /// Servers that seem to have enough, in the order in which to ask them.
    fn candidates(&self, terms: &Terms, posts: &[Post], avoid: &[String]) -> Vec<Post> {
        let (mut state, mut board) = (self.0.state(), Board::default());
        let mut by_number = BTreeMap::new();
        for post in posts.iter().filter(|post| !avoid.contains(&post.server)) {
            let Some(server) = state.lender(&post.server) else { continue };
            let down = |free: Option<u64>, unit: u64| {
                free.map_or(u32::MAX, |free| u32::try_from(free / unit).unwrap_or(u32::MAX))
            };
            let (rate, network) = (down(post.free_iops, 1), down(post.free_bandwidth, 1 << 20));
            board.post(Offer { server, space: post.free_mib, rate, network, at: SimTime::ZERO });
            by_number.insert(server, post);
        }
        let up = |needed: u64, unit: u64| u32::try_from(needed.div_ceil(unit)).unwrap_or(u32::MAX);
        let needed = (terms.mib, up(terms.free_iops, 1), up(terms.free_bandwidth, 1 << 20));
        let order = board.candidates(0, needed, SimTime::ZERO, terms.choice, &mut state.rng);
        order.iter().take(ASKED_MAX).map(|server| by_number[server].clone()).collect()
    }

    /// Asks a server, and connects to what it serves.
    ///
    /// Errors: its answer, in words.
    fn agree(&self, post: &Post, terms: &Arc<Terms>) -> Result<LegState, String> {
        let mut lines = Lines::connect(post.address).map_err(|error| error.to_string())?;
        let now = self.0.clock.now();
        let (agreement, asked) = {
            let mut state = self.0.state();
            let lender = state.lender(&post.server).ok_or("there are too many lenders")?;
            let lease = SimSpan::from_ms(post.lease_ms.into());
            let (agreement, asked) = state.consumer.ask_for(now, lender, terms.mib, lease);
            state.kept.insert(agreement, Kept { is_over: false });
            (agreement, asked)
        };
        let agreed = self.0.ask(&mut lines, agreement, asked, post.lease_ms);
        let (run, nqn, address) = match agreed {
            Ok(agreed) => agreed,
            Err(problem) => {
                self.give_back(agreement);
                Keeper { shared: Arc::clone(&self.0), agreement, post: post.clone(), run: None }.end(Some(lines));
                return Err(problem);
            }
        };
        let keeper = Keeper { shared: Arc::clone(&self.0), agreement, post: post.clone(), run: Some(run) };
        let begun = std::thread::Builder::new().name("lease".to_owned()).spawn(move || keeper.keep(lines));
        let connected = begun.map_err(|error| error.to_string()).and_then(|_| {
            let config = InitiatorConfig { subsystem_nqn: nqn.clone(), ..terms.host.clone() };
            let namespace = RemoteNamespace::connect_as(address, config, Some(1));
            namespace.map_err(|error| format!("{nqn} at {address}: {error}"))
        });
        match connected {
            Ok(namespace) => {
                tracing::info!(lender = %post.server, nqn, %address, mib = terms.mib, "space is borrowed");
                let storage = Storage::Remote(Box::new(RemoteLeg::new(namespace.with_zeroes())));
                let loan = Loan { terms: Arc::clone(terms), held: Some((agreement, post.server.clone())), to: None };
                let name = format!("{nqn} at {address}");
                let throttle = terms.pace.map(Throttle::new);
                Ok(LegState { throttle, is_new: true, loan: Some(loan), ..LegState::new(storage, name) })
            }
            Err(problem) => {
                self.give_back(agreement);
                Err(problem)
            }
        }
    }

    /// Ends an agreement: its keeper tells the lender.
    pub(crate) fn give_back(&self, agreement: Agreement) {
        if let Some(kept) = self.0.state().kept.get_mut(&agreement) {
            kept.is_over = true;
        }
    }

    /// Ends all agreements but those of a list, of those that there were.
    pub(crate) fn give_back_others(&self, known: &[Agreement], used: &BTreeSet<Agreement>) {
        known.iter().filter(|agreement| !used.contains(agreement)).for_each(|&agreement| self.give_back(agreement));
    }

    /// Agreements that have not been given back.
    pub(crate) fn agreements(&self) -> Vec<Agreement> {
        self.0.state().kept.iter().filter(|(_, kept)| !kept.is_over).map(|(&agreement, _)| agreement).collect()
    }

    /// Whether an agreement may be used.
    pub(crate) fn may_use(&self, agreement: Agreement) -> bool {
        self.0.state().consumer.may_use(self.0.clock.now(), agreement)
    }

    /// Whether the lender of an agreement leaves, or has refused it.
    pub(crate) fn is_left(&self, agreement: Agreement) -> bool {
        self.0.state().consumer.is_left(agreement)
    }

    /// Gives everything back, and waits a little until lenders have heard of it.
    pub(crate) fn end(&self) {
        self.0.state().kept.values_mut().for_each(|kept| kept.is_over = true);
        let until = Instant::now() + PATIENCE;
        while !self.0.state().kept.is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl State {
    /// Number of a lender; none where there are too many.
    fn lender(&mut self, name: &str) -> Option<u16> {
        if let Some(number) = self.lenders.iter().position(|lender| lender == name) {
            return Some(number as u16);
        }
        let number = u16::try_from(self.lenders.len()).ok()?;
        self.lenders.push(name.to_owned());
        Some(number)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name_of(&self, agreement: Agreement) -> Name {
        let Agreement { incarnation, number, .. } = agreement;
        Name { consumer: self.server.clone(), incarnation, number }
    }

    /// A question as a line.
    fn question(&self, agreement: Agreement, message: Message, lease_ms: u32) -> Said {
        let word = match message {
            Message::Ask { space, asked, .. } => Word::Ask { mib: space, asked, lease_ms },
            _ => Word::Release,
        };
        Said { name: self.name_of(agreement), word }
    }

    /// Asks for an agreement; returns the run of the lender's program, and where it serves which name.
    ///
    /// Errors: why there is none, in words.
    fn ask(
        &self,
        lines: &mut Lines,
        agreement: Agreement,
        message: Message,
        lease_ms: u32,
    ) -> Result<(u64, String, SocketAddr), String> {
        let question = self.question(agreement, message, lease_ms);
        lines.say(&question.json()).map_err(|error| error.to_string())?;
        let until = Instant::now() + PATIENCE;
        loop {
            let said = match lines.hear(until.saturating_duration_since(Instant::now())) {
                Heard::Line(line) => Said::parse(&line)?,
                Heard::Nothing => return Err(format!("no answer for {} s", PATIENCE.as_secs())),
                Heard::Ended => return Err("the connection has ended without an answer".to_owned()),
                Heard::TooLong => return Err("its answer is too long".to_owned()),
            };
            if said.name != question.name {
                continue;
            }
            match said.word {
                Word::Confirm { asked, begun, run, address, nqn } => {
                    let mut state = self.state();
                    state.consumer.receive(Message::Confirm { agreement, asked, begun });
                    let may_use = state.consumer.may_use(self.clock.now(), agreement);
                    return may_use.then_some((run, nqn, address)).ok_or("the lease has ended already".to_owned());
                }
                Word::Refuse { why } => return Err(why),
                _ => {}
            }
        }
    }
}

/// Keeps one agreement going.
struct Keeper {
    shared: Arc<Shared>,
    agreement: Agreement,
    post: Post,
    /// The run of the lender's program that has promised it.
    run: Option<u64>,
}

impl Keeper {
    /// Renews the lease and hears the lender until the agreement ends.
    fn keep(self, lines: Lines) {
        let agreement = self.agreement;
        let pause = Duration::from_millis((u64::from(self.post.lease_ms) / 2 / ASKS).max(1));
        let (mut lines, mut asked) = (Some(lines), Instant::now());
        loop {
            let message = {
                let (mut state, now) = (self.shared.state(), self.shared.clock.now());
                if state.kept.get(&agreement).is_none_or(|kept| kept.is_over) || !state.consumer.knows(agreement) {
                    break;
                }
                if asked.elapsed() >= pause { state.consumer.renew_one(now, agreement) } else { None }
            };
            if let Some((_, message)) = message {
                asked = Instant::now();
                let question = self.shared.question(agreement, message, self.post.lease_ms).json();
                if lines.is_none() {
                    lines = Lines::connect(self.post.address).ok();
                }
                if lines.as_mut().is_some_and(|lines| lines.say(&question).is_err()) {
                    lines = None;
                }
            }
            match lines.as_mut().map(|lines| lines.hear(STEP)) {
                Some(Heard::Line(line)) => self.heard(&line),
                Some(Heard::Nothing | Heard::TooLong) => {}
                Some(Heard::Ended) => lines = None,
                None => std::thread::sleep(STEP),
            }
            // A lease that has run out is given up by those that use it.
            if !self.shared.state().consumer.may_use(self.shared.clock.now(), agreement) {
                self.shared.state().consumer.lapse(self.shared.clock.now());
            }
        }
        self.end(lines);
    }

    /// Takes a line of the lender.
    fn heard(&self, line: &str) {
        let agreement = self.agreement;
        let said = match Said::parse(line) {
            Ok(said) => said,
            Err(problem) => return tracing::warn!(lender = %self.post.server, problem, "a line makes no sense"),
        };
        if said.name != self.shared.name_of(agreement) {
            return;
        }
        let message = match said.word {
            Word::Confirm { asked, begun, run, .. } if Some(run) == self.run => {
                Message::Confirm { agreement, asked, begun }
            }
            // Another run of its program has nothing of what lay there.
            Word::Confirm { .. } | Word::Refuse { .. } => Message::Refuse { agreement },
            Word::Leaving => Message::Leaving { agreement },
            Word::Ask { .. } | Word::Release | Word::Released => return,
        };
        self.shared.state().consumer.receive(message);
    }

    /// Releases the agreement. A lender that does not hear of it learns by the end of the lease.
    fn end(self, lines: Option<Lines>) {
        let release = self.shared.state().consumer.release(self.agreement);
        if let Some((_, message)) = release
            && let Some(mut lines) = lines.or_else(|| Lines::connect(self.post.address).ok())
        {
            let question = self.shared.question(self.agreement, message, self.post.lease_ms);
            let until = Instant::now() + PATIENCE;
            let mut goes_on = lines.say(&question.json()).is_ok();
            while goes_on && Instant::now() < until {
                goes_on = match lines.hear(STEP) {
                    Heard::Line(line) => Said::parse(&line).is_ok_and(|said| said.word != Word::Released),
                    Heard::Nothing | Heard::TooLong => true,
                    Heard::Ended => false,
                };
            }
        }
        self.shared.state().kept.remove(&self.agreement);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_billboard::Choice;

    #[test]
    fn candidates_have_enough_free_and_are_neither_the_server_nor_one_to_avoid() {
        let borrower = Borrower::new("me");
        let post = |server: &str, free_mib, free_iops, free_bandwidth| Post {
            server: server.to_owned(),
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
            free_mib,
            free_iops,
            free_bandwidth,
            lease_ms: 1000,
            keep_ms: 1000,
        };
        let posts = [
            post("me", 900, None, None),
            post("a", 100, Some(500), Some(50 << 20)),
            post("b", 300, None, None),
            post("c", 200, Some(499), None),
            post("d", 200, None, Some(49 << 20)),
            post("e", 63, None, None),
        ];
        let ask = |free_iops, free_bandwidth, avoid: &[&str]| {
            let host = InitiatorConfig::new("nqn.2026-01.test:host", "");
            let board = SocketAddr::from(([127, 0, 0, 1], 1));
            let terms = Terms { mib: 64, board, choice: Choice::Most, free_iops, free_bandwidth, pace: None, host };
            let avoid: Vec<String> = avoid.iter().map(|&name| name.to_owned()).collect();
            let found = borrower.candidates(&terms, &posts, &avoid);
            found.iter().map(|post| post.server.clone()).collect::<Vec<_>>().concat()
        };
        assert_eq!(ask(0, 0, &[]), "bcda");
        assert_eq!(ask(500, 0, &["b"]), "da");
        assert_eq!(ask(500, (49 << 20) + 1, &[]), "ba");
    }
}

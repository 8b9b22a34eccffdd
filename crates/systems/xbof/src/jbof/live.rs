//! An enclosure that serves: requests come from outside, one by one, and all movements of payload are reported.
//!
//! It is the world of every other run, without streams: a request takes the path of `path.rs` through the host's
//! driver, perhaps to a lender, to its drive and back. Its owner uses it through [`flashyard_served::Served`]
//! (`served.rs`), says when, and gets effects back, in order: payload goes to its place before the answer that makes it
//! durable.

use super::book::Book;
use super::config::{Design, JbofConfig, JbofError};
use super::enclosure::Enclosure;
use super::models::DriveModel;
use super::request::{Failure, Phase, Purpose, Request};
use super::resilience::{Asked, Witness};
use super::world::Jbof;
use flashyard_describe::AgedDrive;
use flashyard_flash::{Layout, SLOT_BYTES, Slot};
use flashyard_ftl::SuperblockContents;
use flashyard_kernel::Pace;
use flashyard_measure::{RunPlan, StopRule};
use flashyard_served::{Answer, Effect};
use flashyard_ssd::{Drive, DriveConfig, Operation};
use flashyard_units::{DriveId, SimSpan, SimTime};

/// No witness watches over an enclosure that serves: its clients do.
struct Nobody;

impl Witness for Nobody {
    fn issued(&mut self, _now: SimTime, _asked: &Asked) {}

    fn completed(&mut self, _now: SimTime, _number: u64, _operation: Operation, _found: &[u64]) {}
}

/// An enclosure that serves.
pub struct LiveJbof {
    pub(super) world: Jbof,
    /// By drive: it was pulled out, and not put back.
    pub(super) pulled: Vec<bool>,
}

impl LiveJbof {
    /// Nothing is asked of an enclosure later than this: time has a range, and requests take some of it. 200 days.
    pub const LAST: SimTime = SimTime::from_ps(200 * 86_400 * 1_000_000_000_000);

    /// An enclosure at time zero; `models` as in [`Jbof::with_models`]. Its drives are preconditioned, or hold
    /// `contents`, drive by drive, from an earlier life.
    ///
    /// Errors: parameters outside their ranges; a design whose drives cannot serve on their own; contents that cannot
    /// be.
    pub fn new(
        config: JbofConfig,
        models: Vec<DriveModel>,
        seed: u64,
        contents: Option<&[Vec<SuperblockContents>]>,
    ) -> Result<Self, JbofError> {
        if matches!(config.design, Design::Oc | Design::Vh | Design::VhIdeal) {
            return Err(JbofError::NotServed { design: config.design.name() });
        }
        config.validate()?;
        let plan =
            RunPlan { warmup: SimSpan::ZERO, stop: StopRule::StreamEnd, ends_together: false, depth: None, seed };
        let models = config.models(models)?;
        let mut drives = match contents {
            None => Enclosure::preconditioned(&config, &models, &plan)?,
            Some(contents) => Self::recovered(&config, &models, contents, seed)?,
        };
        drives.iter_mut().for_each(|drive| drive.data.movements.turn_on());
        let count = drives.len();
        let mut world =
            Jbof::build(config, models, plan, Vec::new(), drives)?.with_faults(Vec::new(), Box::new(Nobody));
        world.book = Some(Box::new(Book::new(count)));
        world.start();
        Ok(Self { world, pulled: vec![false; count] })
    }

    fn recovered(
        config: &JbofConfig,
        models: &[DriveModel],
        contents: &[Vec<SuperblockContents>],
        seed: u64,
    ) -> Result<Vec<Drive>, JbofError> {
        if contents.len() != models.len() {
            let (value, exact) = (contents.len() as u64, models.len() as u64);
            return Err(JbofError::Range { name: "drives with contents", value, least: exact, most: exact });
        }
        let queues = config.queue_weights();
        let drives = (0..).zip(models.iter().zip(contents)).map(|(number, (model, contents))| {
            Drive::recovered(config.placed(model), &queues, contents, seed.wrapping_add(number))
        });
        Ok(drives.collect::<Result<_, _>>()?)
    }

    /// The state that decides whether `drive` can go on, for messages about a stuck one. Panics beyond the drives.
    pub fn describe(&self, drive: DriveId) -> String {
        self.world.enclosure.drives[drive.index()].data.describe()
    }

    /// Like [`Jbof::restore`], before anything is asked of the enclosure.
    ///
    /// Errors: a drive of another shape, a state that cannot be. Panics beyond the drives.
    pub fn restore(&mut self, drive: DriveId, aged: &AgedDrive) -> Result<(), JbofError> {
        self.world.restore(drive, aged)
    }

    /// Contents of the superblocks of `drive` now. Panics beyond the drives.
    pub fn contents(&self, drive: DriveId) -> Vec<SuperblockContents> {
        self.world.enclosure.drives[drive.index()].data.contents()
    }

    /// The parameters of `drive`, as its design builds it. Panics beyond the drives.
    pub fn config(&self, drive: DriveId) -> &DriveConfig {
        self.world.enclosure.drives[drive.index()].config()
    }

    /// Drives of the enclosure.
    pub fn drives(&self) -> u16 {
        self.world.enclosure.drives.len() as u16
    }

    /// Slots that `drive` exports. Panics beyond the drives.
    pub fn slots(&self, drive: DriveId) -> u32 {
        self.world.enclosure.drives[drive.index()].config().ftl.logical_slots
    }

    /// How the slots of `drive` are numbered. Panics beyond the drives.
    pub fn layout(&self, drive: DriveId) -> &Layout {
        self.world.enclosure.drives[drive.index()].data.ftl.layout()
    }

    /// Where a logical slot is now; `Slot::NONE` for nowhere. Panics beyond the exported slots.
    pub fn place(&self, drive: DriveId, logical: u32) -> Slot {
        self.world.enclosure.drives[drive.index()].data.ftl.lookup(logical)
    }

    /// The time of the last event.
    pub fn now(&self) -> SimTime {
        self.world.enclosure.runner.now()
    }

    /// Events handled so far: with the time, the place in the run at which something was asked.
    pub fn steps(&self) -> u64 {
        self.world.steps
    }

    /// When the next event is due.
    pub fn next_due(&self) -> Option<SimTime> {
        self.world.enclosure.runner.queue.next_time()
    }

    /// Numbers that requests have or had: the most ever under way at once, and some that faults keep for a while.
    pub fn numbers(&self) -> usize {
        self.world.enclosure.requests.len()
    }

    /// Whether a drive may still carry out the request of `token`, though it was answered as dropped: until then,
    /// movements of payload may name that token.
    pub fn keeps(&self, token: u32) -> bool {
        let attempts = self.world.enclosure.resilience.as_ref().map_or(&[][..], |state| state.driver.retired());
        attempts.iter().any(|&id| {
            let purpose = self.world.enclosure.requests[id as usize].purpose;
            matches!(purpose, Purpose::Asked { token: of } | Purpose::AskedOnce { token: of } if of == token)
        })
    }

    /// Requests under way.
    pub fn in_flight(&self) -> u32 {
        self.world.book.as_ref().map_or(0, |book| book.in_flight)
    }

    /// Requests under way that time alone brings to an end, or drives that start, if those are more. Other requests are kept for drives whose power or
    /// link is away, until it is given back. A drive that starts is waited for, be it that nothing is asked of it: clients stay away
    /// until it serves.
    pub fn in_progress(&self) -> u32 {
        let Some(state) = &self.world.enclosure.resilience else { return self.in_flight() };
        self.in_flight().saturating_sub(state.held_for_good()).max(state.starting())
    }

    /// Handles what `pace` lets happen, at most `events_max` events, and returns how many those were.
    pub fn run(&mut self, pace: &mut (impl Pace + ?Sized), events_max: u64) -> u64 {
        let mut events = 0;
        while events < events_max
            && let Some(now) = self.world.enclosure.runner.advance(pace)
        {
            let event = self.world.enclosure.runner.take();
            self.world.handle(now, event);
            self.world.steps += 1;
            self.world.gather();
            events += 1;
        }
        events
    }

    /// Whether `drive` takes remaps: it keeps a protected log of them. Panics beyond the drives.
    pub fn remaps(&self, drive: DriveId) -> bool {
        self.config(drive).ftl.remap_entries > 0
    }

    pub(super) fn check_time(&self, now: SimTime) {
        let next = self.next_due().unwrap_or(SimTime::MAX);
        assert!(self.now() <= now && now <= next, "asked at {now:?}, between {:?} and {next:?}", self.now());
    }
}

impl Jbof {
    /// Takes a request in that its drive can carry out, `source` being what a remap takes over.
    pub(super) fn take_in(
        &mut self,
        now: SimTime,
        token: u32,
        drive: DriveId,
        operation: Operation,
        (first, count): (u32, u32),
        source: u32,
    ) {
        let request = Request {
            stream: drive.get(),
            drive,
            stamp: self.enclosure.next_stamp(),
            phase: Phase::Firmware,
            purpose: Purpose::Asked { token },
            operation,
            first,
            count,
            source,
            len_bytes: count.saturating_mul(SLOT_BYTES),
            issued: now,
        };
        if let Some(book) = &mut self.book {
            book.in_flight += 1;
            book.asked[drive.index()].rise(now);
        }
        self.bench.ledger.issued(now, operation, request.bytes());
        let id = self.enclosure.new_request(now, request);
        self.send_or_hold(now, id);
    }

    /// A request from outside has completed.
    pub(super) fn answer(&mut self, now: SimTime, id: u32, token: u32, failure: Option<Failure>) {
        let request = self.enclosure.requests[id as usize];
        let drive = request.drive.index();
        let latency = now.since(request.issued);
        self.bench.ledger.finished(now, request.issued, self.enclosure.journeys[id as usize].time.total());
        self.bench.totals[drive].count(request.operation, request.bytes(), latency);
        // A read at hand completes in the step that finds it: its slots are reported first.
        self.gather();
        if let Some(book) = &mut self.book {
            book.in_flight -= 1;
            book.asked[drive].complete(now, request.operation);
            if matches!(request.operation, Operation::Read | Operation::Write) {
                book.latency[drive].record(latency);
            }
            let answer = match failure {
                None => Answer::Done,
                Some(Failure::WornOut) => Answer::Failed,
                Some(Failure::Unread { slot }) => Answer::Unread { block: slot.into() },
            };
            book.effects.push(Effect::Answered { token, at: now, answer });
        }
    }

    /// Takes over what the drives tell of payload, under the tokens of requests.
    #[inline]
    pub(super) fn gather(&mut self) {
        let Some(book) = &mut self.book else { return };
        for drive in 0..self.enclosure.drives.len() {
            if !self.enclosure.drives[drive].data.movements.is_empty() {
                book.gather(&mut self.enclosure, DriveId::new(drive as u16));
            }
        }
    }
}

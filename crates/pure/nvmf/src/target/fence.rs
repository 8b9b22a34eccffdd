//! Preempt and Abort: its answer waits until no command of the preempted hosts is at the backend any more.
//!
//! Each connection of those hosts gets a fence. When it hears of that ([`Session::poll`](super::Session::poll)) it asks the
//! backend for its commands back, as Abort does, and the fence falls once the last of them has ended. Commands that wait for
//! their data never come to the backend: they fail when the data has come, and need not be waited for.
//!
//! Source: \[P\] NVM Express Base 2.0, section 8.19: Preempt and Abort.

use super::effects::SessionId;
use flashyard_nvme::Status;

/// A connection and a command of it that waits.
pub(super) type Waiting = (SessionId, u16);

/// One connection whose commands are waited for.
#[derive(Clone, Copy, Debug)]
struct Fence {
    by: Waiting,
    victim: SessionId,
    nsid: u32,
    is_heard: bool,
}

/// The fences of a target.
#[derive(Debug, Default)]
pub(super) struct Fences {
    standing: Vec<Fence>,
    /// Commands that have waited long enough, for this or for something else, and how they end.
    answers: Vec<(Waiting, Status)>,
}

impl Fences {
    /// Fences connections off from a namespace, for the command `by`.
    pub(super) fn raise(&mut self, by: Waiting, nsid: u32, victims: &[SessionId]) {
        self.standing.extend(victims.iter().map(|&victim| Fence { by, victim, nsid, is_heard: false }));
    }

    /// Namespaces that the connection is fenced off from and has not heard of.
    pub(super) fn hear(&mut self, victim: SessionId) -> Vec<u32> {
        let unheard = self.standing.iter_mut().filter(|fence| fence.victim == victim && !fence.is_heard);
        unheard
            .map(|fence| {
                fence.is_heard = true;
                fence.nsid
            })
            .collect()
    }

    /// The connection has no command any more that is waited for. Returns connections whose commands have waited long
    /// enough by that.
    pub(super) fn fall(&mut self, victim: SessionId) -> Vec<SessionId> {
        let is_fallen = |fence: &mut Fence| fence.victim == victim && fence.is_heard;
        let fallen: Vec<Fence> = self.standing.extract_if(.., is_fallen).collect();
        let mut over: Vec<Waiting> = fallen.into_iter().map(|fence| fence.by).collect();
        over.dedup();
        over.retain(|by| self.standing.iter().all(|fence| fence.by != *by));
        self.answers.extend(over.iter().map(|&by| (by, Status::SUCCESS)));
        over.into_iter().map(|(session, _)| session).collect()
    }

    /// A command that has waited for something else ends.
    pub(super) fn answer(&mut self, by: Waiting, status: Status) {
        self.answers.push((by, status));
    }

    /// Commands of the connection that have waited long enough, and how they end.
    pub(super) fn take_answers(&mut self, by: SessionId) -> Vec<(u16, Status)> {
        let of_it = self.answers.extract_if(.., |((session, _), _)| *session == by);
        of_it.map(|((_, command), status)| (command, status)).collect()
    }

    /// The connection has gone: it waits for nothing, and is not waited for. Returns what [`Fences::fall`] does.
    pub(super) fn leave(&mut self, session: SessionId) -> Vec<SessionId> {
        self.standing.retain(|fence| fence.by.0 != session);
        self.answers.retain(|((by, _), _)| *by != session);
        self.hear(session);
        self.fall(session)
    }
}

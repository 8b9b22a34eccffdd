//! Abort: an admin command about a command of another connection.
//!
//! Its answer waits for the end of the other one: that connection looks whether it still has the command
//! ([`Session::poll`]), the backend tries to take it back, and says when it has tried ([`Session::abort_tried`]).
//!
//! Source: NVM Express Base 2.0, 5.1: bit 0 of the result is zero when the command was aborted, and then the aborted
//! command has been completed before; here except a command that still waits for its data.

use super::answer::Answer;
use super::controller::Abort;
use super::directory::Target;
use super::effects::Effects;
use super::session::Session;
use super::slots::{Slot, Tag};
use flashyard_nvme::Status;

/// Abort commands of one controller at once, as Identify announces them.
pub(super) const ABORTS_MAX: usize = 4;

/// The result that says that the command was not aborted.
const NOT_ABORTED: u64 = 1;

impl Session {
    /// Takes an Abort command; `None`: its answer comes later.
    pub(super) fn abort(&self, target: &mut Target, command_id: u16, queue: u16, victim: u16) -> Option<Answer> {
        let Some(controller) = self.controller(target) else { return Some(Answer::result(NOT_ABORTED)) };
        if queue == 0 {
            // The only admin commands that wait are requests for events.
            let place = controller.event_requests.iter().position(|&request| request == victim);
            let Some(place) = place else { return Some(Answer::result(NOT_ABORTED)) };
            controller.event_requests.remove(place);
            controller.answers.push_back((victim, Answer { status: Status::ABORT_REQUESTED, result: 0 }));
            controller.answers.push_back((command_id, Answer::SUCCESS));
            return None;
        }
        let found = controller.io_sessions.iter().find(|(id, _)| *id == queue);
        let Some(&(_, session)) = found else { return Some(Answer::result(NOT_ABORTED)) };
        if controller.aborts.len() >= ABORTS_MAX {
            return Some(Answer::refusal(Status::ABORT_LIMIT_EXCEEDED));
        }
        controller.aborts.push(Abort { command_id, session, victim, is_heard: false });
        target.wake(session);
        None
    }

    /// Looks for the commands of this connection that are to be aborted, by its host or by one that has preempted it, and for
    /// those that have waited for the end of others.
    pub(super) fn hear_of_aborts(&mut self, target: &mut Target, effects: &mut Effects) {
        let id = self.id;
        while let Some(controller) = self.controller(target) {
            let unheard = |abort: &&mut Abort| abort.session == id && !abort.is_heard;
            let Some(abort) = controller.aborts.iter_mut().find(unheard) else { break };
            abort.is_heard = true;
            let victim = abort.victim;
            self.aborts_open += 1;
            match self.slots.find(victim) {
                None => self.settle_aborts(target, victim, false),
                Some((tag, slot)) if slot.is_submitted => effects.aborts.push(tag),
                Some((_, slot)) => {
                    // Its data has to be taken in, though for nothing, and the host may not send it before it knows.
                    slot.failure = Some(Status::ABORT_REQUESTED);
                    self.settle_aborts(target, victim, true);
                }
            }
        }
        let heard = target.fences.hear(id);
        self.fenced += self.slots.fence(&heard, &mut effects.aborts);
        if self.fenced == 0 && !heard.is_empty() {
            target.wake.extend(target.fences.fall(id));
        }
        for (command, status) in target.fences.take_answers(id) {
            self.slots.end_deferred();
            self.respond(command, Answer { status, result: 0 }, effects);
        }
    }

    /// The backend has tried to take back the command `tag` of [`Effects::aborts`]. If it could, it has completed the
    /// command before ([`Session::complete`], [`Status::ABORT_REQUESTED`]); otherwise the command goes on.
    pub fn abort_tried(&mut self, target: &mut Target, tag: Tag) {
        if let Some(victim) = self.slots.get_mut(tag).map(|slot| slot.command_id) {
            self.settle_aborts(target, victim, false);
        }
    }

    /// A command ends with `status`: an Abort that waits for it gets its answer, and so does the host that has preempted
    /// this one. Returns the status for the host.
    #[inline]
    pub(super) fn note_end(&mut self, target: &mut Target, slot: &Slot, status: Status) -> Status {
        let is_given_back = status.code() == Status::ABORT_REQUESTED;
        if self.aborts_open > 0 {
            self.settle_aborts(target, slot.command_id, is_given_back);
        }
        if !slot.is_fenced || self.fenced == 0 {
            return status;
        }
        self.fenced -= 1;
        if self.fenced == 0 {
            target.wake.extend(target.fences.fall(self.id));
        }
        if is_given_back { Status::ABORTED_PREEMPT.do_not_retry() } else { status }
    }

    /// This connection ends: open Aborts of its commands are answered without success, and it is not waited for.
    pub(super) fn give_up_aborts(&mut self, target: &mut Target) {
        (self.aborts_open, self.fenced) = (0, 0);
        let id = self.id;
        target.wake.extend(target.fences.leave(id));
        target.keeping.leave(id);
        let Some(controller) = self.controller(target) else { return };
        for abort in controller.aborts.extract_if(.., |abort| abort.session == id) {
            controller.answers.push_back((abort.command_id, Answer::result(NOT_ABORTED)));
        }
        let admin = controller.admin_session;
        admin.into_iter().for_each(|admin| target.wake(admin));
    }

    fn settle_aborts(&mut self, target: &mut Target, victim: u16, is_aborted: bool) {
        let id = self.id;
        let Some(controller) = self.controller(target) else { return };
        let is_about = |abort: &Abort| abort.is_heard && (abort.session, abort.victim) == (id, victim);
        let result = if is_aborted { 0 } else { NOT_ABORTED };
        let mut settled = 0;
        for abort in controller.aborts.extract_if(.., |abort| is_about(abort)) {
            controller.answers.push_back((abort.command_id, Answer::result(result)));
            settled += 1;
        }
        let admin = controller.admin_session;
        self.aborts_open -= settled;
        if let (true, Some(admin)) = (settled > 0, admin) {
            target.wake(admin);
        }
    }
}

//! Device Self-test: what a controller says to it. The test is the backend's: it hears of a wish ([`Wish::SelfTest`]), and says how far it
//! is ([`set_self_test`]).
//!
//! Source: \[P\] NVM Express Base 2.0, sections 5.9 and 8.6.

use super::answer::Answer;
use super::directory::{Demand, Target, Wish};
use super::session::Session;
use flashyard_nvme::log::SelfTestLog;
use flashyard_nvme::{NSID_ALL, Status};

/// Takes the command; `None`: the answer comes when the backend has begun, or has ended what was under way.
pub(super) fn take(session: &Session, target: &mut Target, command_id: u16, (nsid, code): (u32, u8)) -> Option<Answer> {
    match begin(session, target, command_id, (nsid, code)) {
        Ok(is_over) => is_over.then_some(Answer::SUCCESS),
        // Later the same command may succeed.
        Err(status @ Status::SELF_TEST_IN_PROGRESS) => Some(Answer { status, result: 0 }),
        Err(status) => Some(Answer::refusal(status)),
    }
}

/// Whether it is over.
fn begin(session: &Session, target: &mut Target, command_id: u16, (nsid, code): (u32, u8)) -> Result<bool, Status> {
    let controller = session.controller(target).ok_or(Status::CONTROLLER_PATHING)?;
    let place = controller.subsystem.ok_or(Status::INVALID_OPCODE)?;
    if !target.config.subsystems[place].abilities.self_test {
        return Err(Status::INVALID_OPCODE);
    }
    let is_under_way = target.self_tests[place].operation != 0;
    match code {
        SelfTestLog::ABORT if !is_under_way => return Ok(true),
        SelfTestLog::ABORT => {}
        SelfTestLog::SHORT | SelfTestLog::EXTENDED => {
            if !matches!(nsid, 0 | NSID_ALL) && target.config.subsystems[place].namespace(nsid).is_none() {
                return Err(Status::INVALID_NAMESPACE);
            }
            if is_under_way {
                return Err(Status::SELF_TEST_IN_PROGRESS);
            }
            if let Some(status) = target.figures[place].erasure.refusal(NSID_ALL) {
                return Err(status);
            }
            // From now on, as the backend has not yet heard of it.
            (target.self_tests[place].operation, target.self_tests[place].completion) = (code, 0);
        }
        _ => return Err(Status::INVALID_FIELD),
    }
    let (subsystem, wish) = (place, Wish::SelfTest { nsid, code });
    target.demand(Demand { subsystem, wish, controller: session.queue.controller, command_id });
    Ok(false)
}

/// Sets how far a test of `subsystem` is, and the results of earlier ones.
pub fn set_self_test(target: &mut Target, subsystem: usize, log: SelfTestLog) {
    target.self_tests[subsystem] = log;
}

/// Whether the controller that has asked for something is there, and has not been reset.
pub fn is_asking(target: &Target, demand: &Demand) -> bool {
    let (index, serial) = demand.controller;
    let found = target.controllers.get(index).and_then(Option::as_ref);
    found.is_some_and(|found| found.serial == serial && found.is_ready())
}

//! The commands of an authentication.

use super::answer::Answer;
use super::directory::Target;
use super::session::Session;
use flashyard_nvme::Status;
use flashyard_nvme::fabrics::{Authentication, SECURITY_PROTOCOL_NVME};

/// The two specific bytes of NVMe's protocol.
const SPECIFIC: u16 = 0x0101;

fn is_ours(message: Authentication) -> bool {
    message.protocol == SECURITY_PROTOCOL_NVME && message.specific == SPECIFIC
}

impl Session {
    /// A message of the host. Authentication that succeeded may be asked for no second time.
    pub(super) fn authentication_send(&mut self, target: &mut Target, message: Authentication, data: &[u8]) -> Answer {
        if !is_ours(message) || message.len_bytes as usize != data.len() {
            return Answer::refusal(Status::INVALID_FIELD);
        }
        let Some(dialogue) = &mut self.queue.dialogue else { return Answer::refusal(Status::COMMAND_SEQUENCE) };
        if dialogue.take(data) { self.authenticated(target) } else { Answer::SUCCESS }
    }

    /// A message for the host.
    pub(super) fn authentication_receive(
        &mut self,
        target: &mut Target,
        message: Authentication,
        reply: &mut Vec<u8>,
    ) -> Answer {
        if !is_ours(message) || message.len_bytes == 0 {
            return Answer::refusal(Status::INVALID_FIELD);
        }
        let Some(dialogue) = &mut self.queue.dialogue else { return Answer::refusal(Status::COMMAND_SEQUENCE) };
        let given = dialogue.give(reply);
        if reply.len() > message.len_bytes as usize {
            return Answer::refusal(Status::INVALID_FIELD);
        }
        match given {
            None => Answer::refusal(Status::COMMAND_SEQUENCE),
            Some(true) => self.authenticated(target),
            Some(false) => Answer::SUCCESS,
        }
    }

    /// The host is who it says.
    fn authenticated(&mut self, target: &mut Target) -> Answer {
        if self.take_queue(target) {
            self.queue.dialogue = None;
            return Answer::SUCCESS;
        }
        // Another connection of the host was faster. The dialogue has ended, and this connection ends with it.
        if let Some(dialogue) = &mut self.queue.dialogue {
            dialogue.end();
        }
        Answer::refusal(Status::COMMAND_SEQUENCE)
    }
}

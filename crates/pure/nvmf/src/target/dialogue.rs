//! The dialogue by which a host proves who it is, from the controller's side.

use crate::dhchap::{Challenge, Parties, is_same};
use crate::secret::Secret;
use flashyard_nvme::auth::{Explanation, GROUP_NULL, Hash, Message};

/// A dialogue with a host that has to prove who it is.
#[derive(Debug)]
pub(super) struct Dialogue {
    secret: Secret,
    controller_secret: Option<Secret>,
    parties: Parties,
    entropy: [u8; 32],
    nonce: u64,
    step: Step,
}

/// The message or fetch expected next.
#[derive(Debug)]
enum Step {
    /// A negotiation from the host.
    Negotiate,
    /// The host fetches the challenge.
    SendChallenge(Challenge),
    /// The host's proof.
    Reply(Challenge),
    /// The host fetches the answer to its proof; where there is a proof of ours, it has to confirm that under a number.
    SendSuccess { success: Message, mutual: Option<u16> },
    /// The host confirms our proof, under the number of its dialogue.
    Confirm(u16),
    /// The host fetches the refusal.
    SendFailure(Message),
    /// Refused.
    Failed,
}

impl Dialogue {
    /// A dialogue before its first message. `nonce` must never come twice with the same `entropy`.
    pub(super) fn new(
        secret: Secret,
        controller_secret: Option<Secret>,
        subsystem: &str,
        host: &str,
        entropy: &[u8; 32],
        nonce: u64,
    ) -> Self {
        let parties = Parties { host: host.to_owned(), subsystem: subsystem.to_owned() };
        Self { secret, controller_secret, parties, entropy: *entropy, nonce, step: Step::Negotiate }
    }

    /// Takes a message of the host. Whether the host is who it says, and nothing more is needed.
    pub(super) fn take(&mut self, bytes: &[u8]) -> bool {
        let message = Message::decode(bytes);
        let transaction = match &message {
            Ok(
                Message::Negotiate { transaction, .. }
                | Message::Reply { transaction, .. }
                | Message::Success2 { transaction }
                | Message::Failure2 { transaction, .. },
            ) => *transaction,
            _ => 0,
        };
        let step = std::mem::replace(&mut self.step, Step::Failed);
        let next = match (step, message) {
            (_, Err(_)) => Err(Explanation::IncorrectPayload),
            (Step::Negotiate, Ok(Message::Negotiate { secure_channel, hashes, groups, .. })) => {
                self.negotiate(transaction, secure_channel, &hashes, &groups)
            }
            (Step::Reply(challenge), Ok(Message::Reply { sequence, response, challenge: theirs, public, .. })) => {
                let theirs = theirs.map(|value| Challenge { sequence, value, ..challenge.clone() });
                self.reply(&challenge, transaction, &response, theirs, &public)
            }
            (Step::Confirm(number), Ok(Message::Success2 { .. })) if number == transaction => return true,
            (Step::Confirm(_), Ok(Message::Success2 { .. })) => Err(Explanation::IncorrectPayload),
            (_, Ok(Message::Failure2 { .. })) => return false,
            _ => Err(Explanation::IncorrectMessage),
        };
        self.step =
            next.unwrap_or_else(|explanation| Step::SendFailure(Message::Failure1 { transaction, explanation }));
        false
    }

    fn negotiate(&self, transaction: u16, channel: u8, hashes: &[u8], groups: &[u8]) -> Result<Step, Explanation> {
        if channel != 0 {
            return Err(Explanation::ConcatenationMismatch);
        }
        // The host names what it prefers first.
        let hash = hashes.iter().find_map(|id| Hash::from_id(*id)).ok_or(Explanation::HashNotUsable)?;
        if !groups.contains(&GROUP_NULL) {
            return Err(Explanation::GroupNotUsable);
        }
        // The number of a challenge is not zero: zero means that there is none.
        let sequence = (self.nonce as u32).max(1);
        Ok(Step::SendChallenge(Challenge::new(hash, transaction, sequence, &self.entropy, self.nonce)))
    }

    fn reply(
        &self,
        challenge: &Challenge,
        transaction: u16,
        response: &[u8],
        theirs: Option<Challenge>,
        public: &[u8],
    ) -> Result<Step, Explanation> {
        if transaction != challenge.transaction || !public.is_empty() {
            return Err(Explanation::IncorrectPayload);
        }
        let key = self.secret.key_of(&self.parties.host);
        if !is_same(&challenge.response_of_host(&key, &self.parties), response) {
            return Err(Explanation::Failed);
        }
        let proof = match (theirs, &self.controller_secret) {
            (None, _) => None,
            // The host asks for a proof, and there is nothing to prove it with.
            (Some(_), None) => return Err(Explanation::Failed),
            (Some(theirs), Some(secret)) => {
                Some(theirs.response_of_controller(&secret.key_of(&self.parties.subsystem), &self.parties))
            }
        };
        let mutual = proof.is_some().then_some(transaction);
        let hash_len = challenge.hash.len_bytes() as u8;
        Ok(Step::SendSuccess { success: Message::Success1 { transaction, hash_len, response: proof }, mutual })
    }

    /// The message that the host fetches, into `out`. `None` when it is not our turn; otherwise whether the host is
    /// who it says, and nothing more is needed.
    pub(super) fn give(&mut self, out: &mut Vec<u8>) -> Option<bool> {
        let step = std::mem::replace(&mut self.step, Step::Failed);
        let (message, next) = match step {
            Step::SendChallenge(challenge) => {
                let message = Message::Challenge {
                    transaction: challenge.transaction,
                    hash: challenge.hash,
                    group: GROUP_NULL,
                    sequence: challenge.sequence,
                    challenge: challenge.value.clone(),
                    public: Vec::new(),
                };
                (message, Step::Reply(challenge))
            }
            Step::SendSuccess { success, mutual: None } => {
                success.encode(out);
                return Some(true);
            }
            Step::SendSuccess { success, mutual: Some(transaction) } => (success, Step::Confirm(transaction)),
            Step::SendFailure(failure) => (failure, Step::Failed),
            other => {
                self.step = other;
                return None;
            }
        };
        message.encode(out);
        self.step = next;
        Some(false)
    }

    /// Ends the dialogue: the host is refused.
    pub(super) fn end(&mut self) {
        self.step = Step::Failed;
    }

    /// The host has failed, and knows it.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.step, Step::Failed)
    }
}

//! The host's part of an authentication.

use super::commands::Data;
use super::connection::Connection;
use super::effects::{ConnectionError, Effects};
use super::stage::{Setup, Step};
use crate::dhchap::{Challenge, Failure, Parties, is_same};
use flashyard_nvme::auth::{Explanation, GROUP_NULL, Hash, Message};
use flashyard_nvme::fabrics::{Authentication, FabricsCommand, SECURITY_PROTOCOL_NVME};

/// The two specific bytes of NVMe's protocol.
const SPECIFIC: u16 = 0x0101;

/// Room for a message of the controller: header, challenge of SHA-512 and no public value, and more.
const MESSAGE_BYTES: u32 = 4096;

impl Connection {
    /// The number of the dialogue: one for each connection.
    fn transaction(&self) -> u16 {
        self.queue_id + 1
    }

    fn parties(&self) -> Parties {
        Parties { host: self.config.host_nqn.clone(), subsystem: self.config.subsystem_nqn.clone() }
    }

    /// The controller asks for a proof: begins the dialogue.
    pub(super) fn authenticate(&mut self, effects: &mut Effects) -> Result<(), ConnectionError> {
        if self.config.secret.is_none() {
            return Err(ConnectionError::SecretMissing);
        }
        let negotiate = Message::Negotiate {
            transaction: self.transaction(),
            secure_channel: 0,
            hashes: Hash::ALL.map(Hash::id).to_vec(),
            groups: vec![GROUP_NULL],
        };
        self.step = Step::Negotiated;
        self.tell(&negotiate, effects)
    }

    /// A command of the dialogue succeeded; `data` is the message that it fetched.
    pub(super) fn authentication_step(&mut self, data: &[u8], effects: &mut Effects) -> Result<(), ConnectionError> {
        match std::mem::take(&mut self.step) {
            Step::Negotiated => {
                self.step = Step::Challenge;
                self.listen(effects)
            }
            Step::Replied(ours) => {
                self.step = Step::Success(ours);
                self.listen(effects)
            }
            Step::Challenge => self.on_challenge(data, effects),
            Step::Success(ours) => self.on_success(data, ours, effects),
            Step::Idle | Step::Confirmed => self.connected(effects),
        }
    }

    fn on_challenge(&mut self, data: &[u8], effects: &mut Effects) -> Result<(), ConnectionError> {
        let (transaction, parties) = (self.transaction(), self.parties());
        let challenge =
            match Message::decode(data) {
                Ok(Message::Challenge {
                    transaction: theirs, hash, group: GROUP_NULL, sequence, challenge, ..
                }) if theirs == transaction => Challenge { hash, transaction, sequence, value: challenge },
                Ok(Message::Failure1 { explanation, .. }) => return Err(Failure::Refused(explanation).into()),
                _ => return Err(Failure::Distrusted(Explanation::IncorrectMessage).into()),
            };
        let Some(secret) = &self.config.secret else { return Err(ConnectionError::SecretMissing) };
        let key = secret.key_of(&parties.host);
        let response = challenge.response_of_host(&key, &parties);
        // Our own challenge cannot be foreseen by a controller that does not know the host's key.
        let ours = self.config.controller_secret.as_ref().map(|_| {
            Challenge::new(challenge.hash, transaction, challenge.sequence.wrapping_add(1).max(1), &key, {
                let mut nonce = [0; 8];
                nonce.copy_from_slice(&challenge.value[..8]);
                u64::from_le_bytes(nonce)
            })
        });
        let reply = Message::Reply {
            transaction,
            sequence: ours.as_ref().map_or(0, |ours| ours.sequence),
            response,
            challenge: ours.as_ref().map(|ours| ours.value.clone()),
            public: Vec::new(),
        };
        self.step = Step::Replied(ours);
        self.tell(&reply, effects)
    }

    fn on_success(
        &mut self,
        data: &[u8],
        ours: Option<Challenge>,
        effects: &mut Effects,
    ) -> Result<(), ConnectionError> {
        let response = match Message::decode(data) {
            Ok(Message::Success1 { transaction, response, .. }) if transaction == self.transaction() => response,
            Ok(Message::Failure1 { explanation, .. }) => return Err(Failure::Refused(explanation).into()),
            _ => return Err(Failure::Distrusted(Explanation::IncorrectMessage).into()),
        };
        let (Some(ours), Some(secret)) = (ours, &self.config.controller_secret) else {
            return self.connected(effects);
        };
        let parties = self.parties();
        let expected = ours.response_of_controller(&secret.key_of(&parties.subsystem), &parties);
        if !response.is_some_and(|response| is_same(&response, &expected)) {
            return Err(Failure::Distrusted(Explanation::Failed).into());
        }
        self.step = Step::Confirmed;
        self.tell(&Message::Success2 { transaction: self.transaction() }, effects)
    }

    fn tell(&mut self, message: &Message, effects: &mut Effects) -> Result<(), ConnectionError> {
        let mut bytes = effects.output.take();
        message.encode(&mut bytes);
        let send = FabricsCommand::AuthenticationSend(Authentication {
            specific: SPECIFIC,
            protocol: SECURITY_PROTOCOL_NVME,
            len_bytes: bytes.len() as u32,
        });
        self.ask(Setup::Authenticate, send.encode(0), Data::ToController(bytes), effects)
    }

    fn listen(&mut self, effects: &mut Effects) -> Result<(), ConnectionError> {
        let receive = FabricsCommand::AuthenticationReceive(Authentication {
            specific: SPECIFIC,
            protocol: SECURITY_PROTOCOL_NVME,
            len_bytes: MESSAGE_BYTES,
        });
        self.ask(Setup::Authenticate, receive.encode(0), Data::ToHost(MESSAGE_BYTES), effects)
    }
}

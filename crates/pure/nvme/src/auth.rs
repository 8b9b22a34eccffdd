//! Messages of DH-HMAC-CHAP, the in-band authentication (Base 2.0, section 8.13).

use thiserror::Error;

/// Hash functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Hash {
    /// All, the strongest first.
    pub const ALL: [Self; 3] = [Self::Sha512, Self::Sha384, Self::Sha256];

    /// The identifier on the wire.
    pub const fn id(self) -> u8 {
        match self {
            Self::Sha256 => 1,
            Self::Sha384 => 2,
            Self::Sha512 => 3,
        }
    }

    /// Decodes the identifier on the wire.
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Self::Sha256),
            2 => Some(Self::Sha384),
            3 => Some(Self::Sha512),
            _ => None,
        }
    }

    /// Length of a digest in bytes.
    pub const fn len_bytes(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

/// The group without Diffie-Hellman exchange.
pub const GROUP_NULL: u8 = 0;

/// Why a message is not one of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MessageError {
    /// Shorter than what it says it holds.
    #[error("the message is too short")]
    Short,
    /// The message is of an unknown or another kind.
    #[error("the message is of another kind")]
    Kind,
    /// A hash function that does not exist, or a value of a length that does not go with it.
    #[error("the message has an unknown hash function or a value of a wrong length")]
    Hash,
}

/// Why a side gives the dialogue up (Base 2.0, figure 462).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// The proof is wrong.
    Failed,
    /// No common protocol.
    ProtocolNotUsable,
    /// The secure channel cannot be made as asked for.
    ConcatenationMismatch,
    /// No common hash function.
    HashNotUsable,
    /// No common group.
    GroupNotUsable,
    /// A message has a wrong content.
    IncorrectPayload,
    /// A message came out of order.
    IncorrectMessage,
    /// A number that the specification reserves.
    Reserved(u8),
}

impl Explanation {
    /// The number on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::ProtocolNotUsable => 2,
            Self::ConcatenationMismatch => 3,
            Self::HashNotUsable => 4,
            Self::GroupNotUsable => 5,
            Self::IncorrectPayload => 6,
            Self::IncorrectMessage => 7,
            Self::Reserved(number) => number,
        }
    }

    /// Decodes the number on the wire.
    pub const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Failed,
            2 => Self::ProtocolNotUsable,
            3 => Self::ConcatenationMismatch,
            4 => Self::HashNotUsable,
            5 => Self::GroupNotUsable,
            6 => Self::IncorrectPayload,
            7 => Self::IncorrectMessage,
            number => Self::Reserved(number),
        }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The host says what it can do.
    Negotiate {
        /// Chosen by the host for the dialogue.
        transaction: u16,
        /// Secure channel to be made afterwards; zero is none.
        secure_channel: u8,
        /// Identifiers of hash functions, the preferred first.
        hashes: Vec<u8>,
        /// Identifiers of groups, the preferred first.
        groups: Vec<u8>,
    },
    /// The controller asks the host for a proof.
    Challenge {
        /// Number of the dialogue.
        transaction: u16,
        /// Hash function.
        hash: Hash,
        /// Group.
        group: u8,
        /// Number of the challenge.
        sequence: u32,
        /// Challenge, as long as a digest.
        challenge: Vec<u8>,
        /// Public value of the controller; empty without exchange.
        public: Vec<u8>,
    },
    /// The host proves, and perhaps asks for a proof.
    Reply {
        /// Number of the dialogue.
        transaction: u16,
        /// Number of the host's challenge; zero without one.
        sequence: u32,
        /// Proof.
        response: Vec<u8>,
        /// The host's challenge.
        challenge: Option<Vec<u8>>,
        /// Public value of the host; empty without exchange.
        public: Vec<u8>,
    },
    /// The controller is satisfied, and perhaps proves.
    Success1 {
        /// Number of the dialogue.
        transaction: u16,
        /// Length of a digest in bytes.
        hash_len: u8,
        /// Proof of the controller.
        response: Option<Vec<u8>>,
    },
    /// The host is satisfied with the controller's proof.
    Success2 {
        /// Number of the dialogue.
        transaction: u16,
    },
    /// The controller gives the dialogue up.
    Failure1 {
        /// Number of the dialogue.
        transaction: u16,
        /// The reason.
        explanation: Explanation,
    },
    /// The host gives the dialogue up.
    Failure2 {
        /// Number of the dialogue.
        transaction: u16,
        /// The reason.
        explanation: Explanation,
    },
}

/// First two bytes of each message: type and identifier.
mod kind {
    pub(super) const NEGOTIATE: [u8; 2] = [0, 0x00];
    pub(super) const CHALLENGE: [u8; 2] = [1, 0x01];
    pub(super) const REPLY: [u8; 2] = [1, 0x02];
    pub(super) const SUCCESS1: [u8; 2] = [1, 0x03];
    pub(super) const SUCCESS2: [u8; 2] = [1, 0x04];
    pub(super) const FAILURE1: [u8; 2] = [0, 0xF0];
    pub(super) const FAILURE2: [u8; 2] = [0, 0xF1];
    /// Failures under the type of DH-HMAC-CHAP, as some hosts send and expect them.
    pub(super) const FAILURE1_TYPED: [u8; 2] = [1, 0xF0];
    pub(super) const FAILURE2_TYPED: [u8; 2] = [1, 0xF1];
}

/// Identifier of DH-HMAC-CHAP among protocols.
const PROTOCOL: u8 = 1;

/// Room for identifiers in a protocol descriptor: hash functions, then groups.
const IDENTIFIERS: usize = 30;

/// The only reason of a failure: the authentication failed.
const REASON: u8 = 1;

/// Takes `len` bytes from `at` on.
fn part(bytes: &[u8], at: usize, len: usize) -> Result<&[u8], MessageError> {
    bytes.get(at..at + len).ok_or(MessageError::Short)
}

fn number16(bytes: &[u8], at: usize) -> Result<u16, MessageError> {
    part(bytes, at, 2).map(|word| u16::from_le_bytes([word[0], word[1]]))
}

fn number32(bytes: &[u8], at: usize) -> Result<u32, MessageError> {
    part(bytes, at, 4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

impl Message {
    /// The message in `bytes`; what follows it is ignored.
    ///
    /// Errors: it is cut, of an unknown kind, or has values of wrong lengths.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let head = part(bytes, 0, 8)?;
        let transaction = number16(bytes, 4)?;
        match [head[0], head[1]] {
            kind::NEGOTIATE => Self::decode_negotiate(bytes, transaction),
            kind::CHALLENGE => {
                part(bytes, 0, 16)?;
                let hash = Hash::from_id(bytes[8]).ok_or(MessageError::Hash)?;
                let len = usize::from(bytes[6]);
                if len != hash.len_bytes() {
                    return Err(MessageError::Hash);
                }
                Ok(Self::Challenge {
                    transaction,
                    hash,
                    group: bytes[9],
                    sequence: number32(bytes, 12)?,
                    challenge: part(bytes, 16, len)?.to_vec(),
                    public: part(bytes, 16 + len, usize::from(number16(bytes, 10)?))?.to_vec(),
                })
            }
            kind::REPLY => {
                part(bytes, 0, 16)?;
                let len = usize::from(bytes[6]);
                let challenge = part(bytes, 16 + len, len)?;
                Ok(Self::Reply {
                    transaction,
                    sequence: number32(bytes, 12)?,
                    response: part(bytes, 16, len)?.to_vec(),
                    challenge: (bytes[8] & 1 != 0).then(|| challenge.to_vec()),
                    public: part(bytes, 16 + 2 * len, usize::from(number16(bytes, 10)?))?.to_vec(),
                })
            }
            kind::SUCCESS1 => {
                part(bytes, 0, 16)?;
                let response = match bytes[8] & 1 {
                    0 => None,
                    _ => Some(part(bytes, 16, usize::from(bytes[6]))?.to_vec()),
                };
                Ok(Self::Success1 { transaction, hash_len: bytes[6], response })
            }
            kind::SUCCESS2 => Ok(Self::Success2 { transaction }),
            kind::FAILURE1 | kind::FAILURE1_TYPED => {
                Ok(Self::Failure1 { transaction, explanation: Explanation::from_number(head[7]) })
            }
            kind::FAILURE2 | kind::FAILURE2_TYPED => {
                Ok(Self::Failure2 { transaction, explanation: Explanation::from_number(head[7]) })
            }
            _ => Err(MessageError::Kind),
        }
    }

    fn decode_negotiate(bytes: &[u8], transaction: u16) -> Result<Self, MessageError> {
        let descriptors = bytes[8..].chunks_exact(64).take(usize::from(bytes[7]));
        let ours = descriptors.into_iter().find(|descriptor| descriptor[0] == PROTOCOL).ok_or(MessageError::Kind)?;
        let (hashes, groups) = (usize::from(ours[2]), usize::from(ours[3]));
        if hashes > IDENTIFIERS || groups > IDENTIFIERS {
            return Err(MessageError::Short);
        }
        Ok(Self::Negotiate {
            transaction,
            secure_channel: bytes[6],
            hashes: ours[4..4 + hashes].to_vec(),
            groups: ours[4 + IDENTIFIERS..4 + IDENTIFIERS + groups].to_vec(),
        })
    }

    /// The bytes of the message, appended to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut head = |kind: [u8; 2], transaction: u16, rest: [u8; 2]| {
            out.extend_from_slice(&kind);
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&transaction.to_le_bytes());
            out.extend_from_slice(&rest);
        };
        match self {
            Self::Negotiate { transaction, secure_channel, hashes, groups } => {
                head(kind::NEGOTIATE, *transaction, [*secure_channel, 1]);
                let hashes = &hashes[..hashes.len().min(IDENTIFIERS)];
                let groups = &groups[..groups.len().min(IDENTIFIERS)];
                let start = out.len();
                out.extend_from_slice(&[PROTOCOL, 0, hashes.len() as u8, groups.len() as u8]);
                out.extend_from_slice(hashes);
                out.resize(start + 4 + IDENTIFIERS, 0);
                out.extend_from_slice(groups);
                out.resize(start + 64, 0);
            }
            Self::Challenge { transaction, hash, group, sequence, challenge, public } => {
                head(kind::CHALLENGE, *transaction, [challenge.len() as u8, 0]);
                out.extend_from_slice(&[hash.id(), *group]);
                out.extend_from_slice(&(public.len() as u16).to_le_bytes());
                out.extend_from_slice(&sequence.to_le_bytes());
                out.extend_from_slice(challenge);
                out.extend_from_slice(public);
            }
            Self::Reply { transaction, sequence, response, challenge, public } => {
                head(kind::REPLY, *transaction, [response.len() as u8, 0]);
                out.extend_from_slice(&[u8::from(challenge.is_some()), 0]);
                out.extend_from_slice(&(public.len() as u16).to_le_bytes());
                out.extend_from_slice(&sequence.to_le_bytes());
                out.extend_from_slice(response);
                match challenge {
                    Some(challenge) => out.extend_from_slice(challenge),
                    // The place of the challenge is there even without one.
                    None => out.resize(out.len() + response.len(), 0),
                }
                out.extend_from_slice(public);
            }
            Self::Success1 { transaction, hash_len, response } => {
                head(kind::SUCCESS1, *transaction, [*hash_len, 0]);
                out.extend_from_slice(&[u8::from(response.is_some()), 0, 0, 0, 0, 0, 0, 0]);
                match response {
                    Some(response) => out.extend_from_slice(response),
                    None => out.resize(out.len() + usize::from(*hash_len), 0),
                }
            }
            Self::Success2 { transaction } => {
                head(kind::SUCCESS2, *transaction, [0; 2]);
                out.extend_from_slice(&[0; 8]);
            }
            Self::Failure1 { transaction, explanation } => {
                head(kind::FAILURE1, *transaction, [REASON, explanation.number()]);
            }
            Self::Failure2 { transaction, explanation } => {
                head(kind::FAILURE2, *transaction, [REASON, explanation.number()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_message() -> impl Strategy<Value = Message> {
        let ids = || prop::collection::vec(any::<u8>(), 0..30);
        let value = |len: usize| prop::collection::vec(any::<u8>(), len);
        let public = || prop::collection::vec(any::<u8>(), 0..300);
        let digest = (0usize..3).prop_flat_map(move |at| {
            let hash = Hash::ALL[at];
            (Just(hash), value(hash.len_bytes()), value(hash.len_bytes()))
        });
        (0..7, any::<(u16, u32, u8, bool)>(), ids(), ids(), digest, public()).prop_map(
            |(which, (transaction, sequence, byte, flag), hashes, groups, (hash, first, second), public)| {
                let explanation = Explanation::from_number(byte);
                match which {
                    0 => Message::Negotiate { transaction, secure_channel: byte, hashes, groups },
                    1 => Message::Challenge { transaction, hash, group: byte, sequence, challenge: first, public },
                    2 => Message::Reply {
                        transaction,
                        sequence,
                        response: first,
                        challenge: flag.then_some(second),
                        public,
                    },
                    3 => Message::Success1 {
                        transaction,
                        hash_len: hash.len_bytes() as u8,
                        response: flag.then_some(first),
                    },
                    4 => Message::Success2 { transaction },
                    5 => Message::Failure1 { transaction, explanation },
                    _ => Message::Failure2 { transaction, explanation },
                }
            },
        )
    }

    proptest! {
        #[test]
        fn messages_survive_the_wire(message in any_message()) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            prop_assert_eq!(Message::decode(&bytes), Ok(message));
        }

        #[test]
        fn any_bytes_are_a_message_or_refused(bytes: Vec<u8>, kind in 0u8..5) {
            let mut bytes = bytes;
            if let [first, second, ..] = &mut bytes[..] {
                *first = u8::from(kind > 0);
                *second = kind;
            }
            if let Ok(message) = Message::decode(&bytes) {
                let mut again = Vec::new();
                message.encode(&mut again);
                prop_assert_eq!(Message::decode(&again), Ok(message));
            }
        }
    }
}

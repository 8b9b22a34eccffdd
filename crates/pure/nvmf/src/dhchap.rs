//! DH-HMAC-CHAP: how host and controller prove to know a secret without sending it.
//!
//! Hash functions SHA-256, SHA-384 and SHA-512. The Diffie-Hellman groups are not there: only the group without
//! exchange is offered and accepted, which every host has. Source: [P] Base 2.0, section 8.13.5.

use flashyard_nvme::auth::{Explanation, Hash};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha384, Sha512};
use thiserror::Error;

/// The dialogue did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// The controller gave it up.
    #[error("the controller refuses: {0:?}")]
    Refused(Explanation),
    /// The controller broke the dialogue, or did not prove to know the secret.
    #[error("the controller cannot be trusted: {0:?}")]
    Distrusted(Explanation),
}

/// Both sides of a dialogue, and what it has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parties {
    pub(crate) host: String,
    pub(crate) subsystem: String,
}

/// A challenge and what goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Challenge {
    pub(crate) hash: Hash,
    pub(crate) transaction: u16,
    pub(crate) sequence: u32,
    pub(crate) value: Vec<u8>,
}

/// The code of `parts` under `key`.
pub(crate) fn hmac(hash: Hash, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    fn run<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let mut mac = <M as KeyInit>::new_from_slice(key).expect("keys may have any length");
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().to_vec()
    }
    match hash {
        Hash::Sha256 => run::<Hmac<Sha256>>(key, parts),
        Hash::Sha384 => run::<Hmac<Sha384>>(key, parts),
        Hash::Sha512 => run::<Hmac<Sha512>>(key, parts),
    }
}

/// Whether two proofs are the same, in a time that does not show where they differ.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

impl Challenge {
    /// A challenge that cannot be foreseen without `entropy`; `nonce` must never come twice.
    pub(crate) fn new(hash: Hash, transaction: u16, sequence: u32, entropy: &[u8], nonce: u64) -> Self {
        let mut value = hmac(Hash::Sha512, entropy, &[&nonce.to_le_bytes()]);
        value.truncate(hash.len_bytes());
        Self { hash, transaction, sequence, value }
    }

    /// The proof of the host.
    pub(crate) fn response_of_host(&self, key: &[u8], parties: &Parties) -> Vec<u8> {
        self.response(key, b"HostHost", &parties.host, &parties.subsystem)
    }

    /// The proof of the controller.
    pub(crate) fn response_of_controller(&self, key: &[u8], parties: &Parties) -> Vec<u8> {
        self.response(key, b"Controller", &parties.subsystem, &parties.host)
    }

    fn response(&self, key: &[u8], role: &[u8], own: &str, other: &str) -> Vec<u8> {
        const NO_SECURE_CHANNEL: [u8; 1] = [0];
        let parts: [&[u8]; 8] = [
            &self.value,
            &self.sequence.to_le_bytes(),
            &self.transaction.to_le_bytes(),
            &NO_SECURE_CHANNEL,
            role,
            own.as_bytes(),
            &[0],
            other.as_bytes(),
        ];
        hmac(self.hash, key, &parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_match_the_published_example() {
        // RFC 4231, test case 2.
        let code = hmac(Hash::Sha256, b"Jefe", &[b"what do ya ", b"want for nothing?"]);
        assert_eq!(code[..4], [0x5B, 0xDC, 0xC1, 0x46]);
        assert_eq!(hmac(Hash::Sha384, b"Jefe", &[b"what do ya want for nothing?"])[..4], [0xAF, 0x45, 0xD2, 0xE3]);
        assert_eq!(hmac(Hash::Sha512, b"Jefe", &[b"what do ya want for nothing?"])[..4], [0x16, 0x4B, 0x7A, 0x7B]);
    }

    #[test]
    fn proofs_depend_on_who_proves() {
        let parties = Parties { host: "nqn.h".into(), subsystem: "nqn.s".into() };
        let challenge = Challenge::new(Hash::Sha256, 1, 2, &[0; 32], 3);
        assert_ne!(challenge.response_of_host(b"k", &parties), challenge.response_of_controller(b"k", &parties));
        assert!(is_same(b"ab", b"ab") && !is_same(b"ab", b"ac") && !is_same(b"ab", b"abc"));
    }
}

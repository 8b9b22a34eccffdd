//! Secrets of authentication, in the form in which `nvme gen-dhchap-key` prints them.

use crate::interchange;
use flashyard_nvme::auth::Hash;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A secret: `DHHC-1:HH:BASE64:`, where `HH` says how the secret is transformed and the rest is the secret with its
/// CRC-32 (Base 2.0, section 8.13.5.8).
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    key: Vec<u8>,
    transform: Option<Hash>,
}

/// Why a text is no secret. The text itself is left out of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SecretError {
    /// Does not have the form.
    #[error("a secret has the form `DHHC-1:HH:BASE64:` with HH 00, 01, 02 or 03")]
    Form,
    /// The part in base 64 is not.
    #[error("the secret is not in base 64")]
    Base64,
    /// Not as long as a digest.
    #[error("a secret has 32, 48 or 64 bytes, not {0}")]
    Length(usize),
    /// The checksum does not match.
    #[error("the checksum of the secret is wrong: was it copied completely?")]
    Checksum,
}

/// Follows the name when a secret is transformed.
const TRANSFORM_SUFFIX: &[u8] = b"NVMe-over-Fabrics";

impl Secret {
    /// A secret that is transformed with `transform` before use.
    ///
    /// Errors: not 32, 48 or 64 bytes.
    pub fn new(key: &[u8], transform: Option<Hash>) -> Result<Self, SecretError> {
        match key.len() {
            32 | 48 | 64 => Ok(Self { key: key.to_vec(), transform }),
            len => Err(SecretError::Length(len)),
        }
    }

    /// The key that the host or controller named `nqn` uses.
    pub(crate) fn key_of(&self, nqn: &str) -> Vec<u8> {
        match self.transform {
            None => self.key.clone(),
            Some(hash) => crate::dhchap::hmac(hash, &self.key, &[nqn.as_bytes(), TRANSFORM_SUFFIX]),
        }
    }
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let (transform, encoded) = interchange::fields("DHHC-1", text).ok_or(SecretError::Form)?;
        let transform = match transform {
            "00" => None,
            "01" => Some(Hash::Sha256),
            "02" => Some(Hash::Sha384),
            "03" => Some(Hash::Sha512),
            _ => return Err(SecretError::Form),
        };
        let bytes = interchange::decode_base64(encoded).ok_or(SecretError::Base64)?;
        let (key, is_whole) = interchange::key_of(&bytes);
        let secret = Self::new(key, transform)?;
        if is_whole { Ok(secret) } else { Err(SecretError::Checksum) }
    }
}

/// Never shows the key.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes, {:?})", self.key.len(), self.transform)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Printed by nvme-cli 2.3: `nvme gen-dhchap-key --secret=00...1f`, without and with transformation.
    const PLAIN: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";

    #[test]
    fn secrets_of_nvme_cli_are_read() {
        let secret: Secret = PLAIN.parse().unwrap();
        assert_eq!(secret.key, (0..32).collect::<Vec<u8>>());
        assert_eq!(secret.transform, None);
        assert_eq!(secret.key_of("nqn.x"), secret.key);
        assert_eq!(format!("{secret:?}"), "Secret(32 bytes, None)");
    }

    #[test]
    fn transformed_secrets_depend_on_the_name() {
        let secret: Secret = PLAIN.replace(":00:", ":02:").parse().unwrap();
        assert_eq!(secret.key_of("nqn.x").len(), 48);
        assert_ne!(secret.key_of("nqn.x"), secret.key_of("nqn.y"));
    }

    #[test]
    fn everything_else_is_refused() {
        let check = |text: &str, error| assert_eq!(text.parse::<Secret>(), Err(error), "{text}");
        check("", SecretError::Form);
        check(&PLAIN.replace(":00:", ":04:"), SecretError::Form);
        check(PLAIN.trim_end_matches(':'), SecretError::Form);
        check("DHHC-1:00:????:", SecretError::Base64);
        check("DHHC-1:00:AAECAw==:", SecretError::Length(0));
        check(&PLAIN.replace(":00:A", ":00:B"), SecretError::Checksum);
    }
}

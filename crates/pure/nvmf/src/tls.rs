//! Pre-shared keys of NVMe/TCP over TLS 1.3, in the form in which `nvme gen-tls-key` prints them, and what is derived of
//! them for a host and a subsystem.
//!
//! Three keys in a row: the *configured* one, which a person hands from machine to machine; the *retained* one, which is
//! bound to the name of the host; and one of TLS for each subsystem, under an identity that the host sends in clear text.
//!
//! Sources: [P] TCP Transport Specification 1.1, section 3.6.1 (pre-shared keys, their interchange format and identities,
//! of version 0 and 1); [P] RFC 8446, section 7.1 (HKDF-Expand-Label); [C] libnvme since August 2025, `test/psk.c`, whose
//! examples are the tests here.

pub use flashyard_nvme::auth::Hash;

use crate::dhchap::hmac;
use crate::interchange;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Beginning of the text of a key.
pub const PREFIX: &str = "NVMeTLSkey-1";

/// A configured key: `NVMeTLSkey-1:HH:BASE64:`, where `HH` says how the retained key is derived and the rest is the key with
/// its CRC-32.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsKey {
    key: Vec<u8>,
    retained_by: Option<Hash>,
}

/// Why a text is no key. The text itself is left out of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TlsKeyError {
    /// Does not have the form.
    #[error("a key of TLS has the form `NVMeTLSkey-1:HH:BASE64:` with HH 00, 01 or 02")]
    Form,
    /// The part in base 64 is not.
    #[error("the key is not in base 64")]
    Base64,
    /// Not as long as a digest of the hash function.
    #[error("a key of TLS has 32 bytes with HH 01, 48 with 02, and either with 00, not {0}")]
    Length(usize),
    /// The checksum does not match.
    #[error("the checksum of the key is wrong: was it copied completely?")]
    Checksum,
}

impl TlsKey {
    /// A key of which the retained one is derived by `retained_by`; without a hash function both are the same.
    ///
    /// Errors: not 32 bytes with SHA-256, 48 with SHA-384, or either without.
    pub fn new(key: &[u8], retained_by: Option<Hash>) -> Result<Self, TlsKeyError> {
        match (key.len(), retained_by) {
            (32, None | Some(Hash::Sha256)) | (48, None | Some(Hash::Sha384)) => {
                Ok(Self { key: key.to_vec(), retained_by })
            }
            (len, _) => Err(TlsKeyError::Length(len)),
        }
    }

    /// The text that [`TlsKey::from_str`] reads. It is the secret itself.
    pub fn interchange(&self) -> String {
        interchange::text(PREFIX, self.retained_by.map_or(0, Hash::id), &self.key)
    }

    /// The hash function of the cipher suite that goes with a key of this length.
    fn hash(&self) -> Hash {
        if self.key.len() == Hash::Sha384.len_bytes() { Hash::Sha384 } else { Hash::Sha256 }
    }

    fn retained(&self, host: &str) -> Vec<u8> {
        match self.retained_by {
            None => self.key.clone(),
            // Names have at most 223 bytes.
            Some(hash) => derive(hash, &self.key, "HostNQN", host.as_bytes()).unwrap_or_default(),
        }
    }

    /// The keys of TLS by which the host named `host` reaches the subsystem named `subsystem`: of version 1 and of version 0. A
    /// host that knows of both uses the first. Names of more than some 240 bytes together have none of version 0.
    pub fn keys_for(&self, host: &str, subsystem: &str) -> Vec<SharedKey> {
        let (hash, retained) = (self.hash(), self.retained(host));
        let names: [&[u8]; 5] = [host.as_bytes(), b" ", subsystem.as_bytes(), b" ", b"NVMe-over-Fabrics"];
        let digest = interchange::encode_base64(&hmac(hash, &retained, &names));
        let (channel, id) = (Channel { host: host.to_owned(), subsystem: subsystem.to_owned() }, hash.id());
        let older = format!("NVMe0R{id:02} {host} {subsystem}");
        let versions = [
            (format!("NVMe1R{id:02} {host} {subsystem} {digest}"), format!("{id:02} {digest}")),
            (older.clone(), older),
        ];
        let key = |(identity, context): (String, String)| {
            let secret = derive(hash, &retained, "nvme-tls-psk", context.as_bytes())?;
            Some(SharedKey { identity, secret, hash, channel: channel.clone() })
        };
        versions.into_iter().filter_map(key).collect()
    }
}

impl FromStr for TlsKey {
    type Err = TlsKeyError;

    fn from_str(text: &str) -> Result<Self, TlsKeyError> {
        let (kind, encoded) = interchange::fields(PREFIX, text).ok_or(TlsKeyError::Form)?;
        let retained_by = match kind {
            "00" => None,
            "01" => Some(Hash::Sha256),
            "02" => Some(Hash::Sha384),
            _ => return Err(TlsKeyError::Form),
        };
        let bytes = interchange::decode_base64(encoded).ok_or(TlsKeyError::Base64)?;
        let (key, is_whole) = interchange::key_of(&bytes);
        let key = Self::new(key, retained_by)?;
        if is_whole { Ok(key) } else { Err(TlsKeyError::Checksum) }
    }
}

/// Never shows the key.
impl fmt::Debug for TlsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsKey({} bytes, {:?})", self.key.len(), self.retained_by)
    }
}

/// The two ends that a key of TLS is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Name of the host.
    pub host: String,
    /// Name of the subsystem.
    pub subsystem: String,
}

impl Channel {
    /// Whether these are its two ends.
    pub fn joins(&self, host: &str, subsystem: &str) -> bool {
        self.host == host && self.subsystem == subsystem
    }
}

/// An external pre-shared key of TLS 1.3.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey {
    /// The name under which the host offers it, in clear text.
    pub identity: String,
    /// The key, as long as a digest of `hash`.
    pub secret: Vec<u8>,
    /// The hash function of its cipher suite: SHA-256 goes with TLS_AES_128_GCM_SHA256, SHA-384 with TLS_AES_256_GCM_SHA384.
    pub hash: Hash,
    /// The two ends that it is for.
    pub channel: Channel,
}

/// Never shows the key.
impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedKey({}, {:?})", self.identity, self.hash)
    }
}

/// HKDF-Expand-Label of HKDF-Extract without salt, as long as a digest, so that one block is enough; `None` where the context
/// is longer than its length field can say.
fn derive(hash: Hash, key: &[u8], label: &str, context: &[u8]) -> Option<Vec<u8>> {
    const LABEL_PREFIX: &str = "tls13 ";
    let len = hash.len_bytes();
    let extracted = hmac(hash, &vec![0; len], &[key]);
    let label_len = u8::try_from(LABEL_PREFIX.len() + label.len()).ok()?;
    let context_len = u8::try_from(context.len()).ok()?;
    let first_block = [1];
    let parts: [&[u8]; 7] = [
        &(len as u16).to_be_bytes(),
        &[label_len],
        LABEL_PREFIX.as_bytes(),
        label.as_bytes(),
        &[context_len],
        context,
        &first_block,
    ];
    Some(hmac(hash, &extracted, &parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "nqn.psk-test-host";
    const SUBSYSTEM: &str = "nqn.psk-test-subsys";

    /// The examples of libnvme, `test/psk.c`: a key, and its identity of version 1.
    const KEY_32: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
    const KEY_48: &str = "NVMeTLSkey-1:02:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kXZQ==:";
    const IDENTITY_32: &str =
        "NVMe1R01 nqn.psk-test-host nqn.psk-test-subsys iSbjiStwJ/1TrTvDlt2fjFmzvsytOJelidNnA+X5lEU=";
    const IDENTITY_48: &str = "NVMe1R02 nqn.psk-test-host nqn.psk-test-subsys \
                               QhW2+Rp6RzHlNtCslyRxMnwJ11tKKhz8JCAQpQ+XUD8f9td1VeH5h53yz2wKJG1a";

    fn keys(text: &str) -> [SharedKey; 2] {
        let key: TlsKey = text.parse().expect("it is a key");
        key.keys_for(HOST, SUBSYSTEM).try_into().expect("two versions")
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn identities_are_those_of_libnvme() {
        let [new, old] = keys(KEY_32);
        assert_eq!((new.identity.as_str(), new.hash), (IDENTITY_32, Hash::Sha256));
        assert_eq!(old.identity, format!("NVMe0R01 {HOST} {SUBSYSTEM}"));
        let [new, old] = keys(KEY_48);
        assert_eq!((new.identity.as_str(), new.hash), (IDENTITY_48, Hash::Sha384));
        assert_eq!(old.identity, format!("NVMe0R02 {HOST} {SUBSYSTEM}"));
    }

    // Computed by the HMAC of Python's standard library.
    #[test]
    fn keys_of_tls_are_those_of_another_program() {
        let [new, old] = keys(KEY_32);
        assert_eq!(hex(&new.secret), "8fc3c0badfd4c0c66fa3ca33aadd0314f85536cc9bc47338b60f3e6e563786ca");
        assert_eq!(hex(&old.secret), "05c6503551ad136e6ee32e6eeb3f6d500b69701d84ec71e328f65c7f51566f68");
        let [new, old] = keys(KEY_48);
        assert_eq!(
            hex(&new.secret),
            "a2b2f943f479fc682555cec89857c80ed004ce92f32a973d5764155bb7e36b17a85368a0666d250afac9282dda2e62ca"
        );
        assert_eq!(
            hex(&old.secret),
            "f42ba63824cdfe421914c582921f85b5b5b7e2d4df084caeedc9be20b212e8bb0fe8a23e9d59a1c8fc6449da4970a78d"
        );
        let [new, _] = keys(&KEY_32.replace(":01:", ":00:"));
        assert_eq!(
            hex(&new.secret),
            "a45d08ee4639c7570729bb3e57e905e466a49a15ece5401af906830c4d3bdb0b",
            "the configured key is the retained one"
        );
    }

    #[test]
    fn keys_are_printed_as_they_are_read() {
        for text in [KEY_32, KEY_48, &KEY_32.replace(":01:", ":00:")] {
            let key: TlsKey = text.parse().expect("it is a key");
            assert_eq!(key.interchange(), text);
        }
        let shown = format!("{:?} {:?}", KEY_32.parse::<TlsKey>(), keys(KEY_32));
        assert!(shown.starts_with("Ok(TlsKey(32 bytes, Some(Sha256)))") && !shown.contains("VRLb"), "{shown}");
    }

    #[test]
    fn everything_else_is_refused() {
        let check = |text: &str, error| assert_eq!(text.parse::<TlsKey>(), Err(error), "{text}");
        check("", TlsKeyError::Form);
        check(&KEY_32.replace(":01:", ":03:"), TlsKeyError::Form);
        check(&KEY_32.replace("-1:", "-2:"), TlsKeyError::Form);
        check(KEY_32.trim_end_matches(':'), TlsKeyError::Form);
        check("NVMeTLSkey-1:01:????:", TlsKeyError::Base64);
        check(&KEY_32.replace(":01:", ":02:"), TlsKeyError::Length(32));
        check(&KEY_48.replace(":02:", ":01:"), TlsKeyError::Length(48));
        check(&KEY_32.replace(":01:V", ":01:W"), TlsKeyError::Checksum);
    }

    #[test]
    fn names_that_are_too_long_for_version_0_have_version_1() {
        let key: TlsKey = KEY_32.parse().expect("it is a key");
        let found = key.keys_for(&format!("nqn.{}", "h".repeat(219)), &format!("nqn.{}", "s".repeat(219)));
        assert_eq!(found.len(), 1);
        assert!(found[0].identity.starts_with("NVMe1R01 nqn.h"), "{found:?}");
    }
}

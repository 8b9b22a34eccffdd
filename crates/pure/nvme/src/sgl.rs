//! SGL descriptors as NVMe/TCP uses them: data in the capsule, or data that the transport fetches.

use thiserror::Error;

/// Where the data of a command is. Other descriptor types do not exist on NVMe/TCP.
///
/// Source: Base 2.0, section 4.1.2; TCP Transport 1.0, section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sgl {
    /// Data block, address subtype offset (type byte 01h): in the capsule, `offset` bytes after the in-capsule data
    /// offset.
    InCapsule {
        /// From the beginning of the capsule's data, in bytes.
        offset: u64,
        /// Length in bytes.
        len: u32,
    },
    /// Transport data block (type byte 5Ah): moved by data PDUs.
    Transport {
        /// Length in bytes.
        len: u32,
    },
    /// No data: all bytes zero, as hosts send for commands without data.
    None,
}

/// The descriptor is of a kind that NVMe/TCP does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("SGL descriptor of type {kind:#04x} does not exist on NVMe/TCP")]
pub struct UnknownSgl {
    /// The last byte of the descriptor: type in the upper half, subtype in the lower.
    pub kind: u8,
}

impl Sgl {
    const IN_CAPSULE: u8 = 0x01;
    const TRANSPORT: u8 = 0x5A;

    /// Length of the data in bytes.
    pub const fn len_bytes(self) -> u32 {
        match self {
            Self::InCapsule { len, .. } | Self::Transport { len } => len,
            Self::None => 0,
        }
    }

    /// The descriptor in `bytes`. An address data block (00h) of length zero counts as no data.
    ///
    /// Errors: a type that the transport does not have.
    pub fn decode(bytes: &[u8; 16]) -> Result<Self, UnknownSgl> {
        let offset =
            u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]);
        let len = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        match bytes[15] {
            Self::IN_CAPSULE => Ok(Self::InCapsule { offset, len }),
            Self::TRANSPORT => Ok(Self::Transport { len }),
            0 if len == 0 => Ok(Self::None),
            kind => Err(UnknownSgl { kind }),
        }
    }

    /// The bytes of the descriptor.
    pub fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[8..12].copy_from_slice(&self.len_bytes().to_le_bytes());
        match self {
            Self::InCapsule { offset, .. } => {
                bytes[..8].copy_from_slice(&offset.to_le_bytes());
                bytes[15] = Self::IN_CAPSULE;
            }
            Self::Transport { .. } => bytes[15] = Self::TRANSPORT,
            Self::None => {}
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn descriptors_survive_the_wire(offset: u64, len: u32) {
            for sgl in [Sgl::InCapsule { offset, len }, Sgl::Transport { len }, Sgl::None] {
                prop_assert_eq!(Sgl::decode(&sgl.encode()), Ok(sgl));
            }
        }

        #[test]
        fn any_descriptor_decodes_or_is_refused(bytes: [u8; 16]) {
            if let Ok(sgl) = Sgl::decode(&bytes) {
                prop_assert_eq!(Sgl::decode(&sgl.encode()), Ok(sgl));
            }
        }
    }

    #[test]
    fn type_bytes_are_those_of_the_specification() {
        assert_eq!(Sgl::Transport { len: 4096 }.encode()[15], 0x5A);
        assert_eq!(Sgl::InCapsule { offset: 0, len: 4096 }.encode()[15], 0x01);
        assert_eq!(Sgl::decode(&[0x40; 16]), Err(UnknownSgl { kind: 0x40 }));
    }
}

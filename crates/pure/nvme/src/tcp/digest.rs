//! CRC-32C, as header and data digests use it.

/// Size of a digest on the wire.
pub const DIGEST_BYTES: usize = 4;

/// The digest of a header, in the order of the wire.
pub fn header_digest(header: &[u8]) -> [u8; DIGEST_BYTES] {
    crc32c::crc32c(header).to_le_bytes()
}

/// The digest of data that comes in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataDigest(u32);

impl DataDigest {
    /// Adds the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, piece);
    }

    /// The digest of everything added, in the order of the wire.
    pub const fn bytes(self) -> [u8; DIGEST_BYTES] {
        self.0.to_le_bytes()
    }

    /// The digest of `data`.
    pub fn of(data: &[u8]) -> [u8; DIGEST_BYTES] {
        header_digest(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digests_match_the_published_examples() {
        // RFC 3720, section B.4: 32 bytes of zeros, of ones, and counting up.
        assert_eq!(header_digest(&[0; 32]), [0xAA, 0x36, 0x91, 0x8A]);
        assert_eq!(header_digest(&[0xFF; 32]), [0x43, 0xAB, 0xA8, 0x62]);
        let counting: Vec<u8> = (0..32).collect();
        assert_eq!(header_digest(&counting), [0x4E, 0x79, 0xDD, 0x46]);
    }

    proptest! {
        #[test]
        fn pieces_make_the_same_digest_as_the_whole(data: Vec<u8>, at: usize) {
            let (first, second) = data.split_at(at % (data.len() + 1));
            let mut digest = DataDigest::default();
            digest.update(first);
            digest.update(second);
            prop_assert_eq!(digest.bytes(), DataDigest::of(&data));
        }
    }
}

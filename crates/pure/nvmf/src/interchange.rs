//! The form in which nvme-cli prints keys: `NAME:HH:BASE64:`, where the last part is a key with its CRC-32.

/// The two middle fields of a text that begins with `name`; `None` where it has another form.
pub(crate) fn fields<'a>(name: &str, text: &'a str) -> Option<(&'a str, &'a str)> {
    let mut parts = text.split(':');
    let fields = (parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next());
    let (first, kind, encoded, "", None) = fields else { return None };
    (first == name).then_some((kind, encoded))
}

/// A text that [`fields`] reads.
pub(crate) fn text(name: &str, kind: u8, key: &[u8]) -> String {
    let bytes = [key, &crc32(key).to_le_bytes()].concat();
    format!("{name}:{kind:02}:{}:", encode_base64(&bytes))
}

/// A key without the checksum behind it, and whether that matches.
pub(crate) fn key_of(bytes: &[u8]) -> (&[u8], bool) {
    match bytes.split_last_chunk::<4>() {
        Some((key, checksum)) => (key, crc32(key).to_le_bytes() == *checksum),
        None => (&[], false),
    }
}

/// Base 64 with padding (RFC 4648, section 4); `None` where the text is something else.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - body.len() > 2 {
        return None;
    }
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for character in body.bytes() {
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// CRC-32 of IEEE 802.3, once for each secret: no table is worth it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 })
    })
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base 64 with padding.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63] as char;
            text.push(if place > chunk.len() { '=' } else { letter });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn checksums_match_the_published_example() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(decode_base64("Zm9vYg==").as_deref(), Some(&b"foob"[..]));
    }

    proptest! {
        #[test]
        fn keys_are_read_as_they_are_written(key in prop::collection::vec(any::<u8>(), 0..70), kind in 0_u8..100) {
            let text = text("NAME-1", kind, &key);
            let (found, encoded) = fields("NAME-1", &text).expect("it has the form");
            prop_assert_eq!(found, format!("{kind:02}"));
            let bytes = decode_base64(encoded).expect("it is base 64");
            prop_assert_eq!(key_of(&bytes), (&key[..], true));
            prop_assert_eq!(fields("NAME-2", &text), None);
        }
    }
}

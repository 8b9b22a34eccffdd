//! The offer of a client of TLS: the identities of pre-shared keys in its first message (RFC 8446, sections 4.1.2 and 4.2.11).

/// A record of a handshake, and the message that begins one.
const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
/// The extension with pre-shared keys.
const PRE_SHARED_KEY: u16 = 41;
/// Bytes of the head of a record, and of that of a message.
const RECORD_HEAD: usize = 5;
const MESSAGE_HEAD: usize = 4;
/// Bytes of a first message at most. [A] Keys of post-quantum exchanges take some kilobytes.
const HELLO_BYTES_MAX: usize = 16 * 1024;

/// How much of a first message has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hello {
    /// There is more to come.
    Partial,
    /// These identities are offered, in this order; none where the client has no keys, or no TLS 1.3.
    Offers(Vec<Vec<u8>>),
    /// It is none.
    Nonsense,
}

/// Reads the bytes that a connection began with.
pub(super) fn read(bytes: &[u8]) -> Hello {
    let mut message = Vec::new();
    let mut records = bytes;
    loop {
        if let Some(body) = body_of(&message) {
            return body.map_or(Hello::Nonsense, |body| Hello::Offers(identities(body).unwrap_or_default()));
        }
        let Some((head, rest)) = records.split_at_checked(RECORD_HEAD) else { return partial(records.first()) };
        let len = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if head[0] != HANDSHAKE_RECORD || len == 0 {
            return Hello::Nonsense;
        }
        let Some((fragment, rest)) = rest.split_at_checked(len) else { return Hello::Partial };
        message.extend_from_slice(fragment);
        records = rest;
    }
}

fn partial(first: Option<&u8>) -> Hello {
    if first.is_none_or(|&first| first == HANDSHAKE_RECORD) { Hello::Partial } else { Hello::Nonsense }
}

/// The body of a message, once it is there as a whole; nothing within for one that cannot become a first message.
fn body_of(message: &[u8]) -> Option<Option<&[u8]>> {
    let (head, rest) = message.split_at_checked(MESSAGE_HEAD)?;
    let len = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
    if head[0] != CLIENT_HELLO || len > HELLO_BYTES_MAX {
        return Some(None);
    }
    rest.get(..len).map(Some)
}

/// The identities within a ClientHello; `None` where it breaks off, or has no such extension.
fn identities(body: &[u8]) -> Option<Vec<Vec<u8>>> {
    // Version and random number.
    let mut rest = body.get(34..)?;
    take(&mut rest, 1)?;
    take(&mut rest, 2)?;
    take(&mut rest, 1)?;
    let mut extensions = take(&mut rest, 2)?;
    while !extensions.is_empty() {
        let (kind, after) = extensions.split_first_chunk::<2>()?;
        extensions = after;
        let mut offered = take(&mut extensions, 2)?;
        if u16::from_be_bytes(*kind) != PRE_SHARED_KEY {
            continue;
        }
        let mut list = take(&mut offered, 2)?;
        let mut found = Vec::new();
        while !list.is_empty() {
            found.push(take(&mut list, 2)?.to_vec());
            // The age of a ticket, which a key from elsewhere has not.
            list = list.get(4..)?;
        }
        return Some(found);
    }
    None
}

/// Takes a field behind its length, which has `width` bytes.
fn take<'a>(rest: &mut &'a [u8], width: usize) -> Option<&'a [u8]> {
    let (head, after) = rest.split_at_checked(width)?;
    let len = head.iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
    let (field, after) = after.split_at_checked(len)?;
    *rest = after;
    Some(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field(width: usize, bytes: &[u8]) -> Vec<u8> {
        let len = bytes.len().to_be_bytes();
        [&len[len.len() - width..], bytes].concat()
    }

    /// A first message with these identities, in records of so many bytes.
    fn hello(identities: &[&[u8]], record_bytes: usize) -> Vec<u8> {
        let offered: Vec<u8> = identities.iter().flat_map(|it| [field(2, it), vec![0; 4]].concat()).collect();
        let binders = field(2, &field(1, &[7; 32]));
        let keys = [vec![0, 41], field(2, &[field(2, &offered), binders].concat())].concat();
        let other = [vec![0, 43], field(2, &[2, 3, 4])].concat();
        let body =
            [vec![3; 34], field(1, &[5; 32]), field(2, &[19, 1]), field(1, &[0]), field(2, &[other, keys].concat())]
                .concat();
        let message = [vec![1], field(3, &body)].concat();
        message.chunks(record_bytes).flat_map(|part| [vec![22, 3, 1], field(2, part)].concat()).collect()
    }

    #[test]
    fn identities_are_found_once_all_has_come_whatever_the_records() {
        let names: [&[u8]; 2] = [b"NVMe1R01 nqn.a nqn.b digest", b"NVMe0R01 nqn.a nqn.b"];
        let expected = Hello::Offers(names.iter().map(|name| name.to_vec()).collect());
        for record_bytes in [1, 7, 1000] {
            let bytes = hello(&names, record_bytes);
            assert_eq!(read(&bytes), expected);
            assert_eq!(read(&[&bytes[..], &[23, 3, 3]].concat()), expected, "what follows is for later");
            assert!((0..bytes.len()).all(|count| read(&bytes[..count]) == Hello::Partial));
        }
    }

    #[test]
    fn nonsense_is_told_from_the_beginning_of_something() {
        assert_eq!(read(&[]), Hello::Partial);
        for bytes in
            [&[0, 0, 128, 0][..], &[21, 3, 3, 0, 2, 2, 0], &[22, 3, 1, 0, 4, 2, 0, 0, 0], &[22, 3, 1, 0, 0], &[22; 999]]
        {
            let found = read(bytes);
            assert!(found == Hello::Nonsense || bytes == [22; 999] && found == Hello::Partial, "{bytes:?}: {found:?}");
        }
        // A client that offers nothing of the kind.
        assert_eq!(read(&[22, 3, 1, 0, 5, 1, 0, 0, 1, 9]), Hello::Offers(Vec::new()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            read(&bytes);
            read(&[&[22, 3, 1, 0, 200, 1, 0, 0, 190][..], &bytes].concat());
        }

        #[test]
        fn a_message_with_any_byte_changed_is_read_without_harm(at in 0..200_usize, byte in any::<u8>()) {
            let mut bytes = hello(&[b"NVMe0R01 nqn.a nqn.b"], 50);
            let place = at % bytes.len();
            bytes[place] = byte;
            read(&bytes);
        }
    }
}

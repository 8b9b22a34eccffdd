//! Any bytes through the framer of NVMe/TCP: the same PDUs whether they come at once or one byte at a time.

#![no_main]

use flashyard_nvme::tcp::{Alignment, Digests, Event, FatalError, Framer, Role};
use libfuzzer_sys::fuzz_target;

/// Headers as text, data as bytes, and how it ended.
fn frame(role: Role, digests: u8, pieces: impl Iterator<Item = impl AsRef<[u8]>>) -> (Vec<String>, Vec<u8>, Option<FatalError>) {
    let mut framer = Framer::new(role, 1 << 16);
    framer.agree(Digests::from_byte(digests), Alignment::default());
    let (mut headers, mut data) = (Vec::new(), Vec::new());
    for piece in pieces {
        let mut input = piece.as_ref();
        loop {
            match framer.next(&mut input) {
                Ok(None) => break,
                Ok(Some(Event::Data(more))) => data.extend_from_slice(more),
                Ok(Some(event)) => headers.push(format!("{event:?}")),
                Err(error) => return (headers, data, Some(error)),
            }
        }
        assert!(input.is_empty());
        assert!(framer.latest_header().len() <= 128);
    }
    (headers, data, None)
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    let role = if choice & 1 == 0 { Role::Controller } else { Role::Host };
    let whole = frame(role, choice >> 1, std::iter::once(bytes));
    let single = frame(role, choice >> 1, bytes.chunks(1));
    assert_eq!(whole, single);
});

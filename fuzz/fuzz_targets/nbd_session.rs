//! Any bytes from a client of NBD: the same requests and replies whether they come at once or one byte at a time, and
//! every request lies in its export.

#![no_main]

use flashyard_nbd::{Closed, Export, Kind, Output, Session};
use libfuzzer_sys::fuzz_target;

fn exports() -> Vec<Export> {
    let export = |name: &str, blocks: u64| Export { name: name.into(), size_bytes: blocks * 4096, size_max_bytes: blocks * 4096, can_resize: name == "b", block_bytes: 4096, is_away: false, is_gone: false, has_map: name == "b", read_only: false };
    vec![export("a", 256), export("b", 16)]
}

fn hear<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, Vec<String>, Option<Closed>) {
    let exports = exports();
    let mut out = Output::default();
    let mut session = Session::new(&mut out);
    let mut requests = Vec::new();
    for piece in pieces {
        session.receive(piece, &exports, &mut out);
        for request in out.requests.drain(..) {
            let end = request.offset_bytes + u64::from(request.len_bytes);
            assert!(request.kind == Kind::Flush || end <= exports[request.export].size_bytes);
            assert!(request.kind != Kind::Write || request.payload.len() == request.len_bytes as usize);
            requests.push(format!("{request:?}"));
        }
        if out.closed.is_some() {
            break;
        }
    }
    (out.bytes, requests, out.closed)
}

fuzz_target!(|input: &[u8]| {
    // A client that says no flags right gets nowhere: most inputs start after them.
    let Some((choice, bytes)) = input.split_first() else { return };
    let bytes = match choice & 3 {
        0 => bytes.to_vec(),
        1 => [&[0, 0, 0, 3][..], bytes].concat(),
        2 => {
            let select = b"IHAVEOPT\0\0\0\x0a\0\0\0\x1c\0\0\0\x01b\0\0\0\x01\0\0\0\x0fbase:allocation";
            [&[0, 0, 0, 3][..], b"IHAVEOPT\0\0\0\x08\0\0\0\0", select, b"IHAVEOPT\0\0\0\x01\0\0\0\x01b", bytes].concat()
        }
        _ => [&[0, 0, 0, 3][..], b"IHAVEOPT\0\0\0\x01\0\0\0\x01b", bytes].concat(),
    };
    let whole = hear(std::iter::once(&bytes[..]));
    let single = hear(bytes.chunks(1));
    assert_eq!(whole, single);
});

//! Sessions as clients lead them.

use super::*;
use crate::REPLY_BYTES;
use proptest::prelude::*;

fn exports() -> Vec<Export> {
    let export = |name: &str, blocks: u64| Export {
        name: name.into(),
        size_bytes: blocks * 4096,
        block_bytes: 4096,
        is_away: false,
    };
    vec![export("first", 256), export("second", 16), Export { is_away: true, ..export("pulled", 16) }]
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn go(number: u32, name: &str) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend([0, 1, 0, 1]);
    option(number, &data)
}

fn request(number: u16, flags: u16, cookie: u64, offset: u64, length: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A client that asks for `second` and then says `rest`.
fn attached(rest: &[Vec<u8>]) -> Vec<u8> {
    [vec![0, 0, 0, 3], go(7, "second"), rest.concat()].concat()
}

fn hear(bytes: &[u8], cuts: &[usize]) -> Output {
    let mut out = Output::default();
    let mut session = Session::new(&mut out);
    out.bytes.clear();
    let mut from = 0;
    for &cut in cuts.iter().chain([&bytes.len()]) {
        let cut = cut.clamp(from, bytes.len());
        session.receive(&bytes[from..cut], &exports(), &mut out);
        from = cut;
    }
    out
}

/// Type of each reply to options.
fn option_replies(mut bytes: &[u8]) -> Vec<u32> {
    let mut kinds = Vec::new();
    while bytes.len() >= 20 {
        let mut reader = Reader(&bytes[12..20]);
        kinds.extend(reader.u32());
        bytes = &bytes[20 + reader.u32().unwrap_or(0) as usize..];
    }
    kinds
}

#[test]
fn a_client_attaches_by_name_and_learns_size_and_block_size() {
    let out = hear(&attached(&[]), &[]);
    assert_eq!(option_replies(&out.bytes), [reply::INFO, reply::INFO, reply::INFO, reply::ACK]);
    assert_eq!(out.bytes[22..30], (16u64 * 4096).to_be_bytes());
    assert_eq!(out.bytes[20 + 12 + 20 + 2..20 + 12 + 20 + 6], 4096u32.to_be_bytes());
}

#[test]
fn exports_are_listed_and_unknown_ones_refused() {
    let out = hear(&[vec![0, 0, 0, 3], option(3, &[]), go(6, "third"), option(8, &[])].concat(), &[]);
    assert_eq!(
        option_replies(&out.bytes),
        [reply::SERVER, reply::SERVER, reply::SERVER, reply::ACK, reply::UNKNOWN, reply::UNSUPPORTED]
    );
}

#[test]
fn an_export_that_is_away_is_refused_in_words_and_the_client_may_take_another_one() {
    let out = hear(&[vec![0, 0, 0, 3], go(7, "pulled"), go(6, "pulled"), go(7, "first")].concat(), &[]);
    assert_eq!(option_replies(&out.bytes)[..2], [reply::UNKNOWN, reply::UNKNOWN]);
    assert_eq!((option_replies(&out.bytes).last(), out.closed), (Some(&reply::ACK), None));
    assert!(out.bytes.windows(4).any(|words| words == b"away"));
    assert_eq!(hear(&[vec![0, 0, 0, 3], option(1, b"pulled")].concat(), &[]).closed, Some(Closed::UnknownExport));
}

#[test]
fn flags_that_were_not_offered_are_invalid() {
    let page = vec![1; 4096];
    let fast_zero = 1 << 4;
    let cases = [
        request(6, fast_zero, 1, 0, 4096, &[]),
        request(0, 0xFFFF, 2, 0, 4096, &[]),
        request(1, 1 << 15, 3, 0, 4096, &page),
        request(4, 2, 4, 0, 4096, &[]),
    ];
    for (number, bytes) in (1..).zip(cases) {
        let out = hear(&attached(&[bytes, request(6, 3, 99, 0, 4096, &[])]), &[]);
        assert_eq!(
            out.bytes[out.bytes.len() - REPLY_BYTES..],
            reply_header(number, ErrorCode::Invalid),
            "case {number}"
        );
        assert!(out.requests.len() == 1 && out.requests[0].cookie == 99, "what was offered is taken, case {number}");
    }
}

#[test]
fn a_payload_that_is_announced_takes_memory_as_it_comes() {
    let mut out = Output::default();
    let mut session = Session::new(&mut out);
    let write = request(1, 0, 1, 0, 1 << 20, &[1; 100]);
    session.receive(&[vec![0, 0, 0, 3], go(7, "first"), write].concat(), &exports(), &mut out);
    let taken = session.writing.as_ref().map(|(request, _)| request.payload.capacity());
    assert_eq!((session.arriving_bytes(), taken), (1 << 20, Some(AT_ONCE_BYTES)));
    session.receive(&vec![1; (1 << 20) - 100], &exports(), &mut out);
    assert_eq!((session.arriving_bytes(), out.requests[0].payload.len()), (0, 1 << 20));
}

#[test]
fn the_oldest_way_to_attach_works_with_and_without_padding() {
    for (flags, length) in [(1, 8 + 2 + 124), (3, 8 + 2)] {
        let out = hear(&[vec![0, 0, 0, flags], option(1, b"")].concat(), &[]);
        assert_eq!(out.bytes.len(), length);
        assert_eq!(out.bytes[..8], (256u64 * 4096).to_be_bytes());
    }
    assert_eq!(hear(&[vec![0, 0, 0, 3], option(1, b"third")].concat(), &[]).closed, Some(Closed::UnknownExport));
}

#[test]
fn a_write_arrives_with_its_payload_and_what_it_must_survive() {
    let payload = vec![7; 8192];
    let out = hear(&attached(&[request(1, 1, 42, 4096, 8192, &payload), request(3, 0, 43, 0, 0, &[])]), &[]);
    let [write, flush] = &out.requests[..] else { panic!("{:?}", out.requests) };
    assert_eq!((write.kind, write.cookie, write.export, write.offset_bytes), (Kind::Write, 42, 1, 4096));
    assert!(write.force_unit_access && write.payload == payload);
    assert_eq!((flush.kind, flush.len_bytes), (Kind::Flush, 0));
}

#[test]
fn what_cannot_be_done_is_answered_and_the_session_goes_on() {
    let page = vec![1; 4096];
    let cases: [(Vec<u8>, ErrorCode); 6] = [
        (request(0, 0, 1, 16 * 4096, 4096, &[]), ErrorCode::Invalid),
        (request(1, 0, 2, 16 * 4096, 4096, &page), ErrorCode::NoSpace),
        (request(1, 0, 3, 1, 4096, &page), ErrorCode::Invalid),
        (request(0, 0, 4, 0, 0, &[]), ErrorCode::Invalid),
        (request(9, 0, 5, 0, 4096, &[]), ErrorCode::Unsupported),
        (request(6, 0, 6, u64::MAX, 4096, &[]), ErrorCode::NoSpace),
    ];
    for (number, (bytes, error)) in cases.into_iter().enumerate() {
        let out = hear(&attached(&[bytes, request(0, 0, 99, 0, 4096, &[])]), &[]);
        let reply = &out.bytes[out.bytes.len() - REPLY_BYTES..];
        assert_eq!(reply, reply_header(number as u64 + 1, error), "case {number}");
        assert_eq!(out.requests.len(), 1, "case {number}");
        assert_eq!(out.requests[0].cookie, 99);
    }
}

#[test]
fn a_session_ends_as_the_protocol_says() {
    assert_eq!(hear(&attached(&[request(2, 0, 0, 0, 0, &[])]), &[]).closed, Some(Closed::ByClient));
    assert_eq!(hear(&attached(&[request(1, 0, 0, 0, PAYLOAD_MAX + 1, &[])]), &[]).closed, Some(Closed::TooLong));
    assert_eq!(hear(&attached(&[vec![0; 28]]), &[]).closed, Some(Closed::Malformed));
    assert_eq!(hear(&[0, 0, 0, 0], &[]).closed, Some(Closed::Malformed));
    assert_eq!(hear(&[vec![0, 0, 0, 3], option(2, &[])].concat(), &[]).closed, Some(Closed::ByClient));
}

#[test]
fn an_option_that_is_too_long_is_passed_over() {
    let out = hear(&[vec![0, 0, 0, 3], option(10, &vec![0; 100_000]), go(7, "first")].concat(), &[70_000]);
    assert_eq!(option_replies(&out.bytes)[0], reply::TOO_BIG);
    assert_eq!(option_replies(&out.bytes).last(), Some(&reply::ACK));
}

proptest! {
    #[test]
    fn how_bytes_are_cut_changes_nothing(mut cuts in proptest::collection::vec(0usize..17_000, 0..12)) {
        cuts.sort_unstable();
        let page = vec![9; 4096];
        let said = attached(&[
            request(1, 0, 1, 0, 4096, &page),
            request(1, 0, 2, 1, 4096, &page),
            request(0, 0, 3, 0, 8192, &[]),
            request(6, 2, 4, 0, 8192, &[]),
            request(1, 1, 5, 4096, 4096, &page),
            request(2, 0, 6, 0, 0, &[]),
        ]);
        let (whole, cut) = (hear(&said, &[]), hear(&said, &cuts));
        prop_assert_eq!((whole.bytes, whole.requests, whole.closed), (cut.bytes, cut.requests, cut.closed));
    }

    #[test]
    fn no_bytes_break_it(noise in proptest::collection::vec(any::<u8>(), 0..300), attach in any::<bool>()) {
        let said = if attach { attached(&[noise]) } else { [vec![0, 0, 0, 1], noise].concat() };
        let out = hear(&said, &[said.len() / 2]);
        prop_assert!(out.bytes.len() <= 20 * 300);
    }
}

//! Sessions as clients lead them.

use super::*;
use proptest::prelude::*;

fn exports() -> Vec<Export> {
    let export = |name: &str, blocks: u64| Export {
        name: name.into(),
        size_bytes: blocks * 4096,
        size_max_bytes: blocks * 4096,
        can_resize: false,
        block_bytes: 4096,
        is_away: false,
        is_gone: false,
        has_map: false,
        read_only: false,
    };
    vec![
        export("first", 256),
        Export { has_map: true, ..export("second", 16) },
        Export { is_away: true, ..export("pulled", 16) },
    ]
}

/// The simple reply to a request.
fn simple_reply(cookie: u64, error: ErrorCode) -> Vec<u8> {
    let mut bytes = Vec::new();
    Replies::Simple.failed(cookie, &Failure::new(error, ""), &mut bytes);
    bytes
}

const SIMPLE_BYTES: usize = 16;

/// A selection (10) or a list (9) of metadata contexts.
fn contexts(number: u32, name: &str, queries: &[&str]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let mut data = text(name);
    data.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| data.extend(text(query)));
    option(number, &data)
}

/// A client of `second` with structured replies, and the context if it `selects` it, that then says `rest`.
fn structured(selects: bool, rest: &[Vec<u8>]) -> Vec<u8> {
    let select = if selects { contexts(10, "second", &["base:allocation"]) } else { Vec::new() };
    [vec![0, 0, 0, 3], option(8, &[]), select, go(7, "second"), rest.concat()].concat()
}

/// Error and words of the chunk of an error at the end of `bytes`.
fn last_words(bytes: &[u8]) -> (u32, &str) {
    let begun = (0..bytes.len()).rfind(|&at| bytes[at..].starts_with(&0x668E_33EF_u32.to_be_bytes())).expect("a chunk");
    let mut reader = Reader(&bytes[begun + 20..]);
    let (error, length) = (reader.u32().expect("an error"), reader.u16().expect("a length"));
    (error, std::str::from_utf8(reader.take(length.into()).expect("words")).expect("text"))
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
    let out = hear(&[vec![0, 0, 0, 3], option(3, &[]), go(6, "third"), option(11, &[])].concat(), &[]);
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
fn an_export_that_is_read_only_says_so_and_takes_no_changes() {
    let mut exports = exports();
    exports[0].read_only = true;
    let mut out = Output::default();
    let mut session = Session::new(&mut out);
    session.receive(&[vec![0, 0, 0, 3], go(7, "first")].concat(), &exports, &mut out);
    let export =
        out.bytes.windows(12).find(|bytes| bytes[..2] == [0, 0] && bytes[2..10] == (256_u64 * 4096).to_be_bytes());
    let flags = export.map(|bytes| u16::from_be_bytes([bytes[10], bytes[11]])).expect("it is told of the export");
    assert_eq!(flags & 0b11, 0b11, "flags, and read-only");
    out.bytes.clear();
    let changes =
        [request(1, 0, 1, 0, 4096, &[7; 4096]), request(4, 0, 2, 0, 4096, &[]), request(6, 0, 3, 0, 4096, &[])];
    session.receive(&changes.concat(), &exports, &mut out);
    let refused = (1..=3).flat_map(|cookie| simple_reply(cookie, ErrorCode::NotPermitted));
    assert_eq!(out.bytes, refused.collect::<Vec<_>>());
    assert!(out.requests.is_empty());
    session.receive(&[request(0, 0, 4, 0, 4096, &[]), request(3, 0, 5, 0, 0, &[])].concat(), &exports, &mut out);
    assert_eq!(out.requests.len(), 2, "it is read and flushed");
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
        request(0, 4, 5, 0, 4096, &[]),
        request(7, 0, 6, 0, 4096, &[]),
    ];
    for (number, bytes) in (1..).zip(cases) {
        let plain = [vec![0, 0, 0, 3], go(7, "first"), bytes, request(6, 3, 99, 0, 4096, &[])].concat();
        let out = hear(&plain, &[]);
        assert_eq!(
            out.bytes[out.bytes.len() - SIMPLE_BYTES..],
            simple_reply(number, ErrorCode::Invalid),
            "case {number}"
        );
        assert!(out.requests.len() == 1 && out.requests[0].cookie == 99, "what was offered is taken, case {number}");
    }
}

#[test]
fn structured_replies_are_offered_with_reads_in_one_piece() {
    let flags = |out: &Output| {
        let at = out.bytes.windows(8).position(|size| size == (16_u64 * 4096).to_be_bytes()).expect("the size") + 8;
        u16::from_be_bytes([out.bytes[at], out.bytes[at + 1]])
    };
    let (plain, out) = (hear(&attached(&[]), &[]), hear(&structured(false, &[request(0, 4, 1, 0, 4096, &[])]), &[]));
    assert_eq!((flags(&plain) & 1 << 7, flags(&out) & 1 << 7), (0, 1 << 7));
    assert_eq!(out.requests[0].kind, Kind::Read { whole: true });
    assert_eq!(option_replies(&hear(&[vec![0, 0, 0, 3], option(8, b"x")].concat(), &[]).bytes), [reply::INVALID]);
    let out = hear(&structured(false, &[request(0, 0, 1, 16 * 4096, 4096, &[])]), &[]);
    assert_eq!(last_words(&out.bytes), (22, "the range ends beyond the export"));
}

#[test]
fn zeros_are_fast_or_refused_where_an_export_has_a_map() {
    let fast = 1 << 4;
    let out = hear(&attached(&[request(6, fast, 1, 0, 4096, &[]), request(6, fast | 2, 2, 0, 4096, &[])]), &[]);
    assert_eq!((out.requests.len(), out.requests[0].kind), (1, Kind::WriteZeroes { hole: true }));
    assert_eq!(out.bytes[out.bytes.len() - SIMPLE_BYTES..], simple_reply(2, ErrorCode::Unsupported));
}

#[test]
fn a_context_is_listed_by_name_and_wildcard_and_selected_by_name_alone() {
    let cases: [(u32, &[&str], usize); 7] = [
        (9, &[], 1),
        (9, &["base:"], 1),
        (9, &["qemu:dirty-bitmap:x", "base:allocation", "base:allocation"], 1),
        (9, &["qemu:"], 0),
        (10, &[], 0),
        (10, &["base:"], 0),
        (10, &["base:other", "base:allocation"], 1),
    ];
    for (number, queries, found) in cases {
        let said = [vec![0, 0, 0, 3], option(8, &[]), contexts(number, "second", queries)].concat();
        let replies = option_replies(&hear(&said, &[]).bytes);
        let expected = [vec![reply::ACK], vec![reply::META_CONTEXT; found], vec![reply::ACK]].concat();
        assert_eq!(replies, expected, "{number} {queries:?}");
    }
}

#[test]
fn a_context_that_cannot_be_selected_is_refused_as_the_protocol_says() {
    let broken = [contexts(10, "second", &["base:allocation"]), vec![]].concat();
    let truncated = option(10, &broken[OPTION_BYTES..broken.len() - 1]);
    let cases = [
        (vec![], contexts(10, "second", &["base:allocation"]), reply::INVALID),
        (option(8, &[]), truncated, reply::INVALID),
        (option(8, &[]), contexts(10, "third", &["base:allocation"]), reply::UNKNOWN),
        (option(8, &[]), contexts(9, "pulled", &["base:allocation"]), reply::UNKNOWN),
        // It has no map.
        (option(8, &[]), contexts(10, "first", &["base:allocation"]), reply::ACK),
    ];
    for (before, asked, expected) in cases {
        let out = hear(&[vec![0, 0, 0, 3], before, asked].concat(), &[]);
        assert_eq!(option_replies(&out.bytes).last(), Some(&expected));
    }
}

#[test]
fn the_map_is_told_to_clients_that_have_selected_its_context_for_this_export() {
    let query = |flags| request(7, flags, 1, 4096, 8192, &[]);
    let out = hear(&structured(true, &[query(0), query(8)]), &[]);
    let kinds: Vec<_> = out.requests.iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [Kind::BlockStatus { one: false }, Kind::BlockStatus { one: true }]);
    assert_eq!((out.requests[0].offset_bytes, out.requests[0].len_bytes), (4096, 8192));

    let never = structured(false, &[query(0)]);
    let reselect = contexts(10, "second", &[]);
    let no_more = [structured(true, &[])[..4 + 16].to_vec(), contexts(10, "second", &["base:allocation"]), reselect];
    let no_more = [no_more.concat(), go(7, "second"), query(0)].concat();
    let other = [vec![0, 0, 0, 3], option(8, &[]), contexts(10, "second", &["base:allocation"])];
    let other = [other.concat(), go(7, "first"), query(0)].concat();
    for said in [never, no_more, other] {
        let out = hear(&said, &[]);
        assert!(out.requests.is_empty() && last_words(&out.bytes).0 == 22, "{:?}", out.requests);
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
        let reply = &out.bytes[out.bytes.len() - SIMPLE_BYTES..];
        assert_eq!(reply, simple_reply(number as u64 + 1, error), "case {number}");
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
        let more = [request(7, 8, 7, 0, 8192, &[]), request(7, 0, 8, 1, 8192, &[]), request(1, 4, 9, 0, 4096, &page)];
        for said in [said, structured(true, &more)] {
            let (whole, cut) = (hear(&said, &[]), hear(&said, &cuts));
            prop_assert_eq!((whole.bytes, whole.requests, whole.closed), (cut.bytes, cut.requests, cut.closed));
        }
    }

    #[test]
    fn no_bytes_break_it(noise in proptest::collection::vec(any::<u8>(), 0..300), attach in any::<bool>()) {
        let said = if attach { structured(true, &[noise]) } else { [vec![0, 0, 0, 1], noise].concat() };
        let out = hear(&said, &[said.len() / 2]);
        prop_assert!(out.bytes.len() <= 20 * 300);
    }
}

#[test]
fn a_size_is_asked_for_where_the_export_says_so_and_what_it_has_lost_is_no_space() {
    let mut exports = exports();
    (exports[1].can_resize, exports[1].size_max_bytes) = (true, 20 * 4096);
    let hear = |said: &[Vec<u8>]| {
        let mut out = Output::default();
        let mut session = Session::new(&mut out);
        session.receive(&said.concat(), &exports, &mut out);
        out
    };
    let attach = |name, asked: Vec<u8>| hear(&[vec![0, 0, 0, 3], go(7, name), asked]);
    let told = |out: &Output, size: u64| {
        let at = out.bytes.windows(8).position(|bytes| bytes == (size * 4096).to_be_bytes()).expect("the size") + 8;
        u16::from_be_bytes([out.bytes[at], out.bytes[at + 1]]) & 1 << 9
    };
    let out = attach("second", request(8, 0, 1, 8 * 4096, 77, &[]));
    assert_eq!(
        (out.requests[0].kind, out.requests[0].offset_bytes, out.requests[0].len_bytes),
        (Kind::Resize, 8 * 4096, 0)
    );
    assert_eq!((told(&out, 16), told(&attach("first", Vec::new()), 256)), (1 << 9, 0));
    let cases = [
        ("first", request(8, 0, 1, 4096, 0, &[]), ErrorCode::Unsupported),
        ("second", request(8, 0, 1, 100, 0, &[]), ErrorCode::Invalid),
        ("second", request(8, 1 << 3, 1, 4096, 0, &[]), ErrorCode::Invalid),
        ("second", request(0, 0, 1, 19 * 4096, 4096, &[]), ErrorCode::NoSpace),
        ("second", request(0, 0, 1, 20 * 4096, 4096, &[]), ErrorCode::Invalid),
        ("second", request(4, 0, 1, 15 * 4096, 8192, &[]), ErrorCode::NoSpace),
    ];
    for (number, (name, asked, error)) in cases.into_iter().enumerate() {
        let out = attach(name, asked);
        assert_eq!(out.bytes[out.bytes.len() - SIMPLE_BYTES..], simple_reply(1, error), "case {number}");
        assert!(out.requests.is_empty(), "case {number}");
    }
}

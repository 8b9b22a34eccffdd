//! Replies as clients take them apart.

use super::*;
use crate::format::Reader;
use proptest::prelude::*;

/// A chunk: its kind, whether it is the last one, and its content.
fn chunks(bytes: &[u8], cookie: u64) -> Vec<(u16, bool, Vec<u8>)> {
    let mut reader = Reader(bytes);
    let mut found = Vec::new();
    while !reader.0.is_empty() {
        assert_eq!(reader.u32(), Some(STRUCTURED_REPLY_MAGIC));
        let (flags, kind) = (reader.u16().expect("flags"), reader.u16().expect("a kind"));
        assert_eq!((reader.u64(), flags & !1), (Some(cookie), 0));
        let length = reader.u32().expect("a length") as usize;
        found.push((kind, flags == 1, reader.take(length).expect("content").to_vec()));
    }
    found
}

/// Data of the pieces from `offset` on, as a client that trusts nothing puts it together.
fn put_together(chunks: &[(u16, bool, Vec<u8>)], offset: u64) -> Vec<u8> {
    let mut data = Vec::new();
    for (number, (kind, is_last, content)) in chunks.iter().enumerate() {
        assert_eq!(*is_last, number + 1 == chunks.len());
        let mut reader = Reader(content);
        assert_eq!(reader.u64(), Some(offset + data.len() as u64), "chunks in order and without gaps");
        match *kind {
            chunk::OFFSET_DATA => data.extend_from_slice(reader.0),
            chunk::OFFSET_HOLE => data.resize(data.len() + reader.u32().expect("a length") as usize, 0),
            other => panic!("a chunk of kind {other} in a read"),
        }
        assert!(!content.is_empty());
    }
    data
}

fn pieces(lengths: &[(bool, usize)]) -> (Vec<Vec<u8>>, usize) {
    let stored = |(number, &(is_hole, count)): (usize, &(bool, usize))| {
        if is_hole { vec![0; count] } else { vec![number as u8 + 1; count] }
    };
    let stored: Vec<_> = lengths.iter().enumerate().map(stored).collect();
    let bytes = stored.iter().map(Vec::len).sum();
    (stored, bytes)
}

proptest! {
    #[test]
    fn the_data_of_a_read_is_the_same_in_all_forms(
        lengths in prop::collection::vec((any::<bool>(), 1_usize..9), 1..12), whole: bool, offset in 0_u64..1 << 60,
    ) {
        let (stored, bytes) = pieces(&lengths);
        let parts = || {
            lengths.iter().zip(&stored).map(|(&(is_hole, count), bytes)| {
                if is_hole { Piece::Zeros(count) } else { Piece::Bytes(bytes) }
            })
        };
        let mut simple = Vec::new();
        Replies::Simple.data(7, offset, whole, parts(), &mut simple);
        prop_assert_eq!(&simple[16..], stored.concat());
        let mut structured = Vec::new();
        Replies::Structured.data(7, offset, whole, parts(), &mut structured);
        let found = chunks(&structured, 7);
        prop_assert_eq!(put_together(&found, offset), stored.concat());
        prop_assert!(!whole || found.len() == 1 && structured.len() == REPLY_BYTES + bytes);
        let turns = 1 + lengths.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
        prop_assert!(whole || found.len() == turns, "as few chunks as possible");
    }

    #[test]
    fn extents_cover_what_the_states_say(states in prop::collection::vec(0_u8..3, 1..40), one: bool) {
        let states = states.iter().map(|state| match state {
            0 => Allocation::Data,
            1 => Allocation::Zeros,
            _ => Allocation::Hole,
        });
        let states: Vec<_> = states.collect();
        let mut out = Vec::new();
        Replies::Structured.allocation(3, 4096, one, states.iter().copied(), &mut out);
        let [(kind, true, content)] = &chunks(&out, 3)[..] else { panic!("one chunk") };
        prop_assert_eq!(*kind, chunk::BLOCK_STATUS);
        let mut reader = Reader(content);
        prop_assert_eq!(reader.u32(), Some(ALLOCATION_ID));
        let (mut block, mut extents, mut before) = (0, 0, None);
        while let Some(length) = reader.u32() {
            let flags = reader.u32();
            prop_assert!(length > 0 && length % 4096 == 0 && flags != before, "neighbours differ");
            let blocks = length as usize / 4096;
            prop_assert!(states[block..block + blocks].iter().all(|&state| Some(state as u32) == flags));
            (block, extents, before) = (block + blocks, extents + 1, flags);
        }
        prop_assert!(block == states.len() || one);
        prop_assert!(extents == 1 || !one);
    }
}

#[test]
fn an_error_has_words_where_its_client_takes_them_and_names_the_place() {
    let failure = Failure { at_bytes: Some(8192), ..Failure::new(ErrorCode::Io, "unreadable") };
    let (mut simple, mut structured) = (Vec::new(), Vec::new());
    Replies::Simple.failed(9, &failure, &mut simple);
    assert_eq!((simple.len(), &simple[4..8]), (16, &5_u32.to_be_bytes()[..]));
    Replies::Structured.failed(9, &failure, &mut structured);
    Replies::Structured.failed(9, &Failure::new(ErrorCode::NoSpace, "full"), &mut structured);
    let [(with_place, true, place), (without, true, other)] = &chunks(&structured, 9)[..] else { panic!("two") };
    assert_eq!((*with_place, *without), (chunk::ERROR_OFFSET, chunk::ERROR));
    assert_eq!(
        place[..],
        [&5_u32.to_be_bytes()[..], &10_u16.to_be_bytes(), b"unreadable", &8192_u64.to_be_bytes()].concat()
    );
    assert_eq!(other[..], [&28_u32.to_be_bytes()[..], &4_u16.to_be_bytes(), b"full"].concat());
}

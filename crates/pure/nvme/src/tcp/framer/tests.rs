use super::super::pdu::*;
use super::*;
use crate::Status;
use crate::nvm::{BlockRange, NvmCommand};
use proptest::prelude::*;
use zerocopy::little_endian::{U16, U32};

/// An event that owns its data.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Header(Box<Event<'static>>),
    Data(Vec<u8>),
    End(bool),
}

/// All events of `bytes` fed in pieces that end at `cuts`; pieces of data are joined.
fn frame(framer: &mut Framer, bytes: &[u8], cuts: &[usize]) -> Result<Vec<Seen>, FatalError> {
    let mut seen = Vec::new();
    let mut start = 0;
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    for end in ends {
        let mut input = &bytes[start..end];
        start = end;
        while let Some(event) = framer.next(&mut input)? {
            match event {
                Event::Data(more) => match seen.last_mut() {
                    Some(Seen::Data(data)) => data.extend_from_slice(more),
                    _ => seen.push(Seen::Data(more.to_vec())),
                },
                Event::End { is_intact } => seen.push(Seen::End(is_intact)),
                Event::Initialize(body) => seen.push(Seen::Header(Box::new(Event::Initialize(body)))),
                Event::Terminated(body) => seen.push(Seen::Header(Box::new(Event::Terminated(body)))),
                Event::Command { sqe, data_len } => {
                    seen.push(Seen::Header(Box::new(Event::Command { sqe, data_len })));
                }
                Event::Response(cqe) => seen.push(Seen::Header(Box::new(Event::Response(cqe)))),
                Event::ReadyToTransfer(body) => seen.push(Seen::Header(Box::new(Event::ReadyToTransfer(body)))),
                Event::DataBegins { header, is_last, success } => {
                    seen.push(Seen::Header(Box::new(Event::DataBegins { header, is_last, success })));
                }
            }
        }
        assert!(input.is_empty(), "the framer must take everything before it returns nothing");
    }
    Ok(seen)
}

fn put_data(bytes: &mut Vec<u8>, data: &[u8], digests: Digests) {
    bytes.extend_from_slice(data);
    if digests.data && !data.is_empty() {
        bytes.extend_from_slice(&DataDigest::of(data));
    }
}

fn write_command(id: u16) -> Sqe {
    NvmCommand::Write { range: BlockRange { lba: 7, blocks: 1 }, fua: false }.encode(id, 1)
}

fn agreed(role: Role, digests: Digests, alignment: Alignment) -> Framer {
    let mut framer = Framer::new(role, 1 << 20);
    framer.agree(digests, alignment);
    framer
}

proptest! {
    #[test]
    fn a_stream_from_the_host_is_found_wherever_it_is_cut(
        header: bool, in_data: bool, field in 0u8..32, cuts: [usize; 4],
        data in prop::collection::vec(any::<u8>(), 0..200), more in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let digests = Digests { header, data: in_data };
        let alignment = Alignment::from_field(field).unwrap();
        let mut bytes = Vec::new();
        let sqe = write_command(5);
        capsule_command(&mut bytes, &sqe, data.len(), digests, alignment);
        put_data(&mut bytes, &data, digests);
        let part = DataHeader {
            command_id: U16::new(5), transfer_tag: U16::new(9), offset: U32::new(100),
            len: U32::new(more.len() as u32), reserved: U32::ZERO,
        };
        data_to_controller(&mut bytes, part, true, digests, alignment);
        put_data(&mut bytes, &more, digests);

        let seen = frame(&mut agreed(Role::Controller, digests, alignment), &bytes, &cuts).unwrap();
        let mut expected = vec![Seen::Header(Box::new(Event::Command { sqe, data_len: data.len() as u32 }))];
        if !data.is_empty() {
            expected.extend([Seen::Data(data), Seen::End(true)]);
        }
        let begins = Event::DataBegins { header: part, is_last: true, success: false };
        expected.extend([Seen::Header(Box::new(begins)), Seen::Data(more), Seen::End(true)]);
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn a_stream_from_the_controller_is_found_wherever_it_is_cut(
        header: bool, in_data: bool, cuts: [usize; 4], success: bool,
        data in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let digests = Digests { header, data: in_data };
        let mut bytes = Vec::new();
        let ready = ReadyToTransfer { command_id: U16::new(1), transfer_tag: U16::new(2), ..Default::default() };
        ready_to_transfer(&mut bytes, ready, digests);
        let part = DataHeader { len: U32::new(data.len() as u32), ..DataHeader::default() };
        data_to_host(&mut bytes, part, success, digests, Alignment::default());
        put_data(&mut bytes, &data, digests);
        let cqe = Cqe::new(1, Status::SUCCESS, 3, 4);
        capsule_response(&mut bytes, &cqe, digests);

        let seen = frame(&mut agreed(Role::Host, digests, Alignment::default()), &bytes, &cuts).unwrap();
        let expected = vec![
            Seen::Header(Box::new(Event::ReadyToTransfer(ready))),
            Seen::Header(Box::new(Event::DataBegins { header: part, is_last: true, success })),
            Seen::Data(data),
            Seen::End(true),
            Seen::Header(Box::new(Event::Response(cqe))),
        ];
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn any_bytes_are_framed_or_refused_alike_wherever_they_are_cut(
        bytes: Vec<u8>, kind in 0u8..10, digests in 0u8..4, host: bool, cuts: [usize; 3],
    ) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        let role = if host { Role::Host } else { Role::Controller };
        let mut framer = agreed(role, Digests::from_byte(digests), Alignment::default());
        let whole = frame(&mut framer, &bytes, &[]);
        prop_assert!(framer.latest_header().len() <= bytes.len());
        let mut in_pieces = agreed(role, Digests::from_byte(digests), Alignment::default());
        prop_assert_eq!(frame(&mut in_pieces, &bytes, &cuts), whole);
    }

    #[test]
    fn a_changed_bit_of_a_header_with_digest_is_noticed(bit in 0usize..72 * 8) {
        let digests = Digests { header: true, data: false };
        let mut bytes = Vec::new();
        capsule_command(&mut bytes, &write_command(5), 0, digests, Alignment::default());
        bytes[bit / 8] ^= 1 << (bit % 8);
        let seen = frame(&mut agreed(Role::Controller, digests, Alignment::default()), &bytes, &[]);
        // A longer length is noticed by waiting for more; everything else is an error.
        prop_assert!(seen.is_err() || seen.unwrap().is_empty());
    }
}

#[test]
fn wrong_data_is_told_apart_from_a_wrong_header() {
    let digests = Digests { header: false, data: true };
    let mut bytes = Vec::new();
    capsule_command(&mut bytes, &write_command(1), 4, digests, Alignment::default());
    put_data(&mut bytes, b"data", digests);
    bytes[74] ^= 1;
    let seen = frame(&mut agreed(Role::Controller, digests, Alignment::default()), &bytes, &[]).unwrap();
    assert_eq!(seen.last(), Some(&Seen::End(false)));
}

#[test]
fn violations_name_status_and_field() {
    let check = |change: fn(&mut Vec<u8>), expected: FatalError| {
        let mut bytes = Vec::new();
        let part = DataHeader { len: U32::new(4), ..DataHeader::default() };
        data_to_controller(&mut bytes, part, true, Digests::default(), Alignment::default());
        bytes.extend_from_slice(b"data");
        change(&mut bytes);
        let mut framer = Framer::new(Role::Controller, 100);
        assert_eq!(frame(&mut framer, &bytes, &[]), Err(expected));
        assert_eq!(framer.next(&mut &b"x"[..]), Err(FatalError::SEQUENCE), "a broken stream stays broken");
    };
    check(|bytes| bytes[0] = 0x08, FatalError::field(0));
    check(|bytes| bytes[0] = 0x07, FatalError::field(0));
    check(|bytes| bytes[1] |= 1, FatalError::field(1));
    check(|bytes| bytes[1] |= 2, FatalError::field(1));
    check(|bytes| bytes[2] = 23, FatalError::field(2));
    check(|bytes| bytes[3] = 20, FatalError::field(3));
    check(|bytes| bytes[3] = 25, FatalError::field(3));
    check(|bytes| bytes[4] = 24, FatalError::field(4));
    check(|bytes| bytes[4] = 29, FatalError::field(16));
    check(|bytes| bytes[5] = 1, FatalError { status: FatalStatus::LimitExceeded, information: 0 });
}

#[test]
fn a_termination_repeats_the_offending_header() {
    let mut bytes = Vec::new();
    termination(&mut bytes, true, FatalStatus::InvalidHeaderField, 2, &[4, 0, 71, 0, 72, 0, 0, 0]);
    assert_eq!(&bytes[..14], &[2, 0, 24, 0, 32, 0, 0, 0, 1, 0, 2, 0, 0, 0]);
    let seen = frame(&mut Framer::new(Role::Controller, 100), &bytes, &[9, 25]).unwrap();
    let body = Termination { status: U16::new(1), information: U32::new(2), reserved: [0; 10] };
    assert_eq!(seen, vec![Seen::Header(Box::new(Event::Terminated(body)))]);
}

#[test]
fn a_connection_begins_with_128_bytes_each_way() {
    let digests = Digests { header: true, data: true };
    let mut request = Vec::new();
    initialize_request(&mut request, Alignment::default(), digests, 1);
    assert_eq!(&request[..16], &[0, 0, 128, 0, 128, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0]);
    let mut response = Vec::new();
    initialize_response(&mut response, Alignment::default(), digests, 0x2_0000);
    assert_eq!(&response[..16], &[1, 0, 128, 0, 128, 0, 0, 0, 0, 0, 0, 3, 0, 0, 2, 0]);
    assert_eq!((request.len(), response.len()), (128, 128));
}

//! Chains of descriptors as requests. Source: virtio 1.2 §5.2.6. A guest may cut header, data and status into descriptors as
//! it likes (§2.7.4.1): only the order of bytes counts.

use crate::config::SECTOR_BYTES;
use flashyard_blk::VolumeInfo;
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};

/// A guest's memory, as it is mapped here.
pub(crate) type Memory = GuestMemoryMmap<()>;

/// Bytes of the header: type, a reserved word, first sector.
const HEADER_BYTES: u32 = 16;
/// Bytes of a range of a discard: first sector, sectors, flags.
const RANGE_BYTES: u32 = 16;
/// Bytes of an answer to the question for its name.
const NAME_BYTES: u32 = 20;
/// Descriptors of a chain at most. Source: \[A\] eight times what is offered.
const DESCRIPTORS_MAX: usize = 1024;

/// How a request has ended. Source: virtio 1.2 §5.2.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    Ok = 0,
    IoError = 1,
    Unsupported = 2,
}

/// An operation on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Read,
    Write,
    Flush,
    Trim,
    Zeroes,
    Name,
}

/// A part of a guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) address: GuestAddress,
    pub(crate) bytes: u32,
}

/// A request that can be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) asked: Asked,
    /// First block, and blocks; zero for a flush and for a name.
    pub(crate) first: u64,
    pub(crate) count: u32,
    /// Where the data lies or goes.
    pub(crate) data: Vec<Segment>,
    /// Where the status goes.
    pub(crate) status: GuestAddress,
}

/// Why a chain is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is no place for a status: nothing can be said.
    Dumb,
    /// The status to give, and where.
    With(Status, GuestAddress),
}

/// Bytes of segments in all.
pub(crate) fn total(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| u64::from(segment.bytes)).sum()
}

/// Whether all parts lie in the guest's memory.
pub(crate) fn is_within(segments: &[Segment], memory: &Memory) -> bool {
    segments.iter().all(|segment| memory.check_range(segment.address, segment.bytes as usize))
}

/// Reads what a chain asks of `volume`.
///
/// Errors: a chain without a place for its status, or whose request the disk does not know or cannot carry out.
pub(crate) fn parse(
    chain: impl Iterator<Item = Descriptor>,
    memory: &Memory,
    volume: &VolumeInfo,
) -> Result<Parsed, Refused> {
    let (mut given, mut wanted) = (Vec::new(), Vec::new());
    for descriptor in chain.take(DESCRIPTORS_MAX) {
        let segment = Segment { address: descriptor.addr(), bytes: descriptor.len() };
        if descriptor.is_write_only() { wanted.push(segment) } else { given.push(segment) }
    }
    let status = take_last_byte(&mut wanted).ok_or(Refused::Dumb)?;
    let refused = |status_code| Refused::With(status_code, status);
    let header = take_front::<{ HEADER_BYTES as usize }>(&mut given, memory).ok_or(refused(Status::IoError))?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let sector = u64::from(word(8)) | u64::from(word(12)) << 32;
    let block_sectors = u64::from(volume.block_bytes) / SECTOR_BYTES;
    // Blocks of whole sectors, where both ends are those of blocks.
    let blocks = |sector: u64, bytes: u64| {
        let block = u64::from(volume.block_bytes);
        let is_whole = sector.is_multiple_of(block_sectors) && bytes > 0 && bytes.is_multiple_of(block);
        let count = u32::try_from(bytes / block).ok().filter(|_| is_whole).ok_or(refused(Status::IoError))?;
        Ok((sector / block_sectors, count))
    };
    let (asked, (first, count), data) = match word(0) {
        0 => (Asked::Read, blocks(sector, total(&wanted))?, wanted),
        1 => (Asked::Write, blocks(sector, total(&given))?, given),
        4 => (Asked::Flush, (0, 0), Vec::new()),
        8 if total(&wanted) >= u64::from(NAME_BYTES) => (Asked::Name, (0, 0), wanted),
        kind @ (11 | 13) => {
            let range = take_front::<{ RANGE_BYTES as usize }>(&mut given, memory);
            // One range a request is what the disk offers.
            let range = range.filter(|_| given.is_empty()).ok_or(refused(Status::Unsupported))?;
            let word = |at: usize| u32::from_le_bytes([range[at], range[at + 1], range[at + 2], range[at + 3]]);
            let (sector, sectors) = (u64::from(word(0)) | u64::from(word(4)) << 32, u64::from(word(8)));
            // A discard has no flags; zeroes may say that blocks are given back.
            if word(12) > u32::from(kind == 13) {
                return Err(refused(Status::Unsupported));
            }
            // A trimmed block need not read as zeros, so one that must is written.
            let asked = if kind == 11 { Asked::Trim } else { Asked::Zeroes };
            (asked, blocks(sector, sectors * SECTOR_BYTES)?, Vec::new())
        }
        _ => return Err(refused(Status::Unsupported)),
    };
    Ok(Parsed { asked, first, count, data, status })
}

/// Takes the address of the last byte off.
fn take_last_byte(segments: &mut Vec<Segment>) -> Option<GuestAddress> {
    while let Some(last) = segments.last_mut() {
        if last.bytes > 1 {
            last.bytes -= 1;
            return last.address.0.checked_add(last.bytes.into()).map(GuestAddress);
        }
        let Segment { address, bytes } = *last;
        segments.pop();
        if bytes == 1 {
            return Some(address);
        }
    }
    None
}

/// Takes the first `N` bytes off, and reads them.
fn take_front<const N: usize>(segments: &mut Vec<Segment>, memory: &Memory) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    let mut used = 0;
    for segment in segments.iter_mut() {
        let count = (segment.bytes as usize).min(N - filled);
        memory.read_slice(&mut bytes[filled..filled + count], segment.address).ok()?;
        filled += count;
        segment.address = GuestAddress(segment.address.0.checked_add(count as u64)?);
        segment.bytes -= count as u32;
        if segment.bytes > 0 {
            break;
        }
        used += 1;
    }
    segments.drain(..used);
    (filled == N).then_some(bytes)
}

/// Reads the bytes of segments into `bytes`, which is as long as they are. `false` where a part is not in the guest's memory.
pub(crate) fn gather(segments: &[Segment], memory: &Memory, bytes: &mut [u8]) -> bool {
    let mut at = 0;
    segments.iter().all(|segment| {
        let part = &mut bytes[at..at + segment.bytes as usize];
        at += part.len();
        memory.read_slice(part, segment.address).is_ok()
    })
}

/// Writes slices one after the other into segments. Returns the bytes written; fewer than there are where a part is not in the
/// guest's memory.
pub(crate) fn scatter<'a>(slices: impl Iterator<Item = &'a [u8]>, segments: &[Segment], memory: &Memory) -> u32 {
    let (mut place, mut offset, mut written) = (0, 0_u32, 0_u32);
    for mut slice in slices {
        while !slice.is_empty() {
            let Some(segment) = segments.get(place) else { return written };
            let count = slice.len().min((segment.bytes - offset) as usize);
            let Some(address) = segment.address.0.checked_add(offset.into()) else { return written };
            if memory.write_slice(&slice[..count], GuestAddress(address)).is_err() {
                return written;
            }
            slice = &slice[count..];
            offset += count as u32;
            written += count as u32;
            if offset == segment.bytes {
                (place, offset) = (place + 1, 0);
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::VolumeLimits;
    use flashyard_units::VolumeId;
    use proptest::prelude::*;

    const WRITABLE: u16 = 2;

    fn volume() -> VolumeInfo {
        VolumeInfo { id: VolumeId::new(0), block_bytes: 4096, limits: VolumeLimits::new(64, false), protected: true }
    }

    fn memory() -> Memory {
        Memory::from_ranges(&[(GuestAddress(0), 1 << 16)]).expect("there is memory")
    }

    fn given(address: u64, bytes: u32) -> Descriptor {
        Descriptor::new(address, bytes, 0, 0)
    }

    fn wanted(address: u64, bytes: u32) -> Descriptor {
        Descriptor::new(address, bytes, WRITABLE, 0)
    }

    /// Puts a header at 0, and what follows it at 16.
    fn with_header(kind: u32, sector: u64, rest: &[u8]) -> Memory {
        let memory = memory();
        let header = [&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes(), rest].concat();
        memory.write_slice(&header, GuestAddress(0)).expect("it is there");
        memory
    }

    #[test]
    fn a_read_and_a_write_have_their_data_wherever_descriptors_are_cut() {
        let memory = with_header(0, 16, &[]);
        let plain = parse([given(0, 16), wanted(4096, 8192), wanted(100, 1)].into_iter(), &memory, &volume());
        let read = plain.expect("it is a read");
        assert_eq!((read.asked, read.first, read.count, read.status), (Asked::Read, 2, 2, GuestAddress(100)));
        assert_eq!(read.data, [Segment { address: GuestAddress(4096), bytes: 8192 }]);
        // The header in three parts, the status behind the data.
        let cut = [given(0, 3), given(3, 0), given(3, 13), wanted(4096, 8193), wanted(9, 0)];
        let cut = parse(cut.into_iter(), &memory, &volume()).expect("it is the same read");
        assert_eq!((cut.first, cut.count, cut.status), (2, 2, GuestAddress(4096 + 8192)));
        let memory = with_header(1, 8, &[]);
        let write = parse([given(0, 16 + 4096), wanted(100, 1)].into_iter(), &memory, &volume());
        let write = write.expect("data follows the header at once");
        assert_eq!((write.asked, write.first, write.count), (Asked::Write, 1, 1));
        assert_eq!(write.data, [Segment { address: GuestAddress(16), bytes: 4096 }]);
    }

    #[test]
    fn parts_of_blocks_and_unknown_requests_are_refused_with_a_status() {
        let refusal = |kind, sector, data: u32| {
            let memory = with_header(kind, sector, &[]);
            let chain = [given(0, 16), wanted(4096, data), wanted(100, 1)];
            parse(chain.into_iter(), &memory, &volume()).expect_err("it is refused")
        };
        let with = |status| Refused::With(status, GuestAddress(100));
        assert_eq!(refusal(0, 1, 4096), with(Status::IoError), "it begins within a block");
        assert_eq!(refusal(0, 0, 512), with(Status::IoError), "a part of a block");
        assert_eq!(refusal(2, 0, 4096), with(Status::Unsupported));
        assert_eq!(refusal(8, 0, 19), with(Status::Unsupported), "no room for a name");
        assert_eq!(parse([given(0, 16)].into_iter(), &memory(), &volume()), Err(Refused::Dumb));
        let short = parse([given(0, 15), wanted(100, 1)].into_iter(), &memory(), &volume());
        assert_eq!(short, Err(with(Status::IoError)), "no whole header");
        let outside = parse([given(1 << 20, 16), wanted(100, 1)].into_iter(), &memory(), &volume());
        assert_eq!(outside, Err(with(Status::IoError)), "the header is not in the guest's memory");
    }

    #[test]
    fn a_part_beyond_the_end_of_the_guests_memory_is_found_without_reading_it() {
        let part = |address, bytes| [Segment { address: GuestAddress(address), bytes }];
        assert!(is_within(&part(0, 1 << 16), &memory()) && is_within(&[], &memory()));
        assert!(!is_within(&part(1, 1 << 16), &memory()));
        assert!(!is_within(&part(u64::MAX - 1, 4096), &memory()));
        assert!(!is_within(&[part(0, 16), part(1 << 40, u32::MAX)].concat(), &memory()));
    }

    #[test]
    fn ranges_are_trimmed_and_zeroed() {
        let range = |sector: u64, sectors: u32, flags: u32| {
            [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat()
        };
        let ask = |kind, range: &[u8]| {
            let memory = with_header(kind, 0, range);
            parse([given(0, 16), given(16, range.len() as u32), wanted(100, 1)].into_iter(), &memory, &volume())
        };
        let trim = ask(11, &range(8, 24, 0)).expect("it is a discard");
        assert_eq!((trim.asked, trim.first, trim.count), (Asked::Trim, 1, 3));
        let zeroes = ask(13, &range(8, 8, 1)).expect("zeroes may deallocate");
        assert_eq!((zeroes.asked, zeroes.first, zeroes.count), (Asked::Zeroes, 1, 1));
        for refused in
            [ask(11, &range(8, 24, 1)), ask(13, &range(0, 8, 2)), ask(11, &[range(0, 8, 0), range(8, 8, 0)].concat())]
        {
            assert_eq!(refused, Err(Refused::With(Status::Unsupported, GuestAddress(100))));
        }
        assert_eq!(ask(11, &range(1, 8, 0)), Err(Refused::With(Status::IoError, GuestAddress(100))));
    }

    proptest! {
        #[test]
        fn any_chain_has_an_answer(
            header in prop::collection::vec(any::<u8>(), 64),
            kind in 0_u32..16,
            chain in prop::collection::vec((any::<u64>(), any::<u32>(), any::<bool>(), any::<bool>()), 0..12),
        ) {
            let memory = with_header(kind, 0, &header);
            let descriptors = chain.iter().map(|&(address, bytes, writable, near)| {
                let (address, bytes) = if near { (address % (1 << 16), bytes % 8192) } else { (address, bytes) };
                Descriptor::new(address, bytes, if writable { WRITABLE } else { 0 }, 0)
            });
            if let Ok(parsed) = parse(descriptors, &memory, &volume()) {
                let bytes = total(&parsed.data);
                if matches!(parsed.asked, Asked::Read | Asked::Write) {
                    prop_assert_eq!(bytes, u64::from(parsed.count) * 4096);
                }
                if bytes < 1 << 20 {
                    let mut data = vec![7; bytes as usize];
                    gather(&parsed.data, &memory, &mut data);
                    prop_assert!(u64::from(scatter([&data[..]].into_iter(), &parsed.data, &memory)) <= bytes);
                }
            }
        }

        #[test]
        fn data_comes_back_as_it_was_scattered(
            cuts in prop::collection::vec(1_u32..3000, 1..8),
            slices in prop::collection::vec(1_usize..3000, 1..8),
        ) {
            let memory = memory();
            let mut address = 0;
            let segments: Vec<_> = cuts.iter().map(|&bytes| {
                let segment = Segment { address: GuestAddress(address), bytes };
                address += u64::from(bytes) + 7;
                segment
            }).collect();
            let bytes: Vec<u8> = (0..slices.iter().sum::<usize>()).map(|number| number as u8).collect();
            let mut rest = &bytes[..];
            let parts: Vec<&[u8]> = slices.iter().map(|&count| { let (part, after) = rest.split_at(count); rest = after; part }).collect();
            let written = scatter(parts.into_iter(), &segments, &memory) as usize;
            prop_assert_eq!(written, bytes.len().min(total(&segments) as usize));
            let mut back = vec![0; total(&segments) as usize];
            prop_assert!(gather(&segments, &memory, &mut back));
            prop_assert_eq!(&back[..written], &bytes[..written]);
        }
    }
}

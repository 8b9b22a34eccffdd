//! The namespaces of one drive, as far as they outlive the process.

use super::extent::{Extent, free_of, units_of};
use crate::media::BlockFormat;
use flashyard_flash::SLOT_BYTES;
use flashyard_nvme::protection::Metadata;
use flashyard_nvmf::target::Attachment;

/// Namespaces of a drive at most. [A] As many as drives of data centres announce.
pub const NAMESPACES_MAX: u32 = 32;

const MAGIC: &[u8; 8] = b"fynamsp1";
/// Where the flags have the metadata of blocks, three bits, and that of blocks after a format under way.
const METADATA_AT: u32 = 3;
const FORMAT_METADATA_AT: u32 = 6;
/// Extents of a record at most: bytes that claim more are none.
const EXTENTS_MAX: u32 = 1 << 20;

/// A namespace of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) nsid: u32,
    /// Counts the namespaces that the drive has had.
    pub(crate) serial: u32,
    /// Its blocks, and how many there are.
    pub(crate) block: BlockFormat,
    pub(crate) blocks: u64,
    pub(crate) is_private: bool,
    /// The format that is under way: the blocks afterwards, and whether data must not be left anywhere.
    pub(crate) format: Option<(BlockFormat, bool)>,
    pub(crate) attachment: Attachment,
    pub(crate) extents: Vec<Extent>,
}

impl Entry {
    pub(crate) fn units(&self) -> u64 {
        units_of(&self.extents)
    }

    /// Other blocks, as many as its space has room for.
    pub(crate) fn reformat(&mut self, block: BlockFormat) {
        if self.block.data_bytes != block.data_bytes {
            self.blocks = self.units() * u64::from(SLOT_BYTES / block.data_bytes);
        }
        self.block = block;
    }
}

/// All of them, in ascending order of their identifiers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
    /// The greatest serial number so far.
    pub(crate) serial: u32,
}

impl Table {
    /// One namespace that is the whole drive, as drives are from the beginning.
    pub(crate) fn whole(units: u64, block: BlockFormat) -> Self {
        let entry = Entry {
            nsid: 1,
            serial: 0,
            block,
            blocks: units * u64::from(SLOT_BYTES / block.data_bytes),
            is_private: false,
            format: None,
            attachment: Attachment::ALL,
            extents: vec![Extent { first: 0, units }],
        };
        Self { entries: vec![entry], serial: 0 }
    }

    /// Namespaces of so many units one behind the other, for everybody; `None` where the drive has less.
    pub(crate) fn divided(units: u64, block: BlockFormat, sizes: &[u64]) -> Option<Self> {
        let mut first = 0_u64;
        let mut table = Self::default();
        for (nsid, &size) in (1..).zip(sizes) {
            let whole = Self::whole(size, block).entries.pop()?;
            table.entries.push(Entry { nsid, serial: nsid - 1, extents: vec![Extent { first, units: size }], ..whole });
            table.serial = nsid - 1;
            first = first.checked_add(size).filter(|&end| end <= units && size > 0)?;
        }
        Some(table)
    }

    pub(crate) fn entry(&self, nsid: u32) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.nsid == nsid)
    }

    pub(crate) fn entry_mut(&mut self, nsid: u32) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.nsid == nsid)
    }

    /// Adds a namespace with the next serial number.
    pub(crate) fn add(&mut self, entry: Entry) {
        self.serial += 1;
        let place = self.entries.partition_point(|other| other.nsid < entry.nsid);
        self.entries.insert(place, Entry { serial: self.serial, ..entry });
    }

    /// Units of a drive that its namespaces leave.
    pub(crate) fn free(&self, units: u64) -> Vec<Extent> {
        free_of(units, self.entries.iter().flat_map(|entry| entry.extents.iter().copied()))
    }

    /// The record: little endian, a magic word, the last serial number, the entries, and a checksum over all of it. Metadata of
    /// blocks is in bits of the flags that earlier versions have left at zero, which is none.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let word = |number: u32, bytes: &mut Vec<u8>| bytes.extend_from_slice(&number.to_le_bytes());
        word(self.serial, &mut bytes);
        word(self.entries.len() as u32, &mut bytes);
        for entry in &self.entries {
            let flags = u32::from(entry.is_private)
                | u32::from(entry.attachment.everybody) << 1
                | u32::from(entry.format.is_some_and(|(_, destroys)| destroys)) << 2
                | u32::from(entry.block.metadata.code()) << METADATA_AT
                | entry.format.map_or(0, |(block, _)| u32::from(block.metadata.code())) << FORMAT_METADATA_AT;
            let format = entry.format.map_or(0, |(block, _)| block.data_bytes);
            for number in [entry.nsid, entry.serial, entry.block.data_bytes, flags, format] {
                word(number, &mut bytes);
            }
            bytes.extend_from_slice(&entry.blocks.to_le_bytes());
            word(entry.attachment.exceptions.len() as u32, &mut bytes);
            for host in &entry.attachment.exceptions {
                word(host.len() as u32, &mut bytes);
                bytes.extend_from_slice(host.as_bytes());
            }
            word(entry.extents.len() as u32, &mut bytes);
            for extent in &entry.extents {
                bytes.extend_from_slice(&extent.first.to_le_bytes());
                bytes.extend_from_slice(&extent.units.to_le_bytes());
            }
        }
        let check = crc32c::crc32c(&bytes);
        word(check, &mut bytes);
        bytes
    }

    /// The reverse of [`Table::encode`] for a drive of so many units; `None` for bytes that are no such record, or one of another
    /// drive.
    pub(crate) fn decode(bytes: &[u8], units: u64) -> Option<Self> {
        let (body, check) = bytes.split_last_chunk::<4>()?;
        if crc32c::crc32c(body).to_le_bytes() != *check {
            return None;
        }
        let mut rest = body.strip_prefix(MAGIC)?;
        let rest = &mut rest;
        let mut table = Self { serial: word(rest)?, entries: Vec::new() };
        let count = word(rest).filter(|&count| count <= NAMESPACES_MAX)?;
        for _ in 0..count {
            let entry = take_entry(rest)?;
            let in_order = table.entries.last().is_none_or(|last| last.nsid < entry.nsid);
            let has_blocks = entry.blocks > 0
                && entry.blocks.div_ceil(u64::from(SLOT_BYTES / entry.block.data_bytes)) == entry.units();
            if !in_order || !has_blocks || !(1..=NAMESPACES_MAX).contains(&entry.nsid) || entry.serial > table.serial {
                return None;
            }
            table.entries.push(entry);
        }
        let mut extents: Vec<Extent> = table.entries.iter().flat_map(|entry| entry.extents.iter().copied()).collect();
        extents.sort_by_key(|extent| extent.first);
        let are_apart = extents.windows(2).all(|two| two[0].end() <= two[1].first);
        let are_inside = extents.last().is_none_or(|last| last.end() <= units);
        (rest.is_empty() && are_apart && are_inside).then_some(table)
    }
}

fn word(rest: &mut &[u8]) -> Option<u32> {
    let (word, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(u32::from_le_bytes(*word))
}

fn long(rest: &mut &[u8]) -> Option<u64> {
    let (word, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_le_bytes(*word))
}

fn take_entry(rest: &mut &[u8]) -> Option<Entry> {
    let (nsid, serial, data_bytes) = (word(rest)?, word(rest)?, word(rest)?);
    let (flags, format, blocks) = (word(rest)?, word(rest)?, long(rest)?);
    let of = |data_bytes, metadata_at: u32| {
        let metadata = Metadata::from_code((flags >> metadata_at & 7) as u8)?;
        Some(BlockFormat { data_bytes, metadata }).filter(BlockFormat::exists)
    };
    let block = of(data_bytes, METADATA_AT)?;
    let format = if format == 0 { None } else { Some((of(format, FORMAT_METADATA_AT)?, flags & 1 << 2 != 0)) };
    let mut exceptions = Vec::new();
    for _ in 0..word(rest).filter(|&count| count as usize <= Attachment::EXCEPTIONS_MAX)? {
        let len = word(rest)? as usize;
        let (host, after) = rest.split_at_checked(len)?;
        exceptions.push(std::str::from_utf8(host).ok()?.to_owned());
        *rest = after;
    }
    let mut extents = Vec::new();
    for _ in 0..word(rest).filter(|&count| count <= EXTENTS_MAX)? {
        let extent = Extent { first: long(rest)?, units: long(rest)? };
        extent.first.checked_add(extent.units).filter(|_| extent.units > 0)?;
        extents.push(extent);
    }
    extents.iter().try_fold(0_u64, |sum, extent| sum.checked_add(extent.units))?;
    let attachment = Attachment { everybody: flags & 1 << 1 != 0, exceptions };
    Some(Entry { nsid, serial, block, blocks, is_private: flags & 1 != 0, format, attachment, extents })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Namespaces that divide a drive in some way.
    fn table() -> impl Strategy<Value = (Table, u64)> {
        let entry = (
            any::<(bool, bool, bool, bool)>(),
            0_usize..3,
            1_u64..50,
            prop::option::of(any::<(bool, bool)>()),
            (0_u8..5, 0_u8..5),
        );
        prop::collection::vec(entry, 0..6).prop_map(|entries| {
            let mut table = Table::default();
            let mut first = 3;
            for (nsid, ((small, is_private, everybody, cut), hosts, units, format, kinds)) in (1..).zip(entries) {
                let of = |small: bool, code: u8| {
                    let metadata = Metadata::from_code(code).expect("there is such metadata");
                    BlockFormat { data_bytes: if small { 512 } else { 4096 }, metadata }
                };
                let block = of(small, kinds.0);
                let blocks = units * u64::from(4096 / block.data_bytes) - u64::from(cut && small);
                let exceptions = (0..hosts).map(|host| format!("nqn.{host}")).collect();
                let half = units / 2;
                let mut extents =
                    vec![Extent { first, units: half }, Extent { first: first + half + 2, units: units - half }];
                extents.retain(|extent| extent.units > 0);
                first += units + 2;
                table.add(Entry {
                    nsid: nsid * 2,
                    serial: 0,
                    block,
                    blocks,
                    is_private,
                    format: format.map(|(small, destroys)| (of(small, kinds.1), destroys)),
                    attachment: Attachment { everybody, exceptions },
                    extents,
                });
            }
            (table, first)
        })
    }

    proptest! {
        #[test]
        fn namespaces_are_read_as_they_were_written((table, units) in table()) {
            let bytes = table.encode();
            prop_assert_eq!(Table::decode(&bytes, units), Some(table.clone()));
            prop_assert!(table.entries.is_empty() || Table::decode(&bytes, units - 3).is_none());
        }

        #[test]
        fn bytes_that_are_no_record_are_not_believed(
            (table, units) in table(), at: prop::sample::Index, bit in 0_u8..8, cut: prop::sample::Index,
        ) {
            let mut bytes = table.encode();
            prop_assert_eq!(Table::decode(&bytes[..cut.index(bytes.len())], units), None);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Table::decode(&bytes, units), None);
        }

        #[test]
        fn any_record_with_its_checksum_is_read_without_a_panic(mut bytes: Vec<u8>, magic: bool) {
            if magic {
                bytes.splice(0..0, MAGIC.iter().copied());
            }
            let check = crc32c::crc32c(&bytes);
            bytes.extend_from_slice(&check.to_le_bytes());
            let _ = Table::decode(&bytes, 100);
        }
    }

    #[test]
    fn a_drive_is_divided_as_far_as_it_goes() {
        let table = Table::divided(10, BlockFormat::plain(512), &[3, 6]).expect("there is room");
        assert_eq!(
            table.entries.iter().map(|it| (it.nsid, it.blocks, it.units())).collect::<Vec<_>>(),
            [(1, 24, 3), (2, 48, 6)]
        );
        assert_eq!(table.free(10), [Extent { first: 9, units: 1 }]);
        let divided = |sizes: &[u64]| Table::divided(10, BlockFormat::plain(512), sizes);
        assert_eq!((divided(&[3, 8]), divided(&[0])), (None, None));
        let mut whole = Table::whole(10, BlockFormat::plain(4096)).entries.remove(0);
        let small = BlockFormat { data_bytes: 512, metadata: Metadata::Type3 };
        whole.reformat(small);
        assert_eq!((whole.blocks, whole.block), (80, small));
    }
}

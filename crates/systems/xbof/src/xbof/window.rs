//! The memory that a drive exposes to peers and host, and where: addresses in units of 64 bytes.
//!
//! | region | first address | one entry |
//! |---|---|---|
//! | idle resource table | 0 | a descriptor of 16 bytes |
//! | segment lists | 0x10_0000 | 64 KiB: the segments that one memory descriptor lends |
//! | mapping directory | 0x20_0000 | the whole directory |
//! | log pages | 0x40_0000 | 4 KiB for each borrowed segment |
//!
//! Source: [P] sheet xbof §3.1 and §3.2; 32-bit addresses of 64-byte units and the layout are [A].

/// 64-byte units of one segment list.
const LIST_UNITS: u32 = 1024;
/// 64-byte units of one log page.
const LOG_UNITS: u32 = 64;
const LISTS: u32 = 0x10_0000;
const DIRECTORY: u32 = 0x20_0000;
const LOGS: u32 = 0x40_0000;

/// A region of exposed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The segments that the memory descriptor of this number lends.
    SegmentList(u32),
    /// The directory of the drive's translation pages.
    Directory,
    /// The redo log of the borrowed segment of this number.
    LogPage(u32),
}

impl Region {
    /// Where it begins.
    pub const fn address(self) -> u32 {
        match self {
            Self::SegmentList(number) => LISTS + number * LIST_UNITS,
            Self::Directory => DIRECTORY,
            Self::LogPage(number) => LOGS + number * LOG_UNITS,
        }
    }

    /// The region that begins at `address`; `None` for the middle of something and for nothing.
    pub const fn at(address: u32) -> Option<Self> {
        match address {
            DIRECTORY => Some(Self::Directory),
            LISTS..DIRECTORY if address.is_multiple_of(LIST_UNITS) => {
                Some(Self::SegmentList((address - LISTS) / LIST_UNITS))
            }
            LOGS.. if address.is_multiple_of(LOG_UNITS) => Some(Self::LogPage((address - LOGS) / LOG_UNITS)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_region_is_found_at_its_address_and_nowhere_near() {
        for region in [Region::SegmentList(0), Region::SegmentList(7), Region::Directory, Region::LogPage(65_000)] {
            assert_eq!(Region::at(region.address()), Some(region));
            for bit in 0..6 {
                assert_eq!(Region::at(region.address() ^ 1 << bit), None);
            }
        }
    }
}

//! Media behind an endpoint: flash, or cells that are written in place.

use crate::error::MemoryError;
use crate::flash::{Flash, FlashConfig, Written};
use crate::page_cache::PAGE_BYTES;
use flashyard_cxl::CACHE_LINE_BYTES;
use flashyard_units::{SimSpan, SimTime};

/// Bytes of a page that lie in one unit of cells that are written in place, where parts of a page are read and written. \[X\] 256 bytes are
/// what 3D XPoint is accessed by (Yang et al., FAST 2020)
const PART_BYTES: u32 = 256;

/// Parameters of a medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MediumConfig {
    /// Flash with a translation layer.
    Flash(FlashConfig),
    /// Cells that are written in place, as those of 3D XPoint or DRAM: pages, and the parts of a page, go round units that work on one each.
    InPlace {
        /// Logical pages of 4 KiB.
        pages: u32,
        /// Units that work beside each other.
        units: u32,
        /// A part of a page read, 256 bytes.
        read: SimSpan,
        /// A part of a page written, 256 bytes.
        write: SimSpan,
    },
}

impl MediumConfig {
    /// Logical pages of 4 KiB that the medium will have.
    ///
    /// Errors: flash that cannot be divided so.
    pub fn pages(&self) -> Result<u32, MemoryError> {
        match self {
            Self::Flash(flash) => flash.pages(),
            Self::InPlace { pages, .. } => Ok(*pages),
        }
    }

    /// Time in which an idle medium gives a line.
    pub fn line_read(&self) -> SimSpan {
        match self {
            Self::Flash(flash) => flash.read + flash.channel_rate.span_of(CACHE_LINE_BYTES),
            Self::InPlace { read, .. } => *read,
        }
    }

    /// Time in which an idle medium gives a page.
    pub fn page_read(&self) -> SimSpan {
        match self {
            Self::Flash(flash) => flash.read + flash.channel_rate.span_of(PAGE_BYTES),
            Self::InPlace { units, read, .. } => {
                *read * (PAGE_BYTES / u64::from(PART_BYTES)).div_ceil(u64::from(*units))
            }
        }
    }
}

/// A medium of logical pages of 4 KiB.
pub enum Medium {
    /// Flash.
    Flash(Box<Flash>),
    /// Cells written in place.
    InPlace {
        /// When each unit is free.
        units: Vec<SimTime>,
        /// Logical pages.
        pages: u32,
        /// A part of a page read.
        read: SimSpan,
        /// A part of a page written.
        write: SimSpan,
        /// Time for which the last read waited for its turn.
        turn: SimSpan,
    },
}

impl Medium {
    /// The medium in its first state.
    ///
    /// Errors: flash that cannot be; no pages or units.
    pub fn new(config: &MediumConfig) -> Result<Self, MemoryError> {
        match *config {
            MediumConfig::Flash(config) => Ok(Self::Flash(Box::new(Flash::new(config)?))),
            MediumConfig::InPlace { pages, units, read, write } => {
                if pages == 0 || units == 0 || units > 1 << 16 {
                    let value = pages.min(units).into();
                    return Err(MemoryError::Range { name: "pages or units of a medium", value, range: "at least 1" });
                }
                Ok(Self::InPlace {
                    units: vec![SimTime::ZERO; units as usize],
                    pages,
                    read,
                    write,
                    turn: SimSpan::ZERO,
                })
            }
        }
    }

    /// Logical pages.
    pub fn pages(&self) -> u32 {
        match self {
            Self::Flash(flash) => flash.pages(),
            Self::InPlace { pages, .. } => *pages,
        }
    }

    /// The flash, where it is some.
    pub fn flash(&self) -> Option<&Flash> {
        match self {
            Self::Flash(flash) => Some(flash),
            Self::InPlace { .. } => None,
        }
    }

    /// Keeps internal work away until a time.
    #[inline]
    pub fn guard(&mut self, until: SimTime) {
        if let Self::Flash(flash) = self {
            flash.guard(until);
        }
    }

    /// Lets collection of garbage fall due, as [`Flash::fall_due`] does.
    pub fn fall_due(&mut self, now: SimTime) {
        if let Self::Flash(flash) = self {
            flash.fall_due(now);
        }
    }

    /// Whether garbage is being collected at `now`, or is to be at once.
    pub fn is_collecting(&self, now: SimTime) -> bool {
        self.flash().is_some_and(|flash| flash.is_collecting(now))
    }

    /// Takes the time for which the last read waited while the medium served others: nothing if there was none since.
    #[inline]
    pub fn take_turn(&mut self) -> SimSpan {
        match self {
            Self::Flash(flash) => flash.take_turn(),
            Self::InPlace { turn, .. } => std::mem::take(turn),
        }
    }

    /// Reads a page; returns when its data is in the controller. Of cells written in place all parts are read.
    pub fn read(&mut self, now: SimTime, page: u32) -> SimTime {
        match self {
            Self::Flash(flash) => flash.read(now, page),
            Self::InPlace { .. } => self.read_part(now, page, 0, PAGE_BYTES as u32),
        }
    }

    /// Reads the line at `offset` of a page; returns when it is in the controller. Flash senses the page each time and sends the line
    /// alone; the register of a die serves no second line.
    pub fn read_line(&mut self, now: SimTime, page: u32, offset: u32) -> SimTime {
        match self {
            Self::Flash(flash) => flash.read_line(now, page),
            Self::InPlace { .. } => self.read_part(now, page, offset, CACHE_LINE_BYTES as u32),
        }
    }

    /// Reads so many bytes of a page from `offset` on; returns when they are in the controller. Flash senses the page unless its
    /// die has it in the register. Cells written in place are read where the bytes lie: parts of a page go round the units, from
    /// that of the page on.
    pub fn read_part(&mut self, now: SimTime, page: u32, offset: u32, bytes: u32) -> SimTime {
        match self {
            Self::Flash(flash) => flash.read_part(now, page, bytes),
            Self::InPlace { units, read, turn, .. } => {
                let done = occupy(units, page, [offset, bytes], now, *read);
                let idle = *read * (parts_of([offset, bytes]) as usize).div_ceil(units.len()) as u64;
                *turn = done.since(now + idle);
                done
            }
        }
    }

    /// Writes a page; `at_once` where it must outlive a loss of power. Cells written in place are written where its bytes lie, as they are
    /// read.
    pub fn write(&mut self, now: SimTime, page: u32, at_once: bool) -> Written {
        match self {
            Self::Flash(flash) => flash.write(now, page, at_once),
            Self::InPlace { units, write, .. } => {
                Written { accepted: now, programmed: occupy(units, page, [0, PAGE_BYTES as u32], now, *write) }
            }
        }
    }
}

/// Parts of a page that so many bytes from an offset on touch.
fn parts_of([offset, bytes]: [u32; 2]) -> u32 {
    (offset + bytes.max(1) - 1) / PART_BYTES - offset / PART_BYTES + 1
}

/// The units of so many bytes of a page from an offset on work for a time on each part of them; returns when all have.
fn occupy(units: &mut [SimTime], page: u32, [offset, bytes]: [u32; 2], now: SimTime, span: SimSpan) -> SimTime {
    let parts = parts_of([offset, bytes]);
    let mut at = (page as usize + (offset / PART_BYTES) as usize) % units.len();
    let mut done = now;
    for _ in 0..parts {
        let unit = &mut units[at];
        *unit = (*unit).max(now) + span;
        done = done.max(*unit);
        at = if at + 1 == units.len() { 0 } else { at + 1 };
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_page_in_cells_are_read_beside_each_other() {
        let (read, write) = (SimSpan::from_us(5), SimSpan::from_us(8));
        let config = MediumConfig::InPlace { pages: 10, units: 4, read, write };
        let mut medium = Medium::new(&config).expect("it is possible");
        let at = |us| SimTime::ZERO + SimSpan::from_us(us);
        assert_eq!(medium.read_part(at(0), 0, 0, 1024), at(5), "four parts on four units");
        assert_eq!(medium.read_part(at(10), 0, 256, 2048), at(20), "eight parts");
        assert_eq!(medium.read_part(at(20), 0, 300, 100), at(25), "within one part");
        assert_eq!(medium.read(at(30), 3), at(30) + config.page_read());
        assert_eq!(config.page_read(), SimSpan::from_us(4 * 5), "a page is sixteen parts");
        assert_eq!(
            medium.write(at(100), 3, true).programmed,
            at(100 + 4 * 8),
            "they are written beside each other as well"
        );
        assert_eq!(medium.read_part(at(100), 9, 0, 256), at(100 + 4 * 8 + 5), "all units did");
    }
}

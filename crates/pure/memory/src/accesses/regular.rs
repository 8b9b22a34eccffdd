//! Programs of which little but rates is published: streams that go on by a stride, and a chain of pointers.

use crate::access::{Access, AccessKind, Accesses};
use crate::error::MemoryError;
use flashyard_cxl::CACHE_LINE_BYTES;
use flashyard_kernel::Rng;

/// Parameters of streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StridesConfig {
    /// Streams, each with its part of the footprint and its place in the program, 1 to 64.
    pub streams: u32,
    /// Lines from one access of a stream to its next.
    pub stride: u32,
    /// Bytes of all streams together.
    pub footprint: u64,
    /// Share of the accesses that load.
    pub loads: f64,
}

/// Streams that take turns. At the end of its part a stream begins again one line further, so that it comes to every line.
#[derive(Clone, Debug)]
pub struct Strides {
    config: StridesConfig,
    /// Lines of a part.
    part: u64,
    places: Vec<u64>,
    turn: usize,
    spread: f64,
}

impl Strides {
    /// The streams at their beginnings.
    ///
    /// Errors: no stream or more than 64, no stride, a part of fewer lines than the stride.
    pub fn new(config: &StridesConfig) -> Result<Self, MemoryError> {
        let range = |name, value, range| Err(MemoryError::Range { name, value, range });
        if !(1..=64).contains(&config.streams) {
            return range("streams", config.streams.into(), "1 to 64");
        }
        let part = config.footprint / CACHE_LINE_BYTES / u64::from(config.streams);
        if config.stride == 0 || part <= u64::from(config.stride) {
            return range("stride in lines", config.stride.into(), "at least 1, and less than the part of a stream");
        }
        if !(0.0..=1.0).contains(&config.loads) {
            return range("loads in millionths", (config.loads * 1e6) as u64, "0 to 1000000");
        }
        Ok(Self { config: *config, part, places: vec![0; config.streams as usize], turn: 0, spread: 0.0 })
    }
}

/// A load or a store, so that loads are a share of all, evenly spread.
#[inline]
fn kind(spread: &mut f64, loads: f64) -> AccessKind {
    *spread += loads;
    if *spread >= 1.0 - 1e-9 {
        *spread -= 1.0;
        return AccessKind::Load;
    }
    AccessKind::Store
}

impl Accesses for Strides {
    #[inline]
    fn next_access(&mut self) -> Option<Access> {
        let stream = self.turn;
        self.turn = (stream + 1) % self.places.len();
        let place = &mut self.places[stream];
        let line = stream as u64 * self.part + *place;
        *place += u64::from(self.config.stride);
        if *place >= self.part {
            *place = (*place + 1) % u64::from(self.config.stride);
        }
        let kind = kind(&mut self.spread, self.config.loads);
        Some(Access { kind, address: line * CACHE_LINE_BYTES, gap: 1, depends: false, function: stream as u16 })
    }
}

/// A chain of pointers through all lines of a footprint in a mixed order, again and again. Stores go to the line that was loaded last.
#[derive(Clone, Debug)]
pub struct Chase {
    next: Vec<u32>,
    at: u32,
    loads: f64,
    spread: f64,
}

impl Chase {
    /// A chain through `footprint` bytes, of whose accesses a share loads.
    ///
    /// Errors: fewer than two lines or more than 2^26, no loads.
    pub fn new(footprint: u64, loads: f64, mut rng: Rng) -> Result<Self, MemoryError> {
        let lines = footprint / CACHE_LINE_BYTES;
        if !(2..=1 << 26).contains(&lines) {
            return Err(MemoryError::Range { name: "lines of a chain", value: lines, range: "2 to 67108864" });
        }
        if !(loads > 0.0 && loads <= 1.0) {
            let value = (loads * 1e6) as u64;
            return Err(MemoryError::Range { name: "loads in millionths", value, range: "above 0, to 1000000" });
        }
        // Sattolo's shuffle gives one cycle through all.
        let mut next: Vec<u32> = (0..lines as u32).collect();
        for place in (1..next.len()).rev() {
            next.swap(place, rng.below(place as u64) as usize);
        }
        Ok(Self { next, at: 0, loads, spread: 0.0 })
    }
}

impl Accesses for Chase {
    #[inline]
    fn next_access(&mut self) -> Option<Access> {
        let kind = kind(&mut self.spread, self.loads);
        let load = kind == AccessKind::Load;
        if load {
            self.at = self.next[self.at as usize];
        }
        let address = u64::from(self.at) * CACHE_LINE_BYTES;
        Some(Access { kind, address, gap: 1, depends: load, function: u16::from(!load) })
    }
}

/// A program at another pace, at other addresses and with other places in the program than its own.
#[derive(Clone, Debug)]
pub struct Placed<A> {
    source: A,
    /// Instructions for an access, itself among them.
    instructions: f64,
    spread: f64,
    address: u64,
    function: u16,
}

impl<A> Placed<A> {
    /// The accesses of `source`, one in so many `instructions` (at least 1), `address` bytes and `function` places further.
    pub fn new(source: A, instructions: f64, address: u64, function: u16) -> Self {
        Self { source, instructions: instructions.clamp(1.0, 1e9), spread: 0.0, address, function }
    }

    /// The accesses that are placed.
    pub fn inner_mut(&mut self) -> &mut A {
        &mut self.source
    }
}

impl<A: Accesses> Accesses for Placed<A> {
    #[inline]
    fn next_access(&mut self) -> Option<Access> {
        let access = self.source.next_access()?;
        self.spread += self.instructions;
        let instructions = self.spread as u32;
        self.spread -= f64::from(instructions);
        let gap = instructions.saturating_sub(1);
        let function = access.function.wrapping_add(self.function);
        Some(Access { gap, address: access.address + self.address, function, ..access })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn streams_come_to_every_line_by_their_stride() {
        let config = StridesConfig { streams: 3, stride: 7, footprint: 3 * 100 * 64, loads: 0.25 };
        let mut strides = Strides::new(&config).expect("it is possible");
        let accesses: Vec<Access> = (0..300).filter_map(|_| strides.next_access()).collect();
        let lines: BTreeSet<u64> = accesses.iter().map(|access| access.address / 64).collect();
        assert_eq!(lines.len(), 300);
        assert_eq!(accesses.iter().filter(|access| access.kind == AccessKind::Load).count(), 75);
        let second: Vec<u64> =
            accesses.iter().filter(|access| access.function == 1).map(|access| access.address / 64).collect();
        assert_eq!(second[..4], [100, 107, 114, 121]);
        assert!(Strides::new(&StridesConfig { stride: 100, ..config }).is_err());
    }

    #[test]
    fn a_chain_goes_through_all_lines_once_a_round() {
        let mut chase = Chase::new(500 * 64, 0.5, Rng::named(1, "test")).expect("it is possible");
        let loads: Vec<Access> =
            (0..1000).filter_map(|_| chase.next_access()).filter(|access| access.kind == AccessKind::Load).collect();
        assert_eq!(loads.len(), 500);
        assert!(loads.iter().all(|access| access.depends));
        assert_eq!(loads.iter().map(|access| access.address).collect::<BTreeSet<_>>().len(), 500);
    }

    #[test]
    fn a_placed_program_has_its_pace() {
        let config = StridesConfig { streams: 1, stride: 1, footprint: 6400, loads: 1.0 };
        let mut placed = Placed::new(Strides::new(&config).expect("it is possible"), 2.5, 1 << 20, 8);
        let accesses: Vec<Access> = (0..10).filter_map(|_| placed.next_access()).collect();
        assert_eq!(accesses.iter().map(|access| access.gap + 1).sum::<u32>(), 25);
        assert_eq!((accesses[1].address, accesses[1].function), ((1 << 20) + 64, 8));
    }
}

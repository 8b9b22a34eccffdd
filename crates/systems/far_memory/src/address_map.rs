//! Which memory has an address of the host.

use flashyard_memory::{MemoryError, Routing};
use flashyard_units::Bytes;

/// Addresses of the host: DRAM on the processor, then what decoders claim.
pub(crate) struct AddressMap {
    local: u64,
    /// Decoders of the path to the device; none where everything lies in DRAM on the processor.
    far: Option<Box<Routing>>,
    /// Requests that nothing has taken, and the address of the first.
    unclaimed: (u64, u64),
}

/// The memory that has an address, with the address there.
pub(crate) enum Claimed {
    Local(u64),
    Far(u64),
    Nothing,
}

impl AddressMap {
    /// Everything in DRAM on the processor.
    pub(crate) const LOCAL: Self = Self { local: u64::MAX, far: None, unclaimed: (0, 0) };

    /// So much DRAM on the processor from address 0 on, and what `far` claims behind it.
    ///
    /// A PCIe BAR is a window of bridges, and claimed like the range of a decoder.
    pub(crate) fn with_far(local: Bytes, far: Routing) -> Self {
        Self { local: local.get(), far: Some(Box::new(far)), unclaimed: (0, 0) }
    }

    #[inline]
    pub(crate) fn claimed(&self, address: u64) -> Claimed {
        if address < self.local {
            return Claimed::Local(address);
        }
        match self.far.as_ref().and_then(|routing| routing.route(address)) {
            Some(routed) => Claimed::Far(routed.address),
            None => Claimed::Nothing,
        }
    }

    #[cold]
    pub(crate) fn note_unclaimed(&mut self, address: u64) {
        let (count, first) = &mut self.unclaimed;
        *first = if *count == 0 { address } else { *first };
        *count += 1;
    }

    pub(crate) fn check(&self) -> Result<(), MemoryError> {
        let (count, address) = self.unclaimed;
        if count == 0 {
            return Ok(());
        }
        let ranges = self.far.iter().flat_map(|routing| routing.ranges());
        let ranges: Vec<String> = ranges.map(|[first, last]| format!("{first:#x} to {last:#x}")).collect();
        let claimed = if ranges.is_empty() { "nothing".to_owned() } else { ranges.join(", ") };
        Err(MemoryError::Unclaimed { address, count, local: self.local, claimed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_memory::{Node, Topology};
    use flashyard_units::SimSpan;

    #[test]
    fn addresses_that_nothing_has_are_one_error_with_the_first_of_them() {
        let device = Node::device(Bytes::new(1 << 20), SimSpan::from_ns(100)).behind(1);
        let local = Bytes::new(4096);
        let topology = Topology::enumerate(&device).expect("few buses");
        let routing = topology.one_after_another(local.get(), local).expect("the size is whole");
        let mut map = AddressMap::with_far(local, routing);
        assert!(matches!(map.claimed(4095), Claimed::Local(4095)));
        assert!(matches!(map.claimed(4096), Claimed::Far(4096)), "the device's first bytes are skipped");
        assert!(
            matches!(map.claimed((1 << 20) - 1), Claimed::Far(_)) && matches!(map.claimed(1 << 20), Claimed::Nothing)
        );
        assert_eq!(map.check(), Ok(()));
        map.note_unclaimed(1 << 20);
        map.note_unclaimed(1 << 30);
        let error = map.check().map_err(|error| error.to_string()).expect_err("two were noted");
        let expected = "2 requests to addresses that no memory has, the first to 0x100000: DRAM on the processor has 0x1000 bytes \
                        from 0 on, and HDM decoders claim 0x1000 to 0xfffff; give a larger device, or a smaller footprint";
        assert_eq!(error, expected);
    }
}

//! Where physical channels lie.

use super::record;
use flashyard_blk::VolumeInfo;
use flashyard_service::Leg;

/// Channels, and what shares them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelRoom {
    /// Legs.
    pub legs: u8,
    /// Virtual channels, which the volume is made of.
    pub channels: u16,
    /// Physical channels beyond these, to which virtual ones can be remapped. All of them together are a multiple of the legs.
    pub spares: u16,
    /// Requests of a virtual channel that are under way below at most.
    pub depth: u16,
}

/// Physical channels on legs, and the places of the record behind those of the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    legs: u16,
    pub(super) channels: u16,
    pub(super) physical: u16,
    /// Blocks of a channel.
    pub(super) blocks: u64,
    pub(super) block_bytes: u32,
    /// Blocks of a record.
    pub(super) record_blocks: u32,
    /// Blocks of a request below at most.
    pub(super) request_blocks: u32,
    /// Blocks of a leg, as far as they are used.
    leg_blocks: u64,
}

impl Shape {
    /// Channels on legs of which `leg` is the smallest; nothing where they have no block each.
    pub(super) fn new(room: ChannelRoom, leg: &VolumeInfo) -> Option<Self> {
        let ChannelRoom { legs, channels, spares, .. } = room;
        let (legs, physical) = (u16::from(legs), channels.checked_add(spares)?);
        if legs == 0 || channels == 0 || !physical.is_multiple_of(legs) {
            return None;
        }
        let record_blocks = record::blocks_of(channels.into(), leg.block_bytes.into());
        let leg_blocks = leg.limits.blocks;
        let blocks = leg_blocks.checked_sub(2 * record_blocks)? / u64::from(physical / legs);
        let record_blocks = u32::try_from(record_blocks).ok()?;
        (blocks > 0).then_some(Self {
            legs,
            channels,
            physical,
            blocks,
            block_bytes: leg.block_bytes,
            record_blocks,
            request_blocks: leg.limits.request_blocks,
            leg_blocks,
        })
    }

    /// The leg of a physical channel, and its first block there. Channels beside each other are on different legs.
    pub(super) fn place(&self, physical: u16) -> (Leg, u64) {
        (Leg((physical % self.legs) as u8), u64::from(physical / self.legs) * self.blocks)
    }

    /// The first block of a place of the record, on the first leg.
    pub(super) fn record_at(&self, place: u8) -> u64 {
        self.leg_blocks - (2 - u64::from(place)) * u64::from(self.record_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::VolumeLimits;
    use flashyard_units::VolumeId;

    #[test]
    fn no_block_is_in_two_channels_or_in_a_record() {
        for (legs, channels, spares, blocks) in [(1, 3, 1, 50), (2, 5, 1, 23), (3, 4, 2, 9), (4, 100, 28, 1000)] {
            let limits = VolumeLimits::new(blocks, false);
            let leg = VolumeInfo { id: VolumeId::new(0), block_bytes: 64, limits, protected: false };
            let room = ChannelRoom { legs, channels, spares, depth: 1 };
            let shape = Shape::new(room, &leg).expect("there is room");
            let mut seen = std::collections::BTreeSet::new();
            for physical in 0..shape.physical {
                let (leg, first) = shape.place(physical);
                assert!(leg.0 < legs && first + shape.blocks <= blocks);
                assert!((first..first + shape.blocks).all(|block| seen.insert((leg.0, block))));
            }
            for place in 0..2 {
                let first = shape.record_at(place);
                assert!(
                    (first..first + u64::from(shape.record_blocks))
                        .all(|block| seen.insert((0, block)) && block < blocks)
                );
            }
        }
    }

    #[test]
    fn channels_without_a_block_are_none() {
        let leg = |blocks| VolumeInfo {
            id: VolumeId::new(0),
            block_bytes: 4096,
            limits: VolumeLimits::new(blocks, false),
            protected: false,
        };
        let room = ChannelRoom { legs: 1, channels: 3, spares: 1, depth: 1 };
        assert!(
            Shape::new(room, &leg(6)).is_some()
                && Shape::new(room, &leg(5)).is_none()
                && Shape::new(room, &leg(1)).is_none()
        );
        assert!(Shape::new(ChannelRoom { legs: 3, ..room }, &leg(100)).is_none());
        assert!(Shape::new(ChannelRoom { channels: 0, ..room }, &leg(100)).is_none());
    }
}

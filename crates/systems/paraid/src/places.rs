//! Where the chunks of stripes lie, by design.

use crate::config::{ArrayConfig, ArrayRunError, Design, WIDTH_MAX};
use crate::latin::Latin;
use flashyard_array::layout::{Column, Layout, Member};
use flashyard_array::learned::{Chunk, LearnedMap, Place};

/// Most stripes: two gigabytes of what the simulator knows of them.
const STRIPES_MAX: u64 = 1 << 25;

/// A map from chunks of stripes to places on drives.
#[derive(Debug)]
pub(crate) enum Places {
    /// Groups of stripes with the same drives, behind each other.
    Groups(Layout),
    /// The learned map of such groups, which follows moves.
    Learned(Box<LearnedMap>),
    /// Latin squares.
    Latin(Latin),
    /// Groups of drives in the order of slots, each of `width` drives, with so many stripes together up to each.
    Slots {
        /// Drives of a group.
        width: usize,
        /// Stripes up to the end of each group.
        ends: Vec<u64>,
    },
}

impl Places {
    /// The places of a design.
    ///
    /// Errors: drives that make no array, or too many stripes.
    pub(crate) fn new(config: &ArrayConfig) -> Result<Self, ArrayRunError> {
        let member = |drive: &crate::RateConfig| Member {
            chunks: config.chunk.in_bytes(drive.capacity),
            speed: drive.read_rate.get(),
        };
        let members: Vec<Member> = config.drives.iter().map(member).collect();
        let places = match config.design {
            Design::Mdraid | Design::Straid | Design::LogRaid => Self::Groups(Layout::by_hand(&members, config.width)?),
            Design::ParaidStatic | Design::Paraid | Design::HeteroRaid => {
                Self::Learned(Box::new(LearnedMap::of(&Layout::new(&members, config.width)?)?))
            }
            Design::FusionRaid => Self::Latin(Latin::new(&members, config.width)?),
            Design::Swan => Self::slots(&members, config.width)?,
        };
        match places.stripes() {
            stripes if stripes > STRIPES_MAX => Err(ArrayRunError::Large(stripes)),
            _ => Ok(places),
        }
    }

    fn slots(members: &[Member], width: usize) -> Result<Self, ArrayRunError> {
        if members.len() < 2 * width {
            return Err(ArrayRunError::Groups { width, drives: members.len() });
        }
        let mut ends = Vec::new();
        let mut end = 0;
        for group in members.chunks_exact(width) {
            end += group.iter().map(|member| member.chunks).min().unwrap_or(0);
            ends.push(end);
        }
        Ok(Self::Slots { width, ends })
    }

    /// Stripes of all drives.
    pub(crate) fn stripes(&self) -> u64 {
        match self {
            Self::Groups(layout) => layout.stripes(),
            Self::Learned(map) => map.stripes().into(),
            Self::Latin(latin) => latin.stripes(),
            Self::Slots { ends, .. } => ends.last().copied().unwrap_or(0),
        }
    }

    /// Where a chunk lies: drive and place.
    #[inline]
    pub(crate) fn place(&self, stripe: u32, column: usize) -> Place {
        let of = |Column { drive, first }: Column| Place { drive, chunk: first as u32 };
        match self {
            Self::Groups(layout) => of(layout.place(stripe.into(), column)),
            Self::Learned(map) => map.get(Chunk { stripe, column: column as u8 }),
            Self::Latin(latin) => of(latin.place(stripe.into(), column)),
            Self::Slots { width, ends } => {
                let group = ends.partition_point(|&end| end <= u64::from(stripe));
                let first = if group == 0 { 0 } else { ends[group - 1] };
                Place { drive: (group * width + column) as u8, chunk: stripe - first as u32 }
            }
        }
    }

    /// The number of the group that a stripe is in, below 256: MD has an array for each.
    #[inline]
    pub(crate) fn group(&self, stripe: u32) -> usize {
        match self {
            Self::Groups(layout) => {
                let groups = layout.groups();
                (groups.partition_point(|group| group.first <= u64::from(stripe)) - 1).min(255)
            }
            Self::Slots { ends, .. } => ends.partition_point(|&end| end <= u64::from(stripe)),
            Self::Learned(_) | Self::Latin(_) => 0,
        }
    }

    /// A stripe with two chunks on one drive.
    pub(crate) fn shared(&self, width: usize) -> Option<u32> {
        let shares = |stripe: &u32| {
            let mut drives = [u8::MAX; WIDTH_MAX];
            (0..width).any(|column| {
                drives[column] = self.place(*stripe, column).drive;
                drives[..column].contains(&drives[column])
            })
        };
        (0..self.stripes() as u32).find(shares)
    }

    /// Ends of groups of stripes that a log fills apart.
    pub(crate) fn log_ends(&self) -> Vec<u64> {
        match self {
            Self::Slots { ends, .. } => ends.clone(),
            _ => vec![self.stripes()],
        }
    }
}

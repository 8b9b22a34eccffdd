//! Services that a stack's runtime runs one after the other, the last of them perhaps over several drives.
//! Source: sheet leapio §3.6.

use flashyard_blk::VolumeInfo;
use flashyard_service::{Leg, Service};
use flashyard_services::{Below, Mirrored, Prioritized, Shares, Striped, Tree, VersionRoom, Versioned};
use flashyard_units::SimSpan;

/// Why services make no chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// A number outside its range.
    #[error("{name}: {value}, give {least} to {most}")]
    Range {
        /// Which one.
        name: &'static str,
        /// The value given.
        value: u64,
        /// The least possible.
        least: u64,
        /// The most possible.
        most: u64,
    },
    /// A service over several drives that is not the last one, or a second one.
    #[error("services over several drives, and versions: give one, as the last of the chain")]
    Spread,
}

/// Services of a chain at most. Source: \[A\].
pub const LINKS_MAX: usize = 4;

/// A service of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Interactive requests before batch.
    Priority(Shares),
    /// Chunks of so many blocks lie on so many drives in turn.
    Stripe {
        /// Drives, 2 to 8.
        legs: u8,
        /// Blocks of a chunk, 1 or more.
        chunk: u32,
    },
    /// Every block is on so many drives, 2 to 8.
    Mirror(u8),
    /// Versions are kept, the first of which is taken when the run begins: the virtual drive is a row of windows.
    Versions(VersionRoom),
}

/// Services of each virtual drive, from the guest's side on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// They.
    pub links: [Option<Link>; LINKS_MAX],
    /// Time of a core of the host that each of them takes for a request.
    pub cost: SimSpan,
}

impl Link {
    fn legs(self) -> u8 {
        match self {
            Self::Priority(_) | Self::Versions(_) => 1,
            Self::Stripe { legs, .. } | Self::Mirror(legs) => legs,
        }
    }
}

impl Chain {
    /// Its services.
    pub fn iter(&self) -> impl Iterator<Item = Link> {
        self.links.into_iter().flatten()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Drives of each virtual drive.
    pub(crate) fn legs(&self) -> u32 {
        self.iter().last().map_or(1, |link| link.legs().into())
    }

    /// Drives that a written block goes to.
    pub(crate) fn copies(&self) -> u32 {
        self.iter().map(|link| if let Link::Mirror(legs) = link { legs.into() } else { 1 }).product()
    }

    /// Whether versions are kept.
    pub(crate) fn keeps_versions(&self) -> bool {
        self.iter().any(|link| matches!(link, Link::Versions(_)))
    }

    /// Blocks of a virtual drive whose drives are like `info`.
    pub(crate) fn blocks(&self, info: &VolumeInfo) -> u32 {
        let blocks = info.limits.blocks as u32;
        match self.iter().last() {
            Some(Link::Versions(room)) => Versioned::new(room).limits(&[*info]).blocks as u32,
            Some(Link::Stripe { legs, chunk }) => blocks / chunk * chunk * u32::from(legs),
            _ => blocks,
        }
    }

    /// Time on a core of the host for a request.
    pub(crate) fn time(&self) -> SimSpan {
        self.cost * self.iter().count() as u64
    }

    /// Checks the services over drives of `blocks` each.
    ///
    /// Errors: a number outside its range; a service over several drives that is not the last one.
    pub(crate) fn validate(&self, blocks: u32) -> Result<(), ChainError> {
        let range = |name, value: u64, least, most| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(ChainError::Range { name, value, least, most }),
        };
        for link in self.iter() {
            match link {
                Link::Priority(shares) => {
                    for (name, count) in [
                        ("orders of which one is batch", shares.batch_one_in),
                        ("orders under way", shares.most),
                        ("batch orders under way", shares.batch_most),
                    ] {
                        range(name, count.into(), 1, 65_536)?;
                    }
                }
                Link::Stripe { legs, chunk } => {
                    range("drives of a stripe", legs.into(), 2, 8)?;
                    range("blocks of a chunk", chunk.into(), 1, blocks.into())?;
                    range("blocks of a stripe", u64::from(blocks) * u64::from(legs), 1, u32::MAX.into())?;
                }
                Link::Mirror(legs) => range("drives of a mirror", legs.into(), 2, 8)?,
                Link::Versions(room) => {
                    let metadata = room.store.saturating_add(room.log).saturating_mul(2);
                    range("versions", room.slots.into(), 1, 64)?;
                    range("blocks of the store and of its log, twice", metadata, 2, blocks.into())?;
                }
            }
        }
        let spreads = self.iter().filter(|link| link.legs() > 1).count();
        // Windows are those of the virtual drive.
        let keeps = self.iter().filter(|link| matches!(link, Link::Versions(_))).count();
        let is_last = !self.keeps_versions() || matches!(self.iter().last(), Some(Link::Versions(_)));
        if keeps > 1 || !is_last {
            return Err(ChainError::Spread);
        }
        if spreads > 1 || spreads == 1 && self.iter().last().is_none_or(|link| link.legs() == 1) {
            return Err(ChainError::Spread);
        }
        Ok(())
    }

    /// The services over drives of which `info` is one, if there are any.
    pub(crate) fn build(&self, info: &VolumeInfo) -> Option<Tree> {
        let count = self.iter().count();
        let below = |(number, link): (usize, Link)| {
            let service: Box<dyn Service + Send> = match link {
                Link::Priority(shares) => Box::new(Prioritized::new(shares)),
                Link::Stripe { legs, chunk } => Box::new(Striped::new(legs, chunk)),
                Link::Mirror(legs) => Box::new(Mirrored::new(legs, info.limits.blocks)),
                Link::Versions(room) => Box::new(Versioned::new(room).on_a_new_leg()),
            };
            let legs = match number + 1 {
                last if last == count => (0..link.legs()).map(|leg| Below::Leg(Leg(leg))).collect(),
                next => vec![Below::Service(next)],
            };
            (service, legs)
        };
        let services: Vec<_> = self.iter().enumerate().map(below).collect();
        (count > 0).then(|| Tree::new(services).expect("a chain is a tree"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(links: &[Link]) -> Chain {
        let mut chain = Chain::default();
        links.iter().enumerate().for_each(|(place, &link)| chain.links[place] = Some(link));
        chain
    }

    #[test]
    fn a_chain_spreads_at_its_end_alone() {
        let (first, stripe) = (Link::Priority(Shares::published(1)), Link::Stripe { legs: 2, chunk: 16 });
        for good in [&[][..], &[first], &[stripe], &[first, stripe], &[first, Link::Mirror(2)]] {
            assert!(chain(good).validate(1000).is_ok(), "{good:?}");
        }
        for bad in [&[stripe, first][..], &[Link::Mirror(2), stripe], &[Link::Mirror(9)]] {
            assert!(chain(bad).validate(1000).is_err(), "{bad:?}");
        }
        let both = chain(&[first, stripe]);
        let info = VolumeInfo {
            id: flashyard_units::VolumeId::new(0),
            block_bytes: 4096,
            limits: flashyard_blk::VolumeLimits::new(1000, false),
            protected: true,
        };
        assert_eq!((both.legs(), both.copies(), both.blocks(&info)), (2, 1, 1984));
        assert_eq!(chain(&[first, Link::Mirror(3)]).copies(), 3);
    }
}

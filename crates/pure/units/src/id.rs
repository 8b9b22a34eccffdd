//! Numbers of things, each kind in a type of its own: a volume is not a drive, though both count from zero.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u16);

        impl $name {
            /// The one with this number, from 0.
            pub const fn new(number: u16) -> Self {
                Self(number)
            }

            /// Its number, for formats and messages.
            pub const fn get(self) -> u16 {
                self.0
            }

            /// Its place in a list of all of its kind.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The first `count` of its kind, in order.
            pub fn first(count: u16) -> impl Iterator<Item = Self> {
                (0..count).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A volume: what clients address blocks of.
    VolumeId
}

id! {
    /// A drive: what keeps bytes, and what can be pulled out.
    DriveId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_from_zero() {
        let drives: Vec<DriveId> = DriveId::first(3).collect();
        assert_eq!(drives, [0, 1, 2].map(DriveId::new));
        assert!(drives.iter().enumerate().all(|(place, drive)| drive.index() == place));
        assert_eq!((VolumeId::new(65_535).get(), VolumeId::new(65_535).index()), (65_535, 65_535));
        assert_eq!(VolumeId::new(12).to_string(), "12");
    }
}

//! Directories that are being listed: each has a copy of its names from the time of its first request, in the order of their places. A
//! listing takes many requests, and a copy for each of them would take the square of the names.

use flashyard_blk::Volume;
use flashyard_cvfs::{FileSystem, FsError, Kind};
use std::collections::btree_map::{BTreeMap, Entry};

/// A name in a listing, and its place there: a listing that goes on behind a place finds what comes after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) place: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) ino: u32,
    pub(crate) kind: Kind,
}

/// The names of a directory at one time.
#[derive(Debug)]
pub(crate) struct Listing(Vec<Listed>);

impl Listing {
    /// The names of a directory as they are now.
    ///
    /// Errors: it is no directory, or cannot be read.
    pub(crate) fn of(fs: &mut FileSystem<impl Volume>, ino: u32) -> Result<Self, FsError> {
        let (entries, parent) = (fs.list(ino)?, fs.lookup(ino, b"..")?);
        let dot = |place: u64, ino| Listed { place, name: vec![b'.'; place as usize], ino, kind: Kind::Directory };
        let mut listed = vec![dot(1, ino), dot(2, parent)];
        listed.extend(entries.into_iter().map(|entry| {
            let place = place_of(&entry.name);
            Listed { place, name: entry.name, ino: entry.ino, kind: entry.kind }
        }));
        listed.sort_unstable_by(|one, other| (one.place, &one.name).cmp(&(other.place, &other.name)));
        let mut last = 0;
        for one in &mut listed {
            one.place = one.place.max(last + 1);
            last = one.place;
        }
        Ok(Self(listed))
    }

    /// Names behind a place.
    fn behind(&self, place: u64) -> &[Listed] {
        &self.0[self.0.partition_point(|one| one.place <= place)..]
    }
}

/// The place of a name, which does not depend on other names but for those with the same hash: a name that goes must not shift those
/// after it.
fn place_of(name: &[u8]) -> u64 {
    // FNV-1a; 62 bits of it, above the places of the two dots.
    let hash = name
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash >> 2).max(3)
}

/// Listings by the handle of the open directory.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    next: u64,
    begun: BTreeMap<u64, Listing>,
}

impl Listings {
    /// A handle for a directory that is opened.
    pub(crate) fn open(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The directory of a handle is closed.
    pub(crate) fn close(&mut self, handle: u64) {
        self.begun.remove(&handle);
    }

    /// Names for one request, those behind a place, until `add` has no more room. `make` copies them, for a listing that begins or begins again.
    ///
    /// Errors: those of `make`.
    pub(crate) fn read(
        &mut self,
        handle: u64,
        behind: u64,
        make: impl FnOnce() -> Result<Listing, FsError>,
        mut add: impl FnMut(&Listed) -> bool,
    ) -> Result<(), FsError> {
        let listing = match self.begun.entry(handle) {
            Entry::Occupied(begun) if behind > 0 => begun.into_mut(),
            begun => begun.insert_entry(make()?).into_mut(),
        };
        let _ = listing.behind(behind).iter().all(|one| !add(one));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_cvfs::{Config, Format, MemoryDevice, NewInode, ROOT};

    type Fs = FileSystem<MemoryDevice>;

    fn filled(names: usize) -> Fs {
        let format = Format { segment_blocks: 16, id: 1 };
        let mut fs = FileSystem::format(MemoryDevice::new(4000), format, Config::default(), 0).expect("it has room");
        for name in 0..names {
            let new = NewInode::of(Kind::File, 0o644);
            fs.create(ROOT, name.to_string().as_bytes(), new, 0).expect("it has room");
        }
        fs
    }

    /// The names that one request has room for, and the place behind them.
    fn some(listings: &mut Listings, handle: u64, behind: u64, fs: &mut Fs, made: &mut u32) -> (Vec<String>, u64) {
        let (mut names, mut last) = (Vec::new(), behind);
        let make = || {
            *made += 1;
            Listing::of(fs, ROOT)
        };
        let add = |one: &Listed| {
            if names.len() == 20 {
                return true;
            }
            names.push(String::from_utf8(one.name.clone()).expect("it is text"));
            last = one.place;
            false
        };
        listings.read(handle, behind, make, add).expect("it is a directory");
        (names, last)
    }

    #[test]
    fn a_directory_is_copied_once_for_a_listing_of_many_requests() {
        let (mut fs, mut listings, mut made) = (filled(500), Listings::default(), 0);
        let handles = [listings.open(), listings.open()];
        for (handle, copies) in handles.into_iter().zip([1, 2]) {
            let (mut all, mut at) = (Vec::new(), 0);
            loop {
                let (names, last) = some(&mut listings, handle, at, &mut fs, &mut made);
                if names.is_empty() {
                    break;
                }
                all.extend(names);
                at = last;
            }
            assert_eq!((made, &all[..2]), (copies, &[".".to_owned(), "..".to_owned()][..]));
            all.sort();
            all.dedup();
            assert_eq!(all.len(), 502);
        }
        // From the beginning again it is the directory as it is by then.
        fs.unlink(ROOT, b"7", 0).expect("it is there");
        let (_, at) = some(&mut listings, handles[0], 0, &mut fs, &mut made);
        assert_eq!((made, listings.begun[&handles[0]].0.len()), (3, 501));
        // Places are those of names: a listing that another handle goes on with finds the same ones behind them.
        let late = listings.open();
        let (names, _) = some(&mut listings, late, at, &mut fs, &mut made);
        assert_eq!((names, made), (some(&mut listings, handles[0], at, &mut fs, &mut made).0, 4));
        handles.into_iter().chain([late]).for_each(|handle| listings.close(handle));
        assert!(listings.begun.is_empty());
    }

    #[test]
    fn names_of_one_place_are_all_listed() {
        let one = |place, name: &[u8]| Listed { place, name: name.to_vec(), ino: 9, kind: Kind::File };
        let mut listing = Listing::of(&mut filled(3), ROOT).expect("it is a directory");
        assert!(listing.0.is_sorted_by(|one, other| one.place < other.place), "{listing:?}");
        listing.0.push(one(u64::MAX, b"last"));
        assert_eq!(listing.behind(u64::MAX - 1), [one(u64::MAX, b"last")]);
        assert!(listing.behind(u64::MAX).is_empty());
    }
}

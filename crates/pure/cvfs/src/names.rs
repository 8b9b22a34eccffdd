//! Names and attributes: operations that make, find, move and delete files.

use crate::device::{BLOCK_BYTES, zeros};
use crate::directory::{Directory, Entry, check_name};
use crate::error::FsError;
use crate::fs::{Cost, FileSystem, ROOT};
use crate::layout::ORPHANS_MAX;
use crate::nameless::{DELETE_DIRTY, delete_unheld};
use crate::node::{Inode, Kind};
use crate::walk::check_nodes;
use flashyard_blk::Volume;

/// Attributes of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewInode {
    /// Its kind.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl NewInode {
    /// Attributes for the user with number zero.
    pub fn of(kind: Kind, mode: u16) -> Self {
        Self { kind, mode, uid: 0, gid: 0 }
    }

    pub(crate) fn inode(self, parent: u32, now: u64) -> Inode {
        let directory = self.kind == Kind::Directory;
        Inode {
            kind: self.kind,
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            links: 1 + u32::from(directory),
            size: 0,
            pages: 0,
            accessed: now,
            modified: now,
            changed: now,
            parent: if directory { parent } else { 0 },
        }
    }
}

/// Attributes to change; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits.
    pub mode: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Time of the last read.
    pub accessed: Option<u64>,
    /// Time of the last change of the contents.
    pub modified: Option<u64>,
}

/// Carries out a change of names that is whole or not at all: where a part of it fails, memory holds a half of it, and the last
/// checkpoint what was before.
fn whole<D: Volume, T>(
    fs: &mut FileSystem<D>,
    change: impl FnOnce(&mut FileSystem<D>) -> Result<T, FsError>,
) -> Result<T, FsError> {
    let done = change(fs);
    fs.frozen |= done.is_err();
    done
}

/// Whether the inode of a directory's entry is one that the entry can name: directories have no checksums.
///
/// Errors: it is not, or cannot be read.
fn check_entry<D: Volume>(fs: &mut FileSystem<D>, at: (u32, &[u8]), (ino, kind): (u32, Kind)) -> Result<(), FsError> {
    let is_whole = match fs.inode(ino) {
        Err(FsError::NotFound) => false,
        found => {
            let inode = found?;
            let is_here = kind != Kind::Directory || (inode.parent == at.0 && ino != ROOT);
            inode.kind == kind && inode.links > 0 && is_here
        }
    };
    if is_whole {
        return Ok(());
    }
    let page = fs.directory(at.0)?.page_of(at.1).unwrap_or(0);
    Err(FsError::Corrupt { what: "directory", block: fs.block_of(at.0, page.into())? })
}

/// Whether an inode that loses a name can be deleted, if it is. Space must be prepared.
///
/// Errors: a node of it cannot be read.
fn check_gone<D: Volume>(fs: &mut FileSystem<D>, ino: u32) -> Result<(), FsError> {
    let inode = fs.inode(ino)?;
    let is_directory = inode.kind == Kind::Directory;
    if fs.held.stays(ino, fs.orphans.len()) || (inode.links > 1 && !is_directory) {
        Ok(())
    } else {
        check_nodes(fs, ino, 0)
    }
}

impl<D: Volume> FileSystem<D> {
    /// Looks up the inode of a name in a directory.
    ///
    /// Errors: not a directory, no such name, one that is not allowed.
    pub fn lookup(&mut self, parent: u32, name: &[u8]) -> Result<u32, FsError> {
        match name {
            b"." => Ok(parent),
            b".." => Ok(self.inode(parent)?.parent),
            _ => {
                check_name(name)?;
                self.directory(parent)?.find(name).map(|(ino, _)| ino).ok_or(FsError::NotFound)
            }
        }
    }

    /// The names of a directory, in their order as bytes.
    ///
    /// Errors: not a directory.
    pub fn list(&mut self, ino: u32) -> Result<Vec<Entry>, FsError> {
        Ok(self.directory(ino)?.entries().collect())
    }

    /// Makes a file, directory or empty symbolic link; returns its inode.
    ///
    /// Errors: the name is taken or not allowed, no space.
    pub fn create(&mut self, parent: u32, name: &[u8], new: NewInode, now: u64) -> Result<u32, FsError> {
        self.prepare_name(parent, name, 1)?;
        whole(self, |fs| {
            let ino = fs.add_inode(new.inode(parent, now))?;
            fs.add_name(parent, name, ino, new.kind)?;
            fs.touch_directory(parent, now, i32::from(new.kind == Kind::Directory))?;
            Ok(ino)
        })
    }

    /// Makes a symbolic link to `target`.
    ///
    /// Errors: as for [`Self::create`]; an empty target, or one of more than 4095 bytes.
    pub fn symlink(
        &mut self,
        parent: u32,
        name: &[u8],
        target: &[u8],
        new: NewInode,
        now: u64,
    ) -> Result<u32, FsError> {
        if target.is_empty() || target.len() >= BLOCK_BYTES {
            return Err(FsError::Invalid("a symbolic link has 1 to 4095 bytes"));
        }
        // All space at once: no checkpoint may come between the name and the target.
        self.prepare_name(parent, name, 2)?;
        let mut inode = NewInode { kind: Kind::Symlink, ..new }.inode(parent, now);
        inode.size = target.len() as u64;
        whole(self, |fs| {
            let ino = fs.add_inode(inode)?;
            fs.put_page(ino, 0, zeros())?[..target.len()].copy_from_slice(target);
            fs.add_name(parent, name, ino, Kind::Symlink)?;
            fs.touch_directory(parent, now, 0)?;
            Ok(ino)
        })
    }

    /// Gives a file another name.
    ///
    /// Errors: a directory, the name is taken or not allowed, no space.
    pub fn link(&mut self, ino: u32, parent: u32, name: &[u8], now: u64) -> Result<(), FsError> {
        let inode = self.inode(ino)?;
        if inode.kind == Kind::Directory {
            return Err(FsError::IsDirectory);
        }
        if inode.links == 0 {
            return Err(FsError::NotFound);
        }
        self.prepare_name(parent, name, 0)?;
        whole(self, |fs| {
            fs.add_name(parent, name, ino, inode.kind)?;
            let inode = fs.inode_mut(ino)?;
            inode.links += 1;
            inode.changed = now;
            fs.touch_directory(parent, now, 0)
        })
    }

    /// Takes a name of a file or symbolic link away. The last one takes the file along, unless it is open.
    ///
    /// Errors: no such name, a directory.
    pub fn unlink(&mut self, parent: u32, name: &[u8], now: u64) -> Result<(), FsError> {
        let (ino, kind) = self.directory(parent)?.find(name).ok_or(FsError::NotFound)?;
        if kind == Kind::Directory {
            return Err(FsError::IsDirectory);
        }
        check_entry(self, (parent, name), (ino, kind))?;
        self.prepare(Cost { new: 0, dirty: DELETE_DIRTY, frees: true })?;
        self.check_orphans(ino)?;
        check_gone(self, ino)?;
        whole(self, |fs| {
            fs.remove_name(parent, name)?;
            fs.drop_link(ino, now)?;
            fs.touch_directory(parent, now, 0)
        })
    }

    /// Deletes an empty directory.
    ///
    /// Errors: no such name, not a directory, not empty.
    pub fn remove_directory(&mut self, parent: u32, name: &[u8], now: u64) -> Result<(), FsError> {
        let ino = self.empty_directory(parent, name)?;
        self.prepare(Cost { new: 0, dirty: DELETE_DIRTY, frees: true })?;
        check_gone(self, ino)?;
        whole(self, |fs| {
            fs.remove_name(parent, name)?;
            fs.drop_directory(ino)?;
            fs.touch_directory(parent, now, -1)
        })
    }

    /// Gives a file or directory another name, in place of the holder of that name.
    ///
    /// Errors: no such name, a directory in place of a file or of one that is not empty or the other way round, a
    /// directory into itself, no space.
    pub fn rename(&mut self, from: (u32, &[u8]), to: (u32, &[u8]), replace: bool, now: u64) -> Result<(), FsError> {
        check_name(to.1)?;
        let (ino, kind) = self.directory(from.0)?.find(from.1).ok_or(FsError::NotFound)?;
        let target = self.directory(to.0)?.find(to.1);
        if target.is_some() && !replace {
            return Err(FsError::Exists);
        }
        if target.is_some_and(|(target, _)| target == ino) {
            return Ok(());
        }
        check_entry(self, from, (ino, kind))?;
        if let Some(target) = target {
            check_entry(self, to, target)?;
        }
        self.check_rename(ino, kind, to, target)?;
        let page = self.page_for(to.0, to.1)?;
        let extra = Cost { new: 0, dirty: DELETE_DIRTY, frees: false };
        self.prepare_pages(to.0, page..page + 1, extra)?;
        if let Some((target, of)) = target
            && of != Kind::Directory
        {
            self.check_orphans(target)?;
        }
        if let Some((target, _)) = target {
            check_gone(self, target)?;
        }
        whole(self, |fs| {
            if let Some((target, of)) = target {
                fs.remove_name(to.0, to.1)?;
                if of == Kind::Directory {
                    fs.drop_directory(target)?;
                    fs.touch_directory(to.0, now, -1)?;
                } else {
                    fs.drop_link(target, now)?;
                }
            }
            fs.remove_name(from.0, from.1)?;
            fs.add_name(to.0, to.1, ino, kind)?;
            let moved = i32::from(kind == Kind::Directory && from.0 != to.0);
            fs.touch_directory(from.0, now, -moved)?;
            fs.touch_directory(to.0, now, moved)?;
            let inode = fs.inode_mut(ino)?;
            inode.changed = now;
            if kind == Kind::Directory {
                inode.parent = to.0;
            }
            Ok(())
        })
    }

    fn check_rename(
        &mut self,
        ino: u32,
        kind: Kind,
        to: (u32, &[u8]),
        target: Option<(u32, Kind)>,
    ) -> Result<(), FsError> {
        match (kind == Kind::Directory, target) {
            (true, Some((_, of))) if of != Kind::Directory => return Err(FsError::NotDirectory),
            (false, Some((_, Kind::Directory))) => return Err(FsError::IsDirectory),
            (true, Some(_)) => drop(self.empty_directory(to.0, to.1)?),
            _ => {}
        }
        let mut above = to.0;
        while kind == Kind::Directory && above != ROOT {
            if above == ino {
                return Err(FsError::Invalid("a directory cannot go into itself"));
            }
            above = self.inode(above)?.parent;
        }
        Ok(())
    }

    /// Changes attributes.
    ///
    /// Errors: no such inode, no space for the changed inode.
    pub fn set_attributes(&mut self, ino: u32, attributes: Attributes, now: u64) -> Result<Inode, FsError> {
        self.inode(ino)?;
        self.prepare(Cost { new: 0, dirty: 1, frees: true })?;
        let inode = self.inode_mut(ino)?;
        inode.mode = attributes.mode.unwrap_or(inode.mode);
        inode.uid = attributes.uid.unwrap_or(inode.uid);
        inode.gid = attributes.gid.unwrap_or(inode.gid);
        inode.accessed = attributes.accessed.unwrap_or(inode.accessed);
        inode.modified = attributes.modified.unwrap_or(inode.modified);
        inode.changed = now;
        Ok(*inode)
    }

    /// Keeps a file even if its last name goes, until as many calls of [`Self::release`].
    ///
    /// Errors: no such inode.
    pub fn open(&mut self, ino: u32) -> Result<(), FsError> {
        self.inode(ino)?;
        self.held.open(ino);
        Ok(())
    }

    /// Takes one [`Self::open`] back; a file without a name goes with the last one, unless a kernel knows it.
    ///
    /// Errors: the device fails; a file whose nodes cannot be read stays without a name.
    pub fn release(&mut self, ino: u32) -> Result<(), FsError> {
        self.held.close(ino);
        delete_unheld(self, ino)
    }

    /// Frees an inode with all its pages.
    pub(crate) fn delete_inode(&mut self, ino: u32) -> Result<(), FsError> {
        self.directories.remove(&ino);
        self.held.gone(ino);
        let done = self.cut(ino, 0).and_then(|()| self.drop_node(ino));
        // Half of a file is gone in memory, all of it is there in the last checkpoint.
        self.frozen |= done.is_err();
        done
    }

    /// Finds space for a new name and `nodes` nodes besides.
    fn prepare_name(&mut self, parent: u32, name: &[u8], nodes: u64) -> Result<(), FsError> {
        check_name(name)?;
        if self.directory(parent)?.find(name).is_some() {
            return Err(FsError::Exists);
        }
        if self.inode(parent)?.links == 0 {
            return Err(FsError::NotFound);
        }
        if u64::from(self.nodes.used) + self.held.unused() + nodes + 4 > u64::from(self.addresses.entries()) - 2 {
            return Err(FsError::NoSpace);
        }
        let page = self.page_for(parent, name)?;
        self.prepare_pages(parent, page..page + 1, Cost { new: nodes, dirty: nodes + 2, frees: false })
    }

    fn empty_directory(&mut self, parent: u32, name: &[u8]) -> Result<u32, FsError> {
        let (ino, kind) = self.directory(parent)?.find(name).ok_or(FsError::NotFound)?;
        if kind != Kind::Directory {
            return Err(FsError::NotDirectory);
        }
        check_entry(self, (parent, name), (ino, kind))?;
        if self.directory(ino)?.is_empty() { Ok(ino) } else { Err(FsError::NotEmpty) }
    }

    fn check_orphans(&mut self, ino: u32) -> Result<(), FsError> {
        let stays = self.held.is_open(ino) && self.inode(ino)?.links == 1;
        if stays && self.orphans.len() >= ORPHANS_MAX { Err(FsError::TooManyOrphans) } else { Ok(()) }
    }

    fn drop_link(&mut self, ino: u32, now: u64) -> Result<(), FsError> {
        let inode = self.inode_mut(ino)?;
        inode.links =
            inode.links.checked_sub(1).ok_or(FsError::Corrupt { what: "count of names, inode", block: ino })?;
        inode.changed = now;
        if inode.links > 0 {
            return Ok(());
        }
        if self.held.stays(ino, self.orphans.len()) {
            self.orphans.insert(ino);
            self.changed = true;
            return Ok(());
        }
        self.delete_inode(ino)
    }

    fn drop_directory(&mut self, ino: u32) -> Result<(), FsError> {
        if self.held.stays(ino, self.orphans.len()) {
            self.inode_mut(ino)?.links = 0;
            self.orphans.insert(ino);
            self.changed = true;
            return Ok(());
        }
        self.delete_inode(ino)
    }

    fn touch_directory(&mut self, ino: u32, now: u64, links: i32) -> Result<(), FsError> {
        let inode = self.inode_mut(ino)?;
        inode.links = inode.links.wrapping_add_signed(links);
        (inode.modified, inode.changed) = (now, now);
        Ok(())
    }

    /// The names of a directory.
    pub(crate) fn directory(&mut self, ino: u32) -> Result<&mut Directory, FsError> {
        if !self.directories.contains_key(&ino) {
            let directory = self.load_directory(ino)?;
            self.directories.insert(ino, directory);
        }
        Ok(self.directories.get_mut(&ino).expect("just loaded"))
    }

    fn load_directory(&mut self, ino: u32) -> Result<Directory, FsError> {
        let inode = self.inode(ino)?;
        if inode.kind != Kind::Directory {
            return Err(FsError::NotDirectory);
        }
        let mut directory = Directory::default();
        for number in 0..(inode.size / BLOCK_BYTES as u64) as u32 {
            let page = self.page(ino, number.into())?;
            directory.read_page(number, &page)?;
        }
        Ok(directory)
    }

    /// The page that a name would go to.
    pub(crate) fn page_for(&mut self, ino: u32, name: &[u8]) -> Result<u64, FsError> {
        Ok(self.directory(ino)?.page_for(name).into())
    }

    /// Adds a name that is not there. Space must be prepared.
    pub(crate) fn add_name(&mut self, ino: u32, name: &[u8], of: u32, kind: Kind) -> Result<(), FsError> {
        let number = self.directory(ino)?.page_for(name);
        let mut page = self.page(ino, number.into())?;
        let pages = self.directory(ino)?.add(number, &mut page, name, (of, kind));
        self.put_page(ino, number.into(), page)?;
        self.inode_mut(ino)?.size = pages * BLOCK_BYTES as u64;
        Ok(())
    }

    /// Takes a name out that is there. Space must be prepared.
    pub(crate) fn remove_name(&mut self, ino: u32, name: &[u8]) -> Result<(), FsError> {
        let number = self.directory(ino)?.page_of(name).ok_or(FsError::NotFound)?;
        let mut page = self.page(ino, number.into())?;
        self.directory(ino)?.remove(number, &mut page, name)?;
        self.put_page(ino, number.into(), page)?;
        Ok(())
    }
}

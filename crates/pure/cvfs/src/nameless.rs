//! Files without a name: they are there as long as they are held, and as long as a kernel knows their numbers no other file has these.

use crate::error::FsError;
use crate::fs::{Cost, FileSystem};
use crate::walk::check_nodes;
use flashyard_blk::Volume;

/// Blocks that deleting a name and its file makes dirty at most: two pages and four inodes, and leaves.
pub(crate) const DELETE_DIRTY: u64 = 12;

/// A kernel is told of a file: its number is not that of another one until as many calls of [`forget_number`].
///
/// Errors: no such inode.
pub fn know_number<D: Volume>(fs: &mut FileSystem<D>, ino: u32) -> Result<(), FsError> {
    fs.inode(ino)?;
    fs.held.know(ino);
    Ok(())
}

/// Takes so many calls of [`know_number`] back. A file without a name goes with the last one, if it is not open.
///
/// Errors: the device fails; a file whose nodes cannot be read stays without a name.
pub fn forget_number<D: Volume>(fs: &mut FileSystem<D>, ino: u32, times: u64) -> Result<(), FsError> {
    fs.held.forget(ino, times);
    delete_unheld(fs, ino)
}

/// Deletes a file without a name that is held no more.
pub(crate) fn delete_unheld<D: Volume>(fs: &mut FileSystem<D>, ino: u32) -> Result<(), FsError> {
    if fs.held.is_held(ino) || !fs.orphans.contains(&ino) {
        return Ok(());
    }
    fs.prepare(Cost { new: 0, dirty: DELETE_DIRTY, frees: true })?;
    check_nodes(fs, ino, 0)?;
    fs.orphans.remove(&ino);
    fs.delete_inode(ino)
}

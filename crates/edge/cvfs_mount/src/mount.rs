//! The mount: requests of the kernel, and the thread that lets time pass.

use crate::control::{Asked, INFO, SHRINK, UNDER_WAY, USAGE, usage_text};
use crate::listing::{Listing, Listings};
use flashyard_blk::{RequestError, VolumeError};
use flashyard_cvfs::{
    Attributes, FileSystem, FsError, Inode, Kind, NewInode, forget_clean, forget_number, know_number,
};
use flashyard_units::SimTime;
use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, Session, SessionUnmounter, TimeOrNow,
    WriteFlags,
};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Any device that a mount can own.
pub type Device = Box<dyn flashyard_blk::Volume + Send>;

/// How long the kernel may believe an answer. All changes go through it.
const TTL: Duration = Duration::from_secs(10);
/// Between ticks.
const TICK: Duration = Duration::from_millis(50);
/// Between checkpoints that no request asked for.
const CHECKPOINT: Duration = Duration::from_secs(5);
/// Blocks that a change of size moves while programs wait.
const STEP_BLOCKS: u32 = 1024;

/// The permission bit by which what is new in a directory belongs to its group. Source: inode(7)
const SETGID: u16 = 0o2000;

/// Why there is no mount.
#[derive(Debug, thiserror::Error)]
#[error("no mount at {path}")]
pub struct MountError {
    path: String,
    source: std::io::Error,
}

/// State shared by the kernel's thread and the other one.
struct Shared {
    fs: Mutex<FileSystem<Device>>,
    /// How the last change of size goes, as text.
    shrinking: Mutex<String>,
    resizing: AtomicBool,
    requests: AtomicU64,
    over: AtomicBool,
    listings: Mutex<Listings>,
}

impl Shared {
    fn new(fs: FileSystem<Device>) -> Self {
        Self {
            fs: Mutex::new(fs),
            shrinking: Mutex::new("none".to_owned()),
            resizing: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            over: AtomicBool::new(false),
            listings: Mutex::default(),
        }
    }

    fn fs(&self) -> MutexGuard<'_, FileSystem<Device>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.quiet()
    }

    /// Without counting as a request of a program.
    fn quiet(&self) -> MutexGuard<'_, FileSystem<Device>> {
        // A panic inside the file system leaves memory that no checkpoint may be made of.
        self.fs.lock().unwrap_or_else(|poisoned| {
            eprintln!("cvfs: stopped after a panic");
            drop(PoisonError::into_inner(poisoned));
            std::process::exit(70)
        })
    }

    /// How the last change of size goes, to be read or changed.
    fn tell(&self) -> MutexGuard<'_, String> {
        self.shrinking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Directories that are open. Locked before the file system.
    fn listings(&self) -> MutexGuard<'_, Listings> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass until the mount is over.
    fn pass_time(&self) {
        let begun = Instant::now();
        let mut checkpoint = begun;
        let mut seen = 0;
        while !self.over.load(Ordering::Relaxed) {
            if self.resizing.load(Ordering::Relaxed) {
                self.resize();
                // Programs take turns with steps.
                thread::sleep(Duration::from_micros(200));
                continue;
            }
            let requests = self.requests.load(Ordering::Relaxed);
            // Time stands still at the end of its range, after 213 days: what is due by age then waits for a checkpoint.
            let ps = begun.elapsed().as_nanos().saturating_mul(1000);
            let now = SimTime::from_ps(u64::try_from(ps).unwrap_or(u64::MAX));
            let mut fs = self.quiet();
            // A device that fails here fails the next request too, which reports it.
            let _ = fs.tick(now, requests != seen);
            if checkpoint.elapsed() > CHECKPOINT {
                let _ = fs.sync();
                forget_clean(&mut fs);
                checkpoint = Instant::now();
            }
            drop(fs);
            seen = requests;
            thread::park_timeout(TICK);
        }
    }

    /// Begins a change of size that a program asks for.
    fn begin(&self, Asked { bytes, method }: Asked) -> Result<(), FsError> {
        let blocks = u32::try_from(bytes / 4096).unwrap_or(u32::MAX);
        let mut told = self.tell();
        self.fs().shrink_begin(blocks, method)?;
        UNDER_WAY.clone_into(&mut told);
        self.resizing.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn resize(&self) {
        // Both locks, in the order of all others: a program that asks for the next change finds this one under way or over.
        let mut told = self.tell();
        let step = self.quiet().shrink_step(STEP_BLOCKS);
        if matches!(step, Ok(None)) {
            return;
        }
        self.resizing.store(false, Ordering::Relaxed);
        *told = match step {
            Ok(shrunk) => shrunk.map_or_else(String::new, |shrunk| {
                format!(
                    "done: {} blocks of 4 KiB now, {} given back, {} moved ({:?})",
                    shrunk.blocks, shrunk.blocks_given, shrunk.blocks_moved, shrunk.method
                )
            }),
            Err(error) => format!("failed: {error}"),
        };
    }
}

/// A mounted file system.
pub struct Mounted {
    shared: Arc<Shared>,
    clock: Option<JoinHandle<()>>,
}

/// Mounts a file system at a directory and serves it until it is unmounted. `ready` gets the unmounter.
///
/// Errors: the kernel does not let us, or takes the mount away.
pub fn mount(fs: FileSystem<Device>, directory: &Path, ready: impl FnOnce(SessionUnmounter)) -> Result<(), MountError> {
    let shared = Arc::new(Shared::new(fs));
    let failed = |source| MountError { path: directory.display().to_string(), source };
    let ours = Arc::clone(&shared);
    let clock = thread::Builder::new().name("cvfs-clock".to_owned()).spawn(move || ours.pass_time());
    let mounted = Mounted { shared, clock: Some(clock.map_err(failed)?) };
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("cvfs".to_owned()),
        MountOption::Subtype("cvfs".to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
    ];
    let mut session = Session::new(mounted, directory, &config).map_err(failed)?;
    ready(session.unmount_callable());
    session.run().map_err(failed)
}

fn errno(error: &FsError) -> Errno {
    match error {
        FsError::NotFound => Errno::ENOENT,
        FsError::Exists => Errno::EEXIST,
        FsError::NotDirectory => Errno::ENOTDIR,
        FsError::IsDirectory => Errno::EISDIR,
        FsError::NotEmpty => Errno::ENOTEMPTY,
        FsError::NoSpace => Errno::ENOSPC,
        FsError::BadName => Errno::ENAMETOOLONG,
        FsError::FileTooLarge => Errno::EFBIG,
        FsError::Invalid(_) => Errno::EINVAL,
        FsError::TooManyOrphans => Errno::ENFILE,
        FsError::Busy => Errno::EBUSY,
        FsError::Frozen => Errno::EROFS,
        FsError::Device(VolumeError::Refused(RequestError::Unsupported { .. })) => Errno::EOPNOTSUPP,
        FsError::Device(_) | FsError::NotAFileSystem(_) | FsError::Corrupt { .. } => {
            eprintln!("cvfs: {error}");
            Errno::EIO
        }
    }
}

/// Our numbers have 32 bits, and the kernel only asks for numbers it was given.
fn number(ino: INodeNo) -> u32 {
    u32::try_from(ino.0).unwrap_or(0)
}

/// Nanoseconds since 1970 with their sign, as bits; the ends of their range, in 1677 and 2262, stand for what is beyond.
fn bits_of(nanoseconds: i128) -> u64 {
    nanoseconds.clamp(i64::MIN.into(), i64::MAX.into()) as i64 as u64
}

fn nanoseconds(time: SystemTime) -> u64 {
    bits_of(match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos() as i128,
        Err(before) => -(before.duration().as_nanos() as i128),
    })
}

/// A time that the kernel sends: `fuser` 0.18 adds the part of a second to the time before 1970, and it counts from there on.
fn nanoseconds_sent(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or_else(
        |before| {
            let before = before.duration();
            bits_of(i128::from(before.subsec_nanos()) - i128::from(before.as_secs()) * 1_000_000_000)
        },
        |_| nanoseconds(time),
    )
}

fn time_of(nanoseconds: u64) -> SystemTime {
    let signed = nanoseconds as i64;
    let span = Duration::from_nanos(signed.unsigned_abs());
    if signed < 0 { UNIX_EPOCH - span } else { UNIX_EPOCH + span }
}

fn now() -> u64 {
    nanoseconds(SystemTime::now())
}

fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
    }
}

fn attributes(ino: u32, inode: &Inode) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino.into()),
        size: inode.size,
        blocks: inode.pages * 8,
        atime: time_of(inode.accessed),
        mtime: time_of(inode.modified),
        ctime: time_of(inode.changed),
        crtime: UNIX_EPOCH,
        kind: file_type(inode.kind),
        perm: inode.mode,
        nlink: inode.links,
        uid: inode.uid,
        gid: inode.gid,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// Attributes of something new in a directory: with the setgid bit of that one it belongs to the same group, and a
/// directory hands the bit on. Source: `inode_init_owner` of Linux
fn owned(parent: &Inode, new: NewInode) -> NewInode {
    if parent.mode & SETGID == 0 {
        return new;
    }
    let bit = if new.kind == Kind::Directory { SETGID } else { 0 };
    NewInode { mode: new.mode | bit, gid: parent.gid, ..new }
}

impl Mounted {
    /// An inode that the kernel knows from now on, until it forgets it: it must not become another one meanwhile.
    fn known(fs: &mut FileSystem<Device>, ino: u32) -> Result<FileAttr, FsError> {
        let inode = fs.inode(ino)?;
        know_number(fs, ino)?;
        Ok(attributes(ino, &inode))
    }

    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        kind: Kind,
        mode: u32,
        target: &[u8],
    ) -> Result<FileAttr, FsError> {
        let new = NewInode { kind, mode: (mode & 0o7777) as u16, uid: request.uid(), gid: request.gid() };
        let mut fs = self.shared.fs();
        let new = owned(&fs.inode(number(parent))?, new);
        let ino = match kind {
            Kind::Symlink => fs.symlink(number(parent), name.as_bytes(), target, new, now())?,
            _ => fs.create(number(parent), name.as_bytes(), new, now())?,
        };
        Self::known(&mut fs, ino)
    }

    fn info(&self) -> String {
        // Before the file system is locked: changes of size take both locks in this order.
        let told = self.shared.tell().clone();
        let fs = self.shared.quiet();
        format!("{:#?}\n{:#?}\nlast change of size: {told}\n", fs.usage(), fs.counters())
    }
}

fn entry(reply: ReplyEntry, found: Result<FileAttr, FsError>) {
    match found {
        Ok(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
        Err(error) => reply.error(errno(&error)),
    }
}

fn empty(reply: ReplyEmpty, done: Result<(), FsError>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

impl Filesystem for Mounted {
    fn destroy(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(clock) = self.clock.take() {
            clock.thread().unpark();
            let _ = clock.join();
        }
        if let Err(error) = self.shared.quiet().sync() {
            eprintln!("cvfs: the last checkpoint failed: {error}");
        }
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut fs = self.shared.fs();
        let found = fs.lookup(number(parent), name.as_bytes()).and_then(|ino| Self::known(&mut fs, ino));
        entry(reply, found);
    }

    fn forget(&self, _: &Request, ino: INodeNo, count: u64) {
        // No request waits for an answer; a device that fails shows at the next request that has one.
        let _ = forget_number(&mut self.shared.fs(), number(ino), count);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.shared.fs().inode(number(ino)) {
            Ok(inode) => reply.attr(&TTL, &attributes(number(ino), &inode)),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let time = |time: TimeOrNow| match time {
            TimeOrNow::SpecificTime(time) => nanoseconds_sent(time),
            TimeOrNow::Now => now(),
        };
        let changes = Attributes {
            mode: mode.map(|mode| (mode & 0o7777) as u16),
            uid,
            gid,
            accessed: atime.map(time),
            modified: mtime.map(time),
        };
        let mut fs = self.shared.fs();
        let cut = size.map_or(Ok(()), |size| fs.truncate(number(ino), size, now()));
        match cut.and_then(|()| fs.set_attributes(number(ino), changes, now())) {
            Ok(inode) => reply.attr(&TTL, &attributes(number(ino), &inode)),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        let mut target = vec![0; 4096];
        match self.shared.fs().read(number(ino), 0, &mut target) {
            Ok(len) => reply.data(&target[..len]),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        // Regular files only: special ones mean something to this kernel, not to the volume.
        if !matches!(mode & 0o170_000, 0 | 0o100_000) {
            return reply.error(Errno::EPERM);
        }
        entry(reply, self.make(request, parent, name, Kind::File, mode & !umask, &[]));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        entry(reply, self.make(request, parent, name, Kind::Directory, mode & !umask, &[]));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().as_bytes();
        entry(reply, self.make(request, parent, name, Kind::Symlink, 0o777, target));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let made = self.make(request, parent, name, Kind::File, mode & !umask, &[]);
        match made.and_then(|made| self.shared.fs().open(number(made.ino)).map(|()| made)) {
            Ok(made) => reply.created(&TTL, &made, Generation(0), FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.shared.fs().open(number(ino)) {
            // Only this mount changes files, so the kernel's copies stay right.
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.shared.fs().release(number(ino)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.shared.fs().unlink(number(parent), name.as_bytes(), now()));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.shared.fs().remove_directory(number(parent), name.as_bytes(), now()));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let only_new = flags == RenameFlags::RENAME_NOREPLACE;
        if !only_new && !flags.is_empty() {
            return reply.error(Errno::EINVAL);
        }
        let (from, to) = ((number(parent), name.as_bytes()), (number(new_parent), new_name.as_bytes()));
        empty(reply, self.shared.fs().rename(from, to, !only_new, now()));
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut fs = self.shared.fs();
        let linked = fs.link(number(ino), number(parent), name.as_bytes(), now());
        entry(reply, linked.and_then(|()| Self::known(&mut fs, number(ino))));
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut bytes = vec![0; size as usize];
        match self.shared.fs().read(number(ino), offset, &mut bytes) {
            Ok(len) => reply.data(&bytes[..len]),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.shared.fs().write(number(ino), offset, data, now()) {
            Ok(written) => reply.written(written as u32),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(reply, self.shared.fs().sync());
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(reply, self.shared.fs().sync());
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(self.shared.listings().open()), FopenFlags::empty());
    }

    fn readdir(&self, _: &Request, ino: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let make = || Listing::of(&mut self.shared.fs(), number(ino));
        let read = self.shared.listings().read(handle.0, offset, make, |one| {
            let name = OsStr::from_bytes(&one.name);
            reply.add(INodeNo(one.ino.into()), one.place, file_type(one.kind), name)
        });
        match read {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.shared.listings().close(handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let usage = self.shared.fs().usage();
        let free = usage.capacity.saturating_sub(usage.used);
        let nodes = u64::from(usage.nodes_max);
        reply.statfs(usage.capacity, free, free, nodes, nodes.saturating_sub(usage.nodes.into()), 4096, 255, 4096);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let text = match name.to_str() {
            Some(SHRINK) if ino == INodeNo::ROOT => self.shared.tell().clone(),
            Some(INFO) if ino == INodeNo::ROOT => self.info(),
            Some(USAGE) if ino == INodeNo::ROOT => usage_text(&self.shared.quiet().usage()),
            _ => return reply.error(Errno::NO_XATTR),
        };
        match size {
            0 => reply.size(text.len() as u32),
            size if (size as usize) < text.len() => reply.error(Errno::ERANGE),
            _ => reply.data(text.as_bytes()),
        }
    }

    fn setxattr(&self, request: &Request, ino: INodeNo, name: &OsStr, value: &[u8], _: i32, _: u32, reply: ReplyEmpty) {
        if ino != INodeNo::ROOT || name != SHRINK {
            return reply.error(Errno::EOPNOTSUPP);
        }
        if request.uid() != 0 {
            return reply.error(Errno::EPERM);
        }
        let Some(asked) = Asked::parse(value) else { return reply.error(Errno::EINVAL) };
        let begun = self.shared.begin(asked);
        if let Some(clock) = self.clock.as_ref().filter(|_| begun.is_ok()) {
            clock.thread().unpark();
        }
        empty(reply, begun);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_cvfs::{Config, Format, MemoryDevice, Method};

    #[test]
    fn what_is_new_in_a_directory_with_the_setgid_bit_belongs_to_its_group() {
        let mut fs =
            FileSystem::format(MemoryDevice::new(2000), Format { segment_blocks: 16, id: 1 }, Config::default(), 0)
                .expect("room");
        let mut parent = fs.inode(flashyard_cvfs::ROOT).expect("it is there");
        (parent.mode, parent.gid) = (0o755, 1000);
        for kind in [Kind::File, Kind::Directory, Kind::Symlink] {
            let new = NewInode { kind, mode: 0o640, uid: 3, gid: 4 };
            parent.mode = 0o755;
            assert_eq!(owned(&parent, new), new);
            parent.mode = 0o2755;
            let mode = if kind == Kind::Directory { 0o2640 } else { 0o640 };
            assert_eq!(owned(&parent, new), NewInode { mode, gid: 1000, ..new });
        }
    }

    #[test]
    fn times_before_1970_are_times() {
        for (seconds, part) in [(0, 0), (1, 200_000_000), (304_000_000, 0), (1 << 33, 5)] {
            let span = Duration::new(seconds, part);
            for time in [UNIX_EPOCH - span, UNIX_EPOCH + span] {
                assert_eq!(time_of(nanoseconds(time)), time);
            }
        }
        // 1.2 s before, as two seconds before and 0.8 s after that.
        assert_eq!(
            time_of(nanoseconds_sent(UNIX_EPOCH - Duration::new(2, 800_000_000))),
            UNIX_EPOCH - Duration::from_millis(1200)
        );
        assert_eq!(nanoseconds(UNIX_EPOCH - Duration::from_secs(1 << 40)) as i64, i64::MIN);
    }

    #[test]
    fn a_change_of_size_that_is_asked_for_at_the_end_of_another_one_happens() {
        let format = Format { segment_blocks: 16, id: 1 };
        for round in 0..20 {
            let device: Device = Box::new(MemoryDevice::new(2000));
            let shared = Shared::new(FileSystem::format(device, format, Config::default(), 0).expect("it has room"));
            let asked = |blocks: u64| Asked { bytes: blocks * 4096, method: Method::Relocate };
            shared.begin(asked(1500)).expect("no other one is under way");
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !shared.over.load(Ordering::Relaxed) {
                        if shared.resizing.load(Ordering::Relaxed) {
                            shared.resize();
                        }
                        thread::sleep(Duration::from_micros(50));
                    }
                });
                while let Err(error) = shared.begin(asked(1000)) {
                    assert_eq!(error, FsError::Busy);
                    thread::sleep(Duration::from_micros(10));
                }
                while shared.resizing.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_micros(50));
                }
                shared.over.store(true, Ordering::Relaxed);
            });
            let blocks = shared.quiet().usage().blocks;
            assert!((900..=1000).contains(&blocks), "round {round}: {blocks} blocks, {}", shared.tell());
            assert!(shared.tell().starts_with(&format!("done: {blocks} blocks")), "round {round}: {}", shared.tell());
            shared.begin(asked(800)).expect("no other one is under way");
        }
    }
}

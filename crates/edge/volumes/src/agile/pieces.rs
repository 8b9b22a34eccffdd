//! The space that a server lends, in pieces. A piece is zeroed, durably, before it is free.

use crate::leg::{BLOCK, FileError, FileLeg, Memory, Storage, open_alone, zero};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes before the first piece of a file, which hold its mark. Source: \[A\] a whole hole of any file system.
const FRONT: u64 = 1 << 20;
/// The first bytes of a file whose contents are lent, and may be erased.
const MARK: &[u8; 16] = b"FLASHYARD LENT 1";
/// Bytes that are zeroed at once.
const ZEROED: u64 = 64 << 20;

/// Storage that is lent.
enum Room {
    /// Memory, made for each agreement.
    Memory,
    File {
        file: File,
        path: PathBuf,
    },
}

/// Pieces of it.
pub(crate) struct Pieces {
    room: Room,
    piece_bytes: u64,
    count: u32,
    /// Pieces that hold zeros and belong to no agreement.
    free: BTreeSet<u32>,
}

impl Pieces {
    pub(crate) fn of_memory(bytes: u64, piece_bytes: u64) -> Self {
        let count = count_of(bytes, piece_bytes);
        Self { room: Room::Memory, piece_bytes, count, free: (0..count).collect() }
    }

    /// Pieces of the file at `path`, which is made with room for `size` bytes of them if it is not there. All are zeroed.
    ///
    /// Errors: it cannot be opened or zeroed, is in use, has another size, or holds what is not ours.
    pub(crate) fn of_file(path: &Path, size: Option<u64>, piece_bytes: u64) -> Result<Self, FileError> {
        let shown = || path.display().to_string();
        let failed = |doing| move |source| FileError::Io { path: path.display().to_string(), doing, source };
        let exists = path.exists();
        if !exists && size.is_none() {
            return Err(FileError::Missing(shown()));
        }
        let mut file = open_alone(path, exists)?;
        if let Some(size) = size.filter(|_| !exists) {
            file.set_len(size + FRONT).map_err(failed("has no room"))?;
        }
        let bytes = file.seek(SeekFrom::End(0)).map_err(failed("its size cannot be told"))?;
        if let Some(wanted) = size.map(|size| size + FRONT).filter(|&wanted| wanted != bytes) {
            return Err(FileError::Size { path: shown(), bytes, wanted });
        }
        let count = count_of(bytes.saturating_sub(FRONT), piece_bytes);
        if count == 0 {
            return Err(FileError::Small { path: shown(), bytes });
        }
        let mut front = vec![0; FRONT as usize];
        file.read_exact_at(&mut front, 0).map_err(failed("cannot be read"))?;
        if !front.starts_with(MARK) {
            if front.iter().any(|&byte| byte != 0) {
                return Err(FileError::NotLent(shown()));
            }
            file.write_all_at(MARK, 0).map_err(failed("cannot be written"))?;
        }
        let mut pieces =
            Self { room: Room::File { file, path: path.to_owned() }, piece_bytes, count, free: BTreeSet::new() };
        let all: Vec<u32> = (0..count).collect();
        pieces.zeroing(&all).map_err(failed("cannot be opened"))?.run().map_err(failed("cannot be zeroed"))?;
        pieces.give_back(&all);
        Ok(pieces)
    }

    /// All of them, free or not.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Those that are free.
    pub(crate) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// Pieces that so many MiB take.
    pub(crate) fn needed(&self, mib: u32) -> u32 {
        u64::from(mib).div_ceil(self.piece_bytes >> 20) as u32
    }

    /// MiB of so many pieces.
    pub(crate) fn mib(&self, pieces: u32) -> u32 {
        u32::try_from(u64::from(pieces) * (self.piece_bytes >> 20)).unwrap_or(u32::MAX)
    }

    /// Takes free pieces for so many MiB, and returns them as storage.
    ///
    /// Errors: there are too few, or a descriptor is not to be had.
    pub(crate) fn take(
        &mut self,
        mib: u32,
        waker: impl Fn() + Send + Clone + 'static,
    ) -> Result<(Vec<u32>, Storage), String> {
        let needed = self.needed(mib) as usize;
        if self.free.len() < needed {
            return Err("too few pieces are free".to_owned());
        }
        let blocks = (u64::from(mib) << 20) / BLOCK as u64;
        let taken: Vec<u32> = self.free.iter().copied().take(needed).collect();
        let storage = match &self.room {
            Room::Memory => Storage::Memory(Memory::new(blocks)),
            Room::File { file, .. } => {
                let file = Arc::new(file.try_clone().map_err(|error| error.to_string())?);
                let begins = taken.iter().map(|&piece| self.begin_of(piece)).collect();
                Storage::File(FileLeg::of_pieces(file, begins, self.piece_bytes, blocks, waker))
            }
        };
        taken.iter().for_each(|piece| _ = self.free.remove(piece));
        Ok((taken, storage))
    }

    fn begin_of(&self, piece: u32) -> u64 {
        FRONT + u64::from(piece) * self.piece_bytes
    }

    /// A way to zero pieces, which may take long.
    ///
    /// Errors: no descriptor is to be had.
    pub(crate) fn zeroing(&self, pieces: &[u32]) -> io::Result<Zeroing> {
        let file = match &self.room {
            // Memory is made new for each agreement.
            Room::Memory => None,
            Room::File { file, .. } => Some(file.try_clone()?),
        };
        Ok(Zeroing {
            file,
            begins: pieces.iter().map(|&piece| self.begin_of(piece)).collect(),
            piece_bytes: self.piece_bytes,
        })
    }

    /// Pieces that were zeroed are free.
    pub(crate) fn give_back(&mut self, pieces: &[u32]) {
        self.free.extend(pieces);
    }

    /// For messages.
    pub(crate) fn name(&self) -> String {
        match &self.room {
            Room::Memory => "memory".to_owned(),
            Room::File { path, .. } => path.display().to_string(),
        }
    }
}

/// Pieces that become zeros.
pub(crate) struct Zeroing {
    file: Option<File>,
    begins: Vec<u64>,
    piece_bytes: u64,
}

impl Zeroing {
    /// Zeroes them, durably.
    ///
    /// Errors: those of the operating system; then they are not to be used.
    pub(crate) fn run(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        for &begin in &self.begins {
            let end = begin + self.piece_bytes;
            let mut at = begin;
            while at < end {
                let len = ZEROED.min(end - at);
                zero(file, at, len as usize)?;
                at += len;
            }
        }
        file.sync_data()
    }
}

fn count_of(bytes: u64, piece_bytes: u64) -> u32 {
    u32::try_from(bytes / piece_bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leg::{Begun, LegState, Source, Task};
    use flashyard_blk::Operation;

    const MIB: u64 = 1 << 20;

    fn carry_out(leg: &mut LegState, task: Task, source: Source<'_>) -> Vec<u8> {
        let mut into = vec![0; if task.operation == Operation::Read { task.bytes() } else { 0 }];
        if leg.begin(task, source, &mut into) == Begun::Ended(Ok(())) {
            return into;
        }
        let mut ends = Vec::new();
        while ends.is_empty() {
            leg.poll(&mut ends);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(ends[0].result, Ok(()));
        if task.operation == Operation::Read { ends.remove(0).bytes } else { Vec::new() }
    }

    #[test]
    fn pieces_in_any_order_are_one_volume_and_come_back_as_zeros() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("lent");
        let mut pieces = Pieces::of_file(&path, Some(4 * MIB), MIB).expect("there is room");
        assert_eq!((pieces.count(), pieces.free(), pieces.needed(3), pieces.mib(4)), (4, 4, 3, 4));
        let (first, _) = pieces.take(1, || {}).expect("four are free");
        let (second, _) = pieces.take(1, || {}).expect("three are free");
        pieces.give_back(&first);
        assert_eq!((first, second), (vec![0], vec![1]));
        let (taken, storage) = pieces.take(3, || {}).expect("three are free");
        assert_eq!(taken, [0, 2, 3]);
        let mut leg = LegState::new(storage, "lent".to_owned());
        assert_eq!(leg.info().limits.blocks, 3 * 256);
        let bytes: Vec<u8> = (0..400 * BLOCK).map(|at| (at / BLOCK) as u8 | 1).collect();
        let write = Task { order: 1, operation: Operation::Write, first: 200, count: 400, durable: false };
        carry_out(&mut leg, write, Source::Bytes(&bytes));
        let read = Task { order: 1, operation: Operation::Read, ..write };
        assert!(carry_out(&mut leg, read, Source::Zeros) == bytes, "over three pieces");
        assert!(pieces.take(1, || {}).is_err());
        drop(leg);
        let file = || std::fs::read(&path).expect("it is there");
        let (of_piece, whole) = (|piece: u64| (FRONT + piece * MIB) as usize, file());
        assert!(whole[of_piece(0) + 200 * BLOCK..of_piece(1)] == bytes[..56 * BLOCK], "the end of the first piece");
        assert!(whole[of_piece(1)..of_piece(2)].iter().all(|&byte| byte == 0), "another one's");
        pieces.zeroing(&taken).expect("it is open").run().expect("there is room");
        assert!(file()[FRONT as usize..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_file_with_something_else_is_not_erased() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("data");
        let mut bytes = vec![0; 3 * MIB as usize];
        bytes[70_000] = 1;
        std::fs::write(&path, &bytes).expect("there is room");
        let refused = Pieces::of_file(&path, None, MIB).map(drop).expect_err("it has data");
        assert!(refused.to_string().contains("it holds something that was not lent"), "{refused}");
        assert!(std::fs::read(&path).expect("it is there") == bytes);
        std::fs::write(&path, vec![0; 3 * MIB as usize]).expect("there is room");
        assert_eq!(Pieces::of_file(&path, None, MIB).expect("it is blank").count(), 2);
        let mut bytes = std::fs::read(&path).expect("it is there");
        bytes[FRONT as usize + 5] = 1;
        std::fs::write(&path, &bytes).expect("there is room");
        drop(Pieces::of_file(&path, None, MIB).expect("it has our mark"));
        assert_eq!(std::fs::read(&path).expect("it is there")[FRONT as usize + 5], 0, "what was lent before is zeroed");
    }
}

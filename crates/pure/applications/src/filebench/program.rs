//! A personality at work.

use super::fileset::Fileset;
use super::personality::Personality;
use super::step::Step;
use crate::files::{Files, FilesError};
use flashyard_kernel::Rng;

/// Files that a thread can hold at a time.
const HELD: usize = 6;

/// A step that a thread has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The step, unless no file was there for it.
    pub step: Option<Step>,
    /// Bytes that it read and wrote.
    pub bytes: (u64, u64),
    /// Whether the thread's next step is the first of its round.
    pub round_ends: bool,
}

#[derive(Clone, Debug)]
struct Thread {
    next: usize,
    held: [Option<u32>; HELD],
    /// The entry after that opened last.
    turn: u32,
}

/// A personality with its files and threads.
#[derive(Clone, Debug)]
pub struct Program {
    personality: Personality,
    steps: Vec<Step>,
    fileset: Fileset,
    threads: Vec<Thread>,
    /// Entries after those made, deleted and looked at last.
    turns: [u32; 3],
    rng: Rng,
    buffer: Vec<u8>,
    /// Bytes of the log.
    log_bytes: u64,
}

/// Bytes of a file made for the `made`th time, from `offset` on.
pub fn fill(number: u32, made: u32, offset: u64, buffer: &mut [u8]) {
    let base = (u64::from(number) << 32 | u64::from(made)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut at = offset;
    let mut left = buffer;
    while !left.is_empty() {
        let word = (base ^ (at / 8).wrapping_mul(0xd134_2543_de82_ef95)).to_le_bytes();
        let part = &word[(at % 8) as usize..];
        let count = part.len().min(left.len());
        left[..count].copy_from_slice(&part[..count]);
        left = &mut left[count..];
        at += count as u64;
    }
}

impl Program {
    /// A personality on `entries` files, none of which is there yet.
    pub fn new(personality: Personality, entries: u32, seed: u64) -> Self {
        let mut rng = Rng::named(seed, "applications.filebench");
        let fileset = Fileset::new(&personality, entries, &mut rng);
        let thread = Thread { next: 0, held: [None; HELD], turn: 0 };
        let threads = vec![thread; personality.threads as usize];
        Self {
            personality,
            steps: personality.steps(),
            fileset,
            threads,
            turns: [0; 3],
            rng,
            buffer: Vec::new(),
            log_bytes: 0,
        }
    }

    /// The personality.
    pub fn personality(&self) -> &Personality {
        &self.personality
    }

    /// The files.
    pub fn fileset(&self) -> &Fileset {
        &self.fileset
    }

    /// Makes the files that are there when the program starts; `at_most` of them in this call. Returns whether there are
    /// more.
    ///
    /// Errors: those of the files.
    pub fn preallocate(&mut self, files: &mut impl Files, at_most: u32) -> Result<bool, FilesError> {
        let wanted = u64::from(self.fileset.entries()) * u64::from(self.personality.preallocated_percent) / 100;
        for _ in 0..at_most {
            if self.fileset.idle_count() as u64 >= wanted {
                return Ok(false);
            }
            let Some(number) = self.fileset.take_missing(self.turns[0], &mut self.rng) else { return Ok(false) };
            self.turns[0] = number + 1;
            files.create(number)?;
            let size = self.fileset.size(number);
            self.put(files, number, 0, size)?;
            self.fileset.release(number);
        }
        Ok(true)
    }

    /// Deletes all files and begins again, as each run of the program does. No thread may hold a file that is used on.
    ///
    /// Errors: those of the files.
    pub fn remove(&mut self, files: &mut impl Files) -> Result<(), FilesError> {
        for thread in &mut self.threads {
            for number in thread.held.iter_mut().filter_map(Option::take) {
                self.fileset.release(number);
            }
            (thread.next, thread.turn) = (0, 0);
        }
        self.turns = [0; 3];
        if std::mem::take(&mut self.log_bytes) > 0 {
            files.delete(self.fileset.entries())?;
        }
        let there: Vec<u32> = self.fileset.idle().collect();
        for number in there {
            files.delete(number)?;
            self.fileset.take_idle_number(number);
            self.fileset.lose(number);
        }
        Ok(())
    }

    /// Does the next step of a thread.
    ///
    /// Errors: those of the files.
    pub fn step(&mut self, thread: u32, files: &mut impl Files) -> Result<Done, FilesError> {
        let index = thread as usize;
        let step = self.steps[self.threads[index].next];
        let next = (self.threads[index].next + 1) % self.steps.len();
        self.threads[index].next = next;
        let bytes = self.carry_out(index, step, files)?;
        Ok(Done { step: bytes.map(|_| step), bytes: bytes.unwrap_or_default(), round_ends: next == 0 })
    }

    /// `None` when there was no file for it.
    fn carry_out(
        &mut self,
        thread: usize,
        step: Step,
        files: &mut impl Files,
    ) -> Result<Option<(u64, u64)>, FilesError> {
        let held = |program: &Self, name: u8| program.threads[thread].held[usize::from(name)];
        let mut bytes = (0, 0);
        match step {
            Step::Create(name) => {
                let Some(number) = self.fileset.take_missing(self.turns[0], &mut self.rng) else { return Ok(None) };
                self.turns[0] = number + 1;
                self.threads[thread].held[usize::from(name)] = Some(number);
                files.create(number)?;
            }
            Step::Open(name) => {
                let turn = self.threads[thread].turn;
                let Some(number) = self.fileset.take_idle(turn, &mut self.rng) else { return Ok(None) };
                self.threads[thread].turn = number + 1;
                self.threads[thread].held[usize::from(name)] = Some(number);
            }
            Step::Write(name) => {
                let Some(number) = held(self, name) else { return Ok(None) };
                // A copy is as long as what it copies.
                let size = match held(self, 0).filter(|_| name == 1) {
                    Some(source) => files.size(source)?,
                    None => self.fileset.size(number),
                };
                self.put(files, number, 0, size)?;
                bytes.1 = size;
            }
            Step::Append(name) => {
                let Some(number) = held(self, name) else { return Ok(None) };
                let size = self.personality.appends.draw(&mut self.rng);
                let end = files.size(number)?;
                self.put(files, number, end, size)?;
                bytes.1 = size;
            }
            Step::Read(name) => {
                let Some(number) = held(self, name) else { return Ok(None) };
                bytes.0 = self.take(files, number)?;
            }
            Step::Fsync(name) => {
                let Some(number) = held(self, name) else { return Ok(None) };
                files.fsync(number)?;
            }
            Step::Close(name) => {
                let Some(number) = self.threads[thread].held[usize::from(name)].take() else { return Ok(None) };
                self.fileset.release(number);
            }
            Step::Delete(Some(name)) => {
                let Some(number) = self.threads[thread].held[usize::from(name)].take() else { return Ok(None) };
                files.delete(number)?;
                self.fileset.lose(number);
            }
            Step::Delete(None) => {
                let Some(number) = self.fileset.take_idle(self.turns[1], &mut self.rng) else { return Ok(None) };
                self.turns[1] = number + 1;
                files.delete(number)?;
                self.fileset.lose(number);
            }
            Step::Log => {
                let log = self.fileset.entries();
                if self.log_bytes == 0 {
                    files.create(log)?;
                }
                let size = self.personality.appends.draw(&mut self.rng);
                self.buffer.clear();
                self.buffer.resize(size as usize, 0);
                files.write(log, self.log_bytes, &self.buffer)?;
                self.log_bytes += size;
                bytes.1 = size;
            }
            Step::Stat => {
                let Some(number) = self.fileset.look(self.turns[2], &mut self.rng) else { return Ok(None) };
                self.turns[2] = number + 1;
                files.size(number)?;
            }
        }
        Ok(Some(bytes))
    }

    fn put(&mut self, files: &mut impl Files, number: u32, offset: u64, size: u64) -> Result<(), FilesError> {
        let made = self.fileset.made(number);
        let mut done = 0;
        while done < size {
            let count = self.personality.call_bytes.min(size - done);
            self.buffer.resize(count as usize, 0);
            fill(number, made, offset + done, &mut self.buffer);
            files.write(number, offset + done, &self.buffer)?;
            done += count;
        }
        Ok(())
    }

    fn take(&mut self, files: &mut impl Files, number: u32) -> Result<u64, FilesError> {
        let size = files.size(number)?;
        let mut done = 0;
        while done < size {
            let count = self.personality.call_bytes.min(size - done);
            self.buffer.resize(count as usize, 0);
            done += files.read(number, done, &mut self.buffer)? as u64;
        }
        Ok(size)
    }
}

//! How versions begin: the newer of two images of the map, with the changes that the log has behind it; then an image of all that, and
//! an empty log.

use super::layout::Layout;
use super::map::{Map, decode_log};
use flashyard_service::Failure;

/// Blocks that are read at once.
const AT_ONCE: u64 = 256;

/// The request to the leg that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Read {
        first: u64,
        count: u32,
    },
    /// Bytes of the image from this one on.
    Write {
        first: u64,
        count: u32,
        at: usize,
    },
    Flush,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Blocks of an image from this one on are read.
    Image(u64, u64),
    Log(u64),
    /// Blocks of the new image from this one on are written.
    Write(u64),
    Keep,
    Ready,
}

/// A recovery under way.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    step: Step,
    layout: Layout,
    bytes: Vec<u8>,
    /// The newest image that is whole, and whether there is one that is not.
    newest: Option<(u64, Map)>,
    is_damaged: bool,
    pub(super) generation: u64,
    pub(super) map: Map,
    pub(super) image: Vec<u8>,
}

impl Recovery {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            step: Step::Image(0, 0),
            layout,
            bytes: Vec::new(),
            newest: None,
            is_damaged: false,
            generation: 0,
            map: Map::new(layout.blocks as u32, layout.store as u32),
            image: Vec::new(),
        }
    }

    /// The next request; nothing once all is done.
    pub(super) fn wish(&self) -> Option<Wish> {
        let layout = &self.layout;
        let count = |done: u64| (layout.image - done).min(AT_ONCE).min(layout.request_blocks) as u32;
        Some(match self.step {
            Step::Image(copy, done) => Wish::Read { first: layout.image_at(copy) + done, count: count(done) },
            Step::Log(index) => Wish::Read { first: layout.log_at() + index, count: 1 },
            Step::Write(done) => {
                let at = done as usize * layout.block_bytes;
                Wish::Write { first: layout.image_at(self.generation) + done, count: count(done), at }
            }
            Step::Keep => Wish::Flush,
            Step::Ready => return None,
        })
    }

    pub(super) fn received(&mut self, bytes: &[u8]) {
        if matches!(self.step, Step::Image(_, 0) | Step::Log(_)) {
            self.bytes.clear();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The wish was carried out.
    ///
    /// Errors: images of another shape, or damaged ones.
    pub(super) fn done(&mut self) -> Result<(), Failure> {
        let image = self.layout.image;
        self.step = match self.step {
            Step::Image(copy, _) => {
                let done = (self.bytes.len() / self.layout.block_bytes) as u64;
                if !self.bytes.is_empty() && done < image {
                    Step::Image(copy, done)
                } else {
                    self.look_at_image();
                    if copy == 0 { Step::Image(1, 0) } else { self.choose()? }
                }
            }
            Step::Log(index) => self.replay(index)?,
            Step::Write(done) => {
                let done = done + (image - done).min(AT_ONCE).min(self.layout.request_blocks);
                if done < image { Step::Write(done) } else { Step::Keep }
            }
            Step::Keep | Step::Ready => Step::Ready,
        };
        Ok(())
    }

    fn look_at_image(&mut self) {
        let Layout { blocks, store, slots, .. } = self.layout;
        let generation = Map::generation(&self.bytes);
        match (generation, Map::decode(&self.bytes, blocks as u32, store as u32, slots)) {
            (Some(generation), Some(map)) => {
                if self.newest.as_ref().is_none_or(|&(other, _)| other < generation) {
                    self.newest = Some((generation, map));
                }
            }
            // The first image was being written: nothing has come behind it.
            (Some(1), None) => {}
            _ => self.is_damaged |= Map::is_meant(&self.bytes),
        }
    }

    fn choose(&mut self) -> Result<Step, Failure> {
        match self.newest.take() {
            Some((generation, map)) => {
                (self.generation, self.map) = (generation, map);
                Ok(Step::Log(0))
            }
            None if self.is_damaged => Err(Failure::Failed),
            None => self.write(),
        }
    }

    /// Makes the changes of a block of the log. The first that is not there is the end.
    fn replay(&mut self, index: u64) -> Result<Step, Failure> {
        let Some(changes) = decode_log(self.generation, index as u32, &self.bytes) else { return self.write() };
        let mut unused = Vec::new();
        for change in changes {
            if !self.map.apply(change, &mut unused) {
                return Err(Failure::Failed);
            }
        }
        if index + 1 < self.layout.log { Ok(Step::Log(index + 1)) } else { self.write() }
    }

    fn write(&mut self) -> Result<Step, Failure> {
        if !self.map.find_free() {
            return Err(Failure::Failed);
        }
        self.generation += 1;
        self.image = self.map.encode(self.generation, self.layout.slots);
        self.image.resize(self.layout.image as usize * self.layout.block_bytes, 0);
        Ok(Step::Write(0))
    }
}

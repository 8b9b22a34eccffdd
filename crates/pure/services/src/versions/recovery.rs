//! How versions begin: the newer of two images of the map, with the changes that the log has behind it; then an image of all that, and
//! an empty log.
//!
//! Without an image the volume begins as the leg is, and so a leg that has lost its images, or has them where other keys put them, must
//! not look like a new one. An image of other keys is looked for wherever one may begin. The log of a generation begins when its image
//! is durable: a log that is newer than the newest whole image tells that one was damaged, and had not just been being written.

use super::layout::Layout;
use super::map::{Map, Shape, decode_log, log_epoch};
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
    /// No image was found: blocks of the leg from this one on are read, where one of other keys may lie.
    Search(u64),
    Log(u64),
    /// Blocks of the new image from this one on are written.
    Write(u64),
    Keep,
    Ready,
}

/// Why a leg is not taken: nothing of it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Its map is one of other keys.
    Made(Shape),
    /// The map cannot be told.
    Damaged,
}

impl Refusal {
    pub(super) fn failure(self) -> Failure {
        Failure::Failed
    }

    /// The reason, and what would do.
    pub(super) fn text(self, block_bytes: usize) -> String {
        match self {
            Self::Made(shape) => format!(
                "refuses all: the leg was made with versions = {} and a store of {} blocks ({} bytes); give these keys, or begin with a new file",
                shape.slots,
                shape.store(),
                u64::from(shape.store()) * block_bytes as u64
            ),
            Self::Damaged => "refuses all: the map on the leg is damaged".to_owned(),
        }
    }
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
    /// The shape of an image that other keys have made.
    other: Option<Shape>,
    leg_is_new: bool,
    pub(super) generation: u64,
    pub(super) map: Map,
    pub(super) image: Vec<u8>,
}

impl Recovery {
    pub(super) fn new(layout: Layout, leg_is_new: bool) -> Self {
        Self {
            step: Step::Image(0, 0),
            layout,
            bytes: Vec::new(),
            newest: None,
            is_damaged: false,
            other: None,
            leg_is_new,
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
            Step::Search(first) => Wish::Read { first, count: self.searched(first) },
            Step::Log(index) => Wish::Read { first: layout.log_at() + index, count: 1 },
            Step::Write(done) => {
                let at = done as usize * layout.block_bytes;
                Wish::Write { first: layout.image_at(self.generation) + done, count: count(done), at }
            }
            Step::Keep => Wish::Flush,
            Step::Ready => return None,
        })
    }

    /// Blocks that are read at once where an image of other keys may lie, from one on.
    fn searched(&self, first: u64) -> u32 {
        (self.layout.end() - first).min(AT_ONCE).min(self.layout.request_blocks) as u32
    }

    pub(super) fn received(&mut self, bytes: &[u8]) {
        if matches!(self.step, Step::Image(_, 0) | Step::Search(_) | Step::Log(_)) {
            self.bytes.clear();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The wish was carried out.
    ///
    /// Errors: images of another shape, or damaged ones.
    pub(super) fn done(&mut self) -> Result<(), Refusal> {
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
            Step::Search(first) => {
                let next = first + u64::from(self.searched(first));
                self.bytes
                    .chunks(self.layout.block_bytes)
                    .for_each(|block| self.other = self.other.or(other(&self.layout, block)));
                match self.other {
                    Some(shape) => return Err(Refusal::Made(shape)),
                    None if next < self.layout.end() => Step::Search(next),
                    None => Step::Log(0),
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
        self.other = self.other.or(other(&self.layout, &self.bytes));
        let generation = Map::generation(&self.bytes);
        match (generation, Map::decode(&self.bytes, blocks as u32, store as u32, slots)) {
            (Some(generation), Some(map)) => {
                if self.newest.as_ref().is_none_or(|&(other, _)| other < generation) {
                    self.newest = Some((generation, map));
                }
            }
            // Either the first image was being written, or it was the only one: the log tells.
            (Some(1), None) => {}
            _ => self.is_damaged |= Map::is_meant(&self.bytes),
        }
    }

    fn choose(&mut self) -> Result<Step, Refusal> {
        if let Some(shape) = self.other {
            return Err(Refusal::Made(shape));
        }
        match self.newest.take() {
            Some((generation, map)) => {
                (self.generation, self.map) = (generation, map);
                Ok(Step::Log(0))
            }
            None if self.is_damaged => Err(Refusal::Damaged),
            None if self.leg_is_new => self.write(),
            None => Ok(Step::Search(self.layout.images_from())),
        }
    }

    /// Makes the changes of a block of the log. The first that is not there is the end.
    fn replay(&mut self, index: u64) -> Result<Step, Refusal> {
        // A log begins when its image is durable, which is not there any more.
        if index == 0 && log_epoch(0, &self.bytes).is_some_and(|epoch| epoch > self.generation) {
            return Err(Refusal::Damaged);
        }
        let Some(changes) = decode_log(self.generation, index as u32, &self.bytes) else { return self.write() };
        let mut unused = Vec::new();
        for change in changes {
            if !self.map.apply(change, &mut unused) {
                return Err(Refusal::Damaged);
            }
        }
        if index + 1 < self.layout.log { Ok(Step::Log(index + 1)) } else { self.write() }
    }

    fn write(&mut self) -> Result<Step, Refusal> {
        if !self.map.find_free() {
            return Err(Refusal::Damaged);
        }
        self.generation += 1;
        self.image = self.map.encode(self.generation, self.layout.slots);
        self.image.resize(self.layout.image as usize * self.layout.block_bytes, 0);
        Ok(Step::Write(0))
    }
}

/// The shape of an image that begins with these bytes, if it is another one than that of the layout.
fn other(layout: &Layout, bytes: &[u8]) -> Option<Shape> {
    let ours = Shape::new(layout.blocks as u32, layout.store as u32, layout.slots);
    Map::shape(bytes).filter(|shape| *shape != ours)
}

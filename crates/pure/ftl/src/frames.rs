//! Borrowed places for translation pages, numbered; which page is in which.

use std::ops::Range;

const NONE: u32 = u32::MAX;
/// A frame that is borrowed and empty.
const FREE: u32 = u32::MAX - 1;

/// Frames of borrowed memory. Costs nothing before the first is added.
#[derive(Default)]
pub(crate) struct Frames {
    /// The page in each frame; `FREE` or, where nothing is borrowed, `NONE`.
    page_in: Vec<u32>,
    /// The frame of each page.
    frame_of: Vec<u32>,
    /// Empty frames, the next one last.
    free: Vec<u32>,
    borrowed: u32,
}

impl Frames {
    /// Frames borrowed now.
    #[inline]
    pub(crate) fn borrowed(&self) -> u32 {
        self.borrowed
    }

    /// Empty frames.
    pub(crate) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// Whether a frame is empty.
    #[inline]
    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Adds empty frames to a drive of `pages` pages; the lowest is filled first.
    pub(crate) fn add(&mut self, frames: Range<u32>, pages: u32) {
        self.frame_of.resize(pages as usize, NONE);
        if self.page_in.len() < frames.end as usize {
            self.page_in.resize(frames.end as usize, NONE);
        }
        for frame in frames.rev() {
            assert_eq!(self.page_in[frame as usize], NONE, "frame {frame} is borrowed already");
            self.page_in[frame as usize] = FREE;
            self.free.push(frame);
            self.borrowed += 1;
        }
    }

    /// Lets no page into these frames any more.
    pub(crate) fn close(&mut self, frames: &Range<u32>) {
        self.free.retain(|frame| !frames.contains(frame));
    }

    /// Takes away frames that are empty and closed.
    pub(crate) fn remove(&mut self, frames: Range<u32>) {
        for frame in frames {
            assert_eq!(self.page_in[frame as usize], FREE, "frame {frame} is in use or not borrowed");
            self.page_in[frame as usize] = NONE;
            self.borrowed -= 1;
        }
    }

    /// Puts `page` into the next empty frame.
    #[inline]
    pub(crate) fn fill_free(&mut self, page: u32) -> Option<u32> {
        let frame = self.free.pop()?;
        self.fill(frame, page);
        Some(frame)
    }

    /// Puts `page` into `frame`.
    #[inline]
    pub(crate) fn fill(&mut self, frame: u32, page: u32) {
        self.page_in[frame as usize] = page;
        self.frame_of[page as usize] = frame;
    }

    /// Empties the frame of `page` without making it available; returns its number.
    #[inline]
    pub(crate) fn empty(&mut self, page: u32) -> u32 {
        let frame = std::mem::replace(&mut self.frame_of[page as usize], NONE);
        self.page_in[frame as usize] = FREE;
        frame
    }

    /// The frame of `page`, if it is in one.
    #[inline]
    pub(crate) fn frame_of(&self, page: u32) -> Option<u32> {
        self.frame_of.get(page as usize).copied().filter(|&frame| frame != NONE)
    }

    /// The page in `frame`, if there is one.
    #[inline]
    pub(crate) fn page_in(&self, frame: u32) -> Option<u32> {
        self.page_in.get(frame as usize).copied().filter(|&page| page < FREE)
    }
}

//! What planes and channels of the source's drive do, and for which command.

use flashyard_units::SimTime;
use std::ops::Range;

/// What something is done for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// A request of the host, by number.
    Host(u32),
    /// Parity that is not known yet, by number.
    Parity(u32),
    /// Nothing waits for it.
    None,
}

/// Work of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaneWork {
    /// A page is read into the register.
    Sense(Command),
    /// A logical page of the plane is programmed.
    Program { local: u32, command: Command },
    /// A block is emptied within the plane, and erased.
    Collect,
}

/// Work of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transfer {
    /// A page goes to a plane, which programs it.
    In { plane: u32, local: u32, command: Command },
    /// A page comes from a plane.
    Out { command: Command },
    /// A block of a plane is emptied over the channel, and erased.
    Collect { plane: u32 },
}

/// A request of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) arrived: SimTime,
    pub(super) is_read: bool,
    /// Pages that are under way.
    pub(super) left: u32,
}

/// Parity that is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parity {
    pub(super) stripe: u32,
    /// Pages that are still read for it.
    pub(super) left: u32,
}

/// Stripes of so many pages that a range of pages lies in, and which of their pages.
pub(super) fn stripes_of(pages: Range<u32>, length: u32) -> impl Iterator<Item = (u32, Range<u32>)> {
    let stripes = pages.start / length..pages.end.div_ceil(length);
    stripes.map(move |stripe| {
        let first = stripe * length;
        (stripe, pages.start.max(first) - first..pages.end.min(first + length) - first)
    })
}

//! Work of planes and channels of the source's drive, and the commands that it is for.

use flashyard_units::SimTime;
use std::collections::VecDeque;
use std::ops::Range;

/// The purpose of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// A request of the host, by number.
    Host(u32),
    /// Parity that is not known yet, by number.
    Parity(u32),
    /// Work that no command waits for.
    None,
}

/// Work of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaneWork {
    /// A page is read into the register.
    Sense(Command),
    /// A logical page of the plane is programmed.
    Program { local: u32, command: Command },
    /// The pages of a block are moved within the plane. The channel may be blocked meanwhile, and then says when it ends.
    Move,
    /// A block is erased.
    Erase,
}

/// The queue of a plane: reads are served before programs. Source: \[C\] ttFlash's simulator, as SSDSim.
#[derive(Debug, Default)]
pub(super) struct PlaneQueue {
    senses: VecDeque<Command>,
    programs: VecDeque<(u32, Command)>,
}

impl PlaneQueue {
    pub(super) fn sense(&mut self, command: Command) {
        self.senses.push_back(command);
    }

    pub(super) fn program(&mut self, local: u32, command: Command) {
        self.programs.push_back((local, command));
    }

    /// The next piece of work. Programs wait where there is no room for their pages.
    pub(super) fn pop(&mut self, has_room: bool) -> Option<PlaneWork> {
        if let Some(command) = self.senses.pop_front() {
            return Some(PlaneWork::Sense(command));
        }
        let (local, command) = if has_room { self.programs.pop_front()? } else { return None };
        Some(PlaneWork::Program { local, command })
    }
}

/// Work of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transfer {
    /// A page goes to a plane, which programs it.
    In { plane: u32, local: u32, command: Command },
    /// A page comes from a plane.
    Out { command: Command },
    /// A block of a plane is emptied, and the channel serves nothing else.
    Blocked,
}

/// The queue of a channel: reads are served before writes. Source: \[C\] ttFlash's simulator, as SSDSim.
#[derive(Debug, Default)]
pub(super) struct ChannelQueue {
    outs: VecDeque<Transfer>,
    ins: VecDeque<Transfer>,
}

impl ChannelQueue {
    pub(super) fn push(&mut self, transfer: Transfer) {
        match transfer {
            Transfer::Out { .. } => self.outs.push_back(transfer),
            _ => self.ins.push_back(transfer),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Transfer> {
        self.outs.pop_front().or_else(|| self.ins.pop_front())
    }
}

/// A request that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at: SimTime,
    pub(super) is_read: bool,
    pub(super) first: u32,
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

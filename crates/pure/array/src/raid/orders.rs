//! Orders and buffers by number.

use flashyard_kernel::Slab;
use flashyard_service::{Order, Orders};

/// The purpose of an order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Under {
    Op {
        op: u32,
        role: u8,
        leg: u8,
    },
    Members {
        leg: u8,
    },
    Join {
        leg: u8,
    },
    /// A read of the areas of a leg, from this block of both on; others begin at 0.
    Recovery {
        leg: u8,
        at: u32,
    },
    Chart {
        leg: u8,
    },
}

impl Under {
    const fn leg(self) -> usize {
        let (Self::Op { leg, .. }
        | Self::Members { leg }
        | Self::Join { leg }
        | Self::Recovery { leg, .. }
        | Self::Chart { leg }) = self;
        leg as usize
    }
}

/// Orders under way, and numbers of buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Desk {
    orders: Slab<Under>,
    /// By leg: orders under way there.
    by_leg: Vec<u32>,
    /// Numbers of buffers: free ones, those of this step, and how many there are.
    buffers: Vec<u32>,
    cooling: Vec<u32>,
    taken: u32,
}

impl Desk {
    pub(super) fn send(&mut self, under: Under, order: Order, out: &mut Orders) {
        let id = self.orders.insert(under) as u32;
        if under.leg() >= self.by_leg.len() {
            self.by_leg.resize(under.leg() + 1, 0);
        }
        self.by_leg[under.leg()] += 1;
        out.orders.push(Order { id, ..order });
    }

    pub(super) fn get(&self, order: u32) -> Option<Under> {
        self.orders.get(order as usize).copied()
    }

    pub(super) fn end(&mut self, order: u32) -> Option<Under> {
        let under = self.orders.remove(order as usize)?;
        self.by_leg[under.leg()] -= 1;
        Some(under)
    }

    /// Whether no order is under way at a leg.
    pub(super) fn is_idle(&self, leg: u8) -> bool {
        self.by_leg.get(usize::from(leg)).is_none_or(|&count| count == 0)
    }

    /// A step begins: buffers that were released in the one before may be taken.
    pub(super) fn begin_step(&mut self) {
        self.buffers.append(&mut self.cooling);
    }

    pub(super) fn take_buffer(&mut self, blocks: u32, out: &mut Orders) -> u32 {
        let buffer = self.buffers.pop().unwrap_or_else(|| {
            self.taken += 1;
            self.taken - 1
        });
        out.taken.push((buffer, blocks));
        buffer
    }

    pub(super) fn release(&mut self, buffer: Option<u32>, out: &mut Orders) {
        out.released.extend(buffer);
        self.cooling.extend(buffer);
    }
}

//! Memory of the runtime: buffers of services, and bytes that they have of their own.

use crate::address::{HostAddress, LogicalAddress, PageMap, SocWindow};
use crate::host::BLOCK_BYTES;

/// A piece of memory of the runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) blocks: u32,
    at: LogicalAddress,
    /// For drives.
    pub(crate) host: HostAddress,
}

/// The runtime's memory. Pieces are taken one behind the other, and used again for as many blocks.
#[derive(Clone, Debug)]
pub(crate) struct Logical {
    pages: PageMap,
    window: SocWindow,
    next: u64,
    free: Vec<Piece>,
}

impl Logical {
    pub(crate) fn new(pages: PageMap, window: SocWindow) -> Self {
        Self { pages, window, next: 0, free: Vec::new() }
    }

    /// A piece of so many blocks; `None` where there is no room.
    pub(crate) fn take(&mut self, blocks: u32) -> Option<Piece> {
        if let Some(place) = self.free.iter().position(|piece| piece.blocks == blocks) {
            return Some(self.free.swap_remove(place));
        }
        let len = u64::from(blocks) * u64::from(BLOCK_BYTES);
        // A piece lies on one page.
        let mut next = self.next;
        while next < self.pages.bytes() {
            let at = LogicalAddress::new(next);
            if let Some(host) = self.pages.translate(at, len).and_then(|at| self.window.translate(at, len)) {
                self.next = next + len;
                return Some(Piece { blocks, at, host });
            }
            next += u64::from(BLOCK_BYTES);
        }
        None
    }

    pub(crate) fn give(&mut self, piece: Piece) {
        debug_assert!(piece.at.get() < self.next, "it was taken");
        self.free.push(piece);
    }
}

//! Four address spaces, each a type of its own, and the ways from one to another. Source: sheet leapio §3.3.
//!
//! An address of one space is none of another:
//!
//! ```compile_fail
//! use flashyard_runtime::{GuestAddress, HostAddress};
//! let guest = GuestAddress::new(4096);
//! let host: HostAddress = guest;
//! ```
//!
//! ```
//! use flashyard_runtime::{GuestAddress, GuestWindow, HostAddress};
//! let window = GuestWindow::new(HostAddress::new(1 << 40), 8192);
//! assert_eq!(window.translate(GuestAddress::new(4096), 4096), Some(HostAddress::new((1 << 40) + 4096)));
//! assert_eq!(window.translate(GuestAddress::new(4096), 4097), None);
//! ```

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// The address of a byte.
            pub const fn new(byte: u64) -> Self {
                Self(byte)
            }

            /// The byte.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The address so many bytes further on; `None` beyond the end of 64 bits.
            pub const fn plus(self, bytes: u64) -> Option<Self> {
                match self.0.checked_add(bytes) {
                    Some(byte) => Some(Self(byte)),
                    None => None,
                }
            }
        }
    };
}

address!(
    /// Of a guest's physical memory (gA).
    GuestAddress
);
address!(
    /// Of the host's physical space, which drives understand (hA).
    HostAddress
);
address!(
    /// Of the runtime's own virtual memory (lA).
    LogicalAddress
);
address!(
    /// Of a card's physical memory (sA).
    SocAddress
);

/// A guest's memory as it lies in that of the host: huge pages beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestWindow {
    base: HostAddress,
    bytes: u64,
}

impl GuestWindow {
    /// A guest of so many bytes, which begin at `base`.
    pub const fn new(base: HostAddress, bytes: u64) -> Self {
        Self { base, bytes }
    }

    /// The host's address of `len` bytes of the guest; `None` where they are not all the guest's.
    #[inline]
    pub fn translate(&self, at: GuestAddress, len: u64) -> Option<HostAddress> {
        let end = at.get().checked_add(len)?;
        if end > self.bytes {
            return None;
        }
        self.base.plus(at.get())
    }
}

/// Pages of the runtime's memory as they lie in that of its card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMap {
    page_bytes: u64,
    pages: Vec<SocAddress>,
}

impl PageMap {
    /// Pages of so many bytes, in the order of logical addresses. Panics where the bytes are no power of two.
    pub fn new(page_bytes: u64, pages: Vec<SocAddress>) -> Self {
        assert!(page_bytes.is_power_of_two(), "{page_bytes} bytes are no page");
        Self { page_bytes, pages }
    }

    /// Bytes of all pages.
    pub fn bytes(&self) -> u64 {
        self.page_bytes * self.pages.len() as u64
    }

    /// The card's address of `len` bytes; `None` where they are beyond the last page, or lie on more than one.
    #[inline]
    pub fn translate(&self, at: LogicalAddress, len: u64) -> Option<SocAddress> {
        let (page, offset) = (at.get() / self.page_bytes, at.get() % self.page_bytes);
        let fits = offset.checked_add(len)? <= self.page_bytes;
        self.pages.get(page as usize).filter(|_| fits)?.plus(offset)
    }
}

/// A card's memory as it lies in the host's space: behind its own. Source: sheet §3.3, hA = hostDramSize + sA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocWindow {
    base: HostAddress,
    bytes: u64,
}

impl SocWindow {
    /// A card of so many bytes, which begin at `base`.
    pub const fn new(base: HostAddress, bytes: u64) -> Self {
        Self { base, bytes }
    }

    /// The host's address of `len` bytes of the card; `None` where they are not all its own.
    #[inline]
    pub fn translate(&self, at: SocAddress, len: u64) -> Option<HostAddress> {
        let end = at.get().checked_add(len)?;
        if end > self.bytes { None } else { self.base.plus(at.get()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logical_memory_is_found_through_pages_and_the_card() {
        let pages = PageMap::new(8192, vec![SocAddress::new(65_536), SocAddress::new(0)]);
        let window = SocWindow::new(HostAddress::new(1 << 50), 1 << 20);
        let find = |at: u64, len| window.translate(pages.translate(LogicalAddress::new(at), len)?, len);
        assert_eq!(find(4096, 4096), Some(HostAddress::new((1 << 50) + 65_536 + 4096)));
        assert_eq!(find(8192, 1), Some(HostAddress::new(1 << 50)));
        assert_eq!(find(4096, 4097), None, "two pages");
        assert_eq!(find(16_384, 1), None, "beyond the last");
        assert_eq!(find(0, u64::MAX), None);
    }
}

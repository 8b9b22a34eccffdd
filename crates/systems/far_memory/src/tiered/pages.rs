//! Huge pages as blocks.

/// Blocks in a huge page: of 64 bytes in 2 MiB.
pub const HUGE_PAGE_BLOCKS: u64 = 32_768;

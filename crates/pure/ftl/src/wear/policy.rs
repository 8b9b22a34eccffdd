//! The policies of wear leveling as one value.

use super::dual_pool::DualPool;
use super::hot_cold_swap::HotColdSwap;
use super::old_block_protection::OldBlockProtection;
use super::progressive::Progressive;
use super::uneven_factor::UnevenFactor;

/// A policy and its memory.
pub(crate) enum Wear {
    HotColdSwap(HotColdSwap),
    OldBlockProtection(OldBlockProtection),
    DualPool(DualPool),
    Progressive(Progressive),
    UnevenFactor(UnevenFactor),
}

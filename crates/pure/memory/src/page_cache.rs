//! How an endpoint finds the pages of its internal DRAM.

use flashyard_cache::{Policy, PolicyKind};

/// Bytes of a cached page: a slot of the translation layer.
pub const PAGE_BYTES: u64 = 4096;

/// Reads of internal DRAM for metadata that a look-up takes before its page is found.
pub trait LookUp {
    /// Tells the granules of 64 bytes, by their numbers in the area of metadata, that must be read for `page`.
    fn reads(&mut self, page: u32, missed: &mut dyn FnMut(u32));
}

/// The pages of an internal DRAM, and what finding one takes.
pub struct PageCache {
    /// Which pages are there, and in which slots.
    pub pages: Box<dyn Policy + Send>,
    /// Reads for metadata; `None` where the controller knows all places.
    pub look_up: Option<Box<dyn LookUp + Send>>,
}

impl PageCache {
    /// Pages anywhere, under a policy, whose places the controller knows.
    ///
    /// Panics where `capacity` is 0 or above [`flashyard_cache::CAPACITY_MAX`].
    pub fn of_policy(policy: PolicyKind, capacity: u32) -> Self {
        Self { pages: policy.cache(capacity), look_up: None }
    }
}

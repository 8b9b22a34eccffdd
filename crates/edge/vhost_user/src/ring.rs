//! One ring of a guest: what was agreed on it, and its state while it runs.

use crate::config::QUEUE_ENTRIES_MAX;
use crate::request::Memory;
use rustix::io::write;
use std::fs::File;
use virtio_queue::{DescriptorChain, Queue, QueueT};

/// A ring. It runs once it has a kick and is enabled.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) queue: Queue,
    /// Where the guest says that it has put something in.
    pub(crate) kick: Option<File>,
    /// Where the guest is told that something came back.
    pub(crate) call: Option<File>,
    pub(crate) is_enabled: bool,
    /// Requests that are not answered.
    pub(crate) under_way: u32,
    /// Something may be in it.
    pub(crate) is_kicked: bool,
    /// Something was put back, and the guest was not told.
    pub(crate) is_owed: bool,
}

impl Ring {
    pub(crate) fn new() -> Self {
        Self {
            queue: Queue::new(QUEUE_ENTRIES_MAX).expect("it is a power of two"),
            kick: None,
            call: None,
            is_enabled: false,
            under_way: 0,
            is_kicked: false,
            is_owed: false,
        }
    }

    /// Whether requests are taken from it.
    pub(crate) fn runs(&self) -> bool {
        self.is_enabled && self.kick.is_some() && self.queue.ready()
    }

    /// The next chain of descriptors. Where there is none, the guest kicks for the next one.
    pub(crate) fn next<'a>(&mut self, memory: &'a Memory) -> Option<DescriptorChain<&'a Memory>> {
        if !self.runs() {
            self.is_kicked = false;
            return None;
        }
        let mut chain = self.queue.pop_descriptor_chain(memory);
        // More may have come before the guest saw that it is to kick.
        if chain.is_none() && self.queue.enable_notification(memory).unwrap_or(false) {
            chain = self.queue.pop_descriptor_chain(memory);
            if chain.is_none() {
                tracing::warn!("a guest's ring claims more than it has room for: nothing more is taken from it");
                self.is_enabled = false;
            }
        }
        self.under_way += u32::from(chain.is_some());
        self.is_kicked = chain.is_some();
        chain
    }

    /// Leaves the chain that was just taken in the ring: it waits for room.
    pub(crate) fn put_back(&mut self) {
        self.under_way -= 1;
        self.queue.set_next_avail(self.queue.next_avail().wrapping_sub(1));
    }

    /// Puts a chain back, into which `bytes` were written.
    pub(crate) fn give_back(&mut self, memory: &Memory, head: u16, bytes: u32) {
        self.under_way -= 1;
        match self.queue.add_used(memory, head, bytes) {
            Ok(()) => self.is_owed = true,
            Err(error) => tracing::warn!(%error, "a guest's ring takes no answer"),
        }
    }

    /// Tells the guest what was put back, if it wants to hear it.
    pub(crate) fn tell(&mut self, memory: &Memory) {
        self.is_owed = false;
        let wants = self.queue.needs_notification(memory).unwrap_or(true);
        if let (true, Some(call)) = (wants, &self.call)
            && let Err(error) = write(call, &1_u64.to_ne_bytes())
        {
            tracing::debug!(%error, "a guest is not told");
        }
    }
}

//! Numbers of attempts that the driver has given up, and how they come to be used again.
//!
//! Whatever had the attempt may still name it: an event on its way, a core's queue, a message ring, the data-end. Its
//! number is free once none of them does. Nobody counts on the way of a request who names it; when enough numbers are
//! missing, all places that can name one are looked through.

use super::failover::Attempt;
use super::world::{Event, Jbof};

/// So many numbers may be missing before somebody looks for them. [A] a look costs some microseconds
const MISSING_MIN: usize = 64;

/// Numbers of attempts that nobody waits for.
pub(super) struct Graves {
    ids: Vec<u32>,
    /// How many make the next look worth its cost: twice as many as the last one had to leave.
    look_at: usize,
}

impl Default for Graves {
    fn default() -> Self {
        Self { ids: Vec::new(), look_at: MISSING_MIN }
    }
}

impl Graves {
    pub(super) fn ids(&self) -> &[u32] {
        &self.ids
    }
}

impl Jbof {
    /// The driver does not wait for an attempt any more.
    pub(super) fn bury(&mut self, id: u32) {
        self.requests[id as usize].attempt = Attempt::Dead;
        if let Some(state) = &mut self.resilience {
            state.graves.ids.push(id);
        }
    }

    /// Takes numbers back that nobody names any more. Between two events: no effect is under way.
    pub(super) fn take_back_numbers(&mut self) {
        let Some(state) = &mut self.resilience else { return };
        if state.graves.ids.len() < state.graves.look_at {
            return;
        }
        let ids = std::mem::take(&mut state.graves.ids);
        let named = self.named();
        let (kept, freed): (Vec<u32>, Vec<u32>) = ids.into_iter().partition(|&id| named[id as usize]);
        let Some(state) = &mut self.resilience else { return };
        for &id in &freed {
            state.forget_found(id);
        }
        state.graves.look_at = MISSING_MIN.max(2 * kept.len());
        state.graves.ids = kept;
        self.free.extend(freed);
    }

    /// By number: whether something names that request.
    fn named(&self) -> Vec<bool> {
        let mut named = vec![false; self.requests.len()];
        let mut name = |id: u32| {
            // Drives also run jobs that are no requests.
            if let Some(is_named) = named.get_mut(id as usize) {
                *is_named = true;
            }
        };
        for event in self.runner.queue.events() {
            match *event {
                Event::Arrive { request } | Event::Store { request } | Event::Finished { request } => name(request),
                Event::Drive { .. }
                | Event::Wrapped { .. }
                | Event::Issue { .. }
                | Event::Resume { .. }
                | Event::Tick
                | Event::HostTick
                | Event::Swap { .. }
                | Event::PowerOn { .. }
                | Event::LinkUp { .. }
                | Event::WarmupEnd
                | Event::Stop => {}
            }
        }
        self.drives.iter().for_each(|drive| drive.tags().for_each(&mut name));
        self.rings.commands().for_each(&mut name);
        named
    }
}

//! Interrupts of guests, which completions of a queue may share. Source: NVM Express base specification, feature 08h (interrupt
//! coalescing): an interrupt comes when so many completions wait, or so long after the first of them.

use crate::request::{Event, Own};
use crate::stack::Part;
use crate::world::Server;
use flashyard_units::{SimSpan, SimTime};

impl Server {
    /// A request reaches the interrupt of its guest, which takes `time`.
    pub(crate) fn wait_for_interrupt(&mut self, now: SimTime, id: u32, time: SimSpan) {
        let request = &mut self.requests[id as usize];
        request.unqueued = now;
        // A completion goes to the queue of its request, and the numbers of requests spread evenly over queues.
        let place = u32::from(request.drive) * self.config.queues + id % self.config.queues;
        let waiting = &mut self.interrupts[place as usize];
        waiting.requests.push(id);
        let coalescing = self.config.coalescing;
        if waiting.requests.len() >= coalescing.completions as usize {
            self.interrupt(now, place, time);
        } else if waiting.requests.len() == 1 {
            let number = waiting.interrupts;
            self.runner.queue.push(now + coalescing.time, Event::Interrupt { place, number });
        }
    }

    /// The time after which an interrupt comes is over, unless it came before.
    pub(crate) fn interrupt_due(&mut self, now: SimTime, place: u32, number: u32) {
        if self.interrupts[place as usize].interrupts == number {
            let time = self.table.interrupt().expect("a request waited for one");
            self.interrupt(now, place, time);
        }
    }

    /// All that wait at `place` go on behind an interrupt.
    fn interrupt(&mut self, now: SimTime, place: u32, time: SimSpan) {
        let waiting = &mut self.interrupts[place as usize];
        waiting.interrupts = waiting.interrupts.wrapping_add(1);
        self.interrupted += 1;
        for &id in &waiting.requests {
            let request = &mut self.requests[id as usize];
            request.time.add(Own::Wait, now.since(request.unqueued));
            request.time.add(Own::Of(Part::Guest), time);
            self.runner.queue.push(now + time, Event::Next { request: id });
        }
        waiting.requests.clear();
    }
}

//! Reads over stripes with parity.

use crate::base::{Base, Event};
use crate::config::CHUNK_BYTES;
use flashyard_units::{SimSpan, SimTime};

impl Base {
    /// Reads a request's chunks beside each other. What was on a drive that is gone comes from the others of its stripe.
    pub(crate) fn read(&mut self, now: SimTime, number: u32) {
        let request = self.requests[number as usize];
        let (mut at, end) = (request.offset, request.offset + u64::from(request.len));
        let (mut done, mut commands) = (now, 0);
        let mut combined = SimSpan::ZERO;
        while at < end {
            let chunk = at / u64::from(CHUNK_BYTES);
            let piece = ((chunk + 1) * u64::from(CHUNK_BYTES)).min(end) - at;
            let data = self.config.data() as u64;
            let (stripe, data) = ((chunk / data) as u32, (chunk % data) as usize);
            let column = self.column(stripe, data);
            if self.is_failed(stripe, column) {
                let others = (0..self.config.width).filter(|&other| other != column).take(self.config.data());
                for other in others {
                    done = done.max(self.command(now, stripe, other, false, piece as u32));
                    commands += 1;
                }
                combined += self.config.software.parity_rate.span_of(piece * self.config.data() as u64);
            } else {
                done = done.max(self.command(now, stripe, column, false, piece as u32));
                commands += 1;
            }
            at += piece;
        }
        let software = self.config.software.command * commands + combined;
        self.after(done, software, Event::Answer(number));
    }
}

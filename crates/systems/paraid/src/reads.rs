//! Reads over stripes with parity.

use crate::base::{Base, Event, Piece};
use flashyard_units::{SimSpan, SimTime};

impl Base {
    /// Reads a request's chunks beside each other. What was on a drive that is gone comes from the others of its stripe.
    pub(crate) fn read(&mut self, now: SimTime, number: u32) {
        let request = self.requests[number as usize];
        let (mut at, end) = (request.offset, request.offset + u64::from(request.len));
        let (mut done, mut commands) = (now, 0);
        let mut combined = SimSpan::ZERO;
        let size = self.config.chunk;
        while at < end {
            let chunk = size.in_bytes(at);
            let begins = chunk * u64::from(size.bytes());
            let piece = (begins + u64::from(size.bytes())).min(end) - at;
            let of_chunk = Piece { offset: (at - begins) as u32, bytes: piece as u32 };
            let data = self.config.data() as u64;
            let (stripe, data) = ((chunk / data) as u32, (chunk % data) as usize);
            let column = self.column(stripe, data);
            if self.is_failed(stripe, column) {
                let others = (0..self.config.width).filter(|&other| other != column).take(self.config.data());
                for other in others {
                    done = done.max(self.command(now, stripe, other, false, of_chunk));
                    commands += 1;
                }
                combined += self.config.software.parity_rate.span_of(piece * self.config.data() as u64);
            } else {
                done = done.max(self.command(now, stripe, column, false, of_chunk));
                commands += 1;
            }
            at += piece;
        }
        let software = self.config.software.command * commands + combined;
        self.after(done, software, Event::Answer(number));
    }
}

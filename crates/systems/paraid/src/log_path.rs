//! Reads and writes of a log, and the collection of its garbage.

use crate::base::{Base, Event, Piece};
use crate::config::{ArrayRunError, BLOCK_BYTES};
use crate::log::{Log, State};
use crate::stripe::NONE;
use flashyard_units::{SimSpan, SimTime};

impl Log {
    /// Reads blocks where the log has them.
    pub(crate) fn read(&self, base: &mut Base, now: SimTime, number: u32) {
        let mut done = now;
        let mut run = (0, 0);
        let mut commands = 0;
        let chunk = u32::from(base.config.chunk.blocks());
        for block in blocks_of(base, number) {
            let place = self.map[block as usize];
            if run.1 > 0 && place == run.0 + run.1 && !place.is_multiple_of(chunk) {
                run.1 += 1;
                continue;
            }
            if run.1 > 0 {
                done = done.max(log_command(base, now, run.0, run.1, false));
                commands += 1;
            }
            run = (place, 1);
        }
        done = done.max(log_command(base, now, run.0, run.1, false));
        let software = base.config.software.command * (commands + 1);
        base.after(done, software, Event::Answer(number));
    }

    /// Writes blocks to the end of the log, or waits for room there.
    pub(crate) fn write(&mut self, base: &mut Base, now: SimTime, number: u32) {
        let blocks = blocks_of(base, number);
        let asked = u64::from(blocks.end - blocks.start);
        if asked > self.longest {
            base.failed = Some(ArrayRunError::Long { asked, longest: self.longest });
            return;
        }
        self.rotate(asked);
        if !self.stalled.is_empty() || self.room() < asked {
            self.stalled.push_back(number);
            return self.collect(base, now);
        }
        self.append_request(base, now, number);
        self.collect(base, now);
    }

    fn append_request(&mut self, base: &mut Base, now: SimTime, number: u32) {
        let group = self.front;
        let blocks = blocks_of(base, number);
        let (done, commands) = self.append_blocks(base, now, group, 0, blocks);
        let software = base.config.software.command * commands;
        base.after(done, software, Event::Answer(number));
    }

    /// Appends blocks; when they are on drives, and the number of commands that it took.
    fn append_blocks(
        &mut self,
        base: &mut Base,
        now: SimTime,
        group: usize,
        stream: usize,
        blocks: impl Iterator<Item = u32>,
    ) -> (SimTime, u64) {
        let mut done = now;
        let mut commands = 0;
        let mut run = (0, 0);
        let chunk = u32::from(base.config.chunk.blocks());
        for block in blocks {
            let Some((place, full)) = self.append(group, stream, block) else { break };
            if run.1 > 0 && (place != run.0 + run.1 || place.is_multiple_of(chunk)) {
                done = done.max(log_command(base, now, run.0, run.1, true));
                commands += 1;
                run = (place, 1);
            } else {
                run = (if run.1 == 0 { place } else { run.0 }, run.1 + 1);
            }
            if let Some(stripe) = full {
                done = done.max(log_command(base, now, run.0, run.1, true));
                run.1 = 0;
                commands += 1 + base.config.parities as u64;
                for parity in 0..base.config.parities {
                    let column = (stripe as usize % base.config.width + parity) % base.config.width;
                    done = done.max(base.command(now, stripe, column, true, Piece::whole(base.config.chunk)));
                }
            }
        }
        if run.1 > 0 {
            done = done.max(log_command(base, now, run.0, run.1, true));
            commands += 1;
        }
        (done, commands)
    }

    /// Begins a collection in each group that wants one.
    fn collect(&mut self, base: &mut Base, now: SimTime) {
        let groups = self.groups.len();
        for group in 0..groups {
            if !self.wants_collection(group) {
                continue;
            }
            let Some(victim) = self.victim(group) else { continue };
            self.groups[group].victim = Some(victim);
            let (data, size) = (base.config.data(), u32::from(base.config.chunk.blocks()));
            let mut done = now;
            for chunk in 0..data {
                let first = victim * self.blocks + chunk as u32 * size;
                let places = first..first + size;
                let valid = places.clone().filter(|&place| self.back[place as usize] != NONE).count() as u32;
                if valid > 0 {
                    done = done.max(log_command(base, now, first, valid, false));
                }
            }
            base.after(done, SimSpan::ZERO, Event::VictimRead(group as u8));
        }
    }

    /// Valid blocks of a victim are read, and move to the group's own open stripe.
    pub(crate) fn victim_read(&mut self, base: &mut Base, now: SimTime, group: u8) {
        let Some(victim) = self.groups[usize::from(group)].victim else { return };
        let places = victim * self.blocks..(victim + 1) * self.blocks;
        let mut blocks = std::mem::take(&mut self.moved);
        blocks.clear();
        blocks.extend(places.map(|place| self.back[place as usize]).filter(|&block| block != NONE));
        base.counters.collected[0] += 1;
        base.counters.collected[1] += blocks.len() as u64;
        let (done, _) = self.append_blocks(base, now, usize::from(group), 1, blocks.iter().copied());
        self.moved = blocks;
        base.after(done, SimSpan::ZERO, Event::Collected(group));
    }

    /// A victim is empty: its stripe is free, and writes that waited go on.
    pub(crate) fn collected(&mut self, base: &mut Base, now: SimTime, group: u8) {
        let of = &mut self.groups[usize::from(group)];
        if let Some(victim) = of.victim.take()
            && self.valid[victim as usize] == 0
        {
            self.state[victim as usize] = State::Free;
            of.free.push_back(victim);
        }
        loop {
            let Some(&number) = self.stalled.front() else { break self.rotate(0) };
            let blocks = blocks_of(base, number);
            let asked = u64::from(blocks.end - blocks.start);
            self.rotate(asked);
            if self.room() < asked {
                break;
            }
            self.stalled.pop_front();
            self.append_request(base, now, number);
        }
        self.collect(base, now);
    }
}

/// Sends blocks at places beside each other in a chunk.
fn log_command(base: &mut Base, now: SimTime, place: u32, count: u32, is_write: bool) -> SimTime {
    let chunk = u32::from(base.config.chunk.blocks());
    let blocks = base.config.data() as u32 * chunk;
    let (stripe, data) = (place / blocks, place % blocks / chunk);
    let column = base.column(stripe, data as usize);
    let piece = Piece { offset: place % chunk * BLOCK_BYTES, bytes: count * BLOCK_BYTES };
    base.command(now, stripe, column, is_write, piece)
}

fn blocks_of(base: &Base, number: u32) -> std::ops::Range<u32> {
    let request = base.requests[number as usize];
    let end = (request.offset + u64::from(request.len)).div_ceil(u64::from(BLOCK_BYTES));
    (request.offset / u64::from(BLOCK_BYTES)) as u32..end as u32
}

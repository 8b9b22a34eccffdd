//! Reads and writes of a log, and the collection of its garbage.

use crate::config::{BLOCK_BYTES, CHUNK_BLOCKS, CHUNK_BYTES};
use crate::log::State;
use crate::stripe::NONE;
use crate::world::{Array, Event};
use flashyard_units::SimTime;

impl Array {
    /// Sends blocks at places beside each other in a chunk.
    fn log_command(&mut self, now: SimTime, place: u32, count: u32, is_write: bool) -> SimTime {
        let blocks = self.config.data() as u32 * u32::from(CHUNK_BLOCKS);
        let (stripe, data) = (place / blocks, place % blocks / u32::from(CHUNK_BLOCKS));
        let column = self.column(stripe, data as usize);
        self.command(now, stripe, column, is_write, count * BLOCK_BYTES)
    }

    fn blocks_of(&self, number: u32) -> std::ops::Range<u32> {
        let request = self.requests[number as usize];
        let end = (request.offset + u64::from(request.len)).div_ceil(u64::from(BLOCK_BYTES));
        (request.offset / u64::from(BLOCK_BYTES)) as u32..end as u32
    }

    /// Reads blocks where the log has them.
    pub(crate) fn read_log(&mut self, now: SimTime, number: u32) {
        let mut done = now;
        let mut run = (0, 0);
        let mut commands = 0;
        for block in self.blocks_of(number) {
            let Some(log) = &self.log else { return };
            let place = log.map[block as usize];
            if run.1 > 0 && place == run.0 + run.1 && place % u32::from(CHUNK_BLOCKS) != 0 {
                run.1 += 1;
                continue;
            }
            if run.1 > 0 {
                done = done.max(self.log_command(now, run.0, run.1, false));
                commands += 1;
            }
            run = (place, 1);
        }
        done = done.max(self.log_command(now, run.0, run.1, false));
        let at = done + self.config.software.command * (commands + 1);
        self.runner.queue.push(at, Event::Answer(number));
    }

    /// Writes blocks to the end of the log, or waits for room there.
    pub(crate) fn write_log(&mut self, now: SimTime, number: u32) {
        let blocks = self.blocks_of(number);
        let Some(log) = &mut self.log else { return };
        log.rotate();
        if !log.stalled.is_empty() || log.room() < u64::from(blocks.end - blocks.start) {
            log.stalled.push_back(number);
            return self.collect(now);
        }
        self.append_request(now, number);
        self.collect(now);
    }

    fn append_request(&mut self, now: SimTime, number: u32) {
        let group = self.log.as_ref().map_or(0, |log| log.front);
        let blocks = self.blocks_of(number);
        let (done, commands) = self.append_blocks(now, group, 0, blocks);
        let at = done + self.config.software.command * commands;
        self.runner.queue.push(at, Event::Answer(number));
    }

    /// Appends blocks; when they are on drives, and the number of commands that it took.
    fn append_blocks(
        &mut self,
        now: SimTime,
        group: usize,
        stream: usize,
        blocks: impl Iterator<Item = u32>,
    ) -> (SimTime, u64) {
        let mut done = now;
        let mut commands = 0;
        let mut run = (0, 0);
        for block in blocks {
            let Some((place, full)) = self.log.as_mut().and_then(|log| log.append(group, stream, block)) else { break };
            if run.1 > 0 && (place != run.0 + run.1 || place.is_multiple_of(u32::from(CHUNK_BLOCKS))) {
                done = done.max(self.log_command(now, run.0, run.1, true));
                commands += 1;
                run = (place, 1);
            } else {
                run = (if run.1 == 0 { place } else { run.0 }, run.1 + 1);
            }
            if let Some(stripe) = full {
                done = done.max(self.log_command(now, run.0, run.1, true));
                run.1 = 0;
                commands += 1 + self.config.parities as u64;
                for parity in 0..self.config.parities {
                    let column = (stripe as usize % self.config.width + parity) % self.config.width;
                    done = done.max(self.command(now, stripe, column, true, CHUNK_BYTES));
                }
            }
        }
        if run.1 > 0 {
            done = done.max(self.log_command(now, run.0, run.1, true));
            commands += 1;
        }
        (done, commands)
    }

    /// Begins a collection in each group that wants one.
    fn collect(&mut self, now: SimTime) {
        let groups = self.log.as_ref().map_or(0, |log| log.groups.len());
        for group in 0..groups {
            let Some(log) = &mut self.log else { return };
            if !log.wants_collection(group) {
                continue;
            }
            let Some(victim) = log.victim(group) else { continue };
            log.groups[group].victim = Some(victim);
            let data = self.config.data();
            let mut done = now;
            for chunk in 0..data {
                let Some(log) = &self.log else { return };
                let first = victim * log.blocks + chunk as u32 * u32::from(CHUNK_BLOCKS);
                let places = first..first + u32::from(CHUNK_BLOCKS);
                let valid = places.clone().filter(|&place| log.back[place as usize] != NONE).count() as u32;
                if valid > 0 {
                    done = done.max(self.log_command(now, first, valid, false));
                }
            }
            self.runner.queue.push(done, Event::VictimRead(group as u8));
        }
    }

    /// What is valid of a victim is read, and moves to the group's own open stripe.
    pub(crate) fn victim_read(&mut self, now: SimTime, group: u8) {
        let Some(log) = &mut self.log else { return };
        let Some(victim) = log.groups[usize::from(group)].victim else { return };
        let places = victim * log.blocks..(victim + 1) * log.blocks;
        let mut blocks = std::mem::take(&mut log.moved);
        blocks.clear();
        blocks.extend(places.map(|place| log.back[place as usize]).filter(|&block| block != NONE));
        self.counters.collected[0] += 1;
        self.counters.collected[1] += blocks.len() as u64;
        let (done, _) = self.append_blocks(now, usize::from(group), 1, blocks.iter().copied());
        if let Some(log) = &mut self.log {
            log.moved = blocks;
        }
        self.runner.queue.push(done, Event::Collected(group));
    }

    /// A victim is empty: its stripe is free, and writes that waited go on.
    pub(crate) fn collected(&mut self, now: SimTime, group: u8) {
        let Some(log) = &mut self.log else { return };
        let of = &mut log.groups[usize::from(group)];
        if let Some(victim) = of.victim.take()
            && log.valid[victim as usize] == 0
        {
            log.state[victim as usize] = State::Free;
            of.free.push_back(victim);
        }
        loop {
            let Some(log) = &mut self.log else { return };
            log.rotate();
            let Some(&number) = log.stalled.front() else { break };
            let blocks = self.blocks_of(number);
            let Some(log) = &mut self.log else { return };
            if log.room() < u64::from(blocks.end - blocks.start) {
                break;
            }
            log.stalled.pop_front();
            self.append_request(now, number);
        }
        self.collect(now);
    }
}

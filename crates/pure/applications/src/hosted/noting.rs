//! A volume that keeps what it was asked for, as steps of a thread.

use flashyard_blk::{BlockRequest, Completion, Operation, Payload, Volume, VolumeError, VolumeInfo, VolumeRequest};
use flashyard_units::SimTime;
use flashyard_workload::Step;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Note {
    Request {
        operation: Operation,
        first: u64,
        count: u32,
    },
    /// All before it must have completed.
    Wait,
}

/// A volume whose requests are kept, once they are listened to.
#[derive(Debug)]
pub struct Noting<V> {
    volume: V,
    notes: Vec<Note>,
    listens: bool,
    /// Whether reads go out together, as those of one read of a file do.
    reads_together: bool,
}

impl<V: Volume> Noting<V> {
    /// A volume that is not listened to.
    pub fn new(volume: V) -> Self {
        Self { volume, notes: Vec::new(), listens: false, reads_together: false }
    }

    /// The volume.
    pub fn volume(&self) -> &V {
        &self.volume
    }

    /// Keeps requests from now on.
    pub fn listen(&mut self) {
        self.listens = true;
    }

    /// Says whether reads from now on go out together.
    pub(super) fn set_reads_together(&mut self, together: bool) {
        self.reads_together = together;
    }

    /// Requests from now on have to wait for those kept so far.
    pub(super) fn wait(&mut self) {
        if !matches!(self.notes.last(), None | Some(Note::Wait)) {
            self.notes.push(Note::Wait);
        }
    }

    /// Moves the requests kept so far to the end of `into`, each of `request_blocks` blocks at most, with a wait behind the
    /// last one.
    pub fn take_steps(&mut self, request_blocks: u32, into: &mut VecDeque<Step>) {
        self.wait();
        let block_bytes = self.volume.info().block_bytes;
        let mut notes = self.notes.drain(..).peekable();
        while let Some(note) = notes.next() {
            let Note::Request { operation, first, count: mut left } = note else {
                into.push_back(Step::Wait);
                continue;
            };
            // Neighbours that go out together become one request.
            while let Some(&Note::Request { operation: next, first: at, count }) = notes.peek()
                && next == operation
                && operation != Operation::Flush
                && at == first + u64::from(left)
            {
                left += count;
                notes.next();
            }
            let mut at = first;
            loop {
                let count = left.min(request_blocks);
                let (offset_bytes, len_bytes) = (at * u64::from(block_bytes), count * block_bytes);
                into.push_back(Step::Ask(BlockRequest { operation, offset_bytes, len_bytes }));
                (at, left) = (at + u64::from(count), left - count);
                if left == 0 {
                    break;
                }
            }
        }
    }
}

impl<V: Volume> Volume for Noting<V> {
    fn info(&self) -> VolumeInfo {
        self.volume.info()
    }

    fn submit(
        &mut self,
        now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
    ) -> Result<(), VolumeError> {
        self.volume.submit(now, token, request, payload)?;
        if !self.listens {
            return Ok(());
        }
        let VolumeRequest { operation, first, count, .. } = *request;
        if operation == Operation::Flush {
            self.wait();
            self.notes.push(Note::Request { operation, first: 0, count: 0 });
        } else {
            self.notes.push(Note::Request { operation, first, count });
        }
        if operation == Operation::Flush || (operation == Operation::Read && !self.reads_together) {
            self.wait();
        }
        Ok(())
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        self.volume.advance(until, into)
    }

    fn next_due(&self) -> Option<SimTime> {
        self.volume.next_due()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::Blocking;
    use flashyard_cvfs::{BLOCK_BYTES, MemoryDevice};
    use proptest::prelude::*;

    fn volume() -> Blocking<Noting<MemoryDevice>> {
        let mut noting = Noting::new(MemoryDevice::new(100));
        noting.listen();
        Blocking::new(noting)
    }

    fn steps(volume: &mut Blocking<Noting<MemoryDevice>>, request_blocks: u32) -> Vec<Step> {
        let mut steps = VecDeque::new();
        volume.volume_mut().take_steps(request_blocks, &mut steps);
        steps.into()
    }

    const fn ask(operation: Operation, block: u64, blocks: u32) -> Step {
        let (offset_bytes, len_bytes) = (block * BLOCK_BYTES as u64, blocks * BLOCK_BYTES as u32);
        Step::Ask(BlockRequest { operation, offset_bytes, len_bytes })
    }

    #[test]
    fn neighbours_are_merged_up_to_the_longest_request() {
        let mut volume = volume();
        let page = [1; BLOCK_BYTES];
        [10_u64, 11, 12, 13, 14, 20].iter().for_each(|&block| volume.write(block, &page).expect("it fits"));
        let write = |block, blocks| ask(Operation::Write, block, blocks);
        assert_eq!(steps(&mut volume, 3), [write(10, 3), write(13, 2), write(20, 1), Step::Wait]);
        assert_eq!(steps(&mut volume, 3), []);
    }

    #[test]
    fn a_flush_and_what_follows_a_read_wait_and_the_parts_of_one_read_do_not() {
        let mut volume = volume();
        let mut page = [1; BLOCK_BYTES];
        volume.read(3_u64, &mut page).expect("it is there");
        volume.read(4_u64, &mut page).expect("it is there");
        volume.write(5_u64, &page).expect("it fits");
        volume.flush().expect("it works");
        volume.volume_mut().set_reads_together(true);
        volume.read(8_u64, &mut page).expect("it is there");
        volume.read(7_u64, &mut page).expect("it is there");
        let read = |block| ask(Operation::Read, block, 1);
        let flush = Step::Ask(BlockRequest { operation: Operation::Flush, offset_bytes: 0, len_bytes: 0 });
        let waits =
            [read(3), Step::Wait, read(4), Step::Wait, ask(Operation::Write, 5, 1), Step::Wait, flush, Step::Wait];
        assert_eq!(steps(&mut volume, 32), [&waits[..], &[read(8), read(7), Step::Wait]].concat());
    }

    proptest! {
        #[test]
        fn steps_cover_each_block_as_often_as_it_was_asked_for(
            asked in prop::collection::vec((any::<bool>(), 0_u64..90, 1_usize..10), 0..40), request_blocks in 1_u32..12,
        ) {
            let mut volume = volume();
            let mut expected = vec![[0_u32; 2]; 100];
            for (writes, first, count) in asked {
                let mut bytes = vec![1; count * BLOCK_BYTES];
                if writes { volume.write(first, &bytes) } else { volume.read(first, &mut bytes) }.expect("it fits");
                (first as usize..first as usize + count).for_each(|block| expected[block][usize::from(writes)] += 1);
            }
            let mut found = vec![[0_u32; 2]; 100];
            for step in steps(&mut volume, request_blocks) {
                let Step::Ask(BlockRequest { operation, offset_bytes, len_bytes }) = step else { continue };
                prop_assert!(len_bytes as usize <= request_blocks as usize * BLOCK_BYTES);
                let (first, count) = (offset_bytes as usize / BLOCK_BYTES, len_bytes as usize / BLOCK_BYTES);
                (first..first + count).for_each(|at| found[at][usize::from(operation == Operation::Write)] += 1);
            }
            prop_assert_eq!(found, expected);
        }
    }
}

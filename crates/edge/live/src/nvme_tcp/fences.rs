//! The order of commands on the blocks of a zone: a reset waits for writes that came before it, and writes and reads wait for a reset.
//! A drive by itself may carry two commands out in any order, and a zone that is empty must neither hold an old write nor show one.

use flashyard_nvme::nvm::{BlockRange, CopyRange, DsmRange, NvmCommand};
use flashyard_nvme::zone::SendAction;

/// Blocks of a zoned drive that a command under way writes, resets, or reads while some are reset.
#[derive(Debug)]
pub(super) struct Span {
    first: u64,
    end: u64,
    resets: bool,
    /// Whether it only reads.
    reads: bool,
    /// Its turn among all such commands.
    turn: u64,
}

/// Commands that wait for others.
#[derive(Debug, Default)]
pub(super) struct Fences {
    turns: u64,
    /// Resets that are not over.
    resets: usize,
    /// In the order in which they came.
    held: Vec<(usize, NvmCommand)>,
    /// Whether a command is over that others may have waited for.
    is_due: bool,
}

impl Span {
    /// Whether the command resets zones.
    pub(super) fn resets(&self) -> bool {
        self.resets
    }

    /// Whether the command has to wait for `other`, of the same volume.
    pub(super) fn waits_for(&self, other: &Self) -> bool {
        let overlap = self.first < other.end && other.first < self.end;
        other.turn < self.turn && (other.resets || self.resets && !other.reads) && overlap
    }
}

impl Fences {
    /// The blocks of a command that may have to wait for others, with its data; `None` for one that need not. Reads wait for resets alone.
    pub(super) fn span(&mut self, operation: &NvmCommand, data: &[u8]) -> Option<Box<Span>> {
        let (mut resets, mut reads) = (false, false);
        let (first, end) = match *operation {
            NvmCommand::Read { range, .. } | NvmCommand::Compare { range, .. } | NvmCommand::Verify { range, .. }
                if self.any_reset() =>
            {
                reads = true;
                bounds(range)
            }
            NvmCommand::Write { range, .. } | NvmCommand::WriteZeroes { range, .. } => bounds(range),
            NvmCommand::Copy { first, .. } => {
                let sources = || CopyRange::decode_all(data).map(|source| source.range());
                let blocks: u64 = sources().map(|source| u64::from(source.blocks)).sum();
                let target = (first, first.saturating_add(blocks));
                // Its sources may lie anywhere.
                let read = sources().filter(|_| self.any_reset()).map(bounds);
                read.fold(target, |one, other| (one.0.min(other.0), one.1.max(other.1)))
            }
            NvmCommand::ZoneManagementSend { action, .. } => {
                resets = action == SendAction::Reset;
                let ranges = DsmRange::decode_all(data).map(|range| bounds(range.range()));
                ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?
            }
            _ => return None,
        };
        self.turns += 1;
        self.resets += usize::from(resets);
        Some(Box::new(Span { first, end, resets, reads, turn: self.turns }))
    }

    /// Whether a reset is under way or waits: without one no command waits for another.
    pub(super) fn any_reset(&self) -> bool {
        self.resets > 0
    }

    /// The command waits.
    pub(super) fn hold(&mut self, number: usize, operation: NvmCommand) {
        self.held.push((number, operation));
    }

    /// Commands that wait, if any of them may go on now; those that may not are to be held again, in their order.
    pub(super) fn take_held(&mut self) -> Vec<(usize, NvmCommand)> {
        if std::mem::take(&mut self.is_due) { std::mem::take(&mut self.held) } else { Vec::new() }
    }

    /// Whether [`Fences::take_held`] would return anything.
    pub(super) fn is_due(&self) -> bool {
        self.is_due && !self.held.is_empty()
    }

    /// Commands may be over of which none was told.
    pub(super) fn look_again(&mut self) {
        self.is_due = true;
    }

    /// The command is over, or is never begun.
    pub(super) fn ended(&mut self, number: usize, span: Option<&Span>) {
        let Some(span) = span else { return };
        self.resets -= usize::from(span.resets);
        self.held.retain(|&(held, _)| held != number);
        self.is_due = true;
    }
}

fn bounds(range: BlockRange) -> (u64, u64) {
    (range.lba, range.lba.saturating_add(range.blocks.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn range(lba: u64, blocks: u32) -> BlockRange {
        BlockRange { lba, blocks }
    }

    fn write(fences: &mut Fences, lba: u64) -> Box<Span> {
        fences.span(&NvmCommand::Write { range: range(lba, 4), fua: false }, &[]).expect("it writes")
    }

    fn reset(fences: &mut Fences, ranges: &[BlockRange]) -> Box<Span> {
        let data: Vec<u8> = ranges.iter().flat_map(|&range| DsmRange::new(range).as_bytes().to_vec()).collect();
        let command = NvmCommand::ZoneManagementSend { first: 0, action: SendAction::Reset, all: false };
        fences.span(&command, &data).expect("it resets")
    }

    #[test]
    fn writes_and_resets_of_the_same_blocks_keep_their_order() {
        let mut fences = Fences::default();
        let (before, beside) = (write(&mut fences, 8), write(&mut fences, 40));
        assert!(!fences.any_reset() && !beside.waits_for(&before));
        let wide = reset(&mut fences, &[range(0, 8), range(11, 4)]);
        assert!(fences.any_reset() && wide.waits_for(&before) && !wide.waits_for(&beside) && !before.waits_for(&wide));
        let after = write(&mut fences, 14);
        assert!(after.waits_for(&wide) && !after.waits_for(&before));
        assert!(!write(&mut fences, 15).waits_for(&wide));
        let read = NvmCommand::Read { range: range(0, 4), fua: false };
        let early = fences.span(&read, &[]).expect("it reads while some are reset");
        assert!(early.waits_for(&wide) && !early.waits_for(&before));
        let again = reset(&mut fences, &[range(0, 8)]);
        assert!(again.waits_for(&wide) && !again.waits_for(&early) && !early.waits_for(&again));
        let copy = NvmCommand::Copy { first: 80, ranges: 1, format: 0, protection: 0, fua: false };
        let data = CopyRange::new(range(9, 2)).as_bytes().to_vec();
        assert!(fences.span(&copy, &data).expect("it writes").waits_for(&wide));
        [wide, again].iter().for_each(|span| fences.ended(0, Some(span)));
        assert!(fences.span(&read, &[]).is_none());
    }

    #[test]
    fn held_commands_are_looked_at_once_something_is_over() {
        let mut fences = Fences::default();
        let first = reset(&mut fences, &[range(0, 8)]);
        let second = reset(&mut fences, &[range(0, 8)]);
        let command = NvmCommand::Flush;
        fences.hold(7, command);
        fences.hold(9, command);
        assert!(fences.take_held().is_empty());
        fences.ended(5, Some(&first));
        assert!(fences.is_due());
        assert_eq!(fences.take_held(), [(7, command), (9, command)]);
        fences.hold(9, command);
        // Its host has gone before it began.
        fences.ended(9, Some(&second));
        assert!(!fences.is_due() && fences.take_held().is_empty() && !fences.any_reset());
    }
}

//! Array times of a medium, by the pages that a command concerns.

use crate::{NandConfig, SingleLevel};
use flashyard_flash::{CommandKind, FlashCommand, Pages};
use flashyard_units::SimSpan;

/// Tables of the times that the array takes.
pub(crate) struct ArrayTimes {
    read: [SimSpan; Pages::SETS],
    program: [SimSpan; Pages::SETS],
    /// Second pass of a program; `None` where one is enough.
    fine: Option<SimSpan>,
    erase: SimSpan,
}

impl ArrayTimes {
    pub(crate) fn new(config: &NandConfig) -> Self {
        let mut times = Self {
            read: [SimSpan::ZERO; Pages::SETS],
            program: [SimSpan::ZERO; Pages::SETS],
            fine: config.capabilities.word_line.and_then(|word_line| word_line.fine),
            erase: config.erase,
        };
        let [lsb, csb, msb] = config.read;
        let by_bit = [lsb, csb, msb, config.capabilities.read_top.unwrap_or(msb)];
        let SingleLevel { read, program } = config
            .capabilities
            .single_level
            .unwrap_or(SingleLevel { read: lsb, program: config.program.program_time(0) });
        for pages in Pages::all() {
            let place = pages.index();
            if pages.is_single_level() {
                let count = u64::from(pages.count());
                times.read[place] = read * count;
                times.program[place] = program * count;
                continue;
            }
            let bits = (0..Pages::BITS).filter(|&bit| Pages::of_bits(bit as u32, bit as u32).index() & place != 0);
            times.read[place] = bits.clone().map(|bit| by_bit[bit]).sum();
            times.program[place] = match config.capabilities.word_line {
                Some(word_line) => word_line.program,
                None => bits.map(|bit| config.program.program_time(bit.min(2))).sum(),
            };
        }
        times
    }

    /// Sensing once.
    #[inline]
    pub(crate) fn read(&self, pages: Pages) -> SimSpan {
        self.read[pages.index()]
    }

    /// The array time of a program, `passes_left` of which follow this one.
    #[inline]
    pub(crate) fn program(&self, pages: Pages, passes_left: u8) -> SimSpan {
        match self.fine {
            Some(fine) if passes_left == 0 && !pages.is_single_level() => fine,
            _ => self.program[pages.index()],
        }
    }

    /// Passes of a program after the first.
    #[inline]
    pub(crate) fn more_passes(&self, pages: Pages) -> u8 {
        u8::from(self.fine.is_some() && !pages.is_single_level())
    }

    /// Erasing.
    #[inline]
    pub(crate) fn erase(&self) -> SimSpan {
        self.erase
    }

    /// All the array time of a command that needs no retry.
    pub(crate) fn whole(&self, command: &FlashCommand) -> SimSpan {
        match command.kind {
            CommandKind::Read => self.read(command.pages),
            CommandKind::Erase => self.erase,
            CommandKind::Program => {
                (0..=self.more_passes(command.pages)).map(|left| self.program(command.pages, left)).sum()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capabilities, WordLine};

    fn us(us: u64) -> SimSpan {
        SimSpan::from_us(us)
    }

    /// Pages of one bit take 30, 45 and 60 us to sense, and 5, 7 and 10 pulses of 40 us to program.
    #[test]
    fn pages_take_the_times_of_their_bits() {
        let plain = ArrayTimes::new(&crate::legal::config(Capabilities::default(), 4));
        let bit = |bit| Pages::of_bits(bit, bit);
        assert_eq!([0, 1, 2, 3].map(|number| plain.read(bit(number))), [30, 45, 60, 60].map(us));
        assert_eq!([0, 1, 2, 3].map(|number| plain.program(bit(number), 0)), [200, 280, 400, 400].map(us));
        assert_eq!((plain.read(Pages::of_bits(0, 2)), plain.program(Pages::of_bits(1, 2), 0)), (us(135), us(680)));
        let single = Pages::of_bits(0, 2).single_level();
        assert_eq!((plain.read(single), plain.program(single, 0)), (us(90), us(600)));
        assert_eq!((plain.more_passes(bit(0)), plain.erase()), (0, SimSpan::from_ms(3)));
    }

    #[test]
    fn capabilities_give_times_of_their_own() {
        let capabilities = Capabilities {
            read_top: Some(us(75)),
            single_level: Some(SingleLevel { read: us(20), program: us(100) }),
            word_line: Some(WordLine { program: us(700), fine: Some(us(900)) }),
            ..Capabilities::default()
        };
        let times = ArrayTimes::new(&crate::legal::config(capabilities, 4));
        assert_eq!([2, 3].map(|bit| times.read(Pages::of_bits(bit, bit))), [60, 75].map(us));
        let (all, single) = (Pages::of_bits(0, 2), Pages::of_bits(0, 2).single_level());
        assert_eq!((times.read(single), times.program(single, 0), times.more_passes(single)), (us(60), us(300), 0));
        // The coarse pass comes first.
        assert_eq!((times.program(all, 1), times.program(all, 0), times.more_passes(all)), (us(700), us(900), 1));
    }
}

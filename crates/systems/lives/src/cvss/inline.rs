//! Flash commands that the translation layer makes necessary, until the drive gives them their time.

use super::design::ACCELERATION;
use flashyard_flash::{CommandKind, FlashCommand, Medium, MediumCounters};
use flashyard_nand::WearModel;
use std::collections::VecDeque;

/// Commands that one write makes necessary before its program.
#[derive(Default)]
pub(super) struct Inline {
    pub(super) counters: MediumCounters,
    pub(super) wear: Option<WearModel>,
    /// Retries of all reads since the last look.
    pub(super) retries: u64,
    /// Senses of reads with their retries, programs and erases.
    pub(super) reads: VecDeque<u32>,
    pub(super) programs: u64,
    pub(super) erases: u64,
    pub(super) is_timed: bool,
}

impl Medium for Inline {
    fn accept(&mut self, command: FlashCommand) {
        self.accept_alike(command, 1);
    }

    fn accept_alike(&mut self, command: FlashCommand, count: u64) {
        self.counters.count_alike(&command, count);
        match command.kind {
            CommandKind::Erase => self.erases += count,
            CommandKind::Program => self.programs += count,
            CommandKind::Read => {
                let erases = ACCELERATION * u32::from(command.erases);
                let retries = self.wear.map_or(0, |wear| wear.retries(erases, command.reads));
                self.retries += u64::from(retries) * count;
                if self.is_timed {
                    self.reads.extend((0..count).map(|_| retries));
                }
            }
        }
    }

    fn counters(&self) -> &MediumCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::super::design::Design;
    use super::super::design::tests::device;
    use super::*;
    use flashyard_ftl::Ftl;

    #[test]
    fn retries_of_the_drives_own_reads_are_counted_with_and_without_time() {
        let wear = device(Design::Traditional, None).wear;
        let mut medium = Inline { wear: Some(wear), ..Inline::default() };
        let command = |erases| FlashCommand { kind: CommandKind::Read, erases, ..read_command() };
        // 60 erases of the model are 120, and two retries.
        for (is_timed, queued) in [(false, 0), (true, 5)] {
            medium.is_timed = is_timed;
            medium.accept_alike(command(60), 5);
            assert_eq!((std::mem::take(&mut medium.retries), medium.reads.len()), (10, queued));
        }
    }

    fn read_command() -> FlashCommand {
        let device = device(Design::Traditional, None);
        let mut ftl = Ftl::new(&device.geometry(), device.ftl()).expect("the drive is possible");
        ftl.age_write(0, 0, &mut Inline::default()).expect("it is new");
        ftl.read_command(ftl.lookup(0), 1, 1, flashyard_flash::Priority::Background, 0)
    }
}

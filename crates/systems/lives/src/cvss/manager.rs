//! The manager between file system and drive: the eight steps of a capacity reduction.
//!
//! 1, 2. The drive reports bad capacity. 3. The manager reckons the logical size and asks the file system for it.
//! 4 to 6. The file system checks, shrinks, and answers. 7. On success the drive hears of it. 8. Otherwise the drive
//! enters the degraded mode.
//!
//! The degraded mode also begins when spare space falls below its first share or below the user's watermark, and ends
//! when there is enough again.
//!
//! Source: [P] sheet cvss §3.7 and §3.8; the recommended size is [A] there.

/// Pages of 1 GiB in the model, to which sizes are rounded unless said otherwise. Source: [A] sheet cvss §3.8.
const STEP_PAGES: u32 = 1024;

/// Share of the used space that a file system keeps free at least. Source: [A] sheet cvss §3.8.
const SLACK: f64 = 0.02;

/// Where the manager is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do until the drive reports.
    Watching,
    /// The file system was asked for this size in pages, and has not answered.
    Asked(u32),
}

/// The file system's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has shrunk.
    Shrunk,
    /// It cannot: frozen, read-only, too full, without checkpoints, or the drive refused to remap.
    Refused,
}

/// Capacities in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacities {
    /// Physical pages that are not retired.
    pub physical: u32,
    /// Pages that the file system uses.
    pub used: u32,
    /// Pages that it may use.
    pub logical: u32,
}

/// The manager.
#[derive(Clone, Debug)]
pub struct Manager {
    over_provisioning: f64,
    watermark: Option<u32>,
    step_pages: u32,
    step: Step,
    failed: bool,
    reductions: u32,
    refusals: u32,
}

impl Manager {
    /// A manager of a drive that was new with `over_provisioning` (spare by exported capacity); the user may have set a
    /// watermark in physical pages.
    pub fn new(over_provisioning: f64, watermark: Option<u32>) -> Self {
        let step_pages = STEP_PAGES;
        Self {
            over_provisioning,
            watermark,
            step_pages,
            step: Step::Watching,
            failed: false,
            reductions: 0,
            refusals: 0,
        }
    }

    /// This manager with sizes rounded to `pages` pages, at least 1.
    pub fn with_step(self, pages: u32) -> Self {
        Self { step_pages: pages.max(1), ..self }
    }

    /// Steps 1 to 3: the drive reports; returns the size to ask the file system for, unless it is small enough.
    /// Panics while an answer is outstanding.
    pub fn report(&mut self, now: Capacities) -> Option<u32> {
        assert_eq!(self.step, Step::Watching, "the file system has not answered yet");
        let fits =
            (f64::from(now.physical) / (1.0 + self.over_provisioning)) as u32 / self.step_pages * self.step_pages;
        let least = (f64::from(now.used) * (1.0 + SLACK)) as u32;
        let recommended = fits.max(least);
        if recommended >= now.logical {
            return None;
        }
        self.step = Step::Asked(recommended);
        Some(recommended)
    }

    /// A size in pages that the user wants, in place of a report; returns the size to ask the file system for.
    /// Panics while an answer is outstanding.
    pub fn request(&mut self, pages: u32) -> u32 {
        assert_eq!(self.step, Step::Watching, "the file system has not answered yet");
        self.step = Step::Asked(pages);
        pages
    }

    /// Steps 6 to 8: the file system has answered. Panics unless it was asked.
    pub fn answer(&mut self, answer: Answer) {
        assert_ne!(self.step, Step::Watching, "the file system was not asked");
        self.step = Step::Watching;
        self.failed = answer == Answer::Refused;
        match answer {
            Answer::Shrunk => self.reductions += 1,
            Answer::Refused => self.refusals += 1,
        }
    }

    /// Whether the drive is to be degraded.
    pub fn degrades(&mut self, now: Capacities) -> bool {
        let spare = f64::from(now.physical) - f64::from(now.used);
        let enough = spare >= self.over_provisioning * f64::from(now.used);
        let above = self.watermark.is_none_or(|watermark| now.physical >= watermark);
        !enough || !above || self.failed
    }

    /// Where it is.
    pub fn step(&self) -> Step {
        self.step
    }

    /// Reductions made, and reductions refused.
    pub fn reductions(&self) -> (u32, u32) {
        (self.reductions, self.refusals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Capacities = Capacities { physical: 131_072, used: 40_000, logical: 122_070 };

    fn manager() -> Manager {
        Manager::new(0.0737, None)
    }

    #[test]
    fn a_reduction_goes_through_its_steps() {
        let mut manager = manager();
        assert_eq!(manager.report(NEW), Some(121_856), "rounded down to 119 GiB");
        assert_eq!(manager.step(), Step::Asked(121_856));
        manager.answer(Answer::Shrunk);
        assert_eq!(manager.step(), Step::Watching);
        let now = Capacities { logical: 121_856, ..NEW };
        assert_eq!(manager.report(now), None);
        assert_eq!(manager.report(Capacities { physical: 100_000, ..now }), Some(92_160));
        manager.answer(Answer::Shrunk);
        assert_eq!(manager.reductions(), (2, 0));
    }

    #[test]
    fn the_size_never_falls_below_what_is_used() {
        let mut manager = manager();
        assert_eq!(manager.report(Capacities { physical: 30_000, used: 40_000, logical: 90_000 }), Some(40_800));
    }

    #[test]
    fn the_drive_is_degraded_for_three_reasons_and_not_for_longer() {
        let mut manager = Manager::new(0.0737, Some(50_000));
        assert!(!manager.degrades(NEW));
        assert!(manager.degrades(Capacities { physical: 42_900, ..NEW }), "7.25 % spare, and below the watermark");
        assert!(manager.degrades(Capacities { physical: 49_999, ..NEW }), "below the watermark");
        assert!(!manager.degrades(Capacities { physical: 50_000, ..NEW }));
        manager.report(Capacities { physical: 60_000, ..NEW });
        manager.answer(Answer::Refused);
        assert!(manager.degrades(NEW), "the file system refused");
        manager.report(Capacities { physical: 60_000, ..NEW });
        manager.answer(Answer::Shrunk);
        assert!(!manager.degrades(NEW));
    }
}

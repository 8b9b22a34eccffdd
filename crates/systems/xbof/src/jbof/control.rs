//! Changes to an enclosure while it serves: pull a drive, cut power or a link, let it age, stop lending.

use super::live::LiveJbof;
use super::request::{Phase, Purpose};
use super::world::Jbof;
use flashyard_host::Attempt;
use flashyard_served::Control;
use flashyard_ssd::DriveConfig;
use flashyard_units::{DriveId, SimSpan, SimTime};

/// Longest that a firmware can be made to stand still.
pub const HANG_MAX: SimSpan = SimSpan::from_secs(3600);

/// Why an enclosure does not do what was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ControlError {
    /// There is no such drive.
    #[error("there is no drive {drive}, give 0 to {}", drives - 1)]
    NoDrive {
        /// Asked for.
        drive: DriveId,
        /// How many there are.
        drives: u16,
    },
    /// The drive cannot keep what its design or its parity must not lose.
    #[error(
        "drive {drive} has no power-loss protection, which its design or its parity needs: its power cannot be taken"
    )]
    Unprotected {
        /// Which.
        drive: DriveId,
    },
    /// The drive's flash is not modelled to wear.
    #[error("drive {drive} does not wear: give its scenario a [drive.wear]")]
    NoWear {
        /// Which.
        drive: DriveId,
    },
    /// More than a drive can be worn and still serve.
    #[error("{level} is no level of wear for drive {drive}, give 0 to {most:.3} of its nominal erases")]
    Level {
        /// Which.
        drive: DriveId,
        /// Asked for.
        level: f64,
        /// The most possible.
        most: f64,
    },
    /// Retirement by a rule that leaves too little.
    #[error("drive {drive} would keep {left} superblocks, and needs {needed} for its data and its work")]
    Retirement {
        /// Which.
        drive: DriveId,
        /// Superblocks with fewer erases than the rule allows.
        left: u32,
        /// Superblocks for what is mapped, and for garbage collection.
        needed: u32,
    },
    /// There is no such superblock.
    #[error("there is no superblock {superblock} in drive {drive}, give 0 to {}", superblocks - 1)]
    NoSuperblock {
        /// Which drive.
        drive: DriveId,
        /// Asked for.
        superblock: u32,
        /// How many it has.
        superblocks: u32,
    },
    /// Longer than anything stands still.
    #[error("a firmware cannot stand still for {span}, give at most {HANG_MAX}")]
    Span {
        /// Asked for.
        span: SimSpan,
    },
    /// Not an error rate.
    #[error("{0} is no bit error rate, give 0 to 0.5")]
    Rate(f64),
}

fn check_rate(rate: f64) -> Result<(), ControlError> {
    if (0.0..=0.5).contains(&rate) { Ok(()) } else { Err(ControlError::Rate(rate)) }
}

impl LiveJbof {
    /// Does something to the enclosure at `now`, which is no later than the next event and no earlier than the last
    /// one. Asking for the present state changes nothing.
    ///
    /// Errors: a drive that there is not; power taken from a drive that must be protected and is not; no error rate or level
    /// of wear; retirement of more than can be spared.
    pub fn control(&mut self, now: SimTime, control: Control) -> Result<(), ControlError> {
        self.check_time(now);
        match control {
            Control::Pull { drive } => {
                self.check_power(drive)?;
                self.world.enclosure.pull(&mut self.world.policy, now, drive);
                self.pulled[drive.index()] = true;
            }
            Control::Insert { drive } => {
                self.check_drive(drive)?;
                self.world.enclosure.insert(&mut self.world.policy, now, drive);
                self.pulled[drive.index()] = false;
            }
            Control::PowerOff => self.power_off(now)?,
            Control::PowerOn => self.power_on(now),
            Control::Link { drive, up } => {
                // A drive whose link returns is reset by the driver, and keeps its memory.
                self.check_drive(drive)?;
                let Jbof { enclosure, policy, .. } = &mut self.world;
                if up { enclosure.link_up(policy, drive) } else { enclosure.link_down(policy, drive) }
            }
            Control::Hang { drive, span } => self.hang(now, drive, span)?,
            Control::Harvest { on } => {
                if let Some(lending) = self.world.policy.lending_mut() {
                    lending.harvest.pause(!on);
                }
            }
            Control::Age { drive, raw_bit_error_rate } => {
                self.check_drive(drive)?;
                check_rate(raw_bit_error_rate)?;
                self.world.enclosure.drives[drive.index()].data.flash.nand.set_raw_bit_error_rate(raw_bit_error_rate);
            }
            Control::Wear { drive, level } => self.wear(drive, level)?,
            Control::Degrade { drive, on } => {
                self.check_drive(drive)?;
                self.world.enclosure.drives[drive.index()].data.ftl.set_degraded(on);
            }
            Control::Retire { drive, rate, retries } => {
                let last = self.last_erase(drive, rate, retries)?;
                self.check_retirement(drive, last)?;
                self.world.enclosure.drives[drive.index()].data.ftl.set_retire_at(last);
            }
            Control::Reinstate { drive, rate, retries } => {
                let last = self.last_erase(drive, rate, retries)?;
                self.world.enclosure.drives[drive.index()].data.ftl.set_retire_at(last);
            }
            Control::Retired { drive, superblock } => {
                self.check_drive(drive)?;
                let ftl = &mut self.world.enclosure.drives[drive.index()].data.ftl;
                let superblocks = ftl.layout().superblocks;
                if superblock >= superblocks {
                    return Err(ControlError::NoSuperblock { drive, superblock, superblocks });
                }
                ftl.retire_again(superblock);
            }
            Control::Drop { token } => self.world.drop_request(now, token),
        }
        self.world.settle(now);
        self.world.gather();
        if let Some(book) = &mut self.world.book {
            book.tell_gone(&self.world.enclosure);
        }
        Ok(())
    }

    fn power_off(&mut self, now: SimTime) -> Result<(), ControlError> {
        DriveId::first(self.drives()).try_for_each(|drive| self.check_power(drive))?;
        for drive in DriveId::first(self.drives()) {
            self.world.enclosure.pull(&mut self.world.policy, now, drive);
        }
        Ok(())
    }

    fn power_on(&mut self, now: SimTime) {
        DriveId::first(self.drives()).for_each(|drive| self.world.enclosure.insert(&mut self.world.policy, now, drive));
        self.pulled.fill(false);
    }

    fn hang(&mut self, now: SimTime, drive: DriveId, span: SimSpan) -> Result<(), ControlError> {
        self.check_drive(drive)?;
        if span > HANG_MAX {
            return Err(ControlError::Span { span });
        }
        self.world.enclosure.hang(now, drive, span);
        Ok(())
    }

    fn wear(&mut self, drive: DriveId, level: f64) -> Result<(), ControlError> {
        self.check_drive(drive)?;
        let config = *self.world.enclosure.drives[drive.index()].config();
        let data = &mut self.world.enclosure.drives[drive.index()].data;
        let (Some(endurance), true) = (config.ftl.endurance, config.nand.wear.is_some()) else {
            return Err(ControlError::NoWear { drive });
        };
        // A drive all of whose superblocks are retired at their next erase would take no write any more.
        let last = config.ftl.retire_at.map_or(u32::from(u16::MAX), |last| last.saturating_sub(1));
        let most = f64::from(last) / f64::from(endurance);
        if !(0.0..=most).contains(&level) {
            return Err(ControlError::Level { drive, level, most });
        }
        let erases = (level * f64::from(endurance)).round() as u32;
        let counts = vec![erases; data.ftl.layout().superblocks as usize];
        data.ftl.project_erase_counts(&counts);
        data.ftl.set_wear_leveling(data.ftl.config().wear_leveling);
        Ok(())
    }

    /// The erase at which a rule retires superblocks.
    fn last_erase(&self, drive: DriveId, rate: Option<f64>, retries: Option<u32>) -> Result<Option<u32>, ControlError> {
        self.check_drive(drive)?;
        rate.map_or(Ok(()), check_rate)?;
        let wear = self.config(drive).nand.wear.ok_or(ControlError::NoWear { drive })?;
        let by_rate = rate.and_then(|rate| wear.rates.erases_beyond(rate));
        let by_retries = retries.and_then(|most| wear.erases_beyond_retries(most));
        Ok(by_rate.into_iter().chain(by_retries).min())
    }

    /// Superblocks that have come so far are retired when they are next emptied: what is then left has to do.
    fn check_retirement(&self, drive: DriveId, last: Option<u32>) -> Result<(), ControlError> {
        let data = &self.world.enclosure.drives[drive.index()].data;
        let left = data.ftl.erase_counts().filter(|&erases| last.is_none_or(|last| erases < last)).count() as u32;
        let mapped: u32 = data.ftl.valid_counts().sum();
        let needed = mapped.div_ceil(data.ftl.layout().slots_per_superblock) + data.ftl.config().reserved();
        if left < needed { Err(ControlError::Retirement { drive, left, needed }) } else { Ok(()) }
    }

    /// Whether harvesting is designed in, for user interfaces.
    pub fn harvests(&self) -> bool {
        self.world.policy.lending().is_some()
    }

    fn check_drive(&self, drive: DriveId) -> Result<(), ControlError> {
        let drives = self.drives();
        if drive.get() < drives { Ok(()) } else { Err(ControlError::NoDrive { drive, drives }) }
    }

    fn check_power(&self, drive: DriveId) -> Result<(), ControlError> {
        self.check_drive(drive)?;
        let DriveConfig { power_loss_protection, expects_power_cuts, .. } =
            *self.world.enclosure.drives[drive.index()].config();
        if power_loss_protection || expects_power_cuts { Ok(()) } else { Err(ControlError::Unprotected { drive }) }
    }
}

impl Jbof {
    /// Gives up a request from outside. Its own answer comes all the same if a drive has it.
    fn drop_request(&mut self, now: SimTime, token: u32) {
        let of_token = |id: &usize| self.enclosure.requests[*id].purpose == Purpose::Asked { token };
        let under_way = |id: &usize| !matches!(self.enclosure.attempt(*id as u32), Attempt::Dead | Attempt::Withdrawn);
        let Some(id) = (0..self.enclosure.requests.len()).filter(of_token).find(under_way) else { return };
        let request = &mut self.enclosure.requests[id];
        let (drive, phase) = (request.drive, request.phase);
        let at_home = self.policy.compute(id as u32, request) == drive;
        let Some(state) = &mut self.enclosure.resilience else { return };
        if phase == Phase::Held {
            state.driver.drop_held(drive, id as u32);
            self.enclosure.free.push(id as u32);
        } else if phase == Phase::Firmware && at_home && state.driver.is_live(id as u32) {
            // It has not come to the data, and no lender is about to hand it over.
            state.driver.withdraw(id as u32);
        } else {
            request.purpose = Purpose::AskedOnce { token };
            return;
        }
        if let Some(book) = &mut self.book {
            book.dropped(now, token, drive);
        }
    }
}

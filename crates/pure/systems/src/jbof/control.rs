//! What can be done to an enclosure that serves, while it does: pull a drive, cut power or a link, let it age, stop lending.

use super::enclosure::Enclosure;
use super::live::{Answer, Book, LiveEffect, LiveJbof};
use super::request::{Phase, Purpose};
use super::world::Jbof;
use flashyard_host::Attempt;
use flashyard_units::{SimSpan, SimTime};

/// Longest that a firmware can be made to stand still.
pub const HANG_MAX: SimSpan = SimSpan::from_secs(3600);

/// One thing done to an enclosure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// Takes the power of a drive away until [`Control::Insert`].
    Pull {
        /// Which.
        drive: u16,
    },
    /// Gives it back.
    Insert {
        /// Which.
        drive: u16,
    },
    /// Takes the power of all drives away until [`Control::PowerOn`].
    PowerOff,
    /// Gives it back to those that have none, and puts back those that were pulled.
    PowerOn,
    /// Takes the link of a drive away, or gives it back. The drive goes on alone.
    Link {
        /// Whose.
        drive: u16,
        /// Whether there is one from now on.
        up: bool,
    },
    /// Lets the firmware of a drive stand still.
    Hang {
        /// Which.
        drive: u16,
        /// For so long, at most [`HANG_MAX`].
        span: SimSpan,
    },
    /// Lets drives lend each other cores and memory, or takes back what is lent.
    Harvest {
        /// Whether they lend.
        on: bool,
    },
    /// Sets the raw bit error rate of a drive's flash: what wear and retention make of it.
    Age {
        /// Which.
        drive: u16,
        /// From 0 (never a retry) to 0.5.
        raw_bit_error_rate: f64,
    },
    /// Wears a drive: every superblock has had its share of the nominal erases from now on, and is read accordingly.
    Wear {
        /// Which.
        drive: u16,
        /// Share of its life that is used, from 0; 1 is the end of the nominal one.
        level: f64,
    },
    /// Puts a drive into its degraded mode, or out of it.
    Degrade {
        /// Which.
        drive: u16,
        /// Whether it is degraded from now on.
        on: bool,
    },
    /// Sets when superblocks of a drive are retired: at the first erase after which either is so.
    Retire {
        /// Which.
        drive: u16,
        /// Wear alone makes a bit error rate above this.
        rate: Option<f64>,
        /// An undisturbed read needs more retries than this.
        retries: Option<u32>,
    },
    /// Goes on with a rule that was in force before a restart, as [`Control::Retire`] but whatever it leaves.
    Reinstate {
        /// Which.
        drive: u16,
        /// As there.
        rate: Option<f64>,
        /// As there.
        retries: Option<u32>,
    },
    /// Takes a superblock that was retired before a restart out of use again; nothing if something is in it.
    Retired {
        /// Which drive.
        drive: u16,
        /// Which superblock.
        superblock: u32,
    },
    /// Gives a request up. It is answered when nothing can come of it any more: at once where it is kept for a drive
    /// that is away or has not come to the drive's data, and in its time where it has.
    Drop {
        /// The request's token.
        token: u32,
    },
}

/// Why an enclosure does not do what was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refused {
    /// There is no such drive.
    #[error("there is no drive {drive}, give 0 to {}", drives - 1)]
    NoDrive {
        /// Asked for.
        drive: u16,
        /// How many there are.
        drives: u16,
    },
    /// The drive has not so many slots, or none were asked for.
    #[error("{count} slots from {first} of a drive of {slots}; give at least one, and none beyond the last")]
    Slots {
        /// First slot.
        first: u32,
        /// Slots asked for.
        count: u32,
        /// Slots of the drive.
        slots: u32,
    },
    /// The drive keeps no log of remaps, or the ranges overlap.
    #[error("drive {drive} cannot remap {count} slots from {source_slot} to {first}")]
    Remap {
        /// Which.
        drive: u16,
        /// First slot that was to take over data.
        first: u32,
        /// First slot whose data it was.
        source_slot: u32,
        /// Slots asked for.
        count: u32,
    },
    /// The drive cannot keep its buffer.
    #[error("drive {drive} has no power-loss protection: what it would lose is not modelled")]
    Unprotected {
        /// Which.
        drive: u16,
    },
    /// The drive's flash is not modelled to wear.
    #[error("drive {drive} does not wear: give its scenario a [drive.wear]")]
    NoWear {
        /// Which.
        drive: u16,
    },
    /// More than a drive can be worn and still serve.
    #[error("{level} is no level of wear for drive {drive}, give 0 to {most:.3} of its nominal erases")]
    Level {
        /// Which.
        drive: u16,
        /// Asked for.
        level: f64,
        /// The most possible.
        most: f64,
    },
    /// Retirement by a rule that leaves too little.
    #[error("drive {drive} would keep {left} superblocks, and needs {needed} for its data and its work")]
    Retirement {
        /// Which.
        drive: u16,
        /// Superblocks with fewer erases than the rule allows.
        left: u32,
        /// Superblocks for what is mapped, and for reclaim.
        needed: u32,
    },
    /// There is no such superblock.
    #[error("there is no superblock {superblock} in drive {drive}, give 0 to {}", superblocks - 1)]
    NoSuperblock {
        /// Which drive.
        drive: u16,
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

impl LiveJbof {
    /// Does something to the enclosure at `now`, which is no later than the next event and no earlier than the last one.
    /// What is so already stays so.
    ///
    /// Errors: a drive that there is not; power taken from a drive that is not protected; no error rate or level
    /// of wear; retirement of more than can be spared.
    pub fn control(&mut self, now: SimTime, control: Control) -> Result<(), Refused> {
        self.check_time(now);
        match control {
            Control::Pull { drive } => {
                self.check_power(drive)?;
                self.world.enclosure.pull(&mut self.world.policy, now, drive);
                self.pulled[drive as usize] = true;
            }
            Control::Insert { drive } => {
                self.check_drive(drive)?;
                self.world.enclosure.insert(&mut self.world.policy, now, drive);
                self.pulled[drive as usize] = false;
            }
            Control::PowerOff => self.power_off(now)?,
            Control::PowerOn => self.power_on(now),
            Control::Link { drive, up } => {
                // A drive whose link returns is reset by the driver.
                self.check_power(drive)?;
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
                if !(0.0..=0.5).contains(&raw_bit_error_rate) {
                    return Err(Refused::Rate(raw_bit_error_rate));
                }
                self.world.enclosure.drives[drive as usize].data.nand.set_raw_bit_error_rate(raw_bit_error_rate);
            }
            Control::Wear { drive, level } => self.wear(drive, level)?,
            Control::Degrade { drive, on } => {
                self.check_drive(drive)?;
                self.world.enclosure.drives[drive as usize].data.ftl.set_degraded(on);
            }
            Control::Retire { drive, rate, retries } => {
                let last = self.last_erase(drive, rate, retries)?;
                self.check_retirement(drive, last)?;
                self.world.enclosure.drives[drive as usize].data.ftl.set_retire_at(last);
            }
            Control::Reinstate { drive, rate, retries } => {
                let last = self.last_erase(drive, rate, retries)?;
                self.world.enclosure.drives[drive as usize].data.ftl.set_retire_at(last);
            }
            Control::Retired { drive, superblock } => {
                self.check_drive(drive)?;
                let ftl = &mut self.world.enclosure.drives[drive as usize].data.ftl;
                let superblocks = ftl.layout().superblocks;
                if superblock >= superblocks {
                    return Err(Refused::NoSuperblock { drive, superblock, superblocks });
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

    fn power_off(&mut self, now: SimTime) -> Result<(), Refused> {
        (0..self.drives()).try_for_each(|drive| self.check_power(drive))?;
        for drive in 0..self.drives() {
            self.world.enclosure.pull(&mut self.world.policy, now, drive);
        }
        Ok(())
    }

    fn power_on(&mut self, now: SimTime) {
        (0..self.drives()).for_each(|drive| self.world.enclosure.insert(&mut self.world.policy, now, drive));
        self.pulled.fill(false);
    }

    fn hang(&mut self, now: SimTime, drive: u16, span: SimSpan) -> Result<(), Refused> {
        self.check_power(drive)?;
        if span > HANG_MAX {
            return Err(Refused::Span { span });
        }
        self.world.enclosure.hang(now, drive, span);
        Ok(())
    }

    fn wear(&mut self, drive: u16, level: f64) -> Result<(), Refused> {
        self.check_drive(drive)?;
        let data = &mut self.world.enclosure.drives[drive as usize].data;
        let config = *data.config();
        let (Some(endurance), true) = (config.ftl.endurance, config.nand.wear.is_some()) else {
            return Err(Refused::NoWear { drive });
        };
        // A drive all of whose superblocks are retired at their next erase would take no write any more.
        let last = config.ftl.retire_at.map_or(u32::from(u16::MAX), |last| last.saturating_sub(1));
        let most = f64::from(last) / f64::from(endurance);
        if !(0.0..=most).contains(&level) {
            return Err(Refused::Level { drive, level, most });
        }
        let erases = (level * f64::from(endurance)).round() as u32;
        let counts = vec![erases; data.ftl.layout().superblocks as usize];
        data.ftl.project_erase_counts(&counts);
        Ok(())
    }

    /// The erase at which a rule retires superblocks.
    fn last_erase(&self, drive: u16, rate: Option<f64>, retries: Option<u32>) -> Result<Option<u32>, Refused> {
        self.check_drive(drive)?;
        if let Some(rate) = rate.filter(|rate| !(0.0..=0.5).contains(rate)) {
            return Err(Refused::Rate(rate));
        }
        let wear = self.config(drive).nand.wear.ok_or(Refused::NoWear { drive })?;
        let by_rate = rate.and_then(|rate| wear.rates.erases_beyond(rate));
        let by_retries = retries.and_then(|most| wear.erases_beyond_retries(most));
        Ok(by_rate.into_iter().chain(by_retries).min())
    }

    /// Superblocks that have come so far are retired when they are next emptied: what is then left has to do.
    fn check_retirement(&self, drive: u16, last: Option<u32>) -> Result<(), Refused> {
        let data = &self.world.enclosure.drives[drive as usize].data;
        let left = data.ftl.erase_counts().filter(|&erases| last.is_none_or(|last| erases < last)).count() as u32;
        let mapped: u32 = data.ftl.valid_counts().sum();
        let needed = mapped.div_ceil(data.ftl.layout().slots_per_superblock) + data.ftl.config().reserved();
        if left < needed { Err(Refused::Retirement { drive, left, needed }) } else { Ok(()) }
    }

    /// Whether harvesting is designed in, for who shows a switch for it.
    pub fn harvests(&self) -> bool {
        self.world.policy.lending().is_some()
    }

    fn check_power(&self, drive: u16) -> Result<(), Refused> {
        self.check_drive(drive)?;
        let protected = self.world.enclosure.drives[drive as usize].config().power_loss_protection;
        if protected { Ok(()) } else { Err(Refused::Unprotected { drive }) }
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

impl Book {
    /// Reports drives that have just become unreachable.
    fn tell_gone(&mut self, enclosure: &Enclosure) {
        for (drive, gone) in (0..).zip(&mut self.gone) {
            if !enclosure.is_reachable(drive) && !std::mem::replace(gone, true) {
                self.effects.push(LiveEffect::Gone { drive });
            }
        }
    }

    /// Reports a drive that takes commands again.
    pub(super) fn tell_back(&mut self, drive: u16) {
        if std::mem::take(&mut self.gone[drive as usize]) {
            self.effects.push(LiveEffect::Back { drive });
        }
    }

    /// Nothing comes of a request any more.
    pub(super) fn dropped(&mut self, now: SimTime, token: u32, drive: u16) {
        self.in_flight -= 1;
        self.asked[drive as usize].fall(now);
        self.effects.push(LiveEffect::Answered { token, at: now, answer: Answer::Dropped });
    }
}

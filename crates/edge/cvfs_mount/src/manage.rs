//! The manager of a capacity-variant storage system beside a live drive: between a volume in use and the drive below.
//!
//! It has a connection of its own to the drive. Steps 1 and 2: it reads the drive's page of capacity. 3: the manager of
//! `systems::cvss` computes the size. 4 to 6: the volume is asked to shrink, by remap if the drive can. 7, 8: the drive
//! leaves or enters its degraded mode.
//!
//! The user's requirement becomes the drive's rule of retirement: `reliability` is a bit error rate; `performance` is a
//! share of the first one, which allows a number of retries a read on average, and superblocks that need more than
//! twice as many go.
//!
//! Source: [P] sheet cvss §3.8; [A] §9 for the retries that a performance allows.

use crate::control::{Asked, ControlError, VolumeUsage, ask_shrink, ask_usage};
use flashyard_cvfs::Method;
use flashyard_live::{Host, HostError};
use flashyard_lives::cvss::{Answer, Capacities, Manager, retries_allowed};
use flashyard_nvme::feature::{RetirementRule, id};
use flashyard_nvme::log::{CapacityLog, page};
use flashyard_nvmf::initiator::InitiatorConfig;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How long an answer of the drive may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Age at which a page of capacity that was read is computed again.
const FRESH: Duration = Duration::from_millis(10);
const BLOCK: u64 = flashyard_cvfs::BLOCK_BYTES as u64;
/// Sizes are rounded down to 1 GiB, as published, or to this share of a drive where that is less. [A]
const STEPS_OF_DRIVE: u32 = 64;

/// Why a drive or its volume cannot be managed.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// The drive's side.
    #[error("the drive does not do what the manager asks for")]
    Drive(#[from] HostError),
    /// The drive does not report its capacity.
    #[error("the drive has no page of capacity: its scenario needs a [drive.wear]")]
    NoCapacity,
    /// The volume's side.
    #[error("the volume does not answer the manager")]
    Volume(#[from] ControlError),
    /// A wish out of range.
    #[error("{name} is {value}, give {range}")]
    Wish {
        /// Its name.
        name: &'static str,
        /// The value given.
        value: f64,
        /// The accepted range.
        range: &'static str,
    },
}

/// Requirements of the user.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wishes {
    /// Share of the first performance that is to be kept, above 0 and up to 1.
    pub performance: Option<f64>,
    /// Bit error rate above which no superblock is used, above 0 and up to 0.5.
    pub reliability: Option<f64>,
    /// Flash below which the drive is to be degraded, in bytes.
    pub watermark_bytes: Option<u64>,
}

impl Wishes {
    /// The drive's rule of retirement, if the user wishes for any of it.
    fn rule(&self) -> Result<Option<RetirementRule>, ManageError> {
        let check = |name, value: Option<f64>, most: f64, range| match value {
            Some(value) if !(value > 0.0 && value <= most) => Err(ManageError::Wish { name, value, range }),
            _ => Ok(()),
        };
        check("performance", self.performance, 1.0, "a share above 0, up to 1")?;
        check("reliability", self.reliability, 0.5, "a bit error rate above 0, up to 0.5")?;
        let rule = RetirementRule {
            rate_ppm: self.reliability.map(|rate| ((rate * 1e6) as u32).max(1)),
            // No read needs as many retries as a share near zero allows.
            retries: self.performance.map(|share| (2.0 * retries_allowed(share)).min(254.0) as u8),
        };
        Ok((rule != RetirementRule::default()).then_some(rule))
    }
}

/// A volume that can be asked to shrink while it is in use.
pub trait ManagedVolume {
    /// Its present size.
    ///
    /// Errors: it is not there.
    fn usage(&mut self) -> Result<VolumeUsage, ControlError>;

    /// Shrinks to `blocks` by remap, and returns the outcome in words.
    ///
    /// Errors: it is not there, it refuses, or it has tried and failed.
    fn shrink(&mut self, blocks: u32) -> Result<String, ControlError>;
}

/// A volume that a `cvfs mount` serves.
#[derive(Clone, Debug)]
pub struct MountedVolume(pub PathBuf);

impl ManagedVolume for MountedVolume {
    fn usage(&mut self) -> Result<VolumeUsage, ControlError> {
        ask_usage(&self.0)
    }

    fn shrink(&mut self, blocks: u32) -> Result<String, ControlError> {
        ask_shrink(&self.0, Asked { bytes: u64::from(blocks) * BLOCK, method: Method::Remap })
    }
}

/// Outcome of a look at the drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The drive's page of capacity.
    pub drive: CapacityLog,
    /// The size requested of the volume, in blocks, and the outcome: words, or why not.
    pub asked: Option<(u32, Result<String, String>)>,
    /// New state of the degraded mode.
    pub degraded: Option<bool>,
}

/// A manager at work.
pub struct Management<V> {
    address: SocketAddr,
    nqn: String,
    host: Option<Host>,
    volume: V,
    rule: Option<RetirementRule>,
    manager: Manager,
    /// Blocks of flash not retired when the volume was asked last: a volume that has refused is asked again when there
    /// is less.
    refused_at: Option<u64>,
}

impl<V: ManagedVolume> Management<V> {
    /// Connects to the drive and sends it the user's rule.
    ///
    /// Errors: no answer, no access; a drive that does not report its capacity, or that would have too little left
    /// under the rule; wishes outside their ranges.
    pub fn new(address: SocketAddr, nqn: &str, volume: V, wishes: Wishes) -> Result<Self, ManageError> {
        let rule = wishes.rule()?;
        let mut host = connect(address, nqn, rule)?;
        let log = capacity(&mut host)?;
        let exported = log.exported_blocks.get();
        let over_provisioning = log.raw_blocks.get() as f64 / exported.max(1) as f64 - 1.0;
        let blocks = |bytes: u64| u32::try_from(bytes / BLOCK).unwrap_or(u32::MAX);
        let step = (exported as u32 / STEPS_OF_DRIVE).min(blocks(1 << 30));
        let manager = Manager::new(over_provisioning, wishes.watermark_bytes.map(blocks)).with_step(step);
        Ok(Self { address, nqn: nqn.to_owned(), host: Some(host), volume, rule, manager, refused_at: None })
    }

    /// Goes through the eight steps once. A drive that was away is connected to again.
    ///
    /// Errors: the drive or the volume does not answer; the next look may find them.
    pub fn look(&mut self) -> Result<Looked, ManageError> {
        let mut host = match self.host.take() {
            Some(host) => host,
            None => connect(self.address, &self.nqn, self.rule)?,
        };
        let looked = self.look_by(&mut host)?;
        self.host = Some(host);
        Ok(looked)
    }

    fn look_by(&mut self, host: &mut Host) -> Result<Looked, ManageError> {
        // The first look makes the drive compute its page again.
        capacity(host)?;
        std::thread::sleep(FRESH);
        let drive = capacity(host)?;
        let physical = drive.physical_blocks.get();
        let usage = self.volume.usage()?;
        // The volume's own needs are in the least that it could shrink to.
        let recommended = match self.refused_at {
            Some(refused) if physical >= refused => None,
            _ => self.manager.report(capacities(physical, usage.blocks, usage.used.max(usage.least))),
        };
        let asked = recommended.map(|blocks| (blocks, self.ask(blocks, physical)));
        let usage = if asked.is_some() { self.volume.usage()? } else { usage };
        let degrade = self.manager.degrades(capacities(physical, usage.blocks, usage.used));
        let is_degraded = drive.state.get() & CapacityLog::DEGRADED != 0;
        if degrade != is_degraded {
            host.set_feature(id::DEGRADED, [degrade.into(), 0])?;
        }
        Ok(Looked { drive, asked, degraded: (degrade != is_degraded).then_some(degrade) })
    }

    /// Steps 4 to 6.
    fn ask(&mut self, blocks: u32, physical: u64) -> Result<String, String> {
        let answer = self.volume.shrink(blocks);
        self.refused_at = answer.is_err().then_some(physical);
        self.manager.answer(if answer.is_ok() { Answer::Shrunk } else { Answer::Refused });
        answer.map_err(|error| with_causes(&error))
    }

    /// Reductions that were made, and those that were refused.
    pub fn reductions(&self) -> (u32, u32) {
        self.manager.reductions()
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn connect(address: SocketAddr, nqn: &str, rule: Option<RetirementRule>) -> Result<Host, ManageError> {
    let config = InitiatorConfig::new("nqn.2026-11.io.flashyard:cvfs-manager", nqn);
    let mut host = Host::connect(address, config, PATIENCE)?;
    capacity(&mut host)?;
    if let Some(rule) = rule {
        host.set_feature(id::RETIREMENT, rule.encode())?;
    }
    Ok(host)
}

fn capacity(host: &mut Host) -> Result<CapacityLog, ManageError> {
    let bytes = match host.log_page(page::CAPACITY, CapacityLog::BYTES as u32) {
        Err(HostError::Refused { .. }) => return Err(ManageError::NoCapacity),
        bytes => bytes?,
    };
    CapacityLog::decode(&bytes).ok_or(ManageError::NoCapacity)
}

fn capacities(physical: u64, logical: u32, used: u32) -> Capacities {
    Capacities { physical: u32::try_from(physical).unwrap_or(u32::MAX), used, logical }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_become_a_rule_of_retirement_and_impossible_ones_are_refused() {
        assert!(matches!(Wishes::default().rule(), Ok(None)));
        let wishes = Wishes { performance: Some(0.8), reliability: Some(0.05), watermark_bytes: None };
        // One retry leaves 0.8 of the performance: sheet cvss §8.3.
        let rule = RetirementRule { rate_ppm: Some(50_000), retries: Some(2) };
        assert_eq!(wishes.rule().expect("it is possible"), Some(rule));
        assert_eq!(RetirementRule::decode(rule.encode()), Some(rule));
        for (performance, reliability) in
            [(Some(0.0), None), (Some(1.1), None), (None, Some(0.6)), (None, Some(f64::NAN))]
        {
            let wishes = Wishes { performance, reliability, watermark_bytes: None };
            assert!(matches!(wishes.rule(), Err(ManageError::Wish { .. })), "{wishes:?}");
        }
    }
}

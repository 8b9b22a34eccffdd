//! How far the data of a subsystem is being erased, and what that means for commands and log pages.

use flashyard_nvme::log::SanitizeLog;
use flashyard_nvme::{NSID_ALL, Status};

/// The state of a subsystem's data as far as it is being erased, or was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erasure {
    /// An erasure that is under way, and its progress, of 65,536 in all.
    pub under_way: Option<(ErasureKind, u16)>,
    /// The namespace that it is about; zero for all.
    pub nsid: u32,
    /// Outcome of the last sanitize that is over.
    pub sanitized: Sanitized,
    /// Dword 10 of the last Sanitize.
    pub command: u32,
}

/// Which command erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErasureKind {
    /// Format NVM.
    Format,
    /// Sanitize.
    Sanitize,
}

/// Outcome of the last sanitize.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sanitized {
    /// There was none.
    #[default]
    Never,
    /// All data is gone.
    Done,
    /// Something of it may be left: the subsystem is in its failure mode.
    Failed,
    /// It had failed, and a host has left the failure mode.
    Left,
}

impl Erasure {
    /// Whether an erasure under way, if there is one, is about a namespace.
    pub(super) fn concerns(&self, nsid: u32) -> bool {
        matches!(self.nsid, 0 | NSID_ALL) || nsid == NSID_ALL || self.nsid == nsid
    }

    /// The status of commands to a namespace, or to all, that may not be carried out now.
    pub(super) fn refusal(&self, nsid: u32) -> Option<Status> {
        match (self.under_way, self.sanitized) {
            (Some((ErasureKind::Format, _)), sanitized) if !self.concerns(nsid) && sanitized != Sanitized::Failed => {
                None
            }
            // Hosts may try again later.
            (Some((ErasureKind::Format, _)), _) => Some(Status::FORMAT_IN_PROGRESS),
            (Some((ErasureKind::Sanitize, _)), _) => Some(Status::SANITIZE_IN_PROGRESS),
            (None, Sanitized::Failed) => Some(Status::SANITIZE_FAILED.do_not_retry()),
            (None, _) => None,
        }
    }

    /// The page of sanitize status.
    pub(super) fn page(&self) -> SanitizeLog {
        let (status, progress) = match (self.under_way, self.sanitized) {
            (Some((ErasureKind::Sanitize, progress)), _) => (SanitizeLog::UNDER_WAY, progress),
            (_, Sanitized::Never) => (SanitizeLog::NEVER, u16::MAX),
            (_, Sanitized::Done) => (SanitizeLog::DONE, u16::MAX),
            (_, Sanitized::Failed | Sanitized::Left) => (SanitizeLog::FAILED, u16::MAX),
        };
        SanitizeLog::new(status, progress, self.command)
    }

    /// The indicator of a format's progress: that there is one, and the percentage that is left.
    pub(super) fn format_progress(&self, nsid: u32) -> u8 {
        const IS_THERE: u8 = 1 << 7;
        match self.under_way {
            // Not zero before the end.
            Some((ErasureKind::Format, progress)) if self.concerns(nsid) => {
                IS_THERE | (100 - u32::from(progress) * 100 / 65_536).clamp(1, 100) as u8
            }
            _ => IS_THERE,
        }
    }
}

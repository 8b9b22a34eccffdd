//! Answers of the controller itself.

use flashyard_nvme::Status;

/// Answer to a command that the backend does not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: Status,
    pub(super) result: u64,
}

impl Answer {
    pub(super) const SUCCESS: Self = Self { status: Status::SUCCESS, result: 0 };

    pub(super) const fn result(result: u64) -> Self {
        Self { status: Status::SUCCESS, result }
    }

    /// A failure that the same command would meet again.
    pub(super) const fn refusal(status: Status) -> Self {
        Self { status: status.do_not_retry(), result: 0 }
    }
}

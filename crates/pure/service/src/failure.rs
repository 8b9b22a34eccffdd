//! Why an order or a request was not carried out, in a form that is copied.

use flashyard_blk::VolumeError;
use flashyard_units::SimSpan;

/// Why an order or a request was not carried out. It may have happened in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The leg has ended, or the way to it: it answers no further order.
    #[error("the volume below has ended")]
    Gone,
    /// A read of data that is lost.
    #[error("block {block} cannot be read")]
    Unread {
        /// The first block of it: of the leg in the end of an order, of the service's volume in an answer.
        block: u64,
    },
    /// A write to flash that is worn out.
    #[error("the volume below is worn out")]
    WornOut,
    /// A write of bytes for which there is no room.
    #[error("the volume below has no room")]
    NoRoom,
    /// A write to blocks that are only read.
    #[error("these blocks are not written to")]
    ReadOnly,
    /// No completion came in time.
    #[error("the volume below gave no answer in {0}")]
    Late(SimSpan),
    /// The leg has lost power.
    #[error("the volume below has lost power")]
    PowerLost,
    /// The leg gave the request up.
    #[error("the volume below gave the request up")]
    Dropped,
    /// Anything else.
    #[error("the volume below failed")]
    Failed,
}

impl From<&VolumeError> for Failure {
    fn from(error: &VolumeError) -> Self {
        match *error {
            VolumeError::Refused(_) | VolumeError::Io(_) => Self::Failed,
            VolumeError::Dropped => Self::Dropped,
            VolumeError::WornOut => Self::WornOut,
            VolumeError::NoRoom => Self::NoRoom,
            VolumeError::Unread { block } => Self::Unread { block },
            VolumeError::Late(span) => Self::Late(span),
            VolumeError::PowerLost => Self::PowerLost,
            VolumeError::Ended => Self::Gone,
        }
    }
}

impl From<Failure> for VolumeError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Gone => Self::Ended,
            Failure::Unread { block } => Self::Unread { block },
            Failure::WornOut => Self::WornOut,
            Failure::NoRoom => Self::NoRoom,
            Failure::Late(span) => Self::Late(span),
            Failure::PowerLost => Self::PowerLost,
            Failure::Dropped => Self::Dropped,
            Failure::ReadOnly | Failure::Failed => Self::Io(failure.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_survives_the_way_through_a_volume() {
        let all = [
            Failure::Gone,
            Failure::Unread { block: 7 },
            Failure::WornOut,
            Failure::NoRoom,
            Failure::Late(SimSpan::from_ms(3)),
            Failure::PowerLost,
            Failure::Dropped,
            Failure::Failed,
        ];
        for failure in all {
            assert_eq!(Failure::from(&VolumeError::from(failure)), failure);
        }
    }
}

//! The contract of a volume: requests in, completions out, time as an argument.

use crate::request::Operation;
use crate::volume::{RequestError, VolumeInfo, VolumeRequest};
use flashyard_units::{SimSpan, SimTime};

/// Payload of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// No payload: for everything but writes, and for writes where only time counts.
    None,
    /// Zeros, however many blocks.
    Zeros,
    /// The bytes of all blocks, in order.
    Bytes(Vec<u8>),
}

impl Payload {
    /// Whether it is the payload that `request` needs where bytes are kept, with blocks of `block_bytes`.
    ///
    /// Errors: bytes for an operation that takes none, none for a write, bytes of another length.
    pub fn check(&self, request: &VolumeRequest, block_bytes: u32) -> Result<(), RequestError> {
        let writes = request.operation == Operation::Write;
        let expected_bytes = if writes { u64::from(request.count) * u64::from(block_bytes) } else { 0 };
        let (fits, bytes) = match self {
            Self::None => (!writes, 0),
            Self::Zeros => (writes, expected_bytes),
            Self::Bytes(bytes) => (writes && bytes.len() as u64 == expected_bytes, bytes.len() as u64),
        };
        if fits { Ok(()) } else { Err(RequestError::Payload { bytes, expected_bytes }) }
    }
}

/// Why a volume did not carry a request out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// The volume does not take the request.
    #[error(transparent)]
    Refused(#[from] RequestError),
    /// The request was given up: a part of it may have happened.
    #[error("the request was given up")]
    Dropped,
    /// A write to flash that is worn out.
    #[error("the drive is worn out and takes no more writes")]
    WornOut,
    /// A write of bytes for which the disk below has no room.
    #[error("the disk that keeps the drive's bytes is full")]
    NoRoom,
    /// A read of data that is lost.
    #[error("the drive cannot correct what it reads at block {block}")]
    Unread {
        /// The first block of it.
        block: u64,
    },
    /// No completion came in time.
    #[error("no answer in {0}")]
    Late(SimSpan),
    /// The volume has lost power: no request is carried out before it is switched on again.
    #[error("the volume has lost power")]
    PowerLost,
    /// The volume has ended, or the way to it: no completion comes any more.
    #[error("the volume has ended")]
    Ended,
    /// Input or output failed, in the words of the layer below.
    #[error("{0}")]
    Io(String),
}

/// A request that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The number that its owner gave it.
    pub token: u64,
    /// Whether it was carried out.
    pub result: Result<(), VolumeError>,
    /// The bytes of a read where bytes are kept; otherwise an empty buffer, whose memory may be used again.
    pub bytes: Vec<u8>,
}

/// Completions of a volume that carries each request out as it is submitted.
#[derive(Clone, Debug, Default)]
pub struct Immediate {
    /// Of the last submission.
    now: SimTime,
    ended: Vec<Completion>,
}

impl Immediate {
    /// Keeps the completion of a request that was submitted at `now`, with the bytes of a read.
    pub fn complete(&mut self, now: SimTime, token: u64, result: Result<Vec<u8>, VolumeError>) {
        self.now = now;
        let (result, bytes) = match result {
            Ok(bytes) => (Ok(()), bytes),
            Err(error) => (Err(error), Vec::new()),
        };
        self.ended.push(Completion { token, result, bytes });
    }

    /// As [`Volume::advance`].
    pub fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> SimTime {
        let now = if self.ended.is_empty() { until } else { self.now };
        into.append(&mut self.ended);
        now
    }
}

/// A volume that carries requests out: a drive, a namespace of a remote one, a file, or a service over further volumes.
///
/// Times only grow, over all calls. In virtual time the caller's clock rules: [`Volume::advance`] moves on to the next
/// completion at once. A live volume has a clock of its own, on the wall, which begins with it: it sleeps, and takes the
/// time of a submission as past.
///
/// Contract: a request that has ended is visible to all that are submitted later; requests under way may overtake each
/// other. After a loss of power everything is there that ended before the last flush that ended, and any part of what came
/// later: a write may be torn between any two sectors of 512 bytes, a trim or a remap may have happened for any of its
/// blocks. Blocks that were trimmed read as anything.
pub trait Volume {
    /// Its properties. They do not change.
    fn info(&self) -> VolumeInfo;

    /// Takes a request in at `now`. Its completion bears `token`, which no other request under way has.
    ///
    /// Errors: what [`check`](crate::check) and [`Payload::check`] say against the request, and then nothing has happened;
    /// the volume has ended.
    fn submit(
        &mut self,
        now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
    ) -> Result<(), VolumeError>;

    /// Lets time pass until a request has ended, at the latest until `until`, and moves all completions up to then to the
    /// end of `into`. Returns the time that it is then.
    ///
    /// Errors: the volume has ended; requests under way get no completion.
    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError>;

    /// When [`Volume::advance`] has a completion, for the events of a world in virtual time; `None` while no request is
    /// under way, and where completions come from outside.
    fn next_due(&self) -> Option<SimTime> {
        None
    }
}

macro_rules! forward {
    ($type:ty) => {
        impl<V: Volume + ?Sized> Volume for $type {
            fn info(&self) -> VolumeInfo {
                (**self).info()
            }

            fn submit(
                &mut self,
                now: SimTime,
                token: u64,
                request: &VolumeRequest,
                payload: Payload,
            ) -> Result<(), VolumeError> {
                (**self).submit(now, token, request, payload)
            }

            fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
                (**self).advance(until, into)
            }

            fn next_due(&self) -> Option<SimTime> {
                (**self).next_due()
            }
        }
    };
}

forward!(&mut V);
forward!(Box<V>);

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::VolumeId;

    #[test]
    fn payload_is_for_writes_and_as_long_as_their_blocks() {
        let takes = |payload: Payload, operation, count| {
            let request = VolumeRequest { volume: VolumeId::new(0), operation, first: 0, count, source: 0 };
            payload.check(&request, 4096)
        };
        let bytes = |count: usize| Payload::Bytes(vec![0; count]);
        assert_eq!(takes(bytes(8192), Operation::Write, 2), Ok(()));
        assert_eq!(takes(Payload::Zeros, Operation::Write, u32::MAX), Ok(()));
        for operation in [Operation::Read, Operation::Trim, Operation::Flush, Operation::Remap] {
            assert_eq!(takes(Payload::None, operation, 2), Ok(()));
            assert!(takes(Payload::Zeros, operation, 2).is_err() && takes(bytes(8192), operation, 2).is_err());
        }
        let refused = takes(bytes(4096), Operation::Write, 2).expect_err("a block is missing");
        assert_eq!(refused.to_string(), "a payload of 4096 bytes, give 8192");
        assert!(takes(Payload::None, Operation::Write, 2).is_err());
    }
}

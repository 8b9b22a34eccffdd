//! Self-tests of a drive: the one that is under way, and the results of earlier ones.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Result of a self-test: 28 bytes (Base 2.0, figure 213). Numbers in field comments are offsets in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SelfTestResult {
    /// 0: outcome in bits 3:0, see the constants of this type; code of the test in 7:4.
    pub status: u8,
    /// 1: the first segment that failed, for [`Self::FAILED`].
    pub segment: u8,
    /// 2: which of the fields from `nsid` on say something: namespace, block, type and code of the status in bits 0 to 3.
    pub valid: u8,
    /// 3: reserved.
    pub reserved_3: u8,
    /// 4: power-on hours at the end.
    pub power_on_hours: U64,
    /// 12: namespace of the block that failed.
    pub nsid: U32,
    /// 16: the block.
    pub lba: U64,
    /// 24: type of its status.
    pub status_type: u8,
    /// 25: code of its status.
    pub status_code: u8,
    /// 26: of the vendor.
    pub vendor: U16,
}

impl SelfTestResult {
    /// No segment failed.
    pub const PASSED: u8 = 0;
    /// A host took it back.
    pub const ABORTED_BY_HOST: u8 = 1;
    /// Its controller was reset.
    pub const ABORTED_BY_RESET: u8 = 2;
    /// Its namespace was deleted.
    pub const ABORTED_BY_DELETION: u8 = 3;
    /// A format began.
    pub const ABORTED_BY_FORMAT: u8 = 4;
    /// A segment failed, which is named.
    pub const FAILED: u8 = 7;
    /// A sanitize began.
    pub const ABORTED_BY_SANITIZE: u8 = 9;
    /// There is no result in this place.
    pub const UNUSED: u8 = 0xF;

    /// The outcome.
    pub const fn outcome(&self) -> u8 {
        self.status & 0xF
    }

    /// The code of the test.
    pub const fn code(&self) -> u8 {
        self.status >> 4
    }
}

/// Device Self-test, page 06h: 564 bytes (Base 2.0, figure 212).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SelfTestLog {
    /// 0: code of the test under way, zero for none.
    pub operation: u8,
    /// 1: how much of it is done, in percent.
    pub completion: u8,
    /// 2: reserved.
    pub reserved_2: [u8; 2],
    /// 4: results, the newest first.
    pub results: [SelfTestResult; 20],
}

const _: () = assert!(size_of::<SelfTestResult>() == 28 && size_of::<SelfTestLog>() == SelfTestLog::BYTES);

impl SelfTestLog {
    /// Its length.
    pub const BYTES: usize = 564;
    /// A test of less than two minutes.
    pub const SHORT: u8 = 1;
    /// A test of all blocks.
    pub const EXTENDED: u8 = 2;
    /// Of the command: the test that is under way ends.
    pub const ABORT: u8 = 0xF;

    /// No test was ever made.
    pub const NEVER: Self = {
        let unused = SelfTestResult {
            status: SelfTestResult::UNUSED,
            segment: 0,
            valid: 0,
            reserved_3: 0,
            power_on_hours: U64::ZERO,
            nsid: U32::ZERO,
            lba: U64::ZERO,
            status_type: 0,
            status_code: 0,
            vendor: U16::ZERO,
        };
        Self { operation: 0, completion: 0, reserved_2: [0; 2], results: [unused; 20] }
    };

    /// The test under way is over: its result is the newest.
    pub fn end(&mut self, result: SelfTestResult) {
        (self.operation, self.completion) = (0, 0);
        self.results.rotate_right(1);
        self.results[0] = result;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn fields_are_at_their_offsets() {
        type R = SelfTestResult;
        let offsets =
            [offset_of!(R, power_on_hours), offset_of!(R, nsid), offset_of!(R, lba), offset_of!(R, status_type)];
        assert_eq!((offsets, offset_of!(SelfTestLog, results)), ([4, 12, 16, 24], 4));
    }

    #[test]
    fn the_newest_twenty_results_are_there() {
        let mut log = SelfTestLog::NEVER;
        assert!(log.results.iter().all(|result| result.outcome() == SelfTestResult::UNUSED));
        for number in 0..25 {
            log.operation = SelfTestLog::SHORT;
            log.end(SelfTestResult { power_on_hours: U64::new(number), status: 0x17, ..SelfTestResult::default() });
        }
        let hours = log.results.map(|result| result.power_on_hours.get());
        assert_eq!((log.operation, hours[0], hours[19]), (0, 24, 5));
        assert_eq!((log.results[0].code(), log.results[0].outcome()), (1, SelfTestResult::FAILED));
    }
}

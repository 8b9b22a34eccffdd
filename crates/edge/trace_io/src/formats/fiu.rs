//! FIU servers: nine columns, the last a hash of the content, which is checked and not kept.
//!
//! Fields are taken from the end: a process may have blanks in its name.

use super::fields::{SECTOR, device, length, letter, number, offset, required, row, time};
use super::{LineFormat, Parsed, RowError};

/// Picoseconds of a nanosecond.
const NANOSECOND_PS: i128 = 1_000;

pub(super) struct Fiu;

impl LineFormat for Fiu {
    fn name(&self) -> &'static str {
        "fiu"
    }

    fn description(&self) -> &'static str {
        "FIU servers: nanoseconds, sectors, content hashes"
    }

    fn accepted(&self) -> &'static str {
        "time ns, pid, process, sector, sectors, R|W, major, minor, hash in hex, separated by blanks"
    }

    fn parse(&self, line: &str) -> Parsed {
        let mut back = line.split_whitespace().rev();
        let hash = required(back.next(), "hash")?;
        if hash.len() % 32 != 0 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(RowError(format!("the hash {hash:?} is no row of MD5 sums in hex")));
        }
        let minor = number(back.next(), "minor device number")?;
        let major = number(back.next(), "major device number")?;
        let operation = letter(back.next())?;
        let size = length(back.next(), "count of sectors", SECTOR)?;
        let start = offset(back.next(), "sector", SECTOR)?;
        let mut front = line.split_whitespace();
        let at = time(front.next(), NANOSECOND_PS)?;
        number(front.next(), "pid")?;
        // Time, pid and six fields from the end leave at least one for the process.
        if line.split_whitespace().count() < 9 {
            return Err("the process is missing".into());
        }
        let volume = device(major, minor).ok_or_else(|| format!("{major},{minor} is no device number"))?;
        row(at, u64::from(volume), operation, start, size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;
    use flashyard_blk::Operation;

    const HASH: &str = "00112233445566778899aabbccddeeff";

    #[test]
    fn a_row_is_in_nanoseconds_and_sectors() {
        let row = expect_row(Fiu.parse(&format!("1500 77 pdflush 1024 8 W 6 16 {HASH}")));
        assert_eq!((row.time_ps, row.volume), (1_500_000, (6 << 20) | 16));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (524_288, 4_096));
        assert_eq!(row.request.operation, Operation::Write);
    }

    #[test]
    fn a_process_may_have_blanks_in_its_name_and_a_row_several_hashes() {
        let row = expect_row(Fiu.parse(&format!("1500 77 a b c 1024 8 R 6 0 {HASH}{HASH}")));
        assert_eq!((row.request.offset_bytes, row.request.operation), (524_288, Operation::Read));
    }

    #[test]
    fn a_row_without_a_process_or_with_half_a_hash_is_refused() {
        for line in [
            format!("1500 77 1024 8 W 6 0 {HASH}"),
            format!("1500 77 sh 1024 8 W 6 0 {}", &HASH[1..]),
            format!("1500 77 sh 1024 8 W 4096 0 {HASH}"),
            format!("1500 77 sh 1024 8 X 6 0 {HASH}"),
        ] {
            assert!(Fiu.parse(&line).is_err(), "{line}");
        }
    }
}

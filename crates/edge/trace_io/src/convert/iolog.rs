//! fio's log of version 3, which `fio --read_iolog` replays.
//!
//! A line is `time file action`, or `time file action offset length`; times are microseconds since the beginning,
//! offsets and lengths are bytes. The unit is not in fio's manual: fio 3.33 writes such times, and waits such times.
//! Volume N is the file `volume-N` of the directory that fio runs in, added and opened with its first request, closed
//! at the end; fio's `replay_redirect` sends all of them to one device instead. (Its `directory` crashes fio 3.33.)
//! Source: [C] fio 3.33, HOWTO, "Trace file format v3", and its behaviour.

use super::sink::{ConvertError, Sink};
use crate::reader::RowCounts;
use flashyard_blk::{Operation, TraceRecord};
use std::collections::BTreeSet;
use std::io::Write;

/// Time of the first row in microseconds. fio takes a row at zero for the absence of a time and drops the wait
/// after it.
pub const IOLOG_BEGIN_US: u64 = 1;

pub(super) struct Iolog<W: Write> {
    out: W,
    volumes: BTreeSet<u32>,
    last_us: u64,
}

impl<W: Write> Iolog<W> {
    pub(super) fn new(mut out: W) -> Result<Self, ConvertError> {
        writeln!(out, "fio version 3 iolog")?;
        Ok(Self { out, volumes: BTreeSet::new(), last_us: IOLOG_BEGIN_US })
    }
}

impl<W: Write> Sink for Iolog<W> {
    fn row(&mut self, record: &TraceRecord) -> Result<(), ConvertError> {
        let (volume, request) = (record.volume, record.request);
        let at = IOLOG_BEGIN_US + record.arrival.as_ps() / 1_000_000;
        self.last_us = at;
        if self.volumes.insert(volume) {
            writeln!(self.out, "{at} volume-{volume} add\n{at} volume-{volume} open")?;
        }
        match request.operation {
            // A flush has no range, but an action needs the fields.
            Operation::Flush => writeln!(self.out, "{at} volume-{volume} sync 0 0")?,
            operation => {
                let (offset, len) = (request.offset_bytes, request.len_bytes);
                writeln!(self.out, "{at} volume-{volume} {} {offset} {len}", operation.name())?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _: &str, _: &RowCounts) -> Result<(), ConvertError> {
        for volume in &self.volumes {
            writeln!(self.out, "{} volume-{volume} close", self.last_us)?;
        }
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::BlockRequest;
    use flashyard_units::SimTime;

    #[test]
    fn volumes_are_opened_once_and_closed_in_order() {
        let mut out = Vec::new();
        let mut sink = Box::new(Iolog::new(&mut out).expect("memory takes everything"));
        let rows = [
            (0, 3, Operation::Write, 512, 1024),
            (1_999_999, 1, Operation::Read, u64::MAX - 5, 4),
            (2_000_000, 3, Operation::Trim, 0, 4096),
            (7_000_000_000_000, 3, Operation::Flush, 9, 0),
        ];
        for (ps, volume, operation, offset_bytes, len_bytes) in rows {
            let request = BlockRequest { operation, offset_bytes, len_bytes };
            let record = TraceRecord { arrival: SimTime::from_ps(ps), volume, request };
            sink.row(&record).expect("memory takes everything");
        }
        sink.finish("msr", &RowCounts::default()).expect("memory takes everything");
        let expected = "fio version 3 iolog
1 volume-3 add
1 volume-3 open
1 volume-3 write 512 1024
2 volume-1 add
2 volume-1 open
2 volume-1 read 18446744073709551610 4
3 volume-3 trim 0 4096
7000001 volume-3 sync 0 0
7000001 volume-1 close
7000001 volume-3 close
";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}

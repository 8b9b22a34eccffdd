//! Block traces of Meta's Tectonic, as CacheLib replays them: a header names the columns.
//!
//! Blocks have names, not addresses. The rule: a block begins at page h modulo 2^50 of 4 KiB, h being the 64-bit
//! FNV-1a hash of its name, and a request at the block's begin plus its own offset. So a block keeps its place over
//! rows, files and runs, no table of blocks is kept, and of a million blocks of 8 MiB one pair or so overlaps. A row
//! is one request, whatever its count of operations says.

use super::columns::Columns;
use super::fields::{SECOND_PS, length, offset, row, time};
use super::{Layout, Line, LineParser, Parsed, RowError, Skip, TextFormat, TraceFormat};
use flashyard_blk::Operation;

/// The columns that matter.
const NAMES: [&str; 5] = ["op_time", "block_id", "io_size", "io_offset", "op_name"];
/// Pages on which a block may begin, and their bytes.
const PAGES: u64 = 1 << 50;
const PAGE_BYTES: u64 = 4096;

pub(super) struct Tectonic;

impl TraceFormat for Tectonic {
    fn name(&self) -> &'static str {
        "tectonic"
    }

    fn description(&self) -> &'static str {
        "Meta Tectonic CSV (CacheLib): seconds, bytes, named blocks"
    }

    fn accepted(&self) -> &'static str {
        "a header with op_time, block_id, io_size, io_offset and op_name, then rows with get... or put... as op_name, \
         separated by commas"
    }

    fn assumes(&self) -> Option<&'static str> {
        Some("no addresses: a block begins at the 4 KiB page FNV-1a(block_id) modulo 2^50")
    }

    fn layout(&'static self) -> Layout {
        Layout::Text(self)
    }
}

impl TextFormat for Tectonic {
    fn parser(&'static self) -> Box<dyn LineParser> {
        Box::new(Parser(None))
    }

    fn claims(&self, first: &str) -> bool {
        Columns::find(first, ',', NAMES).is_ok()
    }
}

struct Parser(Option<Columns<5>>);

impl LineParser for Parser {
    fn parse(&mut self, line: &str) -> Parsed {
        let Some(columns) = self.0.as_ref().filter(|_| !line.starts_with("op_time")) else {
            self.0 = Some(Columns::find(line, ',', NAMES)?);
            return Ok(Line::Skip(Skip::Header));
        };
        let [at, block, size, inside, name] = columns.pick(line)?;
        if block.is_empty() {
            return Err("the block_id is empty".into());
        }
        let size = length(Some(size), "io_size", 1)?;
        let inside = offset(Some(inside), "io_offset", 1)?;
        let start = place(block).checked_add(inside).ok_or("the io_offset is beyond 2^64 bytes")?;
        row(time(Some(at), SECOND_PS)?, 0, operation(name)?, start, size)
    }
}

/// `getChunkData.Permanent` reads, `putChunk.Permanent` writes.
fn operation(name: &str) -> Result<Operation, RowError> {
    match name.trim() {
        name if name.starts_with("get") => Ok(Operation::Read),
        name if name.starts_with("put") => Ok(Operation::Write),
        other => Err(RowError(format!("the op_name {other:?} begins with neither get nor put"))),
    }
}

/// The byte at which a block begins, by the rule of this page.
fn place(block: &str) -> u64 {
    // FNV-1a: offset basis and prime of its 64-bit variant.
    let hash = block
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3));
    hash % PAGES * PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;

    const HEADER: &str = "op_time,block_id,io_size,io_offset,op_name,op_count";

    #[test]
    fn requests_for_one_block_lie_in_one_place() {
        let mut parser = Tectonic.parser();
        assert_eq!(parser.parse(HEADER), Ok(Line::Skip(Skip::Header)));
        let first = expect_row(parser.parse("1700000000,ab-cd,4096,0,getChunkData.Permanent,1"));
        let second = expect_row(parser.parse("1700000001,ab-cd,4096,512,putChunk.NotInitialized,3"));
        assert_eq!((first.request.operation, second.request.operation), (Operation::Read, Operation::Write));
        assert_eq!(second.request.offset_bytes, first.request.offset_bytes + 512);
        assert_eq!(first.request.offset_bytes % PAGE_BYTES, 0);
        assert_eq!(second.time_ps - first.time_ps, SECOND_PS);
        assert_ne!(expect_row(parser.parse("1,ab-ce,1,0,get,1")).request.offset_bytes, first.request.offset_bytes);
    }

    #[test]
    fn the_hash_is_the_published_one() {
        // Test vectors of FNV-1a, 64 bits: the empty string and "a".
        assert_eq!(place(""), 0xCBF2_9CE4_8422_2325 % PAGES * PAGE_BYTES);
        assert_eq!(place("a"), 0xAF63_DC4C_8601_EC8C % PAGES * PAGE_BYTES);
    }

    #[test]
    fn other_operations_and_empty_blocks_are_refused() {
        let mut parser = Tectonic.parser();
        assert!(parser.parse("1,a,1,0,get,1").is_err(), "no header yet");
        assert!(parser.parse(HEADER).is_ok());
        for line in ["1,a,1,0,list,1", "1,,1,0,get,1", "1,a,1,0,get", "1,a,1,18446744073709551615,get,1"] {
            assert!(parser.parse(line).is_err(), "{line}");
        }
    }
}

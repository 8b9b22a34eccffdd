//! Maps as bytes, with a checksum.
//!
//! They are kept as runs and exceptions; trees are learned again when a map is loaded, which verifies them.

use super::leaves::Run;
use super::map::{Chunk, LearnedMap, MapError, Place};
use flashyard_service::checksum;

const MAGIC: [u8; 4] = *b"FYLM";
/// Version of the format.
const VERSION: u32 = 1;
/// Bytes of a run, and of an exception.
const RUN_BYTES: usize = 17;
const MOVED_BYTES: usize = 10;

/// Why bytes are no map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// They do not begin like a map, or are of another version.
    #[error("these bytes are no learned map of version {VERSION}")]
    Format,
    /// Bytes are missing or too many.
    #[error("the learned map ends at byte {0}, where more or nothing is expected")]
    Length(usize),
    /// The checksum is of other bytes.
    #[error("the learned map is damaged: its checksum does not hold")]
    Checksum,
    /// An exception of a chunk that there is not, or to a place that is taken.
    #[error("exception {0} of the learned map has no chunk or no free place")]
    Exception(usize),
    /// Its runs make no map.
    #[error(transparent)]
    Map(#[from] MapError),
}

/// Fields in turn.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        let field = *rest.first_chunk::<N>().ok_or(LoadError::Length(self.bytes.len()))?;
        self.at += N;
        Ok(field)
    }

    fn byte(&mut self) -> Result<u8, LoadError> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn word(&mut self) -> Result<u32, LoadError> {
        self.take().map(u32::from_le_bytes)
    }

    /// How many records of so many bytes follow.
    fn count(&mut self, bytes: usize) -> Result<usize, LoadError> {
        let count = self.word()? as usize;
        let is_there = count <= (self.bytes.len() - self.at) / bytes;
        if is_there { Ok(count) } else { Err(LoadError::Length(self.bytes.len())) }
    }
}

impl LearnedMap {
    /// Appends it as bytes.
    pub fn save(&self, to: &mut Vec<u8>) {
        let begin = to.len();
        let (columns, moved) = self.parts();
        to.extend_from_slice(&MAGIC);
        to.extend_from_slice(&VERSION.to_le_bytes());
        to.push(columns.len() as u8);
        for runs in &columns {
            to.extend_from_slice(&(runs.len() as u32).to_le_bytes());
            for run in runs {
                to.extend_from_slice(&run.first.to_le_bytes());
                to.extend_from_slice(&run.count.to_le_bytes());
                to.push(run.drive);
                to.extend_from_slice(&run.chunk.to_le_bytes());
                to.extend_from_slice(&run.stride.to_le_bytes());
            }
        }
        to.extend_from_slice(&(moved.len() as u32).to_le_bytes());
        for (chunk, place) in moved {
            to.extend_from_slice(&chunk.stripe.to_le_bytes());
            to.extend_from_slice(&[chunk.column, place.drive]);
            to.extend_from_slice(&place.chunk.to_le_bytes());
        }
        let sum = checksum(0, &to[begin..]);
        to.extend_from_slice(&sum.to_le_bytes());
    }

    /// The map in these bytes, all of which are its.
    ///
    /// Errors: they are no map.
    pub fn load(bytes: &[u8]) -> Result<Self, LoadError> {
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or(LoadError::Length(bytes.len()))?;
        let mut fields = Fields { bytes: body, at: 0 };
        if fields.take() != Ok(MAGIC) || fields.word() != Ok(VERSION) {
            return Err(LoadError::Format);
        }
        if checksum(0, body) != u32::from_le_bytes(*sum) {
            return Err(LoadError::Checksum);
        }
        let mut columns = vec![Vec::new(); fields.byte()?.into()];
        for runs in &mut columns {
            for _ in 0..fields.count(RUN_BYTES)? {
                let (first, count, drive) = (fields.word()?, fields.word()?, fields.byte()?);
                let (chunk, stride) = (fields.word()?, i32::from_le_bytes(fields.take()?));
                runs.push(Run { first, count, drive, chunk, stride });
            }
        }
        let mut map = Self::new(&columns)?;
        let count = fields.count(MOVED_BYTES)?;
        let mut moved = Vec::with_capacity(count);
        for _ in 0..count {
            let chunk = Chunk { stripe: fields.word()?, column: fields.byte()? };
            let place = Place { drive: fields.byte()?, chunk: fields.word()? };
            moved.push((chunk, place));
        }
        if fields.at != body.len() {
            return Err(LoadError::Length(fields.at));
        }
        map.put_all(&moved).map_err(LoadError::Exception)?;
        Ok(map)
    }
}

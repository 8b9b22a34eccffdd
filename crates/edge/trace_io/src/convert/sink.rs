//! The receiving end of a conversion.

use crate::error::TraceError;
use crate::reader::RowCounts;
use flashyard_blk::TraceRecord;
use flashyard_columns::TableError;

/// Why a trace cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The output cannot be written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] std::io::Error),
}

/// Something that takes the rows of a trace.
pub(super) trait Sink {
    fn row(&mut self, record: &TraceRecord) -> Result<(), ConvertError>;
    fn finish(self: Box<Self>, format: &str, counts: &RowCounts) -> Result<(), ConvertError>;
}

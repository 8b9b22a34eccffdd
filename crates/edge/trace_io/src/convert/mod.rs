//! A trace to a file of another format.

mod iolog;
mod parquet;
mod sink;

pub use iolog::IOLOG_BEGIN_US;
pub use sink::ConvertError;

use crate::analysis::OBSERVED_ROWS;
use crate::reader::TraceReader;
use sink::Sink;
use std::io::Write;
use std::path::Path;

/// A format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Parquet: a row a request.
    Parquet,
    /// fio's log of version 3, for `fio --read_iolog`.
    Iolog,
}

impl OutputFormat {
    const ALL: [(Self, &'static str); 2] = [(Self::Parquet, "parquet"), (Self::Iolog, "iolog")];

    /// The format of this name, which is also the extension of its files.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(format, _)| *format)
    }

    /// The format of a file's extension.
    pub fn by_extension(path: &Path) -> Option<Self> {
        Self::by_name(path.extension()?.to_str()?)
    }

    /// All names, for messages.
    pub fn names() -> String {
        Self::ALL.map(|(_, name)| name).join(", ")
    }
}

/// Writes the rows of `reader` to `out`, streaming: memory does not grow with the trace. `observer` gets the rows so
/// far now and then, and ends it with `false`. Returns the rows, or `None` when it was ended: then the output is not
/// whole.
///
/// Errors: the first row that cannot be read, and those of the output.
pub fn convert<W: Write + Send>(
    mut reader: TraceReader,
    format: OutputFormat,
    out: W,
    observer: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<u64>, ConvertError> {
    let mut sink: Box<dyn Sink + '_> = match format {
        OutputFormat::Parquet => Box::new(parquet::Parquet::new(out)?),
        OutputFormat::Iolog => Box::new(iolog::Iolog::new(out)?),
    };
    let mut rows: u64 = 0;
    for record in &mut reader {
        sink.row(&record?)?;
        rows += 1;
        if rows.is_multiple_of(OBSERVED_ROWS) && !observer(rows) {
            return Ok(None);
        }
    }
    sink.finish(reader.format().name(), reader.counts())?;
    Ok(Some(rows))
}

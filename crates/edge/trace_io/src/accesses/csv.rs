//! The open format: separated values with a header.
//!
//! | column | names | values |
//! |---|---|---|
//! | kind | `op` `operation` `kind` `type` `rw` | r, l, read, load; w, s, write, store |
//! | address | `address` `addr` | bytes, decimal or hex after 0x |
//! | size (may be absent: 1) | `size` `bytes` | bytes |
//! | gap (may be absent: 0) | `gap` `instructions` | instructions before that access nothing |
//! | nothing | any name that begins with `ignored` | |

use super::lines::{AccessLines, kind, number};
use super::row::Pending;

/// Columns at most.
const COLUMNS_MAX: usize = 64;

/// A column by what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Kind,
    Address,
    Size,
    Gap,
    Ignored,
}

/// The columns, once the header was read.
#[derive(Debug, Default)]
pub(super) struct Csv {
    columns: Vec<Column>,
    separator: char,
}

impl Csv {
    fn header(&mut self, line: &str) -> Result<(), String> {
        self.separator = [',', ';', '\t'].into_iter().find(|separator| line.contains(*separator)).unwrap_or(',');
        let column = |name: &str| {
            let name = unquoted(name).to_ascii_lowercase();
            Ok(match name.as_str() {
                "op" | "operation" | "kind" | "type" | "rw" => Column::Kind,
                "address" | "addr" => Column::Address,
                "size" | "bytes" => Column::Size,
                "gap" | "instructions" => Column::Gap,
                _ if name.starts_with("ignored") => Column::Ignored,
                _ => return Err(format!("there is no column {name:?}")),
            })
        };
        let columns: Vec<Column> = line.split(self.separator).map(column).collect::<Result<_, String>>()?;
        let count = |wanted| columns.iter().filter(|column| **column == wanted).count();
        if count(Column::Kind) != 1 || count(Column::Address) != 1 || count(Column::Size) > 1 || count(Column::Gap) > 1
        {
            return Err("a header names op and address, and size and gap at most once".to_owned());
        }
        if columns.len() > COLUMNS_MAX {
            return Err(format!("there are more than {COLUMNS_MAX} columns"));
        }
        self.columns = columns;
        Ok(())
    }
}

/// A name or field without blanks and quotes around it; separators inside quotes are not understood.
fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field).trim()
}

impl AccessLines for Csv {
    fn parse(&mut self, line: &str, pending: &mut Pending) -> Result<(), String> {
        if self.columns.is_empty() {
            return self.header(line);
        }
        let (mut access, mut address, mut bytes, mut gap) = (None, 0, 1, 0);
        let mut fields = line.split(self.separator);
        for column in &self.columns {
            let field = unquoted(fields.next().ok_or("there are fewer fields than columns")?);
            match column {
                Column::Kind => access = Some(kind(field)?),
                Column::Address => address = number(field, "address")?,
                Column::Size => bytes = number(field, "size")?,
                Column::Gap => gap = number(field, "count of instructions")?,
                Column::Ignored => {}
            }
        }
        if fields.next().is_some() {
            return Err("there are more fields than columns".to_owned());
        }
        pending.idle(gap);
        access.map_or(Ok(()), |access| pending.access(access, address, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_memory::AccessKind;

    #[test]
    fn columns_are_taken_by_their_names() {
        let mut csv = Csv::default();
        let mut pending = Pending::default();
        for line in ["Address;ignored time;op;gap", "0x1040;x;load;3", "64;y;W;0"] {
            csv.parse(line, &mut pending).expect(line);
        }
        let found: Vec<(AccessKind, u64, u32)> =
            std::iter::from_fn(|| pending.take()).map(|access| (access.kind, access.address, access.gap)).collect();
        assert_eq!(found, [(AccessKind::Load, 0x1040, 3), (AccessKind::Store, 64, 0)]);
        for line in ["1;y;W", "1;y;W;0;0", "1;y;x;0", "y;y;W;0", "1;y;W;-1"] {
            assert!(csv.parse(line, &mut pending).is_err(), "{line}");
        }
        for header in ["address", "op,address,op", "op,address,colour"] {
            assert!(Csv::default().parse(header, &mut pending).is_err(), "{header}");
        }
    }
}

//! Headers that name columns, and the wanted fields of the rows below them.

use super::RowError;

/// The wanted `N` columns of separated rows, by their places.
pub(super) struct Columns<const N: usize> {
    separator: char,
    places: [usize; N],
    /// Number of columns of a row.
    count: usize,
}

impl<const N: usize> Columns<N> {
    /// The columns called `names` in `header`.
    ///
    /// Errors: the first name that the header lacks, and its names instead.
    pub(super) fn find(header: &str, separator: char, names: [&str; N]) -> Result<Self, RowError> {
        let found: Vec<&str> = header.split(separator).map(str::trim).collect();
        let mut places = [0; N];
        for (place, name) in places.iter_mut().zip(names) {
            let at = found.iter().position(|column| column.eq_ignore_ascii_case(name));
            *place = at.ok_or_else(|| RowError(format!("the header has no column {name}")))?;
        }
        Ok(Self { separator, places, count: found.len() })
    }

    /// The wanted fields of a row, in the order of the names.
    ///
    /// Errors: a row with another number of fields than the header.
    pub(super) fn pick<'a>(&self, line: &'a str) -> Result<[&'a str; N], RowError> {
        let mut fields = [""; N];
        let mut count = 0;
        for (at, field) in line.split(self.separator).enumerate() {
            count = at + 1;
            for (wanted, place) in fields.iter_mut().zip(self.places) {
                if place == at {
                    *wanted = field;
                }
            }
        }
        if count != self.count {
            return Err(RowError(format!("it has {count} fields and the header {}", self.count)));
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_the_name_of_their_column() {
        let columns = Columns::find("a, B ,c", ',', ["b", "a"]).expect("both are there");
        assert_eq!(columns.pick("1,2,3"), Ok(["2", "1"]));
        for line in ["1,2", "1,2,3,4", ""] {
            assert!(columns.pick(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_missing_column_is_named() {
        let error = Columns::find("a,b", ',', ["a", "size"]).map(|_| ()).expect_err("size is missing");
        assert_eq!(error.0, "the header has no column size");
    }
}

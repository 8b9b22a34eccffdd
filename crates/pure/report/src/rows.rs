//! Rows of words and numbers as a table of the terminal.

use crate::fitted::{fitted, right};
use comfy_table::Cell;

/// Rows under `header`, at most `width` characters wide: the first `words` columns to the left, numbers to the right.
pub fn rows_table(header: &[&str], words: usize, rows: &[Vec<String>], width: usize) -> String {
    let cell = |(place, text): (usize, &String)| if place < words { Cell::new(text) } else { right(text.clone()) };
    let rows: Vec<Vec<Cell>> = rows.iter().map(|row| row.iter().enumerate().map(cell).collect()).collect();
    fitted(1, header, &rows, width)
}

//! Result tables that fit the terminal: columns that do not find room side by side follow in tables below.

use comfy_table::{
    Cell, CellAlignment, Column, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width,
};

/// A line below the header and nothing else: lines between columns would take the room of figures.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// Space beside the content of a column.
const PADDING: usize = 2;

pub(crate) fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Rows under `header`, in as many tables of at most `width` characters as it takes; each begins with the first `keys`
/// columns. A long name in the first column is broken at its spaces.
pub(crate) fn fitted(keys: usize, header: &[&str], rows: &[Vec<Cell>], width: usize) -> String {
    let longest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let content =
        |column: usize| rows.iter().filter_map(move |row| row.get(column)).map(|cell| longest(&cell.content()));
    let mut widths: Vec<usize> =
        header.iter().enumerate().map(|(at, name)| content(at).fold(longest(name), usize::max) + PADDING).collect();
    let name_max = (width / 3).max(16);
    if let Some(name) = widths.first_mut() {
        *name = (*name).min(name_max);
    }
    let taken_by_keys: usize = widths.iter().take(keys).sum();
    let mut tables: Vec<Vec<usize>> = Vec::new();
    let mut room = 0;
    for (column, &needed) in widths.iter().enumerate().skip(keys) {
        match tables.last_mut() {
            Some(table) if needed <= room => {
                table.push(column);
                room -= needed;
            }
            _ => {
                tables.push((0..keys).chain([column]).collect());
                room = width.saturating_sub(taken_by_keys + needed);
            }
        }
    }
    let drawn = tables.iter().map(|columns| drawn(keys, columns, header, rows, name_max));
    drawn.collect::<Vec<_>>().join("\n\n")
}

fn drawn(keys: usize, columns: &[usize], header: &[&str], rows: &[Vec<Cell>], name_max: usize) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().map(|&column| {
        let name = Cell::new(header[column]);
        if column < keys { name } else { name.set_alignment(CellAlignment::Right) }
    }));
    for row in rows {
        table.add_row(columns.iter().map(|&column| row.get(column).cloned().unwrap_or_else(|| Cell::new(""))));
    }
    let most = Width::Fixed(u16::try_from(name_max).unwrap_or(u16::MAX));
    if let Some(name) = table.column_mut(0) {
        Column::set_constraint(name, ColumnConstraint::UpperBoundary(most));
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(names: &[&str]) -> Vec<Vec<Cell>> {
        let row = |name: &&str| [vec![Cell::new(name)], (0..9).map(|at| right(format!("{at}.25"))).collect()].concat();
        names.iter().map(row).collect()
    }

    const HEADER: [&str; 10] = [
        "run",
        "throughput\nGB/s",
        "requests\nk/s",
        "a\nus",
        "b\nus",
        "c\nus",
        "d\nus",
        "e\nus",
        "f\nus",
        "longer name\n%",
    ];

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_figure_is_lost() {
        let rows = rows(&["conv", "xbof jbof.shrunk_cores=0.334 jbof.busy_drives=4 workload.depth=64"]);
        for width in [40, 60, 80, 200] {
            let text = fitted(1, &HEADER, &rows, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            for figure in 0..9 {
                assert_eq!(text.matches(&format!("{figure}.25")).count(), 2, "{width}:\n{text}");
            }
            // Names break at spaces where their words find room.
            assert!(width < 80 || text.contains("jbof.busy_drives=4"), "{width}:\n{text}");
        }
    }

    #[test]
    fn a_wide_terminal_has_one_table_and_a_narrow_one_repeats_the_names() {
        let names = |width| fitted(1, &HEADER, &rows(&["conv"]), width).matches("conv").count();
        assert_eq!(names(200), 1);
        assert!(names(40) > 1);
    }
}

//! An output beside the one that a page shows, line by line, where the page leaves lines and parts of lines out.

/// A mark of text that a page leaves out: lines where it stands alone, any text within a line.
const LEFT_OUT: &str = "…";
/// Costs of an alignment; the cheapest is taken. A line that resembles another one is that one changed.
const ONE_SIDED: usize = 100;
const CHANGED: usize = 20;

/// A line of the page, of the output, or of both. Numbers count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    /// Line of the page that the output agrees with, or that leaves lines of it out.
    Kept(usize),
    /// Line of the output that the page leaves out.
    LeftOut,
    /// Line of the page, and another one of the output in its place.
    Changed(usize, usize),
    /// Line of the page that the output lacks.
    Missing(usize),
    /// Line of the output that the page lacks.
    Extra(usize),
}

/// The cheapest alignment of the lines of a page with those of an output, both without their trailing blanks.
pub(crate) fn align(page: &[&str], output: &[&str]) -> Vec<Pair> {
    let (rows, columns) = (page.len(), output.len());
    let mut steps = vec![vec![(0, Pair::LeftOut); columns + 1]; rows + 1];
    for row in (0..=rows).rev() {
        for column in (0..=columns).rev() {
            if (row, column) != (rows, columns) {
                steps[row][column] = cheapest(page, output, &steps, (row, column));
            }
        }
    }
    let (mut row, mut column, mut pairs) = (0, 0, Vec::new());
    while (row, column) != (rows, columns) {
        let pair = steps[row][column].1;
        pairs.push(pair);
        let (down, right) = moves(page, pair);
        (row, column) = (row + down, column + right);
    }
    pairs
}

/// Whether the output is that of the page.
pub(crate) fn agrees(pairs: &[Pair]) -> bool {
    pairs.iter().all(|pair| matches!(pair, Pair::Kept(_) | Pair::LeftOut))
}

fn cheapest(page: &[&str], output: &[&str], steps: &[Vec<(usize, Pair)>], at: (usize, usize)) -> (usize, Pair) {
    let (row, column) = at;
    let mut choices = Vec::new();
    match (page.get(row), output.get(column)) {
        (Some(line), found) if line.trim() == LEFT_OUT => {
            choices.push((0, Pair::Kept(row)));
            choices.extend(found.map(|_| (0, Pair::LeftOut)));
        }
        (Some(line), Some(found)) if matches(line, found) => choices.push((0, Pair::Kept(row))),
        (Some(line), Some(found)) => choices.push((CHANGED + unlike(line, found), Pair::Changed(row, column))),
        _ => {}
    }
    if page.get(row).is_none_or(|line| line.trim() != LEFT_OUT) {
        choices.extend(output.get(column).map(|_| (ONE_SIDED, Pair::Extra(column))));
        choices.extend(page.get(row).map(|_| (ONE_SIDED, Pair::Missing(row))));
    }
    let whole = choices.into_iter().map(|(cost, pair)| {
        let (down, right) = moves(page, pair);
        (cost + steps[row + down][column + right].0, pair)
    });
    whole.min_by_key(|(cost, _)| *cost).expect("a line is left on one side")
}

/// How many lines of the page and of the output a pair takes.
fn moves(page: &[&str], pair: Pair) -> (usize, usize) {
    match pair {
        Pair::Kept(row) => (1, usize::from(page[row].trim() != LEFT_OUT)),
        Pair::Changed(..) => (1, 1),
        Pair::Missing(_) => (1, 0),
        Pair::LeftOut | Pair::Extra(_) => (0, 1),
    }
}

/// Whether a line of the output is that of the page, whatever stands where the page leaves something out.
fn matches(page: &str, output: &str) -> bool {
    let mut parts = page.split(LEFT_OUT);
    let Some(mut rest) = output.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// From 0 to [`ONE_SIDED`]: the share of words that differ, half of it where the first words are alike.
fn unlike(page: &str, output: &str) -> usize {
    let (left, right) = (page.split_whitespace(), output.split_whitespace());
    let words = left.clone().count().max(right.clone().count()).max(1);
    let alike = left.clone().zip(right.clone()).filter(|(left, right)| left == right).count();
    let share = (words - alike) * ONE_SIDED / words;
    if left.clone().next() == right.clone().next() { share / 2 } else { share }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_line_may_be_left_out() {
        for (page, output, agrees) in [
            ("a", "a", true),
            ("a", "a b", false),
            ("a …", "a b", true),
            ("a … c", "a b c", true),
            ("a … c", "a b", false),
            ("…", "", true),
            ("x … y … z", "x 1 y 2 z", true),
            ("x … y … z", "x 1 z", false),
            ("aa…aa", "aaa", false),
        ] {
            assert_eq!(matches(page, output), agrees, "{page:?} {output:?}");
        }
    }

    #[test]
    fn lines_that_are_left_out_agree_with_any() {
        let page = ["head", "…", "row 1", "…"];
        for output in [&["head", "x", "y", "row 1", "z"][..], &["head", "row 1"]] {
            assert!(agrees(&align(&page, output)), "{output:?}");
        }
        assert!(!agrees(&align(&page, &["head", "x"])));
        assert!(!agrees(&align(&["head"], &["head", "x"])));
        assert!(!agrees(&align(&[], &["x"])));
        assert!(agrees(&align(&["…"], &[])));
    }

    #[test]
    fn a_changed_row_stands_beside_the_one_that_resembles_it() {
        let page = ["design GB/s k/s", "…", "xbof 70.6 1884 9", "…"];
        let output = ["design GB/s k/s", "conv 74 1978 1", "xbof 71.2 1884 9", "done"];
        let pairs = align(&page, &output);
        let expected = [Pair::Kept(0), Pair::LeftOut, Pair::Kept(1), Pair::Changed(2, 2), Pair::LeftOut, Pair::Kept(3)];
        assert_eq!(pairs, expected);
        assert_eq!(align(&["a"], &[]), [Pair::Missing(0)]);
        assert_eq!(align(&["a"], &["b", "a"]), [Pair::Extra(0), Pair::Kept(0)]);
    }
}

//! Words that are nearly another one, as after a typing error.

/// The one of `known` that is nearest to `word`, if a third of its letters at most differ.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, nearest) = known.map(|known| (distance(word, known), known)).min()?;
    (distance <= word.len().div_ceil(3)).then_some(nearest)
}

/// Letters to insert, delete or replace to get from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_another_word_does_not() {
        let known = || ["cores", "core_clock_mhz", "erase"].into_iter();
        assert_eq!(nearest("coress", known()), Some("cores"));
        assert_eq!(nearest("core_clock_mhs", known()), Some("core_clock_mhz"));
        assert_eq!(nearest("colour", known()), None);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(nearest("cores", std::iter::empty()), None);
    }
}

//! Comments whose first sentence begins with a word that names nothing: who, nobody, what, the same.

/// Beginnings that leave a reader without a subject.
const EMPTY: [&str; 7] = ["What", "Who", "Whoever", "Nobody", "Anybody", "None", "The same"];

/// How many comments of a Rust source begin so. The fixed headings of crate pages (`What it models:`) do not count.
pub(crate) fn empty_subjects(text: &str) -> usize {
    let mut count = 0;
    let mut before = "";
    for line in text.lines() {
        let (mark, words) = comment(line);
        let begins = !mark.is_empty() && mark != before;
        let heading = words.starts_with("What it ") && words.split('.').next().is_some_and(|first| first.contains(':'));
        if begins && !heading && EMPTY.iter().any(|empty| holds_at_start(words, empty)) {
            count += 1;
        }
        // A line of the mark alone ends a paragraph, and the next one begins another.
        before = if words.is_empty() { "" } else { mark };
    }
    count
}

/// The mark of a comment and its words; two empty texts where the line is none.
fn comment(line: &str) -> (&'static str, &str) {
    let line = line.trim_start();
    let of = |mark: &'static str| line.strip_prefix(mark).map(|words| (mark, words.trim()));
    of("///").or_else(|| of("//!")).or_else(|| of("//")).unwrap_or(("", ""))
}

fn holds_at_start(words: &str, beginning: &str) -> bool {
    words.strip_prefix(beginning).is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sentences_without_a_subject_are_counted() {
        let text = "//! What it does not model: doors. It has none.\n//!\n//! Nobody knows.\n\n/// The same, but longer.\n/// What follows goes on.\nfn a() {\n    // Whatever comes.\n    // None: yet.\n}\n/// Whoever asks.";
        assert_eq!(empty_subjects(text), 3, "nobody, the same, whoever; a line that goes on with none is no beginning");
        assert_eq!(empty_subjects("// None is left.\nlet x = 1;\n// What is x?"), 2);
    }
}

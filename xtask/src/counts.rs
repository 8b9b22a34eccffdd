//! A study's page says how many of its predictions agree, and says it as the golden table has it.

use crate::{Finding, Repository};
use anyhow::Result;

/// Pages of studies with a golden table that do not have its counts.
///
/// Errors: a table or a page that cannot be read.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for golden in repository.files.iter().filter(|file| file.starts_with("scenarios/") && file.ends_with("/golden.txt"))
    {
        let page = golden.replace("golden.txt", "README.md");
        findings.extend(check_page(&page, &repository.read(&page)?, &sentence(&repository.read(golden)?)));
    }
    Ok(findings)
}

fn check_page(page: &str, text: &str, sentence: &str) -> Option<Finding> {
    // Lines of a page break anywhere, and its main figures are bold.
    let words: Vec<&str> = text.split_whitespace().collect();
    let found = format!(" {}", words.join(" ").replace("**", "")).contains(&format!(" {sentence}"));
    (!found).then(|| Finding::failure(page, 0, format!("does not say {sentence:?}, as its golden table has it")))
}

/// The counts in words, as `flashyard reproduce` prints them; further readings of a number do not count.
fn sentence(golden: &str) -> String {
    let predicted: Vec<&str> =
        golden.lines().filter(|line| line.contains(" predicted ") && !line.contains(", reading of ")).collect();
    let agree = predicted.iter().filter(|line| line.contains(" agrees")).count();
    format!("{agree} of {} predicted numbers agree", predicted.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_counts_of_its_table() {
        let golden = "a   1.000 %  predicted     agrees\n\
                      b   2.000 %  predicted     does not agree\n\
                      c   2.000 %  predicted     agrees, reading of b\n\
                      d   1.000    predicted     agrees\n\
                      e   2.000 %  fitted        agrees\n\
                      f       - %  cited         not measured\n";
        assert_eq!(sentence(golden), "2 of 3 predicted numbers agree");
        assert_eq!(check_page("README.md", "So **2 of 3\npredicted numbers** agree.", &sentence(golden)), None);
        assert!(
            check_page("README.md", "12 of 13 predicted numbers agree", "2 of 3 predicted numbers agree").is_some()
        );
    }
}

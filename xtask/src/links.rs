//! Links in the documentation that lead nowhere.

use std::path::Path;

use crate::Finding;

/// Local links of one Markdown file whose target does not exist.
pub(crate) fn check(root: &Path, file: &str, text: &str) -> Vec<Finding> {
    let home = root.join(file);
    let directory = home.parent().unwrap_or(root);
    let broken = local_links(text).into_iter().filter(|(_, target)| {
        let path = target.split('#').next().unwrap_or_default();
        !path.is_empty() && !directory.join(path).exists()
    });
    broken
        .map(|(line, target)| Finding::failure(file, line, format!("link to `{target}`, which does not exist")))
        .collect()
}

/// Line and target of each inline link or image that is not an address, outside code.
fn local_links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    let mut is_fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced {
            continue;
        }
        for (start, _) in line.match_indices("](") {
            // An odd number of back-ticks before it means that the text is code.
            if line[..start].matches('`').count() % 2 == 1
                && line[start..].contains('`')
                && !line[..start].ends_with('`')
            {
                continue;
            }
            let target = line[start + 2..].split([')', ' ']).next().unwrap_or_default();
            let is_address = target.contains("://") || target.starts_with("mailto:");
            if !is_address && !target.is_empty() {
                links.push((index + 1, target));
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_prose_are_read_and_code_is_not() {
        let text = "a [b](c.md) and ![d](e.svg \"title\")\n```\n[x](y.md)\n```\n`[x](y.md)` [`code`](z.rs#L1)\n\
                    [web](https://example.org) [mail](mailto:a@b)";
        assert_eq!(local_links(text), [(1, "c.md"), (1, "e.svg"), (5, "z.rs#L1")]);
    }

    #[test]
    fn a_link_to_a_missing_file_is_reported() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = "[here](src/lib.rs#L1)\n[top](#part)\n[gone](src/nowhere.rs)\n[up](../layers.toml)";
        let findings = check(root, "notes.md", text);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].line, 3);
    }
}

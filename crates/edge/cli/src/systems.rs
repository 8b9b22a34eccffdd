//! `flashyard systems`, and the systems in help texts.

use crate::{Outcome, output};
use anyhow::Result;
use flashyard_scenario::{DesignInfo, Room, SYSTEMS, listed};
use serde_json::{Value, json};

/// Lists all systems.
pub(crate) fn systems(as_json_text: bool) -> Result<Outcome> {
    if as_json_text {
        output::json(&SYSTEMS.iter().map(as_json).collect());
    } else {
        output::line(&SYSTEMS.iter().map(in_words).collect::<Vec<_>>().join("\n\n"));
    }
    Ok(Outcome::Done)
}

fn as_json(system: &dyn Room) -> Value {
    let design = |design: DesignInfo| {
        json!({
            "name": design.name,
            "about": design.about,
            "keys": design.keys,
            "serves": design.serves,
            "breaks": design.breaks,
        })
    };
    json!({
        "name": system.name(),
        "about": system.about(),
        "runs": system.run().is_some(),
        "study": system.study().map(|study| json!({ "is_long": study.is_long })),
        "world": system.world().map(|world| json!({ "name": world.name, "about": world.about })),
        "designs": system.designs().into_iter().map(design).collect::<Vec<_>>(),
    })
}

/// The system with the commands that know it, and a line for each design.
fn in_words(system: &dyn Room) -> String {
    let designs = system.designs();
    let serves = designs.iter().any(|design| design.serves);
    let commands = [
        system.run().map(|_| "run".to_owned()),
        serves.then(|| "serve".to_owned()),
        system.study().map(|_| format!("reproduce {}", system.name())),
        system.world().map(|world| format!("faults --world {}", world.name)),
    ];
    let commands: Vec<String> = commands.into_iter().flatten().collect();
    let width = designs.iter().map(|design| design.name.chars().count()).max().unwrap_or(0);
    let mut text = format!("{}: {}\n  flashyard {}", system.name(), system.about(), commands.join(", "));
    for design in &designs {
        text += &format!("\n    {:width$}  {}", design.name, design.about);
        let lacks = [(serves && !design.serves, "serve"), (system.world().is_some() && !design.breaks, "faults")];
        let lacks: Vec<&str> = lacks.into_iter().filter(|lack| lack.0).map(|lack| lack.1).collect();
        if !lacks.is_empty() {
            text += &format!(" (not for {})", lacks.join(" and "));
        }
    }
    text
}

/// Studies that `reproduce` can be asked for.
pub(crate) fn studies_in_words() -> String {
    format!("Published system: {}", listed(&SYSTEMS.studies().collect::<Vec<_>>()))
}

/// Scenarios that `init` can write.
pub(crate) fn carried_in_words() -> String {
    format!("Scenario to start from: {}", listed(&SYSTEMS.carried().map(|carried| carried.name).collect::<Vec<_>>()))
}

/// Worlds that `faults` can break.
pub(crate) fn worlds_in_words() -> String {
    let worlds: Vec<String> = SYSTEMS.fault_worlds().map(|world| format!("{}, {}", world.name, world.about)).collect();
    format!("What to break: {}", worlds.join("; "))
}

/// The world that `faults` breaks where none is named: the first.
pub(crate) fn default_world() -> &'static str {
    SYSTEMS.fault_worlds().next().map_or("", |world| world.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    /// Rust files of the program below `folder`, without tests and without the benchmark, whose scenarios are its own.
    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            match path.file_name().and_then(|name| name.to_str()) {
                Some("bench" | "tests.rs") => {}
                _ if path.is_dir() => sources(&path, found),
                _ => found.push(path),
            }
        }
    }

    /// Words of the text that a user may read or type: of literals, and of the comments that help texts are made of.
    fn words(text: &str, is_help: bool) -> BTreeSet<&str> {
        let code = text.split("#[cfg(test)]").next().unwrap_or(text);
        let told = code.lines().flat_map(|line| match line.trim_start() {
            comment if comment.starts_with("//") => vec![if is_help { comment } else { "" }],
            code => code.split('"').skip(1).step_by(2).collect(),
        });
        told.flat_map(|text| text.split(|letter: char| !(letter.is_alphanumeric() || "-_.".contains(letter)))).collect()
    }

    #[test]
    fn no_system_is_named_outside_the_table() {
        let names: Vec<&str> =
            SYSTEMS.iter().map(Room::name).chain(SYSTEMS.fault_worlds().map(|world| world.name)).collect();
        let mut files = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
        assert!(files.len() > 20, "{files:?}");
        for file in files {
            let text = std::fs::read_to_string(&file).expect("sources are text");
            let is_help = file.components().any(|part| part.as_os_str() == "arguments");
            let words = words(&text, is_help);
            // These are words of help texts.
            let is_word = |name: &str| matches!(name, "drives" | "versions" | "mirror" | "memory" | "array");
            let named: Vec<&&str> = names.iter().filter(|name| words.contains(**name) && !is_word(name)).collect();
            assert!(named.is_empty(), "{}: {named:?}; ask the table of systems", file.display());
        }
    }

    #[test]
    fn words_of_literals_and_of_help_are_seen_and_those_of_other_comments_are_not() {
        let text = "/// A help of xbof\nlet a = \"cvss, jbof.drives\"; // ttflash\n#[cfg(test)]\nlet b = \"ff-ssd\";";
        assert_eq!(words(text, true).intersection(&["xbof", "cvss", "jbof", "ff-ssd"].into()).count(), 2);
        assert!(!words(text, false).contains("xbof") && !words(text, false).contains("ttflash"));
    }

    #[test]
    fn every_system_is_listed_with_its_commands() {
        for system in SYSTEMS.iter() {
            let text = in_words(system);
            assert!(system.designs().iter().all(|design| text.contains(&design.name)), "{text}");
            assert_eq!(text.contains("reproduce "), system.study().is_some(), "{text}");
        }
    }

    #[test]
    fn the_page_of_commands_names_each_scenario_that_the_program_carries_once() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/commands.md"));
        let page = page.expect("the page is there");
        let list = page.split("\n\n").nth(1).expect("a paragraph follows the title");
        for carried in SYSTEMS.carried() {
            assert_eq!(list.matches(&format!("`{}`", carried.name)).count(), 1, "{} in docs/commands.md", carried.name);
        }
    }
}

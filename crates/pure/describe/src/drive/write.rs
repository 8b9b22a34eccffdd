//! The profile of a drive from given figures, as a text for people.

use super::complete::{Completion, FLASH, complete};
use super::config::drive;
use super::section::DriveSection;
use super::sheet::is_of_sheet;
use crate::error::ScenarioError;
use crate::files::Files;
use crate::keyed;
use crate::names::advice;
use crate::parse::parse_value;
use toml::{Table, Value};

/// A profile, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDrive {
    /// The text of the profile.
    pub text: String,
    /// Capacity and geometry in a line.
    pub summary: String,
}

/// The profile `name` with `figures`, which are keys of `[drive]` with their values as a user writes them. Keys that are not
/// given stand in it as comments, each with its value and source.
///
/// Errors: a key or value that cannot be, and figures that make no drive, in words about the key.
pub fn new_drive(name: &str, figures: &[(String, String)], files: &dyn Files) -> Result<NewDrive, ScenarioError> {
    let given: Vec<(&str, Value)> =
        figures.iter().map(|(key, text)| (key.as_str(), parse_value(text.trim()))).collect();
    let mut own: Table = given.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let mut others = Others { files, lines: Vec::new(), lacks_capacity: false };
    complete(&mut own, &mut others)?;
    if others.lacks_capacity {
        let message = "drive.capacity is missing; give what the drive exports, such as \"1.92 TB\", or all of channels, \
                       dies_per_channel and blocks_per_plane";
        return Err(refused(message.to_owned()));
    }
    let section: DriveSection = own.try_into().map_err(|error: toml::de::Error| refused(error.message().to_owned()))?;
    let config = drive(&section)?;
    config.validate().map_err(keyed::drive)?;

    let mut text =
        format!("# {name}: a drive by its data sheet. The keys below are given; name your source behind each.\n");
    for (key, value) in &given {
        text += &line(&format!("{key} = {value}"), "[P] given");
    }
    text += "\n# What is not given follows from these. A line counts as given once the first # is gone:\n#\n";
    for other in &others.lines {
        text += &format!("# {other}\n");
    }
    let geometry = config.nand.geometry;
    let gigabytes = f64::from(config.ftl.logical_slots) * 4096.0 / 1e9;
    let summary = format!(
        "{gigabytes:.1} GB on {} channels x {} dies x {} planes, {} blocks of {} pages each",
        geometry.channels,
        geometry.dies_per_channel,
        geometry.planes_per_die,
        geometry.blocks_per_plane,
        geometry.pages_per_block
    );
    Ok(NewDrive { text, summary })
}

fn line(stated: &str, source: &str) -> String {
    format!("{stated:<37} # {source}\n")
}

fn refused(message: String) -> ScenarioError {
    ScenarioError::Text { origin: "figures".to_owned(), message }
}

/// Collects the keys that are not given.
struct Others<'a> {
    files: &'a dyn Files,
    lines: Vec<String>,
    lacks_capacity: bool,
}

impl Completion for Others<'_> {
    type Error = ScenarioError;

    fn class(&self, name: &str) -> Result<String, ScenarioError> {
        let builtin = || FLASH.builtin.iter().find(|class| class.0 == name).map(|class| class.1.to_owned());
        self.files.profile(FLASH.folder, name).map_err(refused)?.or_else(builtin).ok_or_else(|| {
            let known: Vec<&str> = FLASH.builtin.iter().map(|class| class.0).collect();
            refused(format!("drive.class is {name:?}; {}", advice(name, &known)))
        })
    }

    fn take(&mut self, own: &mut Table, text: &str, origin: &str) -> Result<(), ScenarioError> {
        let more: Table = toml::from_str(text).map_err(|error| refused(error.message().to_owned()))?;
        for stated in text.lines() {
            let Some((key, _)) = stated.split_once('=').filter(|_| !stated.starts_with('#')) else { continue };
            if !own.contains_key(key.trim()) && !is_of_sheet(key.trim()) {
                self.lines.push(format!("{}{origin}", stated.trim_end()));
            }
        }
        for (key, value) in more {
            own.entry(key).or_insert(value);
        }
        Ok(())
    }

    fn is_given_by_user(&self, _: &str) -> bool {
        true
    }

    fn lacks_capacity(&mut self) {
        self.lacks_capacity = true;
    }

    fn refuse(&self, _: &str, message: String) -> ScenarioError {
        refused(message)
    }
}

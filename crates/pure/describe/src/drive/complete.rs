//! A drive gets the keys that it does not give: from the figures of its data sheet, from the class of its flash and from
//! the usual controller.

use super::derive::{Line, after_class, before_class, sheet_of};
use super::sheet::{SHEET, is_of_sheet, schema};
use crate::check::check;
use crate::section::Profiles;
use toml::Table;

/// Classes of flash, by name.
pub(crate) const FLASH: Profiles = Profiles {
    folder: "flash",
    builtin: &[
        ("slc", include_str!("../../../../../profiles/flash/slc.toml")),
        ("tlc", include_str!("../../../../../profiles/flash/tlc.toml")),
        ("qlc", include_str!("../../../../../profiles/flash/qlc.toml")),
        ("z-nand", include_str!("../../../../../profiles/flash/z-nand.toml")),
        ("xpoint", include_str!("../../../../../profiles/flash/xpoint.toml")),
    ],
};

/// The class of a drive that names none. Source: \[X\] most drives sold have three-level flash.
const CLASS: &str = "tlc";

/// The usual controller.
const USUAL: &str = include_str!("../../../../../profiles/controllers/usual.toml");

/// The keys that a class gives, and those that follow from the sheet; without them a drive is not whole.
const DERIVED: [&str; 3] = ["over_provisioning", "write_buffer", "reclaim_reads"];

/// Where the keys of a drive come from while it is completed.
pub(crate) trait Completion {
    /// The errors of the place.
    type Error;

    /// The text of the class of flash called `name`.
    ///
    /// Errors: no such class.
    fn class(&self, name: &str) -> Result<String, Self::Error>;

    /// Puts the keys of a text under those that are given; `origin` says what the text is.
    ///
    /// Errors: a text that is no TOML.
    fn take(&mut self, own: &mut Table, text: &str, origin: &str) -> Result<(), Self::Error>;

    /// Whether the scenario gives `key` itself, and no profile does.
    fn is_given_by_user(&self, key: &str) -> bool;

    /// Notes that the drive needs its capacity, and has none.
    fn lacks_capacity(&mut self);

    /// The error about a key.
    fn refuse(&self, key: &str, message: String) -> Self::Error;
}

/// Whether a drive has all keys, and none of a data sheet.
pub(crate) fn is_whole(own: &Table) -> bool {
    let usual: Table = toml::from_str(USUAL).expect("it ships with the program");
    // Without these a drive is as the published one.
    let optional = ["filled", "overwritten", "until_steady", "drawn", "pacing", "command_interval"];
    let follows = SHEET.iter().flat_map(|entry| entry.1).filter(|key| !optional.contains(*key)).copied();
    let usual = usual.keys().map(String::as_str).filter(|key| !optional.contains(key));
    let mut all = follows.chain(DERIVED).chain(usual);
    all.all(|key| own.contains_key(key)) && !own.keys().any(|key| is_of_sheet(key))
}

/// Gives a drive all keys, and takes those of the sheet away.
///
/// Errors: values of the sheet that cannot be or have no effect, no such class or link.
pub(crate) fn complete<C: Completion>(own: &mut Table, by: &mut C) -> Result<(), C::Error> {
    refuse_wrong(own, by)?;
    refuse_idle(own, by)?;
    let sheet = sheet_of(own).map_err(|message| by.refuse("", format!("drive: {message}")))?;
    put(own, &before_class(&sheet, own), by)?;
    let class = sheet.class.as_deref().unwrap_or(CLASS);
    let text = by.class(class)?;
    by.take(own, &text, &format!(" (class {class})"))?;
    // A class is a file of the user's too.
    refuse_wrong(own, by)?;
    let sheet = sheet_of(own).map_err(|message| by.refuse("", format!("drive: {message}")))?;
    let usual: Table = toml::from_str(USUAL).expect("it ships with the program");
    let lines =
        after_class(&sheet, own, &usual).map_err(|(key, message)| by.refuse(key, format!("drive.{key}: {message}")))?;
    put(own, &lines, by)?;
    by.take(own, USUAL, " (usual controller)")?;
    if SHEET[0].1.iter().any(|key| !own.contains_key(*key)) {
        by.lacks_capacity();
    }
    own.retain(|key, _| !is_of_sheet(key));
    Ok(())
}

fn put<C: Completion>(own: &mut Table, lines: &[Line], by: &mut C) -> Result<(), C::Error> {
    let text: String = lines.iter().map(Line::text).collect();
    by.take(own, &text, "")
}

fn refuse_wrong<C: Completion>(own: &Table, by: &C) -> Result<(), C::Error> {
    let figures = own.iter().filter(|(key, _)| is_of_sheet(key)).map(|(key, value)| (key.clone(), value.clone()));
    let drive = Table::from_iter([("drive".to_owned(), Table::from_iter(figures).into())]);
    match check(schema(), &[], &drive).wrong.first() {
        Some(wrong) => {
            let key = wrong.path.strip_prefix("drive.").unwrap_or(&wrong.path);
            Err(by.refuse(key, wrong.message.clone()))
        }
        None => Ok(()),
    }
}

/// A figure has no effect where all keys that follow from it are given.
fn refuse_idle<C: Completion>(own: &Table, by: &C) -> Result<(), C::Error> {
    for (key, follows) in SHEET {
        if own.contains_key(key) && by.is_given_by_user(key) && follows.iter().all(|key| own.contains_key(*key)) {
            let message = format!("drive.{key} has no effect: {} are given; leave it out", follows.join(", "));
            return Err(by.refuse(key, message));
        }
    }
    Ok(())
}

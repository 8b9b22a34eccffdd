//! `flashyard new-drive`: the profile of a drive from the figures of its data sheet.

use crate::{Outcome, output};
use anyhow::{Context, Result, bail};
use clap::Args;
use flashyard_scenario::drive::new_drive;
use flashyard_workbench::DiskFiles;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Figures of a data sheet; all but the name and the capacity have defaults, which the profile names. Without any, they
/// are asked for on a terminal
#[derive(Debug, Args)]
pub(crate) struct NewDriveOptions {
    /// Name of the profile, for example my-drive
    name: String,
    /// Capacity that the drive exports, for example "1.92 TB"
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// Share of the flash that is kept back, for example 0.07
    #[arg(long, value_name = "SHARE", conflicts_with = "raw_capacity")]
    over_provisioning: Option<String>,
    /// Flash on the board, for example "2 TiB"
    #[arg(long, value_name = "SIZE")]
    raw_capacity: Option<String>,
    /// Class of flash: slc, tlc, qlc, z-nand or xpoint
    #[arg(long)]
    class: Option<String>,
    /// Channels
    #[arg(long, value_name = "N")]
    channels: Option<String>,
    /// Dies on each channel
    #[arg(long, value_name = "N")]
    dies_per_channel: Option<String>,
    /// Link to the host, for example pcie4x4 or cxl2x8
    #[arg(long)]
    link: Option<String>,
    /// Sequential reads at most, for example "6.8 GB/s"
    #[arg(long, value_name = "RATE")]
    read_rate: Option<String>,
    /// Data taken in at most, for example "4 GB/s"
    #[arg(long, value_name = "RATE")]
    write_rate: Option<String>,
    /// Time to read a page (tR), for example "50 us"
    #[arg(long, value_name = "TIME")]
    read_time: Option<String>,
    /// Time to program (tPROG), for example "1200 us"
    #[arg(long, value_name = "TIME")]
    program_time: Option<String>,
    /// Unit that --program-time is of: page or word-line
    #[arg(long, value_name = "UNIT")]
    program_unit: Option<String>,
    /// Time to erase a block (tBERS), for example "3 ms"
    #[arg(long, value_name = "TIME")]
    erase: Option<String>,
    /// Commands a second that the controller can take in
    #[arg(long, value_name = "N")]
    commands_per_second: Option<String>,
    /// Write buffer, for example "8 MiB"
    #[arg(long, value_name = "SIZE")]
    write_buffer: Option<String>,
    /// Whether the write buffer survives a power loss: true or false
    #[arg(long, value_name = "SWITCH")]
    power_loss_protection: Option<String>,
    /// Any other key of [drive], for example --set cores=8
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Directory in whose profiles/drives the file is written
    #[arg(long, value_name = "PATH", default_value = ".")]
    directory: PathBuf,
    /// Overwrite a file that exists
    #[arg(long)]
    force: bool,
}

impl NewDriveOptions {
    /// The figures that are given: keys of `[drive]` and their values.
    ///
    /// Errors: a setting that is none.
    fn figures(&self) -> Result<Vec<(String, String)>> {
        let named = [
            ("capacity", &self.capacity),
            ("over_provisioning", &self.over_provisioning),
            ("raw_capacity", &self.raw_capacity),
            ("class", &self.class),
            ("channels", &self.channels),
            ("dies_per_channel", &self.dies_per_channel),
            ("link", &self.link),
            ("read_rate", &self.read_rate),
            ("write_rate", &self.write_rate),
            ("read_time", &self.read_time),
            ("program_time", &self.program_time),
            ("program_unit", &self.program_unit),
            ("erase", &self.erase),
            ("commands_per_second", &self.commands_per_second),
            ("write_buffer", &self.write_buffer),
            ("power_loss_protection", &self.power_loss_protection),
        ];
        let given = |(key, value): (&str, &Option<String>)| Some((key.to_owned(), value.clone()?));
        let mut figures: Vec<(String, String)> = named.into_iter().filter_map(given).collect();
        for setting in &self.set {
            let Some((key, value)) = setting.split_once('=') else {
                bail!("--set {setting}: give KEY=VALUE, for example --set cores=8");
            };
            figures.push((key.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(figures)
    }
}

/// Figures that are asked for on a terminal: the key and the question.
const ASKED: [(&str, &str); 12] = [
    ("capacity", "Capacity that it exports, such as 1.92 TB"),
    ("over_provisioning", "Share of the flash kept back, such as 0.07 [0.1268]"),
    ("class", "Class of flash: slc, tlc, qlc, z-nand or xpoint [tlc]"),
    ("channels", "Channels [from the capacity]"),
    ("dies_per_channel", "Dies on each channel [from the capacity]"),
    ("link", "Link, such as pcie3x4, pcie5x4 or cxl2x8 [pcie4x4]"),
    ("read_rate", "Sequential reads at most, such as 6.8 GB/s [what the link carries]"),
    ("write_rate", "Data taken in at most, such as 4 GB/s [what the link carries]"),
    ("read_time", "Time to read a page, such as 50 us [of the class]"),
    ("program_time", "Time to program, such as 1200 us [of the class]"),
    ("program_unit", "Is that of a page or a word-line [of the class]"),
    ("power_loss_protection", "Does the write buffer survive a power loss, true or false [true]"),
];

/// Writes a profile.
///
/// Errors: figures that make no drive, a name that is none of a file, a file that is there already (unless `--force` is
/// given) or cannot be written.
pub(crate) fn new(options: &NewDriveOptions) -> Result<Outcome> {
    let name = &options.name;
    let path = free_path(name, &options.directory, options.force)?;
    let mut figures = options.figures()?;
    if figures.is_empty() {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            bail!("no figure is given; give at least --capacity, for example --capacity \"1.92 TB\"");
        }
        figures = ask(&mut stdin.lock(), &mut std::io::stdout())?;
    }
    let summary = write_figures(name, &figures, &options.directory, &path)?;
    output::line(&format!("wrote {}: {summary}", path.display()));
    output::line("");
    output::line(&format!(
        "run it:      {}flashyard run demo --set drive.profile={name}",
        from_there(&options.directory)
    ));
    output::line(&format!("in a file:   [drive] profile = \"{name}\", in a scenario beside or below profiles"));
    output::line("what it can: docs/own-drive.md, and flashyard schema for every key");
    Ok(Outcome::Done)
}

/// The change of directory before a command that is to find a profile there, where one is needed.
pub(crate) fn from_there(directory: &Path) -> String {
    let is_here = directory.as_os_str().is_empty() || directory == Path::new(".");
    if is_here { String::new() } else { format!("cd {} && ", directory.display()) }
}

/// The file of a profile.
///
/// Errors: a name that is none of a file, a file that is there already (unless `force` is given).
pub(crate) fn free_path(name: &str, directory: &Path, force: bool) -> Result<PathBuf> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if name.is_empty() || !name.chars().all(plain) {
        bail!("{name:?} is no name of a profile; give letters, digits and dashes, for example my-drive");
    }
    let path = directory.join("profiles/drives").join(format!("{name}.toml"));
    if path.symlink_metadata().is_ok() && !force {
        bail!("{}: the file exists; give another name, or --force to overwrite it", path.display());
    }
    Ok(path)
}

/// Writes the profile of these figures; returns it in words.
fn write_figures(name: &str, figures: &[(String, String)], directory: &Path, path: &Path) -> Result<String> {
    let files = DiskFiles::leak(directory, None, None);
    let drive = new_drive(name, figures, files)?;
    let folder = path.parent().expect("the file is in a folder");
    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    std::fs::write(path, drive.text).with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(drive.summary)
}

/// Writes the profile of a drive with these keys; returns its file, and the drive in words.
///
/// Errors: keys that make no drive, a name that is none of a file, a file that is there already (unless `force` is given) or cannot be
/// written.
pub(crate) fn write_profile(name: &str, keys: &[(String, String)], directory: &Path, force: bool) -> Result<String> {
    let path = free_path(name, directory, force)?;
    let summary = write_figures(name, keys, directory, &path)?;
    Ok(format!("{}: {summary}", path.display()))
}

/// Asks for the figures; an empty answer leaves one to its default.
fn ask(answers: &mut dyn BufRead, questions: &mut dyn Write) -> Result<Vec<(String, String)>> {
    let mut figures = Vec::new();
    for (key, question) in ASKED {
        write!(questions, "{question}: ")?;
        questions.flush()?;
        let mut answer = String::new();
        if answers.read_line(&mut answer)? == 0 {
            break;
        }
        if !answer.trim().is_empty() {
            figures.push((key.to_owned(), answer.trim().to_owned()));
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_figures_and_empty_ones_are_left_to_their_defaults() {
        let mut questions = Vec::new();
        let figures = ask(&mut "1.92 TB\n\nqlc\n".as_bytes(), &mut questions).expect("it is read");
        let told: Vec<(&str, &str)> = figures.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        assert_eq!(told, [("capacity", "1.92 TB"), ("class", "qlc")]);
        assert!(String::from_utf8_lossy(&questions).starts_with("Capacity that it exports"));
    }
}

//! Keys of a drive that follow from the figures of its data sheet, each with its arithmetic.
//!
//! A key that is given already stays; so a mechanism that a new key describes needs its field in
//! [`DriveSection`](super::DriveSection), and its line in profiles/flash or profiles/controllers.

use super::link;
use super::sheet::{Precondition, ProgramUnit, SheetSection, is_of_sheet};
use crate::quantity::Kind;
use toml::{Table, Value};

/// A key that follows from others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// The key.
    pub(crate) key: &'static str,
    /// Its value.
    pub(crate) value: Value,
    /// The mark and the arithmetic.
    pub(crate) source: String,
}

impl Line {
    fn new(key: &'static str, value: impl Into<Value>, source: impl Into<String>) -> Self {
        Self { key, value: value.into(), source: source.into() }
    }

    /// The line as it stands in a file.
    pub(crate) fn text(&self) -> String {
        let stated = format!("{} = {}", self.key, self.value);
        format!("{stated:<37} # {}\n", self.source)
    }
}

/// A key whose value does not do, and why.
pub(crate) type Refused = (&'static str, String);

/// Share of the flash that a drive keeps back where neither `over_provisioning` nor `raw_capacity` says it.
/// Source: \[D\] 1 - 1.92 TB / 2 TiB = 0.12689, rounded down; drives of 0.96 to 15.36 TB have as much.
const OVER_PROVISIONING: f64 = 0.1268;

/// Dies beyond which a drive has sixteen channels in place of eight. Source: \[A\] controllers of data centres have 8 to 18.
const DIES_OF_EIGHT_CHANNELS: f64 = 64.0;

/// Rows of each die that the write buffer holds where `write_buffer` does not say. Source: \[A\] as the published drive of
/// sheet xbof §4.1 is modelled.
const BUFFERED_ROWS: f64 = 4.0;

/// The figures of the sheet among the keys of a drive.
///
/// Errors: a value that the sheet does not take, as the reader tells it.
pub(crate) fn sheet_of(own: &Table) -> Result<SheetSection, String> {
    let figures = own.iter().filter(|(key, _)| is_of_sheet(key)).map(|(key, value)| (key.clone(), value.clone()));
    Table::from_iter(figures).try_into().map_err(|error: toml::de::Error| error.message().to_owned())
}

/// Keys that follow from figures which take precedence over the class of the flash.
pub(crate) fn before_class(sheet: &SheetSection, own: &Table) -> Vec<Line> {
    let mut lines = Vec::new();
    if sheet.read_time.is_some()
        && let Some(time) = own.get("read_time")
    {
        for key in ["read_lsb", "read_csb", "read_msb"] {
            lines.push(Line::new(key, time.clone(), "[D] read_time, of all pages alike"));
        }
    }
    match sheet.precondition.map(|choice| choice.0) {
        None => {}
        Some(Precondition::Snia) => {
            lines.push(Line::new("filled", 1.0, "[D] precondition snia"));
            lines.push(Line::new("overwritten", 2.0, "[D] precondition snia: twice the capacity at random"));
            lines.push(Line::new("until_steady", true, "[D] precondition snia: the criterion of its specification"));
        }
        Some(Precondition::Drawn) => {
            lines.push(Line::new("filled", 1.0, "[D] precondition drawn"));
            lines.push(Line::new("drawn", true, "[D] precondition drawn"));
        }
        Some(Precondition::Fresh) => {
            lines.push(Line::new("filled", 0.0, "[D] precondition fresh"));
            lines.push(Line::new("overwritten", 0.0, "[D] precondition fresh"));
        }
    }
    lines
}

/// The other keys that follow: `own` has those of the class, and `usual` is the usual controller.
///
/// Errors: figures that do not go together, with the key.
pub(crate) fn after_class(sheet: &SheetSection, own: &Table, usual: &Table) -> Result<Vec<Line>, Refused> {
    let known = Known { own, usual };
    let mut lines = flash(sheet, known)?;
    lines.extend(program(sheet, known)?);
    lines.extend(host(sheet)?);
    lines.extend(commands(sheet, known)?);
    Ok(lines)
}

/// Keys that are given, or usual.
#[derive(Clone, Copy)]
struct Known<'a> {
    own: &'a Table,
    usual: &'a Table,
}

impl Known<'_> {
    fn value(&self, key: &str) -> Option<&Value> {
        self.own.get(key).or_else(|| self.usual.get(key))
    }

    /// A positive number; another value is refused where the schema is asked.
    fn number(&self, key: &str) -> Option<f64> {
        let value = self.value(key)?;
        let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))?;
        (number.is_finite() && number > 0.0).then_some(number)
    }

    fn quantity(&self, key: &str, kind: Kind) -> Option<f64> {
        kind.parse(self.value(key)?.as_str()?).ok()
    }
}

/// Geometry, spare space, write buffer and the reads of garbage collection; no geometry where nothing gives the capacity.
fn flash(sheet: &SheetSection, known: Known<'_>) -> Result<Vec<Line>, Refused> {
    let mut lines = Vec::new();
    let bytes = |size: Option<crate::Size>| size.map(|size| size.0.get() as f64);
    let (capacity, raw) = (bytes(sheet.capacity), bytes(sheet.raw_capacity));
    let (share, source) = match (known.number("over_provisioning"), capacity, raw) {
        (Some(_), Some(_), Some(_)) => {
            return Err((
                "capacity",
                "raw_capacity and over_provisioning give it; leave one of the three out".to_owned(),
            ));
        }
        (Some(share), ..) => (share, String::new()),
        (None, Some(capacity), Some(raw)) if capacity >= raw => {
            return Err((
                "capacity",
                "it is no less than raw_capacity, and garbage collection needs spare space".to_owned(),
            ));
        }
        (None, Some(capacity), Some(raw)) => (1.0 - capacity / raw, "[D] 1 - capacity / raw_capacity".to_owned()),
        (None, ..) => (OVER_PROVISIONING, "[D] 1 - 1.92 TB / 2 TiB, as usual for data centres".to_owned()),
    };
    if !known.own.contains_key("over_provisioning") {
        lines.push(Line::new("over_provisioning", (share * 1e6).round() / 1e6, source));
    }
    let given = ["channels", "dies_per_channel", "blocks_per_plane"].map(|key| known.number(key));
    let raw = raw.or_else(|| capacity.map(|capacity| capacity / (1.0 - share)));
    let die = bytes(sheet.die_capacity);
    let row = known.number("planes_per_die").zip(known.quantity("page_size", Kind::Size));
    let (Some((planes, page)), Some(pages)) = (row, known.number("pages_per_block")) else { return Ok(lines) };
    let dies = match (given, raw, die) {
        ([Some(channels), Some(each), _], ..) => (channels, each),
        ([channels, each, _], Some(raw), Some(die)) => {
            let all = (raw / die).round().max(1.0);
            let wide: f64 = if all > DIES_OF_EIGHT_CHANNELS { 16.0 } else { 8.0 };
            let channels = channels.unwrap_or_else(|| each.map_or(wide.min(all), |each| (all / each).ceil()));
            (channels, each.unwrap_or_else(|| (all / channels).ceil()))
        }
        _ => return Ok(lines),
    };
    let all = dies.0 * dies.1;
    let block = planes * pages * page;
    let source = "[D] capacity / (1 - over_provisioning) / die_capacity, on 8 channels, or 16 beyond 64 dies";
    lines.push(Line::new("channels", dies.0 as i64, source));
    lines.push(Line::new("dies_per_channel", dies.1 as i64, source));
    match (given[2], raw) {
        (Some(_), _) => {}
        (None, Some(raw)) => {
            let source = "[D] capacity / (1 - over_provisioning) over all planes, rounded up";
            lines.push(Line::new("blocks_per_plane", (raw / (all * block)).ceil().max(1.0) as i64, source));
        }
        (None, None) => return Ok(lines),
    }
    let buffer = (BUFFERED_ROWS * all * planes * page).clamp(8192.0, f64::from(1_u32 << 31));
    let buffer = format!("{} KiB", (buffer / 1024.0).round());
    lines.push(Line::new("write_buffer", buffer, "[A] four rows of each die"));
    lines.push(Line::new("reclaim_reads", all.min(65_536.0) as i64, "[A] one for each die"));
    Ok(lines)
}

/// Pulses of programming.
fn program(sheet: &SheetSection, known: Known<'_>) -> Result<Vec<Line>, Refused> {
    let pulses = || Line::new("program_pulses", vec![1, 1, 1], "[D] program_time is of all pages alike");
    if known.own.contains_key("program_pulse") {
        return Ok(vec![pulses()]);
    }
    let Some(time) = sheet.program_time else {
        return Err(("program_time", "it is missing, and the class of the flash does not say it".to_owned()));
    };
    let ns = time.0.as_ps() as f64 / 1000.0;
    let unit = sheet.program_unit.map_or(ProgramUnit::Page, |choice| choice.0);
    let (pages, source) = match (unit, sheet.word_line_pages.unwrap_or(1)) {
        (ProgramUnit::Page, _) => (1, "[D] program_time, of a page".to_owned()),
        (ProgramUnit::WordLine, pages) => (pages, format!("[D] program_time / {pages} pages of a word line")),
    };
    let each = (ns / f64::from(pages)).round();
    Ok(vec![Line::new("program_pulse", format!("{} us", each / 1000.0), source), pulses()])
}

/// Link and DMA.
fn host(sheet: &SheetSection) -> Result<Vec<Line>, Refused> {
    let name = sheet.link.as_deref().unwrap_or("pcie4x4");
    let link = link::by_name(name).map_err(|message| ("link", message))?;
    let rate = |bytes: f64| format!("{} MB/s", (bytes / 1e6).round());
    let mark = if sheet.link.is_some() { "[D]" } else { "[A] link pcie4x4, which is not given:" };
    let payload = format!("{mark} {}", link.payload);
    Ok(vec![
        Line::new("link_rate", rate(link.line_rate), format!("{mark} {}", link.line)),
        Line::new("read_rate", rate(link.payload_rate), payload.clone()),
        Line::new("write_rate", rate(link.payload_rate), payload),
    ])
}

/// The time between two commands, so that the controller takes in as many as the sheet says; or fewer cycles of each, where the cores
/// reach less. A rate says nothing of the time that a lone command takes.
fn commands(sheet: &SheetSection, known: Known<'_>) -> Result<Vec<Line>, Refused> {
    let Some(rate) = sheet.commands_per_second else { return Ok(Vec::new()) };
    let cores = known.number("cores").zip(known.number("core_clock_mhz"));
    let Some((cores, mhz)) = cores else { return Ok(Vec::new()) };
    let slice = known.number("cycles_per_slice").unwrap_or(0.0);
    let stall = known.quantity("stall_per_slice", Kind::Time).unwrap_or(0.0) * mhz / 1000.0;
    let command = known.number("cycles_per_command").unwrap_or(0.0);
    let all = cores * mhz * 1e6 / rate as f64;
    if all >= command + slice + stall {
        let interval = format!("{} ns", (1e12 / rate as f64).round() / 1000.0);
        return Ok(vec![Line::new("command_interval", interval, "[D] 1 / commands_per_second")]);
    }
    let left = (all - slice - stall).round();
    let least = if known.own.contains_key("cycles_per_command") { command } else { 0.0 };
    if left < least {
        let most = cores * mhz * 1e6 / (least + slice + stall);
        let message = format!("{rate} is more than the cores reach, {most:.0}; give less, or more drive.cores");
        return Err(("commands_per_second", message));
    }
    let source = "[D] cores x core_clock_mhz / commands_per_second - cycles_per_slice - stall_per_slice";
    Ok(vec![Line::new("cycles_per_command", left as i64, source)])
}

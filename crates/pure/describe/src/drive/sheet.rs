//! The figures that the data sheet of a drive has, as keys of `[drive]`.
//!
//! `complete` puts the keys of [`DriveSection`](super::DriveSection) in their place, so nothing behind it knows them.

use crate::names::Choice;
use crate::quantity::{Size, Time};
use flashyard_units::Named;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::sync::OnceLock;

/// Figures of a data sheet. Each is one key of `[drive]`; the fields say what follows from it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SheetSection {
    /// Capacity that the drive exports. Dies and blocks follow from it.
    #[schemars(extend("x-minimum" = "1 MiB", "x-maximum" = "16 TiB"))]
    pub capacity: Option<Size>,
    /// Flash on the board. Without it, the capacity and `over_provisioning` give it.
    #[schemars(extend("x-minimum" = "1 MiB", "x-maximum" = "16 TiB"))]
    pub raw_capacity: Option<Size>,
    /// Class of flash, a file of profiles/flash: slc, tlc (as without the key), qlc, z-nand or xpoint.
    pub class: Option<String>,
    /// Capacity of a die; the class gives it without the key.
    #[schemars(extend("x-minimum" = "1 MiB", "x-maximum" = "1 TiB"))]
    pub die_capacity: Option<Size>,
    /// Time to read a page into its register, of all pages alike (tR); the class gives it without the key.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    pub read_time: Option<Time>,
    /// Time to program (tPROG) what `program_unit` says; the class gives it without the key.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1 s"))]
    pub program_time: Option<Time>,
    /// Whether `program_time` is that of a page or of a whole word line with all its pages; the class says it without the
    /// key.
    pub program_unit: Option<Choice<ProgramUnit>>,
    /// Pages of a word line, the bits of a cell; the class gives it without the key.
    #[schemars(range(min = 1, max = 5))]
    pub word_line_pages: Option<u32>,
    /// Link to the host: pcie or cxl with its generation and lanes, such as pcie4x4 (as without the key) or cxl2x8. It
    /// gives `link_rate`, and `read_rate` and `write_rate` where they are not given.
    pub link: Option<String>,
    /// Commands of 4 KiB a second that the controller can take in, an input. It gives `command_interval`, by which commands wait for each other and
    /// a lone one does not; beyond what the cores reach by `cycles_per_command`, it gives fewer of these. The work of cores, by which drives lend
    /// them, does not rise with it.
    #[schemars(range(min = 1000, max = 100_000_000))]
    pub commands_per_second: Option<u64>,
    /// State in which the drive begins: snia (filled once, then twice its capacity written at random, and on until it is steady), drawn (the steady
    /// state of a drive that was overwritten at random, without writing it) or fresh.
    pub precondition: Option<Choice<Precondition>>,
}

/// The part of a block that a programming time is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramUnit {
    /// One page.
    Page,
    /// All pages of a word line at once.
    WordLine,
}

impl Named for ProgramUnit {
    const ALL: &'static [Self] = &[Self::Page, Self::WordLine];

    fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::WordLine => "word-line",
        }
    }
}

/// State of a drive before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Empty, as from the factory.
    Fresh,
    /// Purged, filled, twice the capacity written at random, and on until the drive is steady. Source: \[X\] SNIA Solid State Storage Performance Test
    /// Specification, workload-independent and workload-dependent preconditioning.
    Snia,
    /// The steady state after random overwrites, drawn in place of being simulated; `flashyard_ftl::FtlConfig::drawn` has the
    /// sources.
    Drawn,
}

impl Named for Precondition {
    const ALL: &'static [Self] = &[Self::Fresh, Self::Snia, Self::Drawn];

    fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Snia => "snia",
            Self::Drawn => "drawn",
        }
    }
}

/// Keys of the sheet with the keys that follow from each. A key has an effect where one of these is not given.
pub(crate) const SHEET: [(&str, &[&str]); 11] = [
    ("capacity", &["channels", "dies_per_channel", "blocks_per_plane"]),
    ("raw_capacity", &["channels", "dies_per_channel", "blocks_per_plane", "over_provisioning"]),
    (
        "class",
        &[
            "planes_per_die",
            "page_size",
            "pages_per_block",
            "read_lsb",
            "read_csb",
            "read_msb",
            "program_pulse",
            "program_pulses",
            "erase",
            "channel_rate",
        ],
    ),
    ("die_capacity", &["channels", "dies_per_channel"]),
    ("read_time", &["read_lsb", "read_csb", "read_msb"]),
    ("program_time", &["program_pulse", "program_pulses"]),
    ("program_unit", &["program_pulse", "program_pulses"]),
    ("word_line_pages", &["program_pulse", "program_pulses"]),
    ("link", &["link_rate", "read_rate", "write_rate"]),
    ("commands_per_second", &["command_interval"]),
    ("precondition", &["filled", "overwritten"]),
];

/// Whether `key` of a drive is one of the sheet.
pub(crate) fn is_of_sheet(key: &str) -> bool {
    SHEET.iter().any(|known| known.0 == key)
}

fn keys() -> Json {
    let root = SchemaGenerator::default().root_schema_for::<SheetSection>().to_value();
    root["properties"].clone()
}

/// The schema of a scenario that has a drive with the keys of the sheet and no others.
pub(crate) fn schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let root = SchemaGenerator::default().root_schema_for::<SheetSection>().to_value();
        json!({ "$defs": root["$defs"], "properties": { "drive": { "properties": root["properties"] } } })
    })
}

/// Puts the keys of the sheet into the schema of a drive, which then requires no key: what is not given follows from
/// the others.
pub(super) fn add_to(schema: &mut Schema) {
    if let (Some(Json::Object(own)), Json::Object(sheet)) = (schema.get_mut("properties"), keys()) {
        own.extend(sheet);
    }
    schema.remove("required");
}

//! Formats. To add one: a file with a [`LineFormat`] (each line stands for itself), a [`TextFormat`] (lines that need
//! those before them) or a [`BinaryFormat`], its `mod` line here and its line in [`TABLE`].

mod alibaba;
mod amber;
mod arc;
mod blkparse;
mod blktrace;
mod columns;
mod csv;
mod disksim;
mod fields;
mod fio;
mod fiu;
mod format;
mod msr;
mod netapp;
mod nexus;
mod oracle;
mod profile;
mod replay;
mod rmem;
mod spc;
mod systor;
mod tectonic;
mod tencent;
mod vscsi;
mod web3;

pub(crate) use blktrace::{HEADER_BYTES, Header};
pub use format::Event;
pub(crate) use format::{
    BinaryFormat, Layout, Line, LineFormat, LineParser, Parsed, Row, RowError, Skip, TextFormat, TraceFormat,
};

use std::fmt;

/// All formats. Detection prefers the earlier of two that fit equally well, so a format whose rows also
/// look like another's stands before it and says in [`LineFormat::plausible`] when they are its own.
static TABLE: [&dyn TraceFormat; 32] = [
    &msr::Msr,
    &web3::Web3,
    &tencent::Tencent,
    &profile::Profile,
    &replay::Replay,
    &disksim::PAGES,
    &disksim::MILLISECONDS,
    &disksim::MICROSECONDS,
    &disksim::NANOSECONDS,
    &blkparse::QUEUE,
    &blkparse::ISSUE,
    &blkparse::COMPLETE,
    &fiu::Fiu,
    &spc::Spc,
    &nexus::Nexus,
    &amber::Amber,
    &alibaba::Alibaba,
    &systor::Systor,
    &arc::BLOCKS,
    &arc::PAGES,
    &rmem::Rmem,
    &netapp::NetApp,
    &tectonic::Tectonic,
    &fio::V2,
    &fio::V3,
    &csv::Csv,
    &vscsi::V1,
    &vscsi::V2,
    &oracle::Oracle,
    &blktrace::QUEUE,
    &blktrace::ISSUE,
    &blktrace::COMPLETE,
];

/// Other names of formats: those that programs give to rows of a format here.
const ALIASES: [(&str, &str); 4] =
    [("mqsim", "disksim-ns"), ("vscsi", "vscsi1"), ("oracle-general", "oracleGeneral"), ("systor17", "systor")];

/// A trace format: an entry of the table of formats.
#[derive(Clone, Copy)]
pub struct Format(&'static dyn TraceFormat);

impl Format {
    /// All formats, in the order in which detection prefers them.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.into_iter().map(Self)
    }

    /// The format called `name`, also by another name than its own, such as `mqsim` for `disksim-ns`.
    pub fn by_name(name: &str) -> Option<Self> {
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own);
        Self::all().find(|format| format.name() == name)
    }

    /// Other names of formats, with their own.
    pub fn aliases() -> impl Iterator<Item = (&'static str, &'static str)> {
        ALIASES.into_iter()
    }

    /// The format of blkparse output with `event` counted.
    pub fn blkparse(event: Event) -> Self {
        match event {
            Event::Queue => Self(&blkparse::QUEUE),
            Event::Issue => Self(&blkparse::ISSUE),
            Event::Complete => Self(&blkparse::COMPLETE),
        }
    }

    /// The format of binary block traces with `event` counted.
    pub fn blktrace(event: Event) -> Self {
        match event {
            Event::Queue => Self(&blktrace::QUEUE),
            Event::Issue => Self(&blktrace::ISSUE),
            Event::Complete => Self(&blktrace::COMPLETE),
        }
    }

    /// All names, for messages.
    pub fn names() -> String {
        Self::all().map(Self::name).collect::<Vec<_>>().join(", ")
    }

    /// The name by which it is asked for.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// A one-line description.
    pub fn description(self) -> &'static str {
        self.0.description()
    }

    /// Form of a row.
    pub fn accepted(self) -> &'static str {
        self.0.accepted()
    }

    /// Parts of every row that the file does not hold, and the rule that makes them; `None` where files hold all.
    pub fn assumes(self) -> Option<&'static str> {
        self.0.assumes()
    }

    pub(crate) fn layout(self) -> Layout {
        self.0.layout()
    }

    /// The text format of a file that begins with `lines`, none of them blank: the one whose header the first is, else
    /// the one with the fewest lines that do not fit, if it has rows and at most half of the lines are wrong. So a file
    /// with a spoilt row keeps its format, and the error is about the row.
    pub(crate) fn detect(lines: &[&str]) -> Option<Self> {
        let first = lines.first()?;
        let texts = || {
            Self::all().filter_map(|format| match format.layout() {
                Layout::Text(text) => Some((format, text)),
                Layout::Binary(_) | Layout::CpuFiles(_) => None,
            })
        };
        if let Some((format, _)) = texts().find(|(_, text)| text.claims(first)) {
            return Some(format);
        }
        let judged = texts().filter_map(|(format, text)| Some((wrong_lines(text, lines)?, format)));
        let (wrong, best) = judged.min_by_key(|(wrong, _)| *wrong)?;
        (wrong * 2 <= lines.len()).then_some(best)
    }

    /// The format of a file of records that begins with `head`.
    pub(crate) fn detect_binary(head: &[u8]) -> Option<(Self, &'static dyn BinaryFormat)> {
        Self::all().find_map(|format| match format.layout() {
            Layout::Binary(binary) => {
                let records: Vec<&[u8]> = head.chunks_exact(binary.record_bytes()).take(HEAD_RECORDS).collect();
                (!records.is_empty() && binary.recognises(&records)).then_some((format, binary))
            }
            Layout::Text(_) | Layout::CpuFiles(_) => None,
        })
    }
}

/// Records that detection looks at.
const HEAD_RECORDS: usize = 256;

/// Number of lines that do not fit a format; `None` when the others are no rows of it.
fn wrong_lines(text: &'static dyn TextFormat, lines: &[&str]) -> Option<usize> {
    let mut parser = text.parser();
    let mut rows = Vec::new();
    let mut wrong = 0;
    for line in lines {
        match parser.parse(line) {
            Ok(Line::Row(_)) => rows.push(*line),
            Ok(Line::Skip(_)) => {}
            Err(_) => wrong += 1,
        }
    }
    (!rows.is_empty() && text.plausible(&rows)).then_some(wrong)
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Format({})", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(text: &str) -> &'static str {
        Format::detect(&text.lines().collect::<Vec<_>>()).map_or("none", Format::name)
    }

    #[test]
    fn every_format_is_found_by_its_own_name_only() {
        for format in Format::all() {
            assert_eq!(Format::by_name(format.name()), Some(format));
            assert!(!format.description().is_empty() && !format.accepted().is_empty());
        }
        assert_eq!(Format::all().filter(|format| format.name() == "msr").count(), 1);
        assert_eq!(Format::by_name("MSR"), None);
    }

    #[test]
    fn other_names_lead_to_formats_and_are_no_names_of_their_own() {
        for (alias, own) in Format::aliases() {
            assert_eq!(Format::by_name(alias).map(Format::name), Some(own));
            assert!(Format::all().all(|format| format.name() != alias));
        }
        assert_eq!(Format::by_name("mqsim"), Format::by_name("disksim-ns"));
    }

    #[test]
    fn comma_separated_rows_tell_their_format() {
        assert_eq!(detect("128166386783630075,hm,0,Write,3164164096,40960,2896"), "msr");
        assert_eq!(detect("1538323200,4247200,128,1,1058"), "tencent");
        assert_eq!(detect("0.000,114,1,4096,7356416,0.172,4096"), "profile");
    }

    #[test]
    fn blank_separated_rows_tell_their_format_and_unit() {
        assert_eq!(detect("128166465299119000 \tRead\t1.82083E+11\t4096"), "web3");
        assert_eq!(detect("0.000 0 200626176 4096 0\n223.412 0 3159347200 36864 0"), "replay");
        assert_eq!(detect("0.000 5 174224064 16 1\n0.221 5 162947904 16 1"), "disksim-ms");
        assert_eq!(detect("0 0 280605840 2 1\n979 0 287641400 128 1"), "disksim-us");
        assert_eq!(detect("938513000 4 264719034 16 0\n938828000 3 197570570 16 0"), "disksim-ns");
        assert_eq!(detect("26.214\t0\t303574\t1\t0\n78.6\t0\t55596\t2\t1"), "disksim-pages");
        assert_eq!(detect("26.214\t0\t303574\t8\t0\n78.6\t0\t55596\t128\t1"), "disksim-ms");
    }

    #[test]
    fn the_earliest_event_that_a_blkparse_file_has_is_counted() {
        let line = |event: &str| format!("8,16 3 5 0.000026421 3645 {event} R 4938888 + 256 [java]\n");
        assert_eq!(detect(&[line("C"), line("D"), line("Q")].concat()), "blkparse-queue");
        assert_eq!(detect(&[line("I"), line("C"), line("D")].concat()), "blkparse-issue");
        assert_eq!(detect(&line("C")), "blkparse-complete");
        assert_eq!(detect(&line("G")), "none");
    }

    #[test]
    fn a_format_survives_spoilt_lines_but_not_a_majority_of_them() {
        let row = "1538323200,4247200,128,1,1058\n";
        assert_eq!(detect(&format!("what\n{row}{row}")), "tencent");
        assert_eq!(detect(&format!("what\nis\n{row}this")), "none");
    }
}

//! The study as charts: times by kernel, hits of internal DRAM, and media.

use super::runs::{Design, GpuRecord, GpuRun};
use super::section::Media;
use crate::Kernel;
use flashyard_report::{Bar, ChartAxis, ChartSection, Comparison, bar_panels};
use flashyard_units::Named;

type Records = [(GpuRun, GpuRecord)];

pub(super) fn sections(records: &Records, _: &[Comparison]) -> Vec<ChartSection> {
    let dram = |run: &GpuRun| run.media.is_none();
    let flash = |run: &GpuRun| run.media == Some(Media::ZNand) || run.design == Design::GpuDram;
    let slow = |record: &GpuRecord, run: &GpuRun| own(records, run.kernel).map(|own| record.milliseconds / own);
    let hits = |record: &GpuRecord, run: &GpuRun| {
        (run.media.is_some() && !matches!(run.design, Design::Gds | Design::GdsAlone))
            .then_some(record.internal_percent / 100.0)
    };
    let times = ChartAxis::near("time", "of a GPU with memory for all data");
    vec![
        section(
            "dram",
            "What does memory beyond the GPU's own cost, if it is DRAM?",
            "Times of each kernel by those with memory for all data.",
            bars(records, "Time", &times, dram, slow),
        ),
        section(
            "flash",
            "And if it is flash?",
            "Times of each kernel by those with memory for all data, with Z-NAND behind.",
            bars(records, "Time", &times, flash, slow),
        ),
        section(
            "hits",
            "How much is in the expander's internal DRAM when it is asked for?",
            "Shares of loads whose line was there when they came.",
            bars(records, "Hits", &ChartAxis::new("hits", "share"), flash, hits),
        ),
        ChartSection::choice(
            "split",
            "Where does the time of a load go?",
            "Mean time of loads beyond the cache on Z-NAND: in the queues of the port, for the medium, and elsewhere on the way.".to_owned(),
            "Kernel",
            splits(records),
        ),
        section(
            "media",
            "Which media can be hidden?",
            "Times on three media by those with memory for all data.",
            media(records, &times),
        ),
    ]
}

fn section(id: &str, title: &str, finding: &str, panels: Vec<flashyard_report::ChartPanel>) -> ChartSection {
    ChartSection::choice(id, title, finding.to_owned(), "Kernels", panels)
}

/// The time of a kernel with memory for all data.
fn own(records: &Records, kernel: Kernel) -> Option<f64> {
    let found = records.iter().find(|(run, _)| run.kernel == kernel && run.design == Design::GpuDram)?;
    Some(found.1.milliseconds)
}

fn bars(
    records: &Records,
    caption: &str,
    axis: &ChartAxis,
    shows: impl Fn(&GpuRun) -> bool,
    value: impl Fn(&GpuRecord, &GpuRun) -> Option<f64>,
) -> Vec<flashyard_report::ChartPanel> {
    let mut of: Vec<&(GpuRun, GpuRecord)> = records.iter().filter(|(run, _)| shows(run)).collect();
    of.sort_by_key(|(run, _)| (run.kernel, run.design));
    let bar = |(run, record): &&(GpuRun, GpuRecord)| {
        Some(Bar {
            panel: format!("{:?}", run.kernel.class()).to_lowercase(),
            category: run.kernel.name().to_owned(),
            series: run.design.name().to_owned(),
            value: value(record, run)?,
        })
    };
    let bars: Vec<Bar> = of.iter().filter_map(bar).collect();
    bar_panels(caption, axis, &bars)
}

/// Parts of loads by design, a panel for each kernel.
fn splits(records: &Records) -> Vec<flashyard_report::ChartPanel> {
    let shown = |run: &GpuRun| run.media == Some(Media::ZNand) && !matches!(run.design, Design::Gds | Design::GdsAlone);
    let mut of: Vec<&(GpuRun, GpuRecord)> = records.iter().filter(|(run, _)| shown(run)).collect();
    of.sort_by_key(|(run, _)| (run.kernel, run.design));
    let mut bars = Vec::new();
    for (run, record) in of {
        let parts = ["at the port", "for the medium", "on its way"].into_iter().zip(record.split_us);
        bars.extend(parts.map(|(part, value)| Bar {
            panel: run.kernel.name().to_owned(),
            category: run.design.name().to_owned(),
            series: part.to_owned(),
            value,
        }));
    }
    bar_panels("Time", &ChartAxis::new("time", "us"), &bars)
}

fn media(records: &Records, axis: &ChartAxis) -> Vec<flashyard_report::ChartPanel> {
    let designs = [Design::Cxl, Design::Sr, Design::Ds];
    let mut bars = Vec::new();
    for kernel in [Kernel::Vadd, Kernel::Bfs] {
        for (media, design) in Media::ALL.into_iter().flat_map(|media| designs.map(|design| (media, design))) {
            let wanted = GpuRun { kernel, design, media: Some(media) };
            let found = records.iter().find(|(run, _)| *run == wanted);
            let value = found.zip(own(records, kernel)).map(|((_, record), own)| record.milliseconds / own);
            bars.extend(value.map(|value| Bar {
                panel: kernel.name().to_owned(),
                category: media.name().to_owned(),
                series: design.name().to_owned(),
                value,
            }));
        }
    }
    bar_panels("Time", axis, &bars)
}

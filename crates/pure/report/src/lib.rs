//! From a world's figures to output for people and scripts: result schema, table, page, cost, comparison with published
//! figures.
//!
//! The JSON shapes are a contract: fields are added, never renamed. Source: ARCHITECTURE.md, command line.

mod bom;
mod capacity;
mod carbon;
mod charts;
mod common;
mod component;
mod course;
mod detail;
mod expectation;
mod explorer;
mod figure;
mod fio_json;
mod fitted;
mod forward;
mod html;
mod life_charts;
mod lifetime;
mod live;
mod over_seeds;
mod pareto;
mod ranking;
mod real_drive;
mod reclaim;
mod rows;
mod schema;
mod seeds;
mod split;
mod study_charts;
mod table;

pub use bom::{Compute, Prices, Shares, bill_of_materials, dram_bytes};
pub use capacity::{CapacityRecord, CapacitySample, capacity_table};
pub use carbon::{
    CARBON_EMBODIED, CARBON_OPERATIONAL, CARBON_PER_REQUEST, CARBON_TOTAL, CarbonFactors, Emission, Materials,
};
pub use charts::{Chart, ChartAxis, ChartForm, ChartPage, ChartPanel, ChartSection, ChartSeries, ChartTable};
pub use common::{
    ENERGY, ENERGY_PER_GB, FLASH_UTILIZATION, IOPS, IOS, LATENCY_MAX, LATENCY_MEAN, LATENCY_P50, LATENCY_P99,
    LATENCY_P999, LATENCY_P9999, MAPPING_MISS_RATIO, MOVED_BYTES, PRICE, PROCESSOR_UTILIZATION, READ_BYTES, THROUGHPUT,
    THROUGHPUT_PER_DOLLAR, WINDOW, WRITE_AMPLIFICATION, WRITE_BYTES,
};
pub use component::{ByKind, Component, ComponentKind, DRIVE, MetricAbout, MetricList, Part};
pub use course::{Amplification, LifeCourse, LifeMoment, LifeReads};
pub use detail::{
    ComponentTimeline, DesignDetail, EnergyParts, FlashDetail, LatencyBucket, Lending, LentResource, Percentile,
    ReportDocument, Timeline,
};
pub use expectation::{
    Comparison, Expectation, ExpectationError, Expectations, FittedConstant, Kind, Relation, Verdict, agreement,
};
pub use explorer::{Equipment, Explorer, ExplorerLoad, ExplorerPoint, Front, explorer_text};
pub use figure::{Better, Figures, Form, Metric, Needs, Shown, Unit, Value};
pub use fio_json::{FioDirection, FioDisk, FioReport, FioRun, FioSamples, FioStream};
pub use forward::{ForwardRecord, ForwardTry, WearFit, forward_table};
pub use html::{HtmlError, charts_page, html_page};
pub use life_charts::life_page;
pub use lifetime::{LifeRecord, LifeSample, life_table, lives_table};
pub use live::{
    DrivePoints, DriveSnapshot, DriveState, DriveTotals, Lateness, LiveCommand, LiveEvent, LiveEventKind, Loan, Points,
    RAW_BIT_ERROR_RATE_MAX, Snapshot,
};
pub use over_seeds::{SeededRun, over_seeds, seeds_sentences, seeds_table};
pub use ranking::{unsteady_sentence, verdict_sentence};
pub use real_drive::{DriveRecord, RealDriveRecord, ReplayRecord, ReplaySide, real_drive_table};
pub use reclaim::{ReclaimRecord, reclaim_table};
pub use rows::rows_table;
pub use schema::{
    Declaration, DesignAbout, DesignResult, ExtraTable, FailedRun, LatencySummary, Laws, RunReport, WindowHalf,
};
pub use seeds::{Difference, SeededDesign, SeededFigure, SeededLaws, Seeds};
pub use split::{Cause, SplitRow};
pub use study_charts::{Bar, Placed, bar_panels, beside, capacity_section, erases_section, factor_chart, study_page};
pub use table::{comparison_table, component_tables, extra_tables, run_table, split_table, text_table};

//! From a world's figures to output for people and scripts: result schema, table, page, cost, comparison with published
//! figures.
//!
//! The JSON shapes are a contract: fields are added, never renamed. Source: ARCHITECTURE.md, command line.

mod bom;
mod capacity;
mod charts;
mod course;
mod detail;
mod expectation;
mod explorer;
mod fio_json;
mod fitted;
mod forward;
mod html;
mod lending;
mod life_charts;
mod lifetime;
mod live;
mod pareto;
mod ranking;
mod reclaim;
mod schema;
mod study_charts;
mod table;
mod wear;

pub use bom::{Compute, Prices, Shares, bill_of_materials};
pub use capacity::{CapacityRecord, CapacitySample, capacity_table};
pub use charts::{Chart, ChartAxis, ChartForm, ChartPage, ChartPanel, ChartSection, ChartSeries, ChartTable};
pub use course::{Amplification, LifeCourse, LifeMoment, LifeReads};
pub use detail::{
    CAUSES, Cause, DesignDetail, DriveTimeline, EnergyParts, FlashDetail, LatencyBucket, Lending, LentResource,
    Percentile, ReportDocument, SplitRow, Timeline,
};
pub use expectation::{
    Comparison, Expectation, ExpectationError, Expectations, FittedConstant, Kind, Relation, Verdict, agreement,
};
pub use explorer::{Equipment, Explorer, ExplorerLoad, ExplorerPoint, Front, explorer_text};
pub use fio_json::{FioDirection, FioDisk, FioReport, FioRun, FioSamples, FioStream};
pub use forward::{ForwardRecord, ForwardTry, WearFit, forward_table};
pub use html::{HtmlError, charts_page, html_page};
pub use lending::lending_table;
pub use life_charts::life_page;
pub use lifetime::{LifeRecord, LifeSample, life_table, lives_table};
pub use live::{
    DrivePoints, DriveSnapshot, DriveState, DriveTotals, Lateness, LiveCommand, LiveEvent, LiveEventKind, Loan, Points,
    RAW_BIT_ERROR_RATE_MAX, Snapshot,
};
pub use ranking::{unsteady_sentence, verdict_sentence};
pub use reclaim::{ReclaimRecord, reclaim_table};
pub use schema::{
    DesignAbout, DesignResult, DriveResult, HarvestResult, LatencySummary, Laws, RunReport, SearchResult, WindowHalf,
};
pub use study_charts::{Bar, Placed, bar_panels, beside, capacity_section, erases_section, factor_chart, study_page};
pub use table::{comparison_table, run_table, split_table};
pub use wear::{WearResult, wear_table};

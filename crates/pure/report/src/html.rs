//! The report as one HTML file that opens without a network.

use crate::{ChartPage, DesignDetail, ReportDocument};
use serde_json::{Number, Value};

/// Page with style and program, built from `web/report`; `make web` makes it again.
const TEMPLATE: &str = include_str!("../../../../web/dist/report.html");
/// Place of the document, as JSON.
const PLACE: &str = "%REPORT_DOCUMENT%";

/// Why a report could not be written as a page.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// The document has no JSON form.
    #[error("cannot write the report as JSON")]
    Json(#[from] serde_json::Error),
    /// The page was built without a place for the document.
    #[error("the report page has no place `{PLACE}`; build it again with `make web`")]
    NoPlace,
}

/// The report as one self-contained HTML page.
///
/// Figures that are not finite are shown as missing. No text of the document can leave its place: `<` is written
/// as an escape, so neither a closing tag nor a comment can begin in it.
///
/// Errors: a document that JSON cannot hold, or a page that was built wrongly.
pub fn html_page(document: &ReportDocument) -> Result<String, HtmlError> {
    let mut value = serde_json::to_value(document)?;
    leave_out(&mut value["details"], document)?;
    shorten(&mut value["details"]);
    embedded(&value)
}

/// Charts as one self-contained HTML page, under the rules of [`html_page`].
///
/// Errors: as there.
pub fn charts_page(charts: &ChartPage) -> Result<String, HtmlError> {
    let mut value = serde_json::to_value(charts)?;
    shorten(&mut value["sections"]);
    embedded(&value)
}

/// The page with a document in its place.
fn embedded(document: &Value) -> Result<String, HtmlError> {
    let json = document.to_string().replace('<', "\\u003c");
    let (before, after) = TEMPLATE.split_once(PLACE).ok_or(HtmlError::NoPlace)?;
    Ok([before, &json, after].concat())
}

/// Empties the details of runs that the page does not show one by one: those of a large sweep would be tens of
/// megabytes.
fn leave_out(details: &mut Value, document: &ReportDocument) -> Result<(), HtmlError> {
    let (Some(explorer), Value::Array(entries)) = (&document.report.explorer, details) else { return Ok(()) };
    for (place, entry) in entries.iter_mut().enumerate() {
        if !explorer.shown.contains(&place) {
            let name = document.details[place].name.clone();
            *entry = serde_json::to_value(DesignDetail { name, ..DesignDetail::default() })?;
        }
    }
    Ok(())
}

/// Rounds values that are only drawn to five significant digits: a third of the bytes, and no eye sees it. Printed
/// figures stay whole.
fn shorten(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().and_then(|exact| format!("{exact:.4e}").parse().ok());
            if let Some(rounded) = rounded.and_then(Number::from_f64) {
                *number = rounded;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        CAUSES, Chart, ChartAxis, ChartForm, ChartSection, ChartSeries, ChartTable, DesignAbout, DesignResult,
        DriveResult, DriveTimeline, FlashDetail, HarvestResult, LatencyBucket, LatencySummary, Laws, Lending,
        LentResource, Percentile, RunReport, SearchResult, SplitRow, Timeline, WindowHalf,
    };
    use std::collections::BTreeMap;

    /// Report that the tests of the page draw.
    const FIXTURE: &str = include_str!("../../../../web/report/fixture/demo.json");

    /// Charts that the tests of the page draw.
    const CHARTS: &str = include_str!("../../../../web/report/fixture/charts.json");

    /// One design with one of everything, so that every key of the schema appears.
    pub(crate) fn document() -> ReportDocument {
        let split = SplitRow { at: "mean".to_owned(), requests: 1, latency_us: 10.0, parts_us: [1.0; 10] };
        let design = DesignResult {
            point: vec!["drive.cores=6".to_owned()],
            name: "conv".to_owned(),
            design: "conv".to_owned(),
            computes_on_host: false,
            window_seconds: 1.0,
            ios: 1,
            read_bytes: 4096,
            write_bytes: 0,
            throughput_bytes_per_s: 4096.0,
            iops: 1.0,
            latency_us: LatencySummary::default(),
            latency_split: vec![split],
            processor_utilization: 0.5,
            flash_utilization: 0.5,
            mapping_miss_ratio: 0.0,
            write_amplification: f64::NAN,
            energy_joules: 1.0,
            energy_joules_per_gb: Some(1.0),
            halves: vec![WindowHalf { throughput_bytes_per_s: 4096.0, write_amplification: Some(1.0) }; 2],
            bom_dollars: 100.0,
            throughput_bytes_per_s_per_dollar: 40.96,
            host_utilization: 0.1,
            redirected_share: 0.0,
            lent_segments: 0,
            harvest: HarvestResult::default(),
            search: SearchResult::default(),
            laws: Laws { hold: false, broken: vec!["bytes".to_owned()] },
            drives: vec![drive()],
        };
        let detail = DesignDetail {
            name: "conv".to_owned(),
            latency: vec![LatencyBucket { up_to_us: 10.0, requests: 1 }],
            percentiles: vec![Percentile { percent: 50.0, latency_us: 10.0 }],
            timeline: timeline(),
            lending: vec![Lending {
                resource: LentResource::Processor,
                lender: 0,
                borrower: 0,
                amount: vec![0.5],
                mean: 0.5,
            }],
            flash: vec![FlashDetail { erase_counts: vec![(3, 8)], ..FlashDetail::default() }],
            ..DesignDetail::default()
        };
        ReportDocument {
            report: RunReport {
                scenario: "demo".to_owned(),
                title: "a demonstration".to_owned(),
                command: "flashyard run demo.toml".to_owned(),
                about: vec![DesignAbout { name: "conv".to_owned(), text: "ordinary".to_owned() }],
                closed_loop: true,
                notes: vec!["conv: not steady".to_owned()],
                seed: 1,
                simulated_seconds: 1.0,
                wall_seconds: 1.0,
                workload: "one read".to_owned(),
                scaling: vec!["none".to_owned()],
                complete: true,
                designs: vec![design],
                explorer: None,
            },
            details: vec![detail],
            causes: CAUSES,
            resolved: "seed = 1 # [A] any".to_owned(),
            version: "0".to_owned(),
        }
    }

    fn drive() -> DriveResult {
        DriveResult {
            name: "busy-0".to_owned(),
            ios: 1,
            read_bytes: 4096,
            write_bytes: 0,
            throughput_bytes_per_s: 4096.0,
            iops: 1.0,
            latency_us: LatencySummary::default(),
            processor_utilization: 0.5,
            lent_utilization: 0.0,
            redirected_share: 0.0,
            redirected_swing: 0.0,
            redirected_settled_seconds: Some(0.0),
            flash_utilization: 0.5,
            mapping_miss_ratio: 0.0,
            write_amplification: 0.0,
            energy_joules: 1.0,
            bom_dollars: 100.0,
            wear: None,
        }
    }

    fn timeline() -> Timeline {
        let drive = DriveTimeline {
            name: "busy-0".to_owned(),
            read_bytes_per_s: vec![1.0],
            write_bytes_per_s: vec![1.0],
            iops: vec![1.0],
            latency_mean_us: vec![None, Some(1.0)],
            processor_utilization: vec![1.0],
            lent_utilization: vec![1.0],
            redirected_share: vec![1.0],
            bus_utilization: vec![1.0],
            die_utilization: vec![1.0],
            mapping_miss_ratio: vec![Some(1.0)],
            write_amplification: vec![Some(1.0)],
        };
        Timeline {
            interval_seconds: 1.0,
            begin_seconds: vec![0.0],
            end_seconds: 1.0,
            measured_from_seconds: 0.0,
            measured_to_seconds: 1.0,
            drives: vec![drive],
        }
    }

    /// Every path of a document with the kind of value there; entries of a list share their path.
    pub(crate) fn shape(value: &Value, path: &str, into: &mut BTreeMap<String, &'static str>) {
        let kind = match value {
            // Figures may be missing anywhere.
            Value::Null => return,
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(items) => {
                items.iter().for_each(|item| shape(item, &format!("{path}[]"), into));
                "list"
            }
            Value::Object(fields) => {
                fields.iter().for_each(|(key, field)| shape(field, &format!("{path}.{key}"), into));
                "object"
            }
        };
        let known = into.insert(path.to_owned(), kind).unwrap_or(kind);
        assert_eq!(known, kind, "{path} is of two kinds");
    }

    /// The document that stands in a page.
    fn document_of(page: &str) -> Value {
        let (_, rest) = page.split_once("type=\"application/json\">").unwrap();
        let (json, _) = rest.split_once("</script>").unwrap();
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_fixture_of_the_page_has_exactly_the_keys_that_a_report_has() {
        let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
        let mut whole = document();
        // A missing figure has no kind; laws that hold have no list entries.
        whole.report.designs[0].write_amplification = 1.0;
        whole.report.designs[0].laws.broken.clear();
        let (written, fixture) = (serde_json::to_value(&whole).unwrap(), serde_json::from_str(FIXTURE).unwrap());
        shape(&written, "", &mut ours);
        shape(&fixture, "", &mut theirs);
        assert_eq!(ours, theirs);
        assert_eq!(fixture["causes"], serde_json::to_value(CAUSES).unwrap());
    }

    /// Charts with one of everything.
    fn charts() -> ChartPage {
        let table = ChartTable {
            caption: "figures".to_owned(),
            head: vec!["row".to_owned()],
            rows: vec![vec!["one".to_owned()]],
        };
        let chart = Chart::bars(
            "bars",
            ChartAxis::new("", "B"),
            vec!["one".to_owned()],
            vec![ChartSeries::partly("series", [(0.0, Some(1.0)), (1.0, Some(f64::NAN))])],
        );
        let section = ChartSection::of("id", "title", "finding".to_owned(), vec![chart]).with_table(table);
        ChartPage {
            kind: "kind".to_owned(),
            title: "title".to_owned(),
            facts: vec![("name".to_owned(), "value".to_owned())],
            complete: true,
            sections: vec![section],
            version: "0".to_owned(),
        }
    }

    #[test]
    fn the_fixture_of_charts_has_exactly_the_keys_that_charts_have() {
        let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
        // Points are pairs of numbers, rows and facts are lists of text: both of one kind.
        shape(&serde_json::to_value(charts()).unwrap(), "", &mut ours);
        shape(&serde_json::from_str(CHARTS).unwrap(), "", &mut theirs);
        assert_eq!(ours, theirs);
        for form in [ChartForm::Lines, ChartForm::Curve, ChartForm::Steps, ChartForm::Bars] {
            let name = format!("\"form\":{}", serde_json::to_string(&form).unwrap());
            assert!(CHARTS.contains(&name), "{name}");
        }
    }

    #[test]
    fn the_page_of_charts_holds_them_and_what_is_not_finite_is_missing() {
        let mut charts = charts();
        charts.title = "</script>".to_owned();
        let page = charts_page(&charts).unwrap();
        let document = document_of(&page);
        assert_eq!(document, serde_json::to_value(&charts).unwrap());
        assert!(document["sections"][0]["panels"][0]["charts"][0]["series"][0]["points"][1][1].is_null());
        assert_eq!(document["title"], "</script>");
    }

    #[test]
    fn the_page_holds_the_document() {
        let page = html_page(&document()).unwrap();
        assert_eq!(document_of(&page), serde_json::to_value(document()).unwrap());
        assert!(!page.contains(PLACE));
        assert!(page.len() < 1_500_000, "{} bytes", page.len());
    }

    #[test]
    fn a_figure_that_is_not_finite_is_missing() {
        let page = html_page(&document()).unwrap();
        assert!(document_of(&page)["report"]["designs"][0]["write_amplification"].is_null());
    }

    #[test]
    fn a_large_sweep_keeps_the_details_of_the_runs_that_are_shown() {
        let mut document = document();
        document.report = crate::explorer::tests::sweep(20);
        document.details = vec![document.details[0].clone(); document.report.designs.len()];
        let shown = document.report.explorer.as_ref().unwrap().shown.clone();
        assert!(!shown.is_empty() && shown.len() <= 12);
        let page = document_of(&html_page(&document).unwrap());
        for (place, detail) in page["details"].as_array().unwrap().iter().enumerate() {
            assert_eq!(detail["name"], "conv");
            assert_eq!(detail["latency"].as_array().unwrap().is_empty(), !shown.contains(&place));
        }
    }

    #[test]
    fn hostile_text_stays_in_its_place() {
        let hostile = "</script><script>alert(1)</script><!-- <img src=x> %REPORT_DOCUMENT% \u{2028} \"\\";
        let mut document = document();
        document.report.scenario = hostile.to_owned();
        document.resolved = hostile.to_owned();
        document.details[0].timeline.drives[0].name = hostile.to_owned();
        let page = html_page(&document).unwrap();
        assert_eq!(document_of(&page)["report"]["scenario"], hostile);
        let tags = |text: &str| text.matches("<script").count() + text.matches("</script").count();
        assert_eq!(tags(&page), tags(TEMPLATE));
        assert_eq!(page.matches("<!--").count(), TEMPLATE.matches("<!--").count());
    }

    #[test]
    fn the_page_may_load_nothing() {
        let page = html_page(&document()).unwrap();
        assert!(page.contains("Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-"));
        for tag in ["<link", "src=\"http", "@import", "url(http"] {
            assert!(!page.contains(tag), "{tag}");
        }
    }
}

//! The report as one HTML file that opens without a network.

use crate::{ChartPage, DesignDetail, ReportDocument, Timeline};
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
            let DesignDetail { name, timeline, .. } = &document.details[place];
            let timeline = Timeline { components: timeline.components.emptied(), ..Timeline::default() };
            *entry = serde_json::to_value(DesignDetail { name: name.clone(), timeline, ..DesignDetail::default() })?;
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
    use crate::component::{ByKind, Component, DRIVE, Part};
    use crate::figure::{self, Figures, Metric, Unit};
    use crate::schema::Declaration;
    use crate::{
        Cause, Chart, ChartAxis, ChartForm, ChartSection, ChartSeries, ChartTable, ComponentTimeline, DesignAbout,
        DesignResult, ENERGY, ENERGY_PER_GB, FlashDetail, IOPS, IOS, LATENCY_MAX, LATENCY_MEAN, LATENCY_P50,
        LATENCY_P99, LATENCY_P999, LatencyBucket, Laws, Lending, LentResource, PRICE, Percentile, RunReport, SplitRow,
        THROUGHPUT, THROUGHPUT_PER_DOLLAR, Timeline, WRITE_AMPLIFICATION, WindowHalf,
    };
    use std::collections::BTreeMap;

    /// Report that the tests of the page draw.
    const FIXTURE: &str = include_str!("../../../../web/report/fixture/demo.json");

    /// Charts that the tests of the page draw.
    const CHARTS: &str = include_str!("../../../../web/report/fixture/charts.json");

    static RATE: Metric = Metric::number("iops", "Requests", Unit::PerSecond, "requests a second");
    static LATENCY: Metric = Metric::maybe("latency_mean_us", "Latency", Unit::Microseconds, "mean latency");

    /// Declaration of the made-up system of these tests.
    static DECLARED: Declaration = Declaration {
        metrics: || figures().iter().map(|(metric, _)| metric).collect(),
        shown: &[&THROUGHPUT, &WRITE_AMPLIFICATION],
        parts: &[Part {
            kind: &DRIVE,
            metrics: || figures().iter().map(|(metric, _)| metric).collect(),
            series: || vec![&RATE, &LATENCY],
            timeline: "timeline",
            shown: &[],
        }],
        causes: &[
            Cause { key: "host", label: "Host software", note: "on host cores" },
            Cause { key: "die", label: "Flash die", note: "array time" },
        ],
        tables: &[],
    };

    fn figures() -> Figures {
        let first: [(&Metric, figure::Value); 3] =
            [(&IOS, 1_u64.into()), (&THROUGHPUT, 4096.0.into()), (&IOPS, 1.0.into())];
        let latency =
            [&LATENCY_MEAN, &LATENCY_P50, &LATENCY_P99, &LATENCY_P999, &LATENCY_MAX].map(|metric| (metric, 0.0.into()));
        let more: [(&Metric, figure::Value); 5] = [
            (&WRITE_AMPLIFICATION, f64::NAN.into()),
            (&ENERGY, 1.0.into()),
            (&ENERGY_PER_GB, 1.0.into()),
            (&PRICE, 100.0.into()),
            (&THROUGHPUT_PER_DOLLAR, 40.96.into()),
        ];
        first.into_iter().chain(latency).chain(more).collect()
    }

    /// One design with one of everything, so that every key of the schema appears.
    pub(crate) fn document() -> ReportDocument {
        let split = SplitRow { at: "mean".to_owned(), requests: 1, latency_us: 10.0, parts_us: vec![4.0, 6.0] };
        let design = DesignResult {
            point: vec!["drive.cores=6".to_owned()],
            name: "conv".to_owned(),
            design: "conv".to_owned(),
            computes_on_host: false,
            declared: &DECLARED,
            figures: figures(),
            latency_split: vec![split],
            causes: DECLARED.causes.to_vec(),
            halves: vec![WindowHalf { throughput_bytes_per_s: 4096.0, write_amplification: Some(1.0) }; 2],
            laws: Laws { hold: false, broken: vec!["bytes".to_owned()] },
            components: ByKind::new(&DRIVE, vec![Component { name: "busy-0".to_owned(), figures: figures() }]),
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
        let report = RunReport {
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
            seeds: None,
            failed: Vec::new(),
            interrupted: false,
        };
        ReportDocument::new(&DECLARED, report, vec![detail], "seed = 1 # [A] any", "0")
    }

    fn timeline() -> Timeline {
        let series = vec![(&RATE, vec![Some(1.0)]), (&LATENCY, vec![None])];
        Timeline {
            interval_seconds: 1.0,
            begin_seconds: vec![0.0],
            end_seconds: 1.0,
            measured_from_seconds: 0.0,
            measured_to_seconds: 1.0,
            components: ByKind::new(&DRIVE, vec![ComponentTimeline { name: "busy-0".to_owned(), series }]),
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

    /// Takes the figures out of a document, by the metrics that it declares; every declared one must be there.
    pub(crate) fn take_figures(document: &mut Value) {
        let metrics = document["metrics"].as_array().unwrap().clone();
        let kinds = document["components"].as_array().unwrap().clone();
        for metric in &metrics {
            let plural = kinds.iter().find(|kind| kind["id"] == metric["component"]).map(|kind| &kind["plural"]);
            let lists = match (plural.and_then(Value::as_str), metric["series"].as_bool().unwrap()) {
                (None, _) => vec![&mut document["report"]["designs"]],
                (Some(plural), false) => each(&mut document["report"]["designs"], |design| &mut design[plural]),
                (Some(plural), true) => each(&mut document["details"], |detail| &mut detail["timeline"][plural]),
            };
            for owner in lists.into_iter().flat_map(|list| list.as_array_mut().unwrap()) {
                let key = metric["key"].as_str().unwrap();
                let taken = match key.split_once('.') {
                    Some((object, name)) => owner[object].as_object_mut().unwrap().remove(name),
                    None => owner.as_object_mut().unwrap().remove(key),
                };
                assert!(taken.is_some(), "{key} is declared and not there");
            }
        }
        for design in document["report"]["designs"].as_array_mut().unwrap() {
            design.as_object_mut().unwrap().retain(|_, field| field != &serde_json::json!({}));
            for kind in &kinds {
                for component in design[kind["plural"].as_str().unwrap()].as_array_mut().unwrap() {
                    component.as_object_mut().unwrap().retain(|_, field| field != &serde_json::json!({}));
                }
            }
        }
    }

    fn each(list: &mut Value, part: impl Fn(&mut Value) -> &mut Value) -> Vec<&mut Value> {
        list.as_array_mut().unwrap().iter_mut().map(part).collect()
    }

    #[test]
    fn the_fixture_of_the_page_has_the_keys_that_a_report_has_and_the_figures_that_it_declares() {
        let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
        let mut whole = document();
        // Laws that hold have no list entries.
        whole.report.designs[0].laws.broken.clear();
        let mut written = serde_json::to_value(&whole).unwrap();
        let mut fixture = serde_json::from_str(FIXTURE).unwrap();
        take_figures(&mut written);
        take_figures(&mut fixture);
        shape(&written, "", &mut ours);
        shape(&fixture, "", &mut theirs);
        assert_eq!(ours, theirs);
    }

    #[test]
    fn causes_that_another_system_declares_are_columns_of_every_split() {
        static OTHER: Declaration = Declaration {
            causes: &[
                Cause { key: "exit", label: "Exit", note: "of the guest" },
                Cause { key: "die", label: "Flash die", note: "array time" },
            ],
            ..DECLARED
        };
        let mut other = document().report.designs.remove(0);
        (other.declared, other.causes) = (&OTHER, OTHER.causes.to_vec());
        let ReportDocument { mut report, details, .. } = document();
        report.designs.push(other);
        let text = crate::split_table(&report, 80);
        assert!(text.contains("Exit") && text.contains("4.0") && text.contains("software"), "{text}");
        let document = ReportDocument::new(&DECLARED, report, details, "", "0");
        assert_eq!(document.causes.iter().map(|cause| cause.key).collect::<Vec<_>>(), ["host", "die", "exit"]);
        let parts = document.report.designs.iter().map(|design| &design.latency_split[0].parts_us);
        assert_eq!(parts.collect::<Vec<_>>(), [&[4.0, 6.0, 0.0], &[0.0, 6.0, 4.0]]);
        assert_eq!(crate::split_table(&document.report, 80), text);
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
        document.details[0].timeline.components.of_mut(&DRIVE)[0].name = hostile.to_owned();
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

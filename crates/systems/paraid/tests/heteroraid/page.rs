//! Runs of scenarios, and the page that holds their tables and pictures.

use flashyard_describe::{NoFiles, Room, Rooms};
use flashyard_paraid::fleet::room::FleetRoom;
use flashyard_paraid::parity::room::ParityRoom;
use flashyard_paraid::room::ParaidRoom;
use serde_json::Value;

pub(crate) static LANGUAGE: Rooms = Rooms::new(&[&ParityRoom, &FleetRoom, &ParaidRoom]);
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/heteroraid.md");
const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/images");

/// The result of a run of a scenario's design.
pub(crate) fn run(room: &dyn Room, text: &str, design: &str, settings: &[String]) -> Value {
    let resolved = LANGUAGE.resolve(text, "scenario.toml", settings, &NoFiles);
    let scenario = resolved.unwrap_or_else(|error| panic!("{settings:?}: {error}")).scenario;
    let measured = (room.run().expect("it runs").design)(&scenario, design, &NoFiles, &mut |_| true).expect("it runs");
    assert!(measured.result.laws.hold, "{design} {settings:?}: {:?}", measured.result.laws.broken);
    serde_json::to_value(&measured.result).expect("it is plain data")
}

pub(crate) fn of(result: &Value, key: &str) -> f64 {
    let pointer = format!("/{}", key.replace('.', "/"));
    result.pointer(&pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{key} is not in {result}"))
}

/// Tables and pictures as they are today: the page must have the former between its marks, and the latter beside it.
pub(crate) fn hold(tables: &[(&str, String)], pictures: &[(&str, String)]) {
    let is_writing = std::env::var_os("FLASHYARD_WRITE_TABLES").is_some();
    let old = std::fs::read_to_string(PAGE).expect("the page is there");
    let mut page = old.clone();
    for (name, table) in tables {
        let (begin, end) = (format!("<!-- generated: {name} -->\n"), format!("<!-- end of {name} -->\n"));
        let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{begin:?} is not in the page"));
        let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{end:?} is not in the page"));
        page = format!("{before}{begin}{table}{end}{after}");
    }
    if is_writing {
        std::fs::write(PAGE, &page).expect("it can be written");
    } else {
        assert_eq!(old, page, "FLASHYARD_WRITE_TABLES=1 writes {PAGE}");
    }
    for (name, picture) in pictures {
        let path = format!("{IMAGES}/{name}");
        if is_writing {
            std::fs::write(&path, picture).expect("it can be written");
        }
        assert_eq!(&std::fs::read_to_string(&path).expect("the picture is there"), picture, "{name}");
    }
}

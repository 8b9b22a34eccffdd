//! Namespaces of served drives from the beginning: `serve.namespaces`.

use crate::error::{ScenarioError, value};
use crate::quantity::Size;
use schemars::Schema;

const KEY: &str = "serve.namespaces";
/// Bytes of a unit that served drives map.
const UNIT_BYTES: u64 = 4096;
/// Namespaces of a drive at most.
const NAMESPACES_MAX: usize = 32;

/// The range of each size.
pub(crate) fn bounded(schema: &mut Schema) {
    if let Some(items) = schema.get_mut("items").and_then(serde_json::Value::as_object_mut) {
        items.insert("x-minimum".to_owned(), "4 KiB".into());
        items.insert("x-maximum".to_owned(), "1024 TiB".into());
    }
}

/// Sizes of the namespaces of each served drive, in units of 4 KiB; `served` are numbers of drives and their units.
///
/// Errors: sizes that are no whole units, or for which a drive has no room; more than a drive may have.
pub(crate) fn units(sizes: &[Size], served: &[(u16, u64)]) -> Result<Vec<u64>, ScenarioError> {
    if sizes.len() > NAMESPACES_MAX {
        return Err(value(KEY, format!("{} are too many; give {NAMESPACES_MAX} sizes at most", sizes.len())));
    }
    let whole = |size: &Size| match size.0.get() {
        bytes if bytes > 0 && bytes.is_multiple_of(UNIT_BYTES) => Ok(bytes / UNIT_BYTES),
        bytes => Err(value(KEY, format!("{bytes} B are no whole blocks; give multiples of 4 KiB"))),
    };
    let units = sizes.iter().map(whole).collect::<Result<Vec<u64>, _>>()?;
    let sum = units.iter().fold(0_u64, |sum, &size| sum.saturating_add(size));
    let kib = |units: u64| format!("{} KiB", units.saturating_mul(UNIT_BYTES / 1024));
    match served.iter().find(|(_, has)| *has < sum) {
        Some(&(drive, has)) => {
            let message = format!("{} in all do not fit on drive {drive}, give up to its {}", kib(sum), kib(has));
            Err(value(KEY, message))
        }
        None => Ok(units),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::Bytes;

    fn refusal(sizes: &[u64]) -> Option<String> {
        let sizes: Vec<Size> = sizes.iter().map(|&bytes| Size(Bytes::new(bytes))).collect();
        units(&sizes, &[(0, 100), (1, 50)]).err().map(|error| error.to_string())
    }

    #[test]
    fn sizes_are_whole_units_for_which_every_drive_has_room() {
        assert_eq!((refusal(&[]), refusal(&[4096, 49 * 4096])), (None, None));
        assert!(refusal(&[4096, 50 * 4096]).is_some_and(|text| text.contains("drive 1") && text.contains("200 KiB")));
        assert!(refusal(&[5000]).is_some_and(|text| text.contains("multiples of 4 KiB")));
        assert!(refusal(&[4096; 33]).is_some_and(|text| text.contains("32")));
    }
}

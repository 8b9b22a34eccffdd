//! The keys of what a drive writes to flash about its map.

use crate::error::{ScenarioError, value};
use crate::quantity::Size;
use flashyard_ssd::{DriveConfig, RecordsConfig};
use schemars::JsonSchema;
use serde::Deserialize;

/// Bytes of an entry of the journal where nothing else is said. Source: \[A\] a logical and a physical number of 4 bytes each.
const JOURNAL_ENTRY_BYTES: u32 = 8;
/// Bytes of an entry of the map where nothing else is said. Source: \[X\] 4 bytes for each 4 KiB, 1 GB of map for 1 TB.
const MAP_ENTRY_BYTES: u32 = 4;

/// Journal and checkpoints of the map.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordsSection {
    /// Bytes of an entry of the journal: one for each mapping unit that is programmed; 8 without the key.
    #[schemars(range(min = 4, max = 64))]
    pub journal_entry_bytes: Option<u32>,
    /// Bytes of an entry of the map, 4 (as without the key) or 8: one for each mapping unit.
    #[schemars(range(min = 4, max = 8))]
    pub map_entry_bytes: Option<u32>,
    /// Journal over which a checkpoint goes once round the map; without the key it has as many entries as the map. Rounded up
    /// to whole flash pages.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "64 GiB"))]
    pub journal: Option<Size>,
}

impl RecordsSection {
    /// The records of a drive whose other parameters are known.
    ///
    /// Errors: a journal of more pages than can be numbered.
    pub(super) fn config(&self, drive: &DriveConfig) -> Result<RecordsConfig, ScenarioError> {
        let journal_entry_bytes = self.journal_entry_bytes.unwrap_or(JOURNAL_ENTRY_BYTES);
        let units = u64::from(drive.ftl.logical_slots.div_ceil(drive.mapping_unit));
        let bytes = self.journal.map_or(units * u64::from(journal_entry_bytes), |journal| journal.0.get());
        let pages = bytes.div_ceil(u64::from(drive.nand.geometry.page_bytes)).max(1);
        let journal_pages = u32::try_from(pages)
            .map_err(|_| value("drive.records.journal", format!("{pages} flash pages are too many, give less")))?;
        let map_entry_bytes = self.map_entry_bytes.unwrap_or(MAP_ENTRY_BYTES);
        Ok(RecordsConfig { journal_entry_bytes, map_entry_bytes, journal_pages })
    }
}

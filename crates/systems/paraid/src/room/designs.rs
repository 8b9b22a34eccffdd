//! Needs of designs beside drives: the bytes of their maps.

use super::section::ParaidScenario;
use crate::Design;
use flashyard_array::layout::{Layout, Member};
use flashyard_array::learned::LearnedMap;
use flashyard_describe::ScenarioError;

/// Bytes of FusionRAID's map for a chunk. \[P\] sheet paraid §5
const FUSION_BYTES_PER_CHUNK: f64 = 5.0;
/// DRAM of LogRAID by the capacity of its drives. \[P\] sheet §5
const LOG_SHARE: f64 = 0.0051;
/// Bytes of SWAN's map for a block of 4 KiB. \[A\] the number of a block
const SWAN_SHARE: f64 = 4.0 / 4096.0;

/// Bytes of DRAM that the map of a design takes for an array at its full size.
///
/// Errors: no such array, drives that make none.
pub(super) fn map_bytes(base: &ParaidScenario, array: &str, design: Design) -> Result<f64, ScenarioError> {
    let drives = base.drives(array)?;
    let capacity: u64 = drives.iter().map(|drive| drive.capacity).sum();
    match design {
        Design::Mdraid | Design::Straid => Ok(0.0),
        Design::FusionRaid => Ok(FUSION_BYTES_PER_CHUNK * base.chunk()?.in_bytes(capacity) as f64),
        Design::Swan => Ok(SWAN_SHARE * capacity as f64),
        Design::LogRaid => Ok(LOG_SHARE * capacity as f64),
        Design::ParaidStatic | Design::Paraid | Design::HeteroRaid => {
            let size = base.chunk()?;
            let member = |drive: &crate::RateConfig| Member {
                chunks: size.in_bytes(drive.capacity),
                speed: drive.read_rate.get(),
            };
            let members: Vec<Member> = drives.iter().map(member).collect();
            let wrong = |error: String| ScenarioError::value("paraid.array", format!("{array}: {error}"));
            let layout = Layout::new(&members, base.width(array)?).map_err(|error| wrong(error.to_string()))?;
            let map = LearnedMap::of(&layout).map_err(|error| wrong(error.to_string()))?;
            Ok(map.bytes() as f64)
        }
    }
}

//! Zones of served drives: the `[serve.zones]` section.

use crate::error::{ScenarioError, value};
use crate::quantity::Size;
use schemars::JsonSchema;
use serde::Deserialize;

/// Bytes of a block that served drives map.
const BLOCK_BYTES: u64 = 4096;
/// Most zones of a drive: each takes memory of the server.
const ZONES_MAX: u64 = 1 << 16;

/// Zones that make drives zoned namespaces over NVMe (ZNS).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ZonesSection {
    /// Size of a zone in whole blocks of 4 KiB; without it drives have no zones. Linux takes powers of two only.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "8 TiB"))]
    pub size: Option<Size>,
    /// The part of each zone that can be written; all of it without this.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "8 TiB"))]
    pub capacity: Option<Size>,
    /// Zones of a drive that may be open at once; 0 is as many as may be active.
    #[schemars(range(min = 0, max = 65_536))]
    pub open_max: u32,
    /// Zones of a drive that may be open or closed at once; 0 is no limit.
    #[schemars(range(min = 0, max = 65_536))]
    pub active_max: u32,
    /// Numbers of the drives that are zoned; all that are served without this.
    #[schemars(inner(range(min = 0, max = 65_534)))]
    pub drives: Option<Vec<u16>>,
}

/// The zones of one drive, in blocks of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneLayout {
    /// Blocks of a zone.
    pub zone_blocks: u64,
    /// Blocks of a zone that can be written.
    pub capacity_blocks: u64,
    /// Whole zones that the drive has room for.
    pub zones: u64,
    /// Zones that may be open at once; 0 is as many as may be active.
    pub open_max: u32,
    /// Zones that may be open or closed at once; 0 is no limit.
    pub active_max: u32,
}

impl ZonesSection {
    /// The zones of each of the volumes that are served, given by number and size in blocks; `None` for one that has none.
    ///
    /// Errors: zones that cannot be, with their key.
    pub fn of(&self, served: &[(u16, u64)]) -> Result<Vec<Option<ZoneLayout>>, ScenarioError> {
        let Some(size) = self.size else {
            self.refuse_without_size()?;
            return Ok(vec![None; served.len()]);
        };
        let zone_blocks = whole_blocks("serve.zones.size", size)?;
        let capacity_blocks = self.capacity.map_or(Ok(zone_blocks), |it| whole_blocks("serve.zones.capacity", it))?;
        if capacity_blocks > zone_blocks {
            let message = format!(
                "{} of {} cannot be; give at most serve.zones.size",
                shown(capacity_blocks),
                shown(zone_blocks)
            );
            return Err(value("serve.zones.capacity", message));
        }
        if self.active_max > 0 && self.open_max > self.active_max {
            let message = format!(
                "{} is more than serve.zones.active_max, {}: an open zone is active; give at most that",
                self.open_max, self.active_max
            );
            return Err(value("serve.zones.open_max", message));
        }
        if let Some(other) = self.drives.iter().flatten().find(|&&drive| served.iter().all(|it| it.0 != drive)) {
            let numbers: Vec<String> = served.iter().map(|it| it.0.to_string()).collect();
            let message = format!("drive {other} is not served, give numbers of {}", numbers.join(", "));
            return Err(value("serve.zones.drives", message));
        }
        let zoned = |&(drive, blocks): &(u16, u64)| {
            let is_zoned = self.drives.as_ref().is_none_or(|drives| drives.contains(&drive));
            is_zoned.then(|| self.layout(zone_blocks, capacity_blocks, (drive, blocks))).transpose()
        };
        served.iter().map(zoned).collect()
    }

    fn layout(
        &self,
        zone_blocks: u64,
        capacity_blocks: u64,
        (drive, blocks): (u16, u64),
    ) -> Result<ZoneLayout, ScenarioError> {
        let zones = blocks / zone_blocks;
        if (1..=ZONES_MAX).contains(&zones) {
            let Self { open_max, active_max, .. } = *self;
            return Ok(ZoneLayout { zone_blocks, capacity_blocks, zones, open_max, active_max });
        }
        let message = format!(
            "{} makes {zones} zones of drive {drive}, which exports {}; give {} to {}",
            shown(zone_blocks),
            shown(blocks),
            shown(blocks / (ZONES_MAX + 1) + 1),
            shown(blocks)
        );
        Err(value("serve.zones.size", message))
    }

    fn refuse_without_size(&self) -> Result<(), ScenarioError> {
        let given = [
            ("serve.zones.capacity", self.capacity.is_some()),
            ("serve.zones.open_max", self.open_max > 0),
            ("serve.zones.active_max", self.active_max > 0),
            ("serve.zones.drives", self.drives.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => Err(value(key, "there are no zones without serve.zones.size; give that too".to_owned())),
            None => Ok(()),
        }
    }
}

fn whole_blocks(key: &'static str, size: Size) -> Result<u64, ScenarioError> {
    let bytes = size.0.get();
    if bytes == 0 || !bytes.is_multiple_of(BLOCK_BYTES) {
        return Err(value(key, format!("{bytes} B are no whole blocks; give a multiple of 4 KiB")));
    }
    Ok(bytes / BLOCK_BYTES)
}

fn shown(blocks: u64) -> String {
    format!("{} KiB", blocks * (BLOCK_BYTES / 1024))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::Bytes;

    const MIB: u64 = 1 << 20;

    fn section(size: u64) -> ZonesSection {
        ZonesSection { size: Some(Size(Bytes::new(size))), ..ZonesSection::default() }
    }

    fn message(section: &ZonesSection) -> String {
        section.of(&[(0, 25_600), (3, 25_600)]).expect_err("it cannot be").to_string()
    }

    #[test]
    fn drives_have_the_whole_zones_that_they_have_room_for() {
        let zones = ZonesSection {
            capacity: Some(Size(Bytes::new(24 * MIB))),
            active_max: 5,
            drives: Some(vec![3]),
            ..section(32 * MIB)
        };
        let layout = ZoneLayout { zone_blocks: 8192, capacity_blocks: 6144, zones: 3, open_max: 0, active_max: 5 };
        assert_eq!(zones.of(&[(0, 25_600), (3, 25_600)]).expect("they fit"), [None, Some(layout)]);
        assert_eq!(ZonesSection::default().of(&[(0, 7)]).expect("there are none"), [None]);
    }

    #[test]
    fn zones_that_cannot_be_are_told_with_their_key_and_what_can_be() {
        let capacity = |bytes| Some(Size(Bytes::new(bytes)));
        let cases = [
            (section(5000), "serve.zones.size: 5000 B are no whole blocks; give a multiple of 4 KiB"),
            (section(200 * MIB), "makes 0 zones of drive 0, which exports 102400 KiB; give 4 KiB to 102400 KiB"),
            (
                ZonesSection { capacity: capacity(64 * MIB), ..section(32 * MIB) },
                "serve.zones.capacity: 65536 KiB of 32768 KiB",
            ),
            (ZonesSection { open_max: 3, active_max: 2, ..section(MIB) }, "serve.zones.open_max: 3 is more than"),
            (ZonesSection { drives: Some(vec![2]), ..section(MIB) }, "drive 2 is not served, give numbers of 0, 3"),
            (
                ZonesSection { open_max: 3, ..ZonesSection::default() },
                "serve.zones.open_max: there are no zones without",
            ),
        ];
        for (zones, expected) in cases {
            let message = message(&zones);
            assert!(message.contains(expected), "{message}");
        }
    }
}

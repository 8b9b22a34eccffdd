//! Designs, as rooms tell them.

use crate::design::Design;
use flashyard_describe::DesignInfo;
use flashyard_units::Named;

/// Those designs that a room has.
pub(super) fn infos(has: fn(Design) -> bool) -> Vec<DesignInfo> {
    Design::ALL
        .iter()
        .filter(|design| has(**design))
        .map(|design| DesignInfo::new(design.name(), design.about()))
        .collect()
}

//! Designs, as rooms tell them.

use crate::design::Design;
use flashyard_describe::DesignInfo;
use flashyard_units::Named;

/// All designs.
pub(super) fn infos() -> Vec<DesignInfo> {
    Design::ALL.iter().map(|design| DesignInfo::new(design.name(), design.about())).collect()
}

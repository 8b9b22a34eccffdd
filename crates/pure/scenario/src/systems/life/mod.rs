//! The lifetime of one drive: the studies of wear leveling and of fast-forward ageing.

mod forward;
mod wear;

use super::{DesignInfo, Room, Study, boxed};
use flashyard_systems::ffssd::Prediction;
use flashyard_units::Named;

/// Wear-leveling policies on drives of fixed and of variable capacity.
pub(super) struct WearLeveling;

impl Room for WearLeveling {
    fn name(&self) -> &'static str {
        "wear-leveling"
    }

    fn about(&self) -> &'static str {
        "lifetimes of one drive under wear-leveling policies, with fixed and with variable capacity"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        wear::designs()
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: true, open: |ids, files| boxed(wear::study(ids, files)) })
    }
}

/// FF-SSD and the models that it is compared with.
pub(super) struct FfSsd;

impl Room for FfSsd {
    fn name(&self) -> &'static str {
        "ff-ssd"
    }

    fn about(&self) -> &'static str {
        "a drive that is aged fast: wear is predicted for most periods and simulated for a few"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        let about = |prediction| match prediction {
            Prediction::TwoPoint => "FF-SSD: for each block the line through its last two points",
            Prediction::Grouped => "FF-SSD with one line for a group of blocks",
            Prediction::Devs => "a discrete-event model that is chosen once over the first periods",
            Prediction::Cml => "for each block the least-squares line over everything before",
        };
        let info = |&prediction: &Prediction| DesignInfo::new(prediction.name(), about(prediction));
        Prediction::ALL.iter().map(info).collect()
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: true, open: |ids, files| boxed(forward::study(ids, files)) })
    }
}

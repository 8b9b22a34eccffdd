//! The lifetime of one drive: the studies of wear leveling and of fast-forward ageing.

pub(crate) mod evenness;
mod forward;
pub(crate) mod lived;
mod passes;
mod wear;

pub use lived::{AgedLife, LifeSection, age};

use crate::ffssd::Prediction;
use flashyard_describe::{Age, Aged, DesignInfo, Room, Rooms, Section, Study, boxed};
use flashyard_units::Named;

/// Wear-leveling policies on drives of fixed and of variable capacity.
pub struct WearLeveling;

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

    fn sections(&self) -> &'static [&'static Section] {
        &SECTIONS
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<lived::Sections>(merged).map(drop)
    }

    fn age(&self) -> Option<Age> {
        Some(|scenario, stop, files, observer| {
            let aged = age(scenario, stop, files, observer)?;
            Ok(aged.map(|aged| Box::new(aged) as Box<dyn Aged>))
        })
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: true, open: |ids, files| boxed(wear::study(ids, files)) })
    }
}

/// The sections of both.
static SECTIONS: [&Section; 1] = [&lived::LIFE];

/// The language of scenarios that are of lives, for studies that live them.
static LIVES: Rooms = Rooms::new(&[&WearLeveling, &FfSsd]);

/// FF-SSD and the models that it is compared with.
pub struct FfSsd;

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

    fn sections(&self) -> &'static [&'static Section] {
        &SECTIONS
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<lived::Sections>(merged).map(drop)
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: true, open: |ids, files| boxed(forward::study(ids, files)) })
    }
}

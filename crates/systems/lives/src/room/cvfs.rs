//! The file system that shrinks while it is in use, as a world of faults: a volume whose power is cut.

use flashyard_cvfs::crash::CrashWorld;
use flashyard_describe::{DesignInfo, FaultWorld, MadeOf, Room};

/// The file system.
pub struct Cvfs;

impl Room for Cvfs {
    fn name(&self) -> &'static str {
        "cvfs"
    }

    fn about(&self) -> &'static str {
        "a log-structured file system that shrinks while it is in use"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        let about = "a volume under random operations with changes of size among them";
        vec![DesignInfo { breaks: true, ..DesignInfo::new("volume", about) }]
    }

    fn world(&self) -> Option<FaultWorld> {
        let made_of = MadeOf::Nothing(|| Box::new(CrashWorld::default()));
        Some(FaultWorld { name: "cvfs", about: "a volume that shrinks", made_of })
    }
}

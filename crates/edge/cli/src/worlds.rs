//! Worlds that serve: from a scenario to one over what its directory holds.

use anyhow::{Context, Result, bail};
use flashyard_live::{SetUp, Shape, Tempo, set_up};
use flashyard_scenario::{Pacing, Resolved, Room, SYSTEMS, Serve};
use flashyard_units::VolumeId;
use flashyard_workbench::DiskFiles;
use std::path::Path;

/// The world that serves a scenario, over what its directory holds, and the volumes that it exports.
///
/// Errors: a system that serves nothing or keeps nothing, a scenario or a directory that is wrong.
pub(crate) fn set_up_world(
    resolved: &Resolved,
    data: Option<&Path>,
    files: &'static DiskFiles,
) -> Result<(SetUp, Vec<VolumeId>)> {
    let scenario = &resolved.scenario;
    let served = serving(resolved)?;
    let located = |error| resolved.locate(error, &[]);
    let shapes = (served.shapes)(scenario).map_err(located)?.into_iter();
    let shapes: Vec<_> = shapes.map(|(layout, logical_slots)| Shape { layout, logical_slots }).collect();
    let exports = scenario.exported((served.volumes)(scenario)).map_err(located)?;
    let exports = exports.into_iter().map(VolumeId::new).collect();
    if let (Some(data), Some(why)) = (data, served.keeps_nothing) {
        bail!("{}: {} keeps no data: {why}; leave --data and serve.data out", data.display(), resolved.room.name());
    }
    let set_up = set_up(data, &shapes, |contents| (served.world)(scenario, files, contents).map_err(located))?;
    Ok((set_up, exports))
}

pub(crate) fn tempo_of(pace: Pacing) -> Tempo {
    match pace {
        Pacing::Scaled(scale) => Tempo::Scaled(scale),
        Pacing::Off => Tempo::Off,
    }
}

/// How the system of a scenario serves.
///
/// Errors: it does not.
pub(crate) fn serving(resolved: &Resolved) -> Result<Serve> {
    let serving = |room: &dyn Room| room.serve().map(|_| room.name());
    resolved.room.serve().with_context(|| {
        let others: Vec<&str> = SYSTEMS.iter().filter_map(serving).collect();
        format!("flashyard serve does not serve {}, it serves {}", resolved.room.name(), others.join(", "))
    })
}

//! A small box for tests.

use flashyard_flash::Layout;
use flashyard_ftl::SuperblockContents;
use flashyard_scenario::{Files, Scenario, resolve};
use flashyard_systems::jbof::LiveJbof;

struct NoFiles;

impl Files for NoFiles {
    fn profile(&self, _kind: &str, _name: &str) -> Option<String> {
        None
    }

    fn open_trace(&self, name: &str) -> Result<flashyard_workload::Records, String> {
        Err(format!("{name}: there are no traces here"))
    }
}

/// The four small drives of `scenarios/faults`, filled to that share.
pub(crate) fn scenario(filled: &str) -> Scenario {
    let text = include_str!("../../../../../scenarios/faults/scenario.toml");
    resolve(text, "faults", &[format!("drive.filled={filled}")], &NoFiles).expect("the scenario is whole").scenario
}

/// All drives.
pub(crate) fn exported() -> Vec<u16> {
    (0..4).collect()
}

/// What the drives of a box hold before it serves.
#[allow(dead_code, reason = "not every test keeps its bytes in memory")]
pub(crate) fn stock(world: &LiveJbof) -> Vec<(Layout, Vec<SuperblockContents>)> {
    (0..world.drives()).map(|drive| (*world.layout(drive), world.contents(drive))).collect()
}

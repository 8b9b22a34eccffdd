//! A small enclosure for tests.

use flashyard_live::{Engine, Report, SetUp, SetUpError, Shape, set_up};
use flashyard_scenario::{NoFiles, Scenario, ScenarioError, resolve, serve_world, shapes};
use flashyard_units::VolumeId;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A journal in memory that outlives its engine.
#[allow(dead_code, reason = "not every test keeps a journal")]
#[derive(Clone, Default)]
pub(crate) struct Shared(pub(crate) Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no thread panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The four small drives of `scenarios/faults`, filled to that share.
#[allow(dead_code, reason = "not every test is of the enclosure as it is")]
pub(crate) fn scenario(filled: &str) -> Scenario {
    scenario_with(&[&format!("drive.filled={filled}")])
}

/// The drives of [`scenario`], with these settings.
pub(crate) fn scenario_with(settings: &[&str]) -> Scenario {
    let text = include_str!("../../../../../scenarios/faults/scenario.toml");
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    resolve(text, "faults", &settings, &NoFiles).expect("the scenario is whole").scenario
}

/// All volumes.
#[allow(dead_code, reason = "not every test shows all of them")]
pub(crate) fn exported() -> Vec<VolumeId> {
    VolumeId::first(4).collect()
}

/// The enclosure of a scenario with its bytes in memory, or in a directory.
#[allow(dead_code, reason = "not every test is of an enclosure")]
pub(crate) fn enclosure_of(scenario: &Scenario, data: Option<&Path>) -> Result<SetUp, SetUpError<ScenarioError>> {
    let shapes = shapes(scenario).map_err(SetUpError::World)?;
    let shapes: Vec<_> = shapes.into_iter().map(|(layout, logical_slots)| Shape { layout, logical_slots }).collect();
    set_up(data, &shapes, |contents| serve_world(scenario, &NoFiles, contents))
}

/// Runs `engine` while `client` works, and ends it in order, also when the client panics.
#[allow(dead_code, reason = "not every test runs one")]
pub(crate) fn while_serving<R: Send>(engine: Engine, client: impl FnOnce() -> R + Send) -> (Report, R) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(client));
            done.store(true, Ordering::Relaxed);
            result
        });
        let report = engine.run(|_| done.load(Ordering::Relaxed)).expect("nothing is in the way");
        let result = client.join().expect("panics are caught");
        (report, result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

//! The enclosure of a scenario, ready to serve.

use crate::aged;
use crate::assemble::{self, value};
use crate::groups;
use crate::parse::ScenarioError;
use crate::schema::Scenario;
use crate::{Files, NoFiles, quantity::Time, run};
use flashyard_flash::Layout;
use flashyard_ftl::SuperblockContents;
use flashyard_ssd::DriveConfig;
use flashyard_systems::jbof::LiveJbof;
use schemars::JsonSchema;
use serde::Deserialize;

/// How an enclosure serves. The command line says otherwise where it says something.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServeSection {
    /// Numbers of the drives that clients see; all of them without this. The others lend.
    #[schemars(inner(range(min = 0, max = 254)))]
    pub drives: Option<Vec<u16>>,
    /// Beginning of the NVMe qualified name of each exported drive; its number follows.
    pub nqn: String,
    /// Directory that keeps the drives' data, from the directory of the scenario; memory without it.
    pub data: Option<String>,
    /// `real`, `off` (as fast as possible while requests are in flight), or simulated seconds for each second.
    pub pace: Pacing,
    /// Erases that a block takes before the drive counts as used up.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub endurance_erases: u32,
    /// 99th percentile of lateness above which the report calls its timings unusable.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1000 s"))]
    pub lateness_tolerance: Time,
}

/// How virtual time follows the clock on the wall.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "PacingText")]
pub enum Pacing {
    /// So many simulated seconds for each second.
    Scaled(f64),
    /// As fast as possible while requests are in flight; without them time stands still.
    Off,
}

/// The pacing as it is written.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum PacingText {
    Word(String),
    Scale(f64),
}

impl TryFrom<PacingText> for Pacing {
    type Error = String;

    fn try_from(text: PacingText) -> Result<Self, String> {
        match text {
            PacingText::Word(word) => word.parse(),
            PacingText::Scale(scale) => scale.to_string().parse(),
        }
    }
}

impl std::str::FromStr for Pacing {
    type Err = String;

    /// Errors: what is accepted.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "real" => Ok(Self::Scaled(1.0)),
            "off" => Ok(Self::Off),
            number => match number.parse::<f64>() {
                Ok(scale) if (1e-6..=1e6).contains(&scale) => Ok(Self::Scaled(scale)),
                _ => Err(format!("{text:?} is no pace; give real, off, or simulated seconds a second (1e-6 to 1e6)")),
            },
        }
    }
}

impl Default for ServeSection {
    fn default() -> Self {
        Self {
            drives: None,
            nqn: "nqn.2026-11.io.flashyard:drive-".to_owned(),
            data: None,
            pace: Pacing::Scaled(1.0),
            // [X] three-level flash of data centres
            endurance_erases: 3000,
            // [A] a tenth of the shortest latency that a drive of this kind has
            lateness_tolerance: Time(flashyard_units::SimSpan::from_us(5)),
        }
    }
}

impl Scenario {
    /// The enclosure of the first design that the scenario names, ready to serve: with its drives preconditioned, or
    /// with `contents` from an earlier life.
    ///
    /// Errors: values outside their ranges; a design that cannot serve; contents of another enclosure.
    pub fn live(&self, contents: Option<&[Vec<SuperblockContents>]>) -> Result<LiveJbof, ScenarioError> {
        self.live_with(&NoFiles, contents)
    }

    /// Like `live`, with drives that may begin as aged ones, from `files`; `contents` take precedence over them.
    ///
    /// Errors: as `live`; a file of an aged drive that cannot be read, or is of another shape.
    pub fn live_with(
        &self,
        files: &dyn Files,
        contents: Option<&[Vec<SuperblockContents>]>,
    ) -> Result<LiveJbof, ScenarioError> {
        let design = run::designs(self)?[0];
        let config = assemble::jbof(self, design)?;
        let drives = groups::drives(self, design)?;
        let models = drives.iter().map(|drive| drive.model).collect();
        let mut world = LiveJbof::new(config, models, self.seed, contents)?;
        if contents.is_none() {
            aged::restore(&drives, files, |drive, aged| world.restore(drive, aged))?;
        }
        Ok(world)
    }

    /// How the flash of each drive is divided, and how many slots the drive exports.
    ///
    /// Errors: values outside their ranges.
    pub fn shapes(&self) -> Result<Vec<(Layout, u32)>, ScenarioError> {
        let drives = groups::drives(self, run::designs(self)?[0])?.into_iter();
        let shape = |drive: &DriveConfig| (Layout::new(&drive.data_geometry()), drive.ftl.logical_slots);
        Ok(drives.map(|drive| shape(&drive.model.drive)).collect())
    }

    /// The numbers of the drives that clients see.
    ///
    /// Errors: a drive that there is not, or none.
    pub fn exported(&self) -> Result<Vec<u16>, ScenarioError> {
        let drives = self.jbof.drives as u16;
        let Some(list) = &self.serve.drives else { return Ok((0..drives).collect()) };
        if let Some(beyond) = list.iter().find(|&&drive| drive >= drives) {
            return Err(value("serve.drives", format!("there is no drive {beyond}, give 0 to {}", drives - 1)));
        }
        let mut sorted = list.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.is_empty() {
            return Err(value("serve.drives", "none is served; name some, or leave the key out for all".to_owned()));
        }
        Ok(sorted)
    }
}

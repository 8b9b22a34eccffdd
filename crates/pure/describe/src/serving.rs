//! How a system serves: the `[serve]` section.

use crate::error::ScenarioError;
use crate::quantity::{Size, Time};
use crate::zones::ZonesSection;
use schemars::JsonSchema;
use serde::Deserialize;

/// How a system serves. The command line says otherwise where it says something.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServeSection {
    /// Numbers of the volumes that clients see; all of them without this. In a JBOF they are its drives, and the others lend.
    #[schemars(inner(range(min = 0, max = 65_534)))]
    pub drives: Option<Vec<u16>>,
    /// Beginning of the NVMe qualified name of each exported drive; its number follows.
    pub nqn: String,
    /// Directory that keeps the drives' data, from the directory of the scenario; memory without it.
    pub data: Option<String>,
    /// Blocks of the drives as clients see them: `4 KiB`, the unit that drives map, or `512 B`, parts of it. A drive that a host has
    /// formatted has the blocks of that format.
    pub block: BlockSize,
    /// End-to-end protection of the drives' blocks: `none`, or eight bytes of protection information behind each block, of `type-1`,
    /// `type-2` or `type-3` of NVMe. A drive that a host has formatted has the protection of that format.
    pub protection: Protection,
    /// Sizes of the namespaces of each drive, in whole blocks of 4 KiB; without this a drive is one namespace. What they leave is free
    /// for namespaces that hosts create. Drives of `data` that were served before keep the namespaces that they have.
    #[schemars(transform = crate::namespaces::bounded)]
    pub namespaces: Vec<Size>,
    /// `real`, `off` (as fast as possible while requests are in flight), or simulated seconds for each second.
    pub pace: Pacing,
    /// Erases that a block takes before the drive counts as used up.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub endurance_erases: u32,
    /// Zones, which make the drives zoned namespaces.
    pub zones: ZonesSection,
    /// 99th percentile of lateness above which the report calls its timings unusable.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1000 s"))]
    pub lateness_tolerance: Time,
}

impl ServeSection {
    /// Sizes of the namespaces of each served drive, in units of 4 KiB; `served` are numbers of drives and their units. None: a drive
    /// is one namespace.
    ///
    /// Errors: sizes that are no whole units, or for which a drive has no room; more than a drive may have.
    pub fn namespace_units(&self, served: &[(u16, u64)]) -> Result<Vec<u64>, ScenarioError> {
        crate::namespaces::units(&self.namespaces, served)
    }
}

/// The size of blocks of served drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum BlockSize {
    /// The unit that drives map.
    #[default]
    #[serde(rename = "4 KiB")]
    Unit,
    /// An eighth of it: writes of less than a unit read it first.
    #[serde(rename = "512 B")]
    Sector,
}

impl BlockSize {
    /// In bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Unit => 4096,
            Self::Sector => 512,
        }
    }
}

/// The end-to-end protection of served drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Protection {
    /// Blocks are data alone.
    #[default]
    #[serde(rename = "none")]
    None,
    /// The reference tag of a block is the end of its address.
    #[serde(rename = "type-1")]
    Type1,
    /// The host names the first reference tag of a command.
    #[serde(rename = "type-2")]
    Type2,
    /// Reference tags are not checked.
    #[serde(rename = "type-3")]
    Type3,
}

impl Protection {
    /// The number of the type; 0 is none.
    pub const fn kind(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Type1 => 1,
            Self::Type2 => 2,
            Self::Type3 => 3,
        }
    }
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
            block: BlockSize::Unit,
            protection: Protection::None,
            namespaces: Vec::new(),
            pace: Pacing::Scaled(1.0),
            // [X] three-level flash of data centres
            endurance_erases: 3000,
            zones: ZonesSection::default(),
            // [A] a tenth of the shortest latency that a drive of this kind has
            lateness_tolerance: Time(flashyard_units::SimSpan::from_us(5)),
        }
    }
}

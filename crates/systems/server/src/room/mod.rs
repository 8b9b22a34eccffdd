//! Local storage of a cloud, for the table of systems.

pub mod result;
mod run;
pub(crate) mod section;
mod services;
mod study;

pub use run::measure_stack;

use crate::stack::Stack;
use flashyard_array::crash::ArrayWorld;
use flashyard_describe::{
    Carried, DesignInfo, FaultWorld, MadeOf, Room, Rooms, Run, Scenario, Section, Study, boxed, carried, is_in, load,
};
use flashyard_latte::LatteWorld;
use flashyard_services::crash::{AgreementWorld, AtomicWorld, ChannelWorld, MirrorWorld, VersionWorld};
use flashyard_units::Named;

/// The table with this system only, for its study.
static SERVERS: Rooms = Rooms::new(&[&LocalStorage]);

/// The table with LeapIO only.
static LEAPIOS: Rooms = Rooms::new(&[&LeapIo]);

/// Stacks between guests and storage.
pub struct LocalStorage;

/// LeapIO, its rivals, and services of its runtime.
pub struct LeapIo;

impl Room for LeapIo {
    fn name(&self) -> &'static str {
        "leapio"
    }

    fn about(&self) -> &'static str {
        "guests of a server whose runtime runs services on queue pairs, here, on a card or behind the network"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        Stack::LEAPIO.iter().map(|stack| DesignInfo::new(stack.name(), stack.table().about)).collect()
    }

    fn sections(&self) -> &'static [&'static Section] {
        &section::OF_LEAPIO
    }

    fn required(&self) -> &'static [&'static str] {
        &["designs", "server"]
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<section::Sections>(merged).map(drop)
    }

    fn is_equipment(&self, section: &str, _key: &str) -> bool {
        matches!(section, "drive" | "server" | "services")
    }

    fn concerns(&self, key: &str, design: &str) -> bool {
        !is_in(key, "services") || Stack::by_name(design).is_none_or(|stack| stack.table().below.is_some())
    }

    fn idle(&self, key: &str, scenario: &Scenario) -> Option<String> {
        section::idle(key, scenario)
    }

    fn load_in_words(&self, scenario: &Scenario) -> String {
        LocalStorage.load_in_words(scenario)
    }

    fn carries(&self) -> &'static [Carried] {
        carried! { "../../../scenarios": "leapio": "scenario.toml"; }
    }

    fn run(&self) -> Option<Run> {
        Some(Run { declaration: &result::DECLARATION, design: run::run })
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: false, open: |ids, files| boxed(study::leapio::study(ids, files)) })
    }
}

impl Room for LocalStorage {
    fn name(&self) -> &'static str {
        "local-storage"
    }

    fn about(&self) -> &'static str {
        "guests of a server, the stack between their virtual drives and storage, drives and network volumes behind"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        let info = |&stack: &Stack| DesignInfo {
            breaks: stack == Stack::Latte,
            ..DesignInfo::new(stack.name(), stack.table().about)
        };
        Stack::LOCAL.iter().map(info).collect()
    }

    fn sections(&self) -> &'static [&'static Section] {
        &section::SECTIONS
    }

    fn required(&self) -> &'static [&'static str] {
        &["designs", "server"]
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<section::Sections>(merged).map(drop)
    }

    fn is_equipment(&self, section: &str, _key: &str) -> bool {
        matches!(section, "drive" | "server")
    }

    fn concerns(&self, key: &str, design: &str) -> bool {
        let has_service = |stack: Stack| stack.table().tiers.is_some();
        let is_networked = |stack: Stack| stack.table().network.is_some();
        let concerned: fn(Stack) -> bool = match key {
            key if is_in(key, "latte") => has_service,
            key if is_in(key, "network") => is_networked,
            _ => |_| true,
        };
        Stack::by_name(design).is_none_or(concerned)
    }

    fn idle(&self, key: &str, scenario: &Scenario) -> Option<String> {
        section::idle(key, scenario)
    }

    fn load_in_words(&self, scenario: &Scenario) -> String {
        let config = section::config(scenario, Stack::Physical);
        let (drives, capacity) = config.map_or((1, 0), |config| (config.drives, config.capacity()));
        load::in_words(scenario, drives, capacity).replace(" drives", " virtual drives")
    }

    fn carries(&self) -> &'static [Carried] {
        carried! { "../../../scenarios": "local-storage": "scenario.toml"; }
    }

    fn run(&self) -> Option<Run> {
        Some(Run { declaration: &result::DECLARATION, design: run::run })
    }

    fn world(&self) -> Option<FaultWorld> {
        let made_of = MadeOf::Nothing(|| Box::new(LatteWorld));
        Some(FaultWorld { name: "latte", about: "a local disk in front of a network volume", made_of })
    }

    fn worlds_of_parts(&self) -> Vec<FaultWorld> {
        let atomic = MadeOf::Nothing(|| Box::new(AtomicWorld));
        let versions = MadeOf::Nothing(|| Box::new(VersionWorld));
        let mirror = MadeOf::Nothing(|| Box::new(MirrorWorld));
        let channels = MadeOf::Nothing(|| Box::new(ChannelWorld));
        let array = MadeOf::Nothing(|| Box::new(ArrayWorld));
        let agreements = MadeOf::Nothing(|| Box::new(AgreementWorld));
        vec![
            FaultWorld { name: "atomic", about: "writes of several blocks that are whole", made_of: atomic },
            FaultWorld { name: "versions", about: "versions of a volume that is written", made_of: versions },
            FaultWorld {
                name: "mirror-legs",
                about: "a mirror whose legs end, come back old, or are replaced",
                made_of: mirror,
            },
            FaultWorld {
                name: "array",
                about: "stripes with parity over unlike legs that end, refuse orders and lose blocks",
                made_of: array,
            },
            FaultWorld {
                name: "open-channel",
                about: "virtual channels that are remapped while they are used",
                made_of: channels,
            },
            FaultWorld {
                name: "agreements",
                about: "servers of a rack that lend each other space",
                made_of: agreements,
            },
        ]
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: false, open: |ids, files| boxed(study::local::study(ids, files)) })
    }
}

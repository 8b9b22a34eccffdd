//! Systems, each in a room of its own.
//!
//! To add one: a crate in `crates/systems` with a [`flashyard_describe::Room`], and its line in [`SYSTEMS`].
//! Commands, help texts and the golden tables go by the table; no system is named anywhere else.

use flashyard_describe::Rooms;
use flashyard_drives::RealDrives;
use flashyard_far_memory::room::{CxlSsd, Expand, GinkgoRoom, MemoryRoom};
use flashyard_gpu::room::CxlGpu;
use flashyard_lives::room::{Cvfs, Cvss, FfSsd, WearLeveling};
use flashyard_mirror::room::MirrorRoom;
use flashyard_paraid::fleet::room::FleetRoom;
use flashyard_paraid::parity::room::ParityRoom;
use flashyard_paraid::room::ParaidRoom;
use flashyard_server::room::{LeapIo, LocalStorage};
use flashyard_ttflash::TtFlash;
use flashyard_xbof::room::Xbof;

/// All systems, in the order in which they are listed. A scenario that names none is of the first.
pub static SYSTEMS: Rooms = Rooms::new(&[
    &Xbof,
    &WearLeveling,
    &FfSsd,
    &Cvss,
    &TtFlash,
    &Cvfs,
    &MirrorRoom,
    &RealDrives,
    &LocalStorage,
    &LeapIo,
    &CxlGpu,
    &MemoryRoom,
    &CxlSsd,
    &GinkgoRoom,
    &Expand,
    &ParaidRoom,
    &ParityRoom,
    &FleetRoom,
]);

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::{NoFiles, Room};
    use std::collections::BTreeSet;

    #[test]
    fn every_system_and_every_design_has_a_name_of_its_own_and_a_line() {
        let names: BTreeSet<&str> = SYSTEMS.iter().map(Room::name).collect();
        assert_eq!(names.len(), SYSTEMS.iter().count());
        let worlds: Vec<&str> = SYSTEMS.fault_worlds().map(|world| world.name).collect();
        assert_eq!(worlds.iter().collect::<BTreeSet<_>>().len(), worlds.len());
        for system in SYSTEMS.iter() {
            let designs = system.designs();
            let names: BTreeSet<&str> = designs.iter().map(|design| design.name.as_str()).collect();
            assert!(!designs.is_empty() && names.len() == designs.len(), "{}", system.name());
            assert!(
                designs.iter().all(|design| !design.about.is_empty()) && !system.about().is_empty(),
                "{}",
                system.name()
            );
            assert_eq!(SYSTEMS.by_name(system.name()).map(Room::name), Ok(system.name()));
            assert_eq!(system.world().is_some(), designs.iter().any(|design| design.breaks), "{}", system.name());
        }
    }

    #[test]
    fn every_study_opens_and_refuses_numbers_that_are_not_its_own() {
        for name in SYSTEMS.studies() {
            let study = SYSTEMS.study(name).expect("it was listed");
            assert!(!study.open(&[], &NoFiles).expect("the study is complete").runs().is_empty(), "{name}");
            let refused = study.open(&["no-such-row".to_owned()], &NoFiles).err().expect("there is no such number");
            assert!(refused.to_string().contains("no-such-row"), "{name}: {refused}");
        }
    }

    #[test]
    fn names_that_are_not_there_are_answered_with_those_that_are() {
        let text = SYSTEMS.study("ybof").err().expect("there is no such study").to_string();
        assert!(text.contains("ybof") && SYSTEMS.studies().all(|name| text.contains(name)), "{text}");
        assert!(text.contains("did you mean \"xbof\""), "{text}");
        assert!(SYSTEMS.study("cvfs").is_err(), "a system without a study");
        let text = SYSTEMS.fault_world("drives").err().expect("there is no such world").to_string();
        assert!(SYSTEMS.fault_worlds().all(|world| text.contains(world.name)), "{text}");
    }
}

//! Controls that change nothing: the operator is told, and may have meant another drive.

use flashyard_served::{Control, Presence, Served};
use flashyard_units::DriveId;

/// Says so in words if a control finds everything as it wants it.
pub(crate) fn note(control: &Control, world: &dyn Served) -> Option<String> {
    let is_there = |drive: DriveId| drive.get() < world.drives();
    let has_no_power = |drive: DriveId| world.presence(drive) == Presence::NoPower;
    let mut drives = DriveId::first(world.drives());
    let found = match *control {
        Control::Insert { drive } if is_there(drive) && !world.is_pulled(drive) => {
            format!("drive {drive} is in its slot")
        }
        Control::Link { drive, up: true } if is_there(drive) && world.presence(drive) == Presence::Ready => {
            format!("drive {drive} has its link")
        }
        Control::Link { drive, up: false } if is_there(drive) && world.presence(drive) == Presence::NoLink => {
            format!("drive {drive} has no link")
        }
        Control::PowerOff if drives.all(has_no_power) => "no drive has power".to_owned(),
        Control::PowerOn if !drives.any(has_no_power) => "all drives have power".to_owned(),
        _ => return None,
    };
    Some(format!("{found} already: nothing was changed"))
}

//! Log pages.

mod ana;
mod capacity;
mod discovery;
mod health;
mod sanitize;
mod self_test;
mod telemetry;

pub use ana::{AnaGroup, AnaState, ana_log, read_ana_log};
pub use capacity::CapacityLog;
pub use discovery::{DiscoveryEntry, DiscoveryHeader, discovery_log};
pub use health::{ErrorEntry, FirmwareSlots, SmartLog};
pub use sanitize::SanitizeLog;
pub use self_test::{SelfTestLog, SelfTestResult};
pub use telemetry::TelemetryHeader;

/// Identifiers of log pages.
pub mod page {
    /// Which pages are there.
    pub const SUPPORTED: u8 = 0x00;
    /// Errors.
    pub const ERROR: u8 = 0x01;
    /// Health (SMART).
    pub const SMART: u8 = 0x02;
    /// Firmware slots.
    pub const FIRMWARE: u8 = 0x03;
    /// Namespaces that changed since the page was read last.
    pub const CHANGED_NAMESPACES: u8 = 0x04;
    /// Commands and their effects.
    pub const EFFECTS: u8 = 0x05;
    /// Self-tests, [`super::SelfTestLog`].
    pub const SELF_TEST: u8 = 0x06;
    /// Telemetry that a host has asked for, [`super::TelemetryHeader`].
    pub const TELEMETRY_HOST: u8 = 0x07;
    /// Telemetry that a controller has written down by itself, likewise.
    pub const TELEMETRY_CONTROLLER: u8 = 0x08;
    /// Asymmetric namespace access.
    pub const ANA: u8 = 0x0C;
    /// Discovery.
    pub const DISCOVERY: u8 = 0x70;
    /// News about reservations, [`crate::reservation::NoticePage`].
    pub const RESERVATION: u8 = 0x80;
    /// Sanitize status, [`super::SanitizeLog`].
    pub const SANITIZE: u8 = 0x81;
    /// Capacity and wear, [`super::CapacityLog`]; vendor specific.
    pub const CAPACITY: u8 = 0xC0;
}

/// The page that lists pages: 1024 bytes, appended to `out`.
pub fn supported_pages(out: &mut Vec<u8>, pages: &[u8]) {
    let start = out.len();
    out.resize(start + 1024, 0);
    for page in pages {
        out[start + usize::from(*page) * 4] = 1;
    }
}

/// One command in the page of effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Operation code.
    pub opcode: u8,
    /// An admin command instead of one of I/O.
    pub is_admin: bool,
    /// Changes data of blocks.
    pub changes_data: bool,
    /// Changes what a namespace is like.
    pub changes_namespace: bool,
    /// Changes which namespaces there are.
    pub changes_inventory: bool,
}

/// The page of commands and their effects: 4096 bytes, appended to `out`.
pub fn effects(out: &mut Vec<u8>, commands: &[Effect]) {
    const SUPPORTED: u8 = 1 << 0;
    const CHANGES_DATA: u8 = 1 << 1;
    const CHANGES_NAMESPACE: u8 = 1 << 2;
    const CHANGES_INVENTORY: u8 = 1 << 3;
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let start = out.len();
    out.resize(start + 4096, 0);
    for command in commands {
        let table = if command.is_admin { 0 } else { 1024 };
        out[start + table + usize::from(command.opcode) * 4] = SUPPORTED
            | flag(command.changes_data, CHANGES_DATA)
            | flag(command.changes_namespace, CHANGES_NAMESPACE)
            | flag(command.changes_inventory, CHANGES_INVENTORY);
    }
}

/// The page of changed namespaces: 4096 bytes, appended to `out`. More than 1024 are one entry that means many.
pub fn changed_namespaces(out: &mut Vec<u8>, list: &[u32]) {
    match list.len() {
        0..=1024 => crate::identify::namespace_list(out, list.iter().copied()),
        _ => crate::identify::namespace_list(out, std::iter::once(crate::NSID_ALL)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_mark_what_is_there() {
        let mut bytes = Vec::new();
        supported_pages(&mut bytes, &[page::SMART, page::DISCOVERY]);
        assert_eq!(
            bytes.iter().enumerate().filter(|(_, byte)| **byte != 0).map(|(at, _)| at).collect::<Vec<_>>(),
            [8, 448]
        );
        bytes.clear();
        effects(
            &mut bytes,
            &[Effect {
                opcode: 1,
                is_admin: false,
                changes_data: true,
                changes_namespace: false,
                changes_inventory: true,
            }],
        );
        assert_eq!((bytes.len(), bytes[1028]), (4096, 0b1011));
        bytes.clear();
        changed_namespaces(&mut bytes, &vec![1; 1025]);
        assert_eq!(&bytes[..8], &[255, 255, 255, 255, 0, 0, 0, 0]);
    }
}

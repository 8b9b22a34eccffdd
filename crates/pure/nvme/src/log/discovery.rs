//! The discovery log: which subsystems can be reached where.

use crate::text::{padded, zero_terminated};
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Head of the page: 1024 bytes (Base 2.0, figure 264).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DiscoveryHeader {
    /// 0: changes with the entries.
    pub generation: U64,
    /// 8: number of entries.
    pub entries: U64,
    /// 16: format of entries; zero.
    pub format: U16,
    /// 18: reserved.
    pub reserved_18: [u8; 1006],
}

/// An entry of the page: 1024 bytes (Base 2.0, figure 265).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DiscoveryEntry {
    /// 0: transport: 3 is TCP.
    pub transport: u8,
    /// 1: family of the address: 1 IPv4, 2 IPv6.
    pub address_family: u8,
    /// 2: kind of subsystem: 1 discovery elsewhere, 2 NVM, 3 this discovery.
    pub subsystem_kind: u8,
    /// 3: requirements: secure channel in bits 1:0 (0 not specified, 1 required, 2 not required).
    pub requirements: u8,
    /// 4: port of the subsystem.
    pub port_id: U16,
    /// 6: controller, or FFFFh for the dynamic model.
    pub controller_id: U16,
    /// 8: most entries of an admin queue.
    pub admin_queue_entries: U16,
    /// 10: flags.
    pub flags: U16,
    /// 12: reserved.
    pub reserved_12: [u8; 20],
    /// 32: TCP port in decimal, padded with spaces.
    pub service: [u8; 32],
    /// 64: reserved.
    pub reserved_64: [u8; 192],
    /// 256: name of the subsystem, zero-terminated.
    pub subsystem_nqn: [u8; 256],
    /// 512: address, padded with spaces.
    pub address: [u8; 256],
    /// 768: transport specific; first byte: 0 no TLS, 2 TLS 1.3 (TCP Transport 1.0, figure 8).
    pub transport_specific: [u8; 256],
}

const _: () = assert!(size_of::<DiscoveryHeader>() == 1024 && size_of::<DiscoveryEntry>() == 1024);

impl DiscoveryEntry {
    /// Transport TCP.
    pub const TCP: u8 = 3;
    /// A subsystem with namespaces.
    pub const KIND_NVM: u8 = 2;
    /// The discovery subsystem that is being read.
    pub const KIND_CURRENT_DISCOVERY: u8 = 3;
    /// Of the requirements: a secure channel, and nothing without it.
    pub const SECURE_CHANNEL_REQUIRED: u8 = 1;
    /// Of the transport specific bytes of TCP: TLS 1.3.
    pub const TLS13: u8 = 2;

    /// An entry for `nqn` at `address` (`is_ipv6` or not) and TCP port `service`, which is port `port_id` of the
    /// subsystem.
    pub fn tcp(subsystem_kind: u8, nqn: &str, port_id: u16, address: &str, is_ipv6: bool, service: u16) -> Self {
        Self {
            transport: Self::TCP,
            address_family: if is_ipv6 { 2 } else { 1 },
            subsystem_kind,
            // Not specified. Of "not required" libnvme 1.3 makes a wish for TLS, which kernels without it refuse.
            requirements: 0,
            port_id: U16::new(port_id),
            controller_id: U16::new(crate::fabrics::CONTROLLER_DYNAMIC),
            admin_queue_entries: U16::new(32),
            flags: U16::ZERO,
            reserved_12: [0; 20],
            service: padded(&service.to_string()),
            reserved_64: [0; 192],
            subsystem_nqn: zero_terminated(nqn),
            address: padded(address),
            transport_specific: [0; 256],
        }
    }

    /// This entry for a port that speaks TLS 1.3 only.
    #[must_use]
    pub fn over_tls13(mut self) -> Self {
        self.requirements = Self::SECURE_CHANNEL_REQUIRED;
        self.transport_specific[0] = Self::TLS13;
        self
    }
}

/// The page, appended to `out`.
pub fn discovery_log(out: &mut Vec<u8>, generation: u64, entries: &[DiscoveryEntry]) {
    let header = DiscoveryHeader {
        generation: U64::new(generation),
        entries: U64::new(entries.len() as u64),
        format: U16::ZERO,
        reserved_18: [0; 1006],
    };
    out.extend_from_slice(header.as_bytes());
    for entry in entries {
        out.extend_from_slice(entry.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn fields_are_at_their_offsets() {
        let offsets = [
            (offset_of!(DiscoveryEntry, flags), 10),
            (offset_of!(DiscoveryEntry, service), 32),
            (offset_of!(DiscoveryEntry, subsystem_nqn), 256),
            (offset_of!(DiscoveryEntry, address), 512),
            (offset_of!(DiscoveryEntry, transport_specific), 768),
        ];
        for (is, should) in offsets {
            assert_eq!(is, should);
        }
    }

    #[test]
    fn entries_follow_the_header() {
        let entry = DiscoveryEntry::tcp(DiscoveryEntry::KIND_NVM, "nqn.x", 1, "127.0.0.1", false, 4420);
        let mut bytes = Vec::new();
        discovery_log(&mut bytes, 5, &[entry, entry]);
        assert_eq!((bytes.len(), bytes[0], bytes[8]), (3072, 5, 2));
        assert_eq!(DiscoveryEntry::read_from_bytes(&bytes[1024..2048]), Ok(entry));
        assert_eq!(&bytes[1024 + 32..1024 + 37], b"4420 ");
    }

    #[test]
    fn a_secure_channel_is_not_spoken_of_where_there_is_none() {
        // `nvme connect-all` of Debian 12 connects to such entries only.
        let entry = DiscoveryEntry::tcp(DiscoveryEntry::KIND_NVM, "nqn.x", 1, "127.0.0.1", false, 4420);
        let (requirements, kind_of_security) = (entry.as_bytes()[3], entry.as_bytes()[768]);
        assert_eq!((requirements, kind_of_security), (0, 0));
    }

    #[test]
    fn a_port_of_tls_demands_a_secure_channel() {
        let entry = DiscoveryEntry::tcp(DiscoveryEntry::KIND_NVM, "nqn.x", 1, "127.0.0.1", false, 4420).over_tls13();
        assert_eq!((entry.as_bytes()[3], entry.as_bytes()[768]), (1, 2));
    }
}

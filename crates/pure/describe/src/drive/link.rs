//! Links to a host by name, and the payload that they carry.

/// A link, with the bytes that it carries each way.
pub(super) struct Link {
    /// Bytes a second on the lanes, behind the line coding.
    pub(super) line_rate: f64,
    /// Its arithmetic.
    pub(super) line: String,
    /// Bytes of payload a second.
    pub(super) payload_rate: f64,
    /// Its arithmetic.
    pub(super) payload: String,
}

/// The link called `name`.
///
/// Errors: no such link; the message says what is accepted.
pub(super) fn by_name(name: &str) -> Result<Link, String> {
    let wrong = || {
        format!(
            "{name:?} is no link; give pcie3, pcie4, pcie5, pcie6, cxl1, cxl2 or cxl3 with x1, x2, x4, x8 or x16, such as \
             \"pcie4x4\""
        )
    };
    let (generation, lanes) = name.rsplit_once('x').ok_or_else(wrong)?;
    let lanes: u32 = lanes.parse().map_err(|_| wrong())?;
    let kind = KINDS.iter().find(|kind| kind.name == generation).ok_or_else(wrong)?;
    if ![1, 2, 4, 8, 16].contains(&lanes) {
        return Err(wrong());
    }
    let line_rate = kind.transfers * 1e9 / 8.0 * f64::from(lanes) * kind.coding.0;
    let line = format!("{name}: {lanes} lanes x {} GT/s / 8 x {}", kind.transfers, kind.coding.1);
    let payload = format!("{line} x {}", kind.payload.1);
    Ok(Link { line_rate, line, payload_rate: line_rate * kind.payload.0, payload })
}

/// A generation of links.
struct Kind {
    name: &'static str,
    /// Billion transfers a second and lane.
    transfers: f64,
    /// Share of the bits that is left by the line coding, and as it is written.
    coding: (f64, &'static str),
    /// Share of these that is payload.
    payload: (f64, &'static str),
}

/// Line coding of PCIe 3 to 5. Source: \[X\] PCI Express Base Specification 5.0 §4.2.2.
const CODING: (f64, &str) = (128.0 / 130.0, "128/130");
/// Packets of 256 B payload, with 4 B framing, a header of 16 B and a check of 4 B. Source: \[X\] PCI Express Base
/// Specification 5.0 §2.2 and §4.2.2.3; the maximum payload of 256 B is \[A\], that of most hosts.
const PACKETS: (f64, &str) = (256.0 / 280.0, "256/280");
/// Flits of 256 B that hold 236 B of packets. Source: \[X\] PCI Express Base Specification 6.0 §4.2.3.
const FLITS: (f64, &str) = (236.0 / 256.0, "236/256");
/// Lines of 64 B that take four slots and a half, in flits of 68 B with four slots of 16 B. Source: \[X\] Compute Express
/// Link Specification 2.0 §4.2; the half of a header slot is \[A\].
const LINES_68: (f64, &str) = (64.0 / 68.0 * 8.0 / 9.0, "64/68 x 8/9");
/// Lines of 64 B in flits of 256 B, which hold 15 slots. Source: \[X\] Compute Express Link Specification 3.0 §4.3.
const LINES_256: (f64, &str) = (240.0 / 256.0 * 8.0 / 9.0, "240/256 x 8/9");
/// Links without a coding beside their flits.
const NONE: (f64, &str) = (1.0, "1");

const KINDS: [Kind; 7] = [
    Kind { name: "pcie3", transfers: 8.0, coding: CODING, payload: PACKETS },
    Kind { name: "pcie4", transfers: 16.0, coding: CODING, payload: PACKETS },
    Kind { name: "pcie5", transfers: 32.0, coding: CODING, payload: PACKETS },
    Kind { name: "pcie6", transfers: 64.0, coding: FLITS, payload: PACKETS },
    Kind { name: "cxl1", transfers: 32.0, coding: CODING, payload: LINES_68 },
    Kind { name: "cxl2", transfers: 32.0, coding: CODING, payload: LINES_68 },
    Kind { name: "cxl3", transfers: 64.0, coding: NONE, payload: LINES_256 },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_carries_what_its_coding_and_packets_leave() {
        let mega = |name| by_name(name).map(|link| (link.payload_rate / 1e6).round());
        for (name, expected) in [
            ("pcie3x4", 3601.0),
            ("pcie4x4", 7202.0),
            ("pcie5x4", 14_404.0),
            ("pcie4x1", 1800.0),
            ("cxl2x8", 26_359.0),
            ("pcie6x4", 26_971.0),
        ] {
            assert_eq!(mega(name), Ok(expected), "{name}");
        }
    }

    #[test]
    fn a_name_that_is_no_link_is_told_those_that_are() {
        for name in ["", "x4", "pcie", "pcie4", "pcie2x4", "pcie4x3", "sata", "cxl2", "pcie4x4x4", "cx4"] {
            let message = by_name(name).err().expect("it is no link");
            assert!(message.contains("such as \"pcie4x4\""), "{message}");
        }
    }
}

//! Services that every command passes before its drive works on it: on the host, or on the drives' own cores, which a design that lends them takes from
//! idle drives as well.
//!
//! Source: sheet leapio §3.6, services that touch no data. Their cost is time of a core; what they do with a command is not modelled.

use flashyard_units::Named;

/// The cores that services run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Those of the drive, with its firmware: lent cores run them for commands that are handed to a lender.
    #[default]
    Drive,
    /// Those of the host, with its driver.
    Host,
}

impl Named for Placement {
    const ALL: &'static [Self] = &[Self::Drive, Self::Host];

    fn name(self) -> &'static str {
        match self {
            Self::Drive => "drive",
            Self::Host => "host",
        }
    }
}

/// Services one after the other, for each command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainConfig {
    /// Services.
    pub services: u32,
    /// Cycles of a core that each of them takes for a command.
    pub cycles: u64,
    /// Where they run.
    pub placement: Placement,
}

impl Default for ChainConfig {
    /// No services. Source of the cycles: \[D\] sheet leapio §8, at most 1.54 us for each 4 KiB with the runtime, of which a service takes a tenth on a core of
    /// 2.6 GHz; \[A\] a drive's core needs as many cycles.
    fn default() -> Self {
        Self { services: 0, cycles: 400, placement: Placement::Drive }
    }
}

impl ChainConfig {
    const fn all(&self) -> u64 {
        self.services as u64 * self.cycles
    }

    /// Cycles for each command on a core of its drive, or of the drive that lends it one. Where the host runs the drive's firmware, it runs the
    /// services as well.
    pub(super) const fn on_drive(&self, firmware_on_host: bool) -> u64 {
        match self.placement {
            Placement::Drive if !firmware_on_host => self.all(),
            Placement::Drive | Placement::Host => 0,
        }
    }

    /// Cycles for each command on a core of its host.
    pub(super) const fn on_host(&self, firmware_on_host: bool) -> u64 {
        self.all() - self.on_drive(firmware_on_host)
    }
}

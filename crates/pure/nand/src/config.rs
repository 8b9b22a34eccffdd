//! Times, rates and currents of the flash.

use crate::Capabilities;
use crate::wear::{WearModel, WearModelError};
use flashyard_flash::{FlashCommand, Geometry, GeometryError};
use flashyard_units::{ByteRate, Picojoules, SimSpan, Watts};

/// Program time as incremental step pulse programming: pulses of one length, more of them for the bits
/// that need finer thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsppModel {
    /// One pulse and its verify.
    pub pulse: SimSpan,
    /// Pulses for LSB, CSB and MSB pages.
    pub pulses: [u32; 3],
}

impl IsppModel {
    /// Time to program a page by the bit of its cells, 0 to 2.
    #[inline]
    pub fn program_time(&self, bit: usize) -> SimSpan {
        self.pulse * u64::from(self.pulses[bit])
    }
}

/// Supply voltage and currents of one die.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Currents {
    /// Supply in volts.
    pub volts: f64,
    /// Array busy with a read, program or erase, in milliamperes.
    pub active_ma: f64,
    /// Selected but only waiting for, or using, the bus, in milliamperes.
    pub bus_idle_ma: f64,
    /// Standby, in milliamperes.
    pub standby_ma: f64,
}

impl Currents {
    /// Energy of one or more dies: `array` and `bus` are die-time spent in those states, `total` is all
    /// die-time; the rest of it is standby.
    pub fn energy(&self, array: SimSpan, bus: SimSpan, total: SimSpan) -> Picojoules {
        let watts = |milliamperes: f64| Watts::new(self.volts * milliamperes / 1e3);
        let standby = SimSpan::from_ps(total.as_ps().saturating_sub(array.as_ps() + bus.as_ps()));
        watts(self.active_ma).over(array) + watts(self.bus_idle_ma).over(bus) + watts(self.standby_ma).over(standby)
    }
}

/// Everything a medium needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NandConfig {
    /// How the flash is divided.
    pub geometry: Geometry,
    /// Sensing time of LSB, CSB and MSB pages.
    pub read: [SimSpan; 3],
    /// Program time.
    pub program: IsppModel,
    /// Erase time.
    pub erase: SimSpan,
    /// Rate of one channel bus.
    pub channel: ByteRate,
    /// Reads that may pass a waiting program or erase before it gets its turn.
    pub starvation_bound: u32,
    /// Raw bit error rate of a page read for the first time; zero for media that never fail.
    pub raw_bit_error_rate: f64,
    /// Raw bit error rate up to which the code corrects a page.
    pub correctable_bit_error_rate: f64,
    /// Retries after which a read is given up, 0 to [`NandConfig::READ_RETRIES_MOST`]: a page that needs more stays
    /// uncorrected. `None` for flash whose reads are retried until they succeed, as the sheets have it.
    pub read_retries_max: Option<u32>,
    /// Effect of erases, reads and retention on a block; `None` where only the rate above counts.
    pub wear: Option<WearModel>,
    /// Currents for energy.
    pub currents: Currents,
    /// Capabilities beyond that.
    pub capabilities: Capabilities,
}

/// Why a medium cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NandConfigError {
    /// The geometry is impossible.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The wear of blocks cannot be.
    #[error(transparent)]
    Wear(#[from] WearModelError),
    /// An error rate is not a rate.
    #[error("{name} is {value}, give a rate from 0 to 0.5")]
    Rate {
        /// Name of the parameter.
        name: &'static str,
        /// The value given.
        value: f64,
    },
    /// Word lines are programmed as a whole, and nothing says how long that takes, or the reverse.
    #[error(
        "{pages} pages are programmed together; give the time of a word line where there are several, and only there"
    )]
    WordLine {
        /// Pages programmed together.
        pages: u32,
    },
    /// More planes that sense independently than can be numbered.
    #[error("{0} planes sense independently, at most 65535 are possible")]
    Planes(u32),
    /// More retries than any read needs.
    #[error("reads are given up after {0} retries, give 0 to {most}", most = NandConfig::READ_RETRIES_MOST)]
    Retries(u32),
}

impl NandConfig {
    /// No read needs more retries: 14 halvings leave one of 16,384 wrong bits.
    pub const READ_RETRIES_MOST: u32 = 14;

    /// Time of a command on the bus; flash is `PLAIN` where it has no capabilities.
    #[inline]
    pub(crate) fn transfer_time<const PLAIN: bool>(&self, command: &FlashCommand) -> SimSpan {
        let cycles = if PLAIN { SimSpan::ZERO } else { self.capabilities.command_cycles };
        cycles + self.channel.span_of(u64::from(command.bus_bytes))
    }

    /// Checks ranges.
    pub fn validate(&self) -> Result<(), NandConfigError> {
        self.geometry.validate()?;
        let pages = self.geometry.pages_per_program;
        if (pages > 1) != self.capabilities.word_line.is_some() {
            return Err(NandConfigError::WordLine { pages });
        }
        let planes = self.geometry.blocks_per_superblock();
        if self.capabilities.independent_planes && planes > 65_535 {
            return Err(NandConfigError::Planes(planes));
        }
        let rates = [
            ("raw_bit_error_rate", self.raw_bit_error_rate),
            ("correctable_bit_error_rate", self.correctable_bit_error_rate),
        ];
        for (name, value) in rates {
            if !(0.0..=0.5).contains(&value) {
                return Err(NandConfigError::Rate { name, value });
            }
        }
        if let Some(most) = self.read_retries_max.filter(|&most| most > Self::READ_RETRIES_MOST) {
            return Err(NandConfigError::Retries(most));
        }
        if let Some(wear) = &self.wear {
            wear.validate()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::legal::config;
    use crate::{EccStrength, ErrorRates, RetryRule, WordLine};

    fn changed(change: impl FnOnce(&mut NandConfig)) -> Result<(), NandConfigError> {
        let mut config = config(Capabilities::default(), 4);
        change(&mut config);
        config.validate()
    }

    #[test]
    fn flash_that_cannot_be_is_refused() {
        assert_eq!(changed(|_| ()), Ok(()));
        assert_eq!(changed(|flash| flash.geometry.channels = 0), Err(GeometryError::Zero("channels").into()));
        let word_line = Some(WordLine { program: SimSpan::from_us(700), fine: None });
        assert_eq!(changed(|flash| flash.geometry.pages_per_program = 3), Err(NandConfigError::WordLine { pages: 3 }));
        assert_eq!(
            changed(|flash| flash.capabilities.word_line = word_line),
            Err(NandConfigError::WordLine { pages: 1 })
        );
        let both = changed(|flash| {
            flash.geometry.pages_per_program = 3;
            flash.capabilities.word_line = word_line;
        });
        assert_eq!(both, Ok(()));
        let retries = |most| changed(|flash| flash.read_retries_max = Some(most));
        assert_eq!((retries(14), retries(15)), (Ok(()), Err(NandConfigError::Retries(15))));
        let wear = |bits_per_4_kib| {
            let (rates, ecc) = (ErrorRates::TLC_2018_AT_300, EccStrength { bits_per_4_kib });
            changed(|flash| flash.wear = Some(WearModel { rates, ecc, rule: RetryRule::Halving, retention_days: 0.0 }))
        };
        assert_eq!((wear(1), wear(0)), (Ok(()), Err(WearModelError::Ecc(0).into())));
    }

    #[test]
    fn error_rates_are_at_most_those_of_noise() {
        let raw = |rate| changed(|flash| flash.raw_bit_error_rate = rate);
        let correctable = |rate| changed(|flash| flash.correctable_bit_error_rate = rate);
        for rate in [0.0, 0.5] {
            assert_eq!((raw(rate), correctable(rate)), (Ok(()), Ok(())));
        }
        for value in [-1e-9, 0.51] {
            assert_eq!(raw(value), Err(NandConfigError::Rate { name: "raw_bit_error_rate", value }));
            assert_eq!(correctable(value), Err(NandConfigError::Rate { name: "correctable_bit_error_rate", value }));
        }
        assert!(raw(f64::NAN).is_err());
    }

    #[test]
    fn planes_that_sense_on_their_own_are_numbered_in_sixteen_bits() {
        let planes = |independent_planes, channels, dies_per_channel, planes_per_die| {
            changed(|flash| {
                flash.capabilities.independent_planes = independent_planes;
                flash.geometry = Geometry { channels, dies_per_channel, planes_per_die, ..flash.geometry };
            })
        };
        assert_eq!(planes(true, 255, 257, 1), Ok(()));
        assert_eq!(planes(true, 256, 128, 2), Err(NandConfigError::Planes(65_536)));
        assert_eq!(planes(false, 256, 128, 2), Ok(()));
    }

    #[test]
    fn energy_is_the_sum_of_three_states() {
        let currents = Currents { volts: 2.0, active_ma: 10.0, bus_idle_ma: 1.0, standby_ma: 0.1 };
        let (array, bus) = (SimSpan::from_secs(3), SimSpan::from_secs(2));
        // Watts are 0.02, 0.002 and 0.0002.
        let joules = |total| currents.energy(array, bus, SimSpan::from_secs(total)).as_joules();
        assert!((joules(10) - (0.06 + 0.004 + 0.001)).abs() < 1e-12, "{}", joules(10));
        assert!((joules(4) - (0.06 + 0.004)).abs() < 1e-12, "{}", joules(4));
    }
}

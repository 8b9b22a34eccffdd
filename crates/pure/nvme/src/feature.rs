//! Features that a host sets and reads (Base 2.0, section 5.27.1).

/// Feature identifiers.
pub mod id {
    /// Arbitration.
    pub const ARBITRATION: u8 = 0x01;
    /// Power management.
    pub const POWER: u8 = 0x02;
    /// Temperature threshold.
    pub const TEMPERATURE: u8 = 0x04;
    /// Error recovery, of the NVM command set.
    pub const ERROR_RECOVERY: u8 = 0x05;
    /// Volatile write cache.
    pub const WRITE_CACHE: u8 = 0x06;
    /// Number of I/O queues.
    pub const QUEUES: u8 = 0x07;
    /// Interrupt coalescing.
    pub const INTERRUPT_COALESCING: u8 = 0x08;
    /// Interrupt vector configuration.
    pub const INTERRUPT_VECTOR: u8 = 0x09;
    /// Write atomicity in normal operation, of the NVM command set.
    pub const WRITE_ATOMICITY: u8 = 0x0A;
    /// Which asynchronous events are reported.
    pub const ASYNC_EVENTS: u8 = 0x0B;
    /// Timestamp.
    pub const TIMESTAMP: u8 = 0x0E;
    /// Keep-alive timer.
    pub const KEEP_ALIVE: u8 = 0x0F;
    /// Behaviour of the host.
    pub const HOST_BEHAVIOR: u8 = 0x16;
    /// Which combination of I/O command sets is in use.
    pub const COMMAND_SET_PROFILE: u8 = 0x19;
    /// Host identifier.
    pub const HOST_ID: u8 = 0x81;
    /// Which news about reservations of a namespace are not told.
    pub const RESERVATION_MASK: u8 = 0x82;
    /// Whether registrations of a namespace outlast a loss of power.
    pub const RESERVATION_PERSISTENCE: u8 = 0x83;
    /// Degraded mode of a capacity-variant drive: bit 0 of the value; vendor specific.
    pub const DEGRADED: u8 = 0xC0;
    /// When superblocks are retired, [`super::RetirementRule`]; vendor specific.
    pub const RETIREMENT: u8 = 0xC1;
}

/// Number of I/O queues: submission and completion, both at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Submission queues.
    pub submission: u32,
    /// Completion queues.
    pub completion: u32,
}

impl Queues {
    /// Decodes the value of the feature; `None` for the reserved count of 65,536.
    pub const fn decode(value: u32) -> Option<Self> {
        let (submission, completion) = (value & 0xFFFF, value >> 16);
        if submission == 0xFFFF || completion == 0xFFFF {
            return None;
        }
        Some(Self { submission: submission + 1, completion: completion + 1 })
    }

    /// The value of the feature.
    pub const fn encode(self) -> u32 {
        (self.submission.saturating_sub(1) & 0xFFFF) | (self.completion.saturating_sub(1) & 0xFFFF) << 16
    }
}

/// When a capacity-variant drive retires a superblock: at the first erase after which either condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetirementRule {
    /// Wear alone makes a bit error rate above this, in millionths.
    pub rate_ppm: Option<u32>,
    /// A read needs more retries than this.
    pub retries: Option<u8>,
}

impl RetirementRule {
    /// Decodes the values of the feature: millionths, retries plus one; zeros are none. `None` for more retries than
    /// 254.
    pub fn decode(values: [u32; 2]) -> Option<Self> {
        let retries = values[1].checked_sub(1).map(u8::try_from).transpose().ok()?;
        Some(Self { rate_ppm: (values[0] > 0).then_some(values[0]), retries })
    }

    /// The values of the feature.
    pub fn encode(self) -> [u32; 2] {
        [self.rate_ppm.unwrap_or(0), self.retries.map_or(0, |retries| u32::from(retries) + 1)]
    }
}

/// Temperature threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemperatureThreshold {
    /// In kelvin.
    pub kelvin: u16,
    /// Sensor: 0 composite, 1 to 8 single ones, 15 all.
    pub sensor: u8,
    /// The lower threshold instead of the upper one.
    pub is_lower: bool,
}

impl TemperatureThreshold {
    /// The composite temperature as a sensor.
    pub const COMPOSITE: u8 = 0;
    /// All sensors, that of the composite temperature among them, as far as they are there: for Set Features only.
    pub const ALL_SENSORS: u8 = 15;

    /// Decodes the value of the feature; `None` for reserved types of thresholds.
    pub const fn decode(value: u32) -> Option<Self> {
        let is_lower = match (value >> 20) & 3 {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Self { kelvin: value as u16, sensor: (value >> 16) as u8 & 15, is_lower })
    }

    /// The value of the feature.
    pub const fn encode(self) -> u32 {
        self.kelvin as u32 | (self.sensor as u32 & 15) << 16 | (self.is_lower as u32) << 20
    }
}

/// Result of Get Features for [`crate::admin::Select::Supported`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supported {
    /// Can be kept over resets.
    pub saveable: bool,
    /// Each namespace has its own value.
    pub per_namespace: bool,
    /// Can be changed.
    pub changeable: bool,
}

impl Supported {
    /// The result of the completion.
    pub const fn encode(self) -> u32 {
        self.saveable as u32 | (self.per_namespace as u32) << 1 | (self.changeable as u32) << 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_survive_their_bits(value: u32) {
            if let Some(queues) = Queues::decode(value) {
                prop_assert_eq!(queues.encode(), value);
            }
            let threshold = TemperatureThreshold::decode(value);
            prop_assert_eq!(threshold.is_some(), value >> 21 & 1 == 0);
            prop_assert_eq!(threshold.and_then(|it| TemperatureThreshold::decode(it.encode())), threshold);
        }
    }

    #[test]
    fn queues_count_from_zero() {
        assert_eq!(Queues { submission: 4, completion: 4 }.encode(), 0x0003_0003);
        assert_eq!(Queues::decode(0xFFFF_0000), None);
    }
}

//! Asynchronous events: what completes an Asynchronous Event Request (Base 2.0, section 5.2).

/// Something that a host may want to know without asking again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncEvent {
    /// The temperature crossed a threshold.
    Temperature,
    /// Spare blocks are below their threshold.
    Spare,
    /// Reliability is degraded.
    Reliability,
    /// Namespaces came, went or changed.
    Namespaces,
    /// An ANA state changed.
    Ana,
    /// The discovery log changed.
    Discovery,
    /// There are news about reservations.
    Reservation,
    /// A sanitize operation has come to its end.
    Sanitized,
    /// An event that this crate does not name: kind, information, log page.
    Other {
        /// Bits 2:0.
        kind: u8,
        /// Bits 15:8.
        information: u8,
        /// Bits 23:16.
        page: u8,
    },
}

impl AsyncEvent {
    const HEALTH: u8 = 1;
    const NOTICE: u8 = 2;
    const COMMAND_SET: u8 = 6;

    /// Kind, information and log page of the event.
    const fn parts(self) -> (u8, u8, u8) {
        match self {
            Self::Reliability => (Self::HEALTH, 0, 0x02),
            Self::Temperature => (Self::HEALTH, 1, 0x02),
            Self::Spare => (Self::HEALTH, 2, 0x02),
            Self::Namespaces => (Self::NOTICE, 0, 0x04),
            Self::Ana => (Self::NOTICE, 3, 0x0C),
            Self::Discovery => (Self::NOTICE, 0xF0, 0x70),
            Self::Reservation => (Self::COMMAND_SET, 0, 0x80),
            Self::Sanitized => (Self::COMMAND_SET, 1, 0x81),
            Self::Other { kind, information, page } => (kind & 7, information, page),
        }
    }

    /// The log page with details; reading it clears the event.
    pub const fn page(self) -> u8 {
        self.parts().2
    }

    /// Dword 0 of the completion.
    pub const fn encode(self) -> u32 {
        let (kind, information, page) = self.parts();
        kind as u32 | (information as u32) << 8 | (page as u32) << 16
    }

    /// Decodes dword 0 of a completion.
    pub fn decode(result: u32) -> Self {
        let known = [
            Self::Temperature,
            Self::Spare,
            Self::Reliability,
            Self::Namespaces,
            Self::Ana,
            Self::Discovery,
            Self::Reservation,
            Self::Sanitized,
        ];
        let found = known.into_iter().find(|event| event.encode() == result & 0x00FF_FF07);
        found.unwrap_or(Self::Other {
            kind: result as u8 & 7,
            information: (result >> 8) as u8,
            page: (result >> 16) as u8,
        })
    }

    /// The bit of the feature that enables the event (Base 2.0, figure 326); zero for an event that is always on.
    pub const fn enable_bit(self) -> u32 {
        match self {
            Self::Spare => 1 << 0,
            Self::Temperature => 1 << 1,
            Self::Reliability => 1 << 2,
            Self::Namespaces => 1 << 8,
            Self::Ana => 1 << 11,
            Self::Discovery => 1 << 31,
            Self::Reservation | Self::Sanitized | Self::Other { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_survive_the_wire(result: u32) {
            let event = AsyncEvent::decode(result);
            prop_assert_eq!(AsyncEvent::decode(event.encode()), event);
            prop_assert_eq!(event.encode(), result & 0x00FF_FF07);
        }
    }

    #[test]
    fn a_changed_namespace_is_the_notice_hosts_know() {
        assert_eq!(AsyncEvent::Namespaces.encode(), 0x0004_0002);
        assert_eq!(AsyncEvent::Ana.encode(), 0x000C_0302);
        assert_eq!(AsyncEvent::Discovery.encode(), 0x0070_F002);
    }
}

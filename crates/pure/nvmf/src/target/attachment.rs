//! Namespaces that hosts want, and the hosts that a namespace is attached to.

use flashyard_nvme::protection::Metadata;

/// Hosts whose controllers have a namespace from their beginning: all but some, or some alone.
///
/// Source: \[P\] NVM Express Base 2.0, section 3.1.2: controllers that are made as hosts connect keep nothing from earlier
/// ones, and all of one host have the same namespaces when they begin, which may be others than those of other hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Whether hosts have it that are no exceptions.
    pub everybody: bool,
    /// Names of the exceptions, in order.
    pub exceptions: Vec<String>,
}

impl Attachment {
    /// Every host has it.
    pub const ALL: Self = Self { everybody: true, exceptions: Vec::new() };
    /// No host has it.
    pub const NONE: Self = Self { everybody: false, exceptions: Vec::new() };

    /// Exceptions at most. \[A\] As many as there may be controllers of hosts at once, with the default limits.
    pub const EXCEPTIONS_MAX: usize = 256;

    /// Whether the host has it.
    pub fn includes(&self, host: &str) -> bool {
        self.everybody != self.exceptions.iter().any(|exception| exception == host)
    }

    /// Hosts as before, but that this one has it, or has it no more.
    #[must_use]
    pub(super) fn with(mut self, host: &str, on: bool) -> Self {
        if self.includes(host) != on {
            match self.exceptions.binary_search_by(|exception| exception.as_str().cmp(host)) {
                Ok(place) => drop(self.exceptions.remove(place)),
                Err(place) => self.exceptions.insert(place, host.to_owned()),
            }
        }
        self
    }
}

/// A namespace that a host wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewNamespace {
    /// Size in blocks.
    pub blocks: u64,
    /// Data of a block: 2^n bytes, one of those that the subsystem offers.
    pub block_log2: u8,
    /// Metadata of a block.
    pub metadata: Metadata,
    /// One controller at a time may have it.
    pub is_private: bool,
}

/// A change of what namespaces controllers have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    /// Namespace.
    pub nsid: u32,
    /// Places of the controllers, and their serial numbers: another one may have the place when it is done.
    pub(super) controllers: Vec<(usize, u64)>,
    /// Whether they get it, or lose it.
    pub is_attached: bool,
    /// Hosts that have it afterwards.
    pub attachment: Attachment,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_exceptions_until_they_are_as_the_others() {
        for everybody in [true, false] {
            let begun = Attachment { everybody, exceptions: Vec::new() };
            let changed = begun.clone().with("b", !everybody).with("a", !everybody).with("b", !everybody);
            assert_eq!(changed.exceptions, ["a", "b"]);
            assert_eq!(["a", "b", "c"].map(|host| changed.includes(host)), [!everybody, !everybody, everybody]);
            assert_eq!(changed.with("a", everybody).with("c", everybody).with("b", everybody), begun);
        }
    }
}

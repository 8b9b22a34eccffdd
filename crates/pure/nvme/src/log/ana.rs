//! Asymmetric namespace access: how well each port reaches each group of namespaces.

/// How well a controller reaches a group (Base 2.0, section 8.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnaState {
    /// As well as can be.
    #[default]
    Optimized,
    /// With losses.
    NonOptimized,
    /// Not now.
    Inaccessible,
    /// Never again.
    PersistentLoss,
    /// On the way from one state to another.
    Change,
}

impl AnaState {
    /// The number on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::Optimized => 0x01,
            Self::NonOptimized => 0x02,
            Self::Inaccessible => 0x03,
            Self::PersistentLoss => 0x04,
            Self::Change => 0x0F,
        }
    }

    /// Decodes the number on the wire; `None` for reserved ones.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number & 0x0F {
            0x01 => Some(Self::Optimized),
            0x02 => Some(Self::NonOptimized),
            0x03 => Some(Self::Inaccessible),
            0x04 => Some(Self::PersistentLoss),
            0x0F => Some(Self::Change),
            _ => None,
        }
    }
}

/// A group of namespaces that always have the same state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnaGroup {
    /// Identifier, from one.
    pub id: u32,
    /// Changes so far.
    pub changes: u64,
    /// State.
    pub state: AnaState,
    /// Namespaces in ascending order.
    pub namespaces: Vec<u32>,
}

/// The page (Base 2.0, figure 220), appended to `out`. With `groups_only` the namespaces are left out.
pub fn ana_log(out: &mut Vec<u8>, changes: u64, groups: &[AnaGroup], groups_only: bool) {
    out.extend_from_slice(&changes.to_le_bytes());
    out.extend_from_slice(&(groups.len() as u16).to_le_bytes());
    out.extend_from_slice(&[0; 6]);
    for group in groups {
        let namespaces = if groups_only { &[][..] } else { &group.namespaces };
        out.extend_from_slice(&group.id.to_le_bytes());
        out.extend_from_slice(&(namespaces.len() as u32).to_le_bytes());
        out.extend_from_slice(&group.changes.to_le_bytes());
        out.push(group.state.number());
        out.extend_from_slice(&[0; 15]);
        for nsid in namespaces {
            out.extend_from_slice(&nsid.to_le_bytes());
        }
    }
}

/// Changes and groups of a page; groups that are cut or have a reserved state end the list.
pub fn read_ana_log(data: &[u8]) -> (u64, Vec<AnaGroup>) {
    let (Some(changes), Some(count)) = (data.first_chunk::<8>(), data.get(8..10)) else { return (0, Vec::new()) };
    let count = u16::from_le_bytes([count[0], count[1]]);
    let mut rest = data.get(16..).unwrap_or_default();
    let mut groups = Vec::new();
    for _ in 0..count {
        let Some((head, tail)) = rest.split_first_chunk::<32>() else { break };
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let bytes = u64::from(number(4)) * 4;
        let (Some(state), true) = (AnaState::from_number(head[16]), bytes <= tail.len() as u64) else { break };
        let (namespaces, next) = tail.split_at(bytes as usize);
        rest = next;
        groups.push(AnaGroup {
            id: number(0),
            changes: u64::from(number(8)) | u64::from(number(12)) << 32,
            state,
            namespaces: crate::identify::read_list(namespaces).collect(),
        });
    }
    (u64::from_le_bytes(*changes), groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_survive_the_wire(
            groups in prop::collection::vec(
                (any::<u32>(), any::<u64>(), 0usize..5, prop::collection::vec(1u32.., 0..5)), 0..5,
            ), changes: u64,
        ) {
            let states = [
                AnaState::Optimized, AnaState::NonOptimized, AnaState::Inaccessible, AnaState::PersistentLoss,
                AnaState::Change,
            ];
            let groups: Vec<_> = groups.into_iter().map(|(id, changes, state, namespaces)| {
                AnaGroup { id, changes, state: states[state], namespaces }
            }).collect();
            let mut bytes = Vec::new();
            ana_log(&mut bytes, changes, &groups, false);
            prop_assert_eq!(read_ana_log(&bytes), (changes, groups));
        }

        #[test]
        fn any_page_that_is_read_is_one_that_would_be_written(bytes: Vec<u8>) {
            let (changes, groups) = read_ana_log(&bytes);
            let mut again = Vec::new();
            ana_log(&mut again, changes, &groups, false);
            prop_assert_eq!(read_ana_log(&again), (changes, groups));
        }
    }
}

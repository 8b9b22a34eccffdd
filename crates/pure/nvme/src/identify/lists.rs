//! Lists that Identify returns, all in 4096 bytes.

use crate::IDENTIFY_BYTES;

/// Identifier of a namespace (Base 2.0, figure 278).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// Globally unique, 8 bytes.
    Eui64([u8; 8]),
    /// Globally unique, 16 bytes.
    Nguid([u8; 16]),
    /// RFC 4122.
    Uuid([u8; 16]),
    /// I/O command set; 0 is the NVM command set.
    CommandSet(u8),
}

impl Descriptor {
    fn put(&self, out: &mut Vec<u8>) {
        let (kind, value): (u8, &[u8]) = match self {
            Self::Eui64(value) => (1, value),
            Self::Nguid(value) => (2, value),
            Self::Uuid(value) => (3, value),
            Self::CommandSet(value) => (4, std::slice::from_ref(value)),
        };
        out.extend_from_slice(&[kind, value.len() as u8, 0, 0]);
        out.extend_from_slice(value);
    }
}

/// The list of descriptors of one namespace, appended to `out`.
pub fn descriptors(out: &mut Vec<u8>, list: &[Descriptor]) {
    let start = out.len();
    for descriptor in list {
        descriptor.put(out);
    }
    debug_assert!(out.len() - start <= IDENTIFY_BYTES);
    out.resize(start + IDENTIFY_BYTES, 0);
}

/// Descriptors in `data`; unknown kinds are left out, and the list ends where it is cut.
pub fn read_descriptors(mut data: &[u8]) -> Vec<Descriptor> {
    let mut found = Vec::new();
    while let [kind, len, _, _, rest @ ..] = data {
        let len = usize::from(*len);
        if len == 0 || rest.len() < len {
            break;
        }
        let (value, next) = rest.split_at(len);
        data = next;
        found.extend(match kind {
            1 => value.try_into().ok().map(Descriptor::Eui64),
            2 => value.try_into().ok().map(Descriptor::Nguid),
            3 => value.try_into().ok().map(Descriptor::Uuid),
            4 if len == 1 => Some(Descriptor::CommandSet(value[0])),
            _ => None,
        });
    }
    found
}

/// A list of namespaces in ascending order, at most 1024, appended to `out`.
pub fn namespace_list(out: &mut Vec<u8>, list: impl Iterator<Item = u32>) {
    let start = out.len();
    for nsid in list.take(IDENTIFY_BYTES / 4) {
        out.extend_from_slice(&nsid.to_le_bytes());
    }
    out.resize(start + IDENTIFY_BYTES, 0);
}

/// The namespaces of such a list, up to the first zero.
pub fn read_list(data: &[u8]) -> impl Iterator<Item = u32> {
    let numbers = data.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    numbers.take_while(|nsid| *nsid != 0)
}

/// A list of controllers in ascending order, at most 2047, appended to `out`.
pub fn controller_list(out: &mut Vec<u8>, list: impl Iterator<Item = u16>) {
    let start = out.len();
    out.extend_from_slice(&[0; 2]);
    for controller in list.take(2047) {
        out.extend_from_slice(&controller.to_le_bytes());
    }
    let count = ((out.len() - start) / 2 - 1) as u16;
    out[start..start + 2].copy_from_slice(&count.to_le_bytes());
    out.resize(start + IDENTIFY_BYTES, 0);
}

/// The controllers of such a list; `None` for one that is cut, or not in ascending order.
pub fn read_controllers(data: &[u8]) -> Option<Vec<u16>> {
    let mut numbers = data.chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
    let count = usize::from(numbers.next()?);
    let found: Vec<u16> = numbers.take(count).collect();
    let is_whole = found.len() == count && found.windows(2).all(|two| two[0] < two[1]);
    is_whole.then_some(found)
}

/// The one combination of I/O command sets: those whose identifiers are in `sets`, appended to `out`.
pub fn command_sets(out: &mut Vec<u8>, sets: &[u8]) {
    let start = out.len();
    let vector = sets.iter().fold(0_u64, |vector, set| vector | 1 << (set & 63));
    out.extend_from_slice(&vector.to_le_bytes());
    out.resize(start + IDENTIFY_BYTES, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn descriptors_survive_the_wire(eui: [u8; 8], nguid: [u8; 16], uuid: [u8; 16], set: u8) {
            let list = [
                Descriptor::Eui64(eui), Descriptor::Nguid(nguid), Descriptor::Uuid(uuid), Descriptor::CommandSet(set),
            ];
            let mut bytes = Vec::new();
            descriptors(&mut bytes, &list);
            prop_assert_eq!(bytes.len(), IDENTIFY_BYTES);
            prop_assert_eq!(read_descriptors(&bytes), list);
        }

        #[test]
        fn any_descriptors_that_are_read_are_those_that_would_be_written(bytes: Vec<u8>) {
            let list = read_descriptors(&bytes);
            let mut again = Vec::new();
            descriptors(&mut again, &list);
            prop_assert_eq!(read_descriptors(&again), list);
        }

        #[test]
        fn namespaces_survive_the_wire(list in prop::collection::vec(1u32.., 0..1025)) {
            let mut bytes = Vec::new();
            namespace_list(&mut bytes, list.iter().copied());
            prop_assert_eq!(bytes.len(), IDENTIFY_BYTES);
            prop_assert!(read_list(&bytes).eq(list.into_iter().take(1024)));
        }
    }

    #[test]
    fn a_list_of_controllers_is_read_if_it_is_whole_and_in_order() {
        let list = |controllers: &[u16]| {
            let mut bytes = Vec::new();
            controller_list(&mut bytes, controllers.iter().copied());
            bytes
        };
        assert_eq!(read_controllers(&list(&[])), Some(Vec::new()));
        assert_eq!(read_controllers(&list(&[1, 5, 9])), Some(vec![1, 5, 9]));
        assert_eq!(read_controllers(&list(&[5, 1])), None);
        assert_eq!(read_controllers(&list(&[5, 5])), None);
        assert_eq!((read_controllers(&list(&[1, 5])[..4]), read_controllers(&[])), (None, None));
    }

    #[test]
    fn a_combination_has_a_bit_for_each_command_set() {
        let mut bytes = Vec::new();
        command_sets(&mut bytes, &[0, 2]);
        assert_eq!(
            (&bytes[..16], bytes.len()),
            (&[5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], IDENTIFY_BYTES)
        );
    }

    #[test]
    fn controllers_are_counted_in_front() {
        let mut bytes = Vec::new();
        controller_list(&mut bytes, [1, 7].into_iter());
        assert_eq!((&bytes[..8], bytes.len()), (&[2, 0, 1, 0, 7, 0, 0, 0][..], IDENTIFY_BYTES));
    }
}

//! Numbers and contents as bytes of an aged drive: the code of journals.

pub(super) use flashyard_served::codec::{hash_of_bytes, number, put_contents, take, take_contents};

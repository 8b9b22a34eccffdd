//! The life of one drive: the studies of wear levelling and of fast-forward ageing.

pub(crate) mod forward;
pub(crate) mod wear;

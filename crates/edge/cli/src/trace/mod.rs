//! `flashyard trace`.

mod convert;
mod info;
mod plot;
mod reading;
mod show;

pub(crate) use convert::convert;
pub(crate) use info::info;

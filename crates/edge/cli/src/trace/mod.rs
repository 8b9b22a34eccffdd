//! `flashyard trace`.

mod caches;
mod convert;
mod info;
mod plot;
mod reading;
mod show;

pub(crate) use caches::caches;
pub(crate) use convert::convert;
pub(crate) use info::info;

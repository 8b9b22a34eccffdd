//! The JBOF and its designs: the enclosure as a world of faults, and the study of XBOF.

mod faulty;
pub(crate) mod study;

pub use faulty::JbofWorld;

//! Machines that cannot be.

use flashyard_flash::GeometryError;
use flashyard_ftl::FtlConfigError;

/// Why a memory machine cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MemoryError {
    /// A number outside its range.
    #[error("{name}: {value}, give {range}")]
    Range {
        /// Name of the parameter.
        name: &'static str,
        /// The value given.
        value: u64,
        /// The accepted range.
        range: &'static str,
    },
    /// Flash that cannot be divided so.
    #[error("flash: {0}")]
    Geometry(#[from] GeometryError),
    /// A translation layer that does not fit its flash.
    #[error("flash: {0}")]
    Ftl(#[from] FtlConfigError),
}

//! Machines that cannot be.

use flashyard_cxl::HdmError;
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
    /// HDM decoders that cannot be committed.
    #[error("address map: {0}")]
    Decoders(#[from] HdmError),
    /// An access to an address that nothing has.
    #[error(
        "{count} requests to addresses that no memory has, the first to {address:#x}: DRAM on the processor has {local:#x} \
         bytes from 0 on, and HDM decoders claim {claimed}; give a larger device, or a smaller footprint"
    )]
    Unclaimed {
        /// The first such address.
        address: u64,
        /// Requests of this kind so far.
        count: u64,
        /// Bytes of DRAM on the processor.
        local: u64,
        /// Ranges that decoders claim, in words.
        claimed: String,
    },
    /// Flash that cannot be divided so.
    #[error("flash: {0}")]
    Geometry(#[from] GeometryError),
    /// A translation layer that does not fit its flash.
    #[error("flash: {0}")]
    Ftl(#[from] FtlConfigError),
}

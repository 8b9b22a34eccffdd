//! NVMe/TCP: protocol data units, their digests, and finding them in a stream of bytes.

mod digest;
mod fatal;
mod framer;
mod pdu;

pub use digest::{DIGEST_BYTES, DataDigest, header_digest};
pub use fatal::{FatalError, FatalStatus};
pub use framer::{Event, Framer, Role};
pub use pdu::{
    Alignment, DataHeader, Digests, HEADER_BYTES, HEADER_BYTES_MAX, INITIALIZE_BYTES, Initialize, Kind, PduHeader,
    ReadyToTransfer, Termination, capsule_command, capsule_response, data_to_controller, data_to_host,
    initialize_request, initialize_response, ready_to_transfer, termination,
};

/// Data that the capsule of an admin command may carry, in bytes (TCP Transport 1.0, section 3.3.1.2).
pub const ADMIN_CAPSULE_DATA_BYTES: u32 = 8192;

/// Port of NVMe/TCP.
pub const PORT: u16 = 4420;

/// Port of discovery over NVMe/TCP.
pub const PORT_DISCOVERY: u16 = 8009;

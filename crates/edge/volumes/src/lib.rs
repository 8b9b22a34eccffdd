//! Volumes that are no drives of a model: made of files, memory and namespaces of remote targets, with a service above them or without,
//! and served by the front ends of `live`.
//!
//! What it does: reads a file that describes volumes and opens what they are made of ([`open`]), carries out what a
//! [`flashyard_service::Service`] orders, with the arithmetic of parity, tells legs of arrays by their labels, throttles legs that stand in for slower ones, and runs all of that on one thread
//! ([`VolumeEngine`]). Files have threads of their own for what the page cache does not have.
//!
//! The path of a request: a front end hands it in → its volume's service orders something of the legs → they carry it out, at
//! once or later → the service answers → the front end gets the answer, with a slice of the bytes.
//!
//! What it does not do: protocols, and the choice of an end for each request, which is LATTE's.
//!
//! Invariants: each request is answered once; a flush that was answered means that the back end has everything that was answered before it,
//! durably; a leg that has ended answers no further order, and is not opened again; services come and leave only while nothing is under way.

mod agile;
mod array;
mod compose;
mod control;
mod engine;
mod error;
mod held;
mod leg;
mod loans;
mod mark;
mod open;
mod opening;
mod reshape;
mod services;
mod stack;
mod used;
mod zeroing;

pub use agile::board::serve_board;
pub use agile::lend::ExportsPiece;
pub use agile::rack::Rack;
pub use compose::Part;
pub use control::{ControlError, LegStatus, Place, VolumeStatus};
pub use engine::{VolumeEngine, VolumeHandle, VolumeReport, VolumesEnded};
pub use error::OpenError;
pub use leg::Carried;
pub use leg::{FileError, OpenDrive, RunsDrive};
pub use open::{Volumes, describes_volumes, open};
pub use opening::{OpensDrive, ReadSecret};

//! Served volumes as disks of virtual machines: vhost-user-blk, by which QEMU and its kin have a disk in another process.
//!
//! What it does: speaks vhost-user at a socket for each volume ([`VhostUserBlk`], a front end of the engine), takes requests
//! from the rings in the guest's memory, and puts data straight into that memory: between a served volume and the guest there
//! is one copy. Sources: the virtio specification 1.2, §2.7 (split rings) and §5.2 (block device); the vhost-user protocol as
//! QEMU documents it.
//!
//! The path of a request: the guest kicks → `front.rs` takes chains of descriptors from the ring (`ring.rs`) → `request.rs` reads
//! what they ask → the engine carries it out → data and status go to the guest's memory, and the guest is called.
//!
//! Invariants: whatever a guest puts into its rings, nothing here panics, and nothing outside its memory is touched; a ring is
//! stopped when all of its requests have ended; the engine never waits for a message that has not come whole.
//!
//! What it does not do: migration of a running guest, requests that outlive the server (no in-flight buffer), packed rings. A
//! program that may open the socket is trusted with the server's life: it could cut the file that backs its memory.

mod config;
mod device;
mod front;
mod request;
mod ring;

pub use front::VhostUserBlk;

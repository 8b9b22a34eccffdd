//! The dashboard: the state of a running JBOF, for people and for monitoring, over HTTP.
//!
//! # Path of a snapshot
//!
//! The engine hands a [`Snapshot`](flashyard_report::Snapshot) to [`Dash::publish`], which puts it into a queue of a
//! few places and returns: a dashboard that falls behind loses snapshots, never time of the engine. A thread of its
//! own takes them out (`server`), writes each as JSON once and replaces the latest frame (`feed`). Every page that
//! watches gets the latest frame when it has room for one; it skips the frames that it was too slow for.
//!
//! | path | what |
//! |---|---|
//! | `/` | the page, one file, built from `web/dash` |
//! | `/events` | server-sent events: one `history`, then snapshots |
//! | `/snapshot` | the latest snapshot |
//! | `/metrics` | the latest snapshot in the text format of Prometheus |
//! | `/control` | takes a [`LiveCommand`](flashyard_report::LiveCommand) by `POST` |
//!
//! Volumes that are served have a page of their own ([`VolumesDash`]), which only looks: `/`, `/events`, `/snapshot` and `/metrics`.
//!
//! # Access
//!
//! It listens where its owner says, by default on the loopback address. Only requests that name the server by an
//! address or as `localhost` are answered, so that a name that someone else controls cannot be pointed at it.
//! Commands are taken from peers on this machine only, as JSON, from pages that this server gave out only, and with the
//! token of [`Dash::url`], which other users of the machine do not know (`guard`). Reading needs no token.
//!
//! # What it does not do
//!
//! No encryption and no users: put it behind something that has them before it leaves the machine. There are at most
//! [`STREAMS_MAX`] streams among [`CONNECTIONS_MAX`] connections, and a client that hesitates for [`HESITATION_MAX`] is left (`connections`).
//!
//! axum serves because it is small without its optional parts, well kept, and made by the people of tokio, whose
//! current-thread runtime is enough here; the page needs streaming and refusal by header, which hand-written HTTP
//! would get wrong.

#![forbid(unsafe_code)]

mod connections;
mod feed;
mod guard;
mod metrics;
mod routes;
mod server;
mod volumes;

pub use connections::{CONNECTIONS_MAX, HESITATION_MAX};
pub use feed::{EVENTS_KEPT, HISTORY_KEPT, HISTORY_STEP_SECONDS};
pub use routes::Control;
pub use routes::{CONTROL_BYTES_MAX, STREAMS_MAX};
pub use server::{Dash, DashError};
pub use volumes::{VolumesDash, VolumesFrame};

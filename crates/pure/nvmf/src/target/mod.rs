//! The controller's side.

mod abort;
mod admin;
mod answer;
mod auth;
mod config;
mod connect;
mod controller;
mod dialogue;
mod directory;
mod effects;
mod features;
mod identify;
mod logs;
mod plan;
mod session;
mod slots;
mod transfer;

pub use config::{ConfigError, Figures, Host, Hosts, Limits, Namespace, Port, Subsystem, TargetConfig, WriteHints};
pub use directory::{Demand, Target, Wish};
pub use effects::{CloseReason, Command, Effects, Room, SessionId};
pub use session::Session;
pub use slots::Tag;

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
mod erase;
mod erasure;
mod features;
mod fence;
mod identify;
mod logs;
mod notices;
mod plan;
mod reservation;
mod reserve;
mod session;
mod slots;
mod transfer;
mod zoned;
mod zones;

pub use config::{
    ConfigError, Figures, Host, Hosts, Limits, Namespace, Port, Subsystem, TargetConfig, WriteHints, ZoneShape,
};
pub use directory::{Demand, Target, Wish};
pub use effects::{CloseReason, Command, Effects, Room, SessionId};
pub use erasure::{Erasure, ErasureKind, Sanitized};
pub use reservation::Strangers;
pub use session::Session;
pub use slots::Tag;
pub use zoned::{give_up_zone, restore_zones};

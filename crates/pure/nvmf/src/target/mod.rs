//! The controller's side.

mod abort;
mod admin;
mod answer;
mod attachment;
mod auth;
mod config;
mod connect;
mod controller;
mod dialogue;
mod directory;
mod edition;
mod effects;
mod erase;
mod erasure;
mod features;
mod fence;
mod fused;
mod identify;
mod insides;
mod keeping;
mod kept;
mod logs;
mod manage;
mod notices;
mod plan;
mod reservation;
mod reserve;
mod self_test;
mod session;
mod shutdown;
mod slots;
mod telemetry;
mod transfer;
mod zoned;
mod zones;

pub use attachment::{Attach, Attachment, NewNamespace};
pub use config::{
    Abilities, BlockFormat, ConfigError, Figures, Host, Hosts, Limits, Management, Namespace, Port, Security,
    Subsystem, TargetConfig, WriteHints, ZoneShape,
};
pub use directory::{
    Demand, Target, Wish, erasure_of, set_abilities, set_management, set_namespaces_by, set_used_blocks, settle_with,
    superseded,
};
pub use edition::Edition;
pub use effects::{CloseReason, Command, Effects, Room, SessionId, Shutdown};
pub use erasure::{Erasure, ErasureKind, Sanitized};
pub use kept::{
    KeptReservations, ReservationChange, has_changes, lose_power, next_change, restore_reservations, settle_change,
};
pub use manage::{attach_controllers, judge_attachment, settle_without_room};
pub use reservation::Strangers;
pub use reserve::strangers_to;
pub use self_test::{is_asking, set_self_test};
pub use session::{Session, secure};
pub use shutdown::{shut_down, take_shutdowns};
pub use slots::Tag;
pub use telemetry::set_telemetry;
pub use zoned::{give_up_zone, restore_zones};

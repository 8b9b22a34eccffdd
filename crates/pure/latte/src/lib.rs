//! LATTE: a local disk (front end) and a network volume (back end) behind one volume. Source: sheet alibaba-local-storage
//! §2.6 and §3.
//!
//! So far it has parts without the service over them: the location map, which says where the newest copy of a block lies and
//! when a step that was under way may still change that; rules that choose an end for a write; the learned one of them.

pub mod dispatch;
mod location;
pub mod model;

pub use location::{Location, Locations, State};

//! Studies of servers: published results, and the runs that they are made of.

pub(super) mod leapio;
pub(super) mod local;

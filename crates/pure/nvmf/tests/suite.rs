//! Tests of targets and initiators against each other, and of what may come over a wire. One program holds them all: each program of tests takes seconds to build.

mod authentication;
mod both_ends;
mod controllers;
mod dialogue;
mod entry;
mod erasures;
mod fused;
mod namespaces;
mod protection;
mod raw;
mod reservations;
mod secured;
mod telemetry;
mod violations;
mod world;
mod zones;

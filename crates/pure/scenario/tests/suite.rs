//! Tests of scenarios. One program holds them all: each program of tests takes seconds to build.

mod aged;
mod drives;
mod idle_keys;
mod mutated;
mod reading;
mod schema;
mod sweeps;
mod walk;

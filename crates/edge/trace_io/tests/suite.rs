//! Tests of traces. One program holds them all: each program of tests takes seconds to build.

mod accesses;
mod bad_input;
mod caches;
mod cpu_files;
mod real_analysis;
mod real_traces;
mod samples;

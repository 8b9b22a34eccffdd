//! Tests of whole drives. One program holds them all: each program of tests takes seconds to build.

mod crash;
mod drawn;
mod lost;
mod offsite;
mod oracle;
mod rebuilding;
mod records;
mod slices;
mod small;
mod translate;
mod unprotected;
mod worn_out;

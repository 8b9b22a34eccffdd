//! What other people's programs make of our formats.
//!
//! Holds tests only. Each needs a program that may not be installed, says so on standard error and passes without it.

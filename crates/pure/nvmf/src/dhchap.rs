//! DH-HMAC-CHAP.

use thiserror::Error;

/// Why it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("x")]
pub struct Failure;

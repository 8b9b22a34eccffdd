//! Secrets.

/// A secret.
#[derive(Clone, Debug)]
pub struct Secret;

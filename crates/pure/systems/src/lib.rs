//! Mechanisms of published systems, one module each.

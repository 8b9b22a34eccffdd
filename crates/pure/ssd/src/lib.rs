//! One drive: compute-end and data-end joined.

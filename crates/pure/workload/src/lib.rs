//! Synthetic generators and replay of trace records.

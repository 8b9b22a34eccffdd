//! Trace file formats to and from records.

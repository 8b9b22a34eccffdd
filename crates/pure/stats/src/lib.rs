//! Counters, histograms, busy-time meters and series.

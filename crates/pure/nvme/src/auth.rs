//! Results of asynchronous events.

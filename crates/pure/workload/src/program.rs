//! The contract between programs that wait for what they ask and the machines that answer them.

use crate::source::SourceError;
use flashyard_blk::BlockRequest;
use flashyard_units::SimSpan;

/// The next thing that a thread of a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It issues a request and does not wait for it.
    Ask(BlockRequest),
    /// It computes for so long.
    Compute(SimSpan),
    /// It waits until all that it has asked for has completed.
    Wait,
    /// It ends. All that it has asked for still completes.
    End,
}

/// Threads that share what they work on, and wait for their requests.
///
/// A [`RequestSource`](crate::RequestSource) says in advance what is asked; here the answers decide which thread goes on, and
/// so what the next one finds.
pub trait Program: Send {
    /// Threads, at least one.
    fn threads(&self) -> u32;

    /// The next step of a thread, which has finished the one before it. It is called again after [`Step::Ask`] at once, after
    /// [`Step::Compute`] and [`Step::Wait`] when these are over.
    ///
    /// Errors: a program that cannot go on.
    fn next_step(&mut self, thread: u32) -> Result<Step, SourceError>;
}

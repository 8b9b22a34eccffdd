//! Commands that wait for a die or a channel, or are carried out.

use flashyard_flash::FlashCommand;
use flashyard_units::{SimSpan, SimTime};

/// Where the time of a flash command went, from submission to completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashTime {
    /// Array time without retries, and waiting for foreground commands on the die.
    pub die: SimSpan,
    /// Transfer, and waiting for foreground transfers on the channel.
    pub bus: SimSpan,
    /// Sensing again after an error.
    pub retry: SimSpan,
    /// Waiting for background commands on the die and their transfers on the channel.
    pub background: SimSpan,
}

#[derive(Clone, Copy)]
pub(crate) struct Queued {
    pub(crate) command: FlashCommand,
    pub(crate) next: u32,
    /// When the command began to wait for its die, and later for its channel; at last when its program began.
    pub(crate) waits_since: SimTime,
    /// Background clock of that die or channel at that moment.
    pub(crate) background_mark: SimSpan,
    pub(crate) time: FlashTime,
    pub(crate) uncorrected: bool,
    /// Passes of a program that are still to come.
    pub(crate) passes_left: u8,
}

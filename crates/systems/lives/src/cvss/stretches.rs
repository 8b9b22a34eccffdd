//! The course of a life whose requests follow each other: a beginning, and then stretches with time and without, in turn.

use super::error::CvssError;
use super::figures::CvssFigures;
use super::mounted::Mounted;
use super::stop::Stop;

/// A life in stretches.
pub(super) trait Stretches {
    /// Its drive and file system.
    fn mounted(&self) -> &Mounted;
    /// Stores what the program needs first.
    fn begin(&mut self) -> Result<(), Stop>;
    /// A timed stretch, and a sample of it.
    fn measure(&mut self) -> Result<(), Stop>;
    /// Requests without time, until the next stretch.
    fn go_on(&mut self) -> Result<(), Stop>;

    /// Continues to death, or until `observer`, which is called with the pages written, returns false.
    fn live_on(&mut self, observer: &mut dyn FnMut(u64) -> bool) -> Result<CvssFigures, CvssError> {
        let mut done = self.begin();
        loop {
            let death = match done {
                Ok(()) => None,
                Err(Stop::Death(cause)) => Some(cause),
                Err(Stop::Error(error)) => return Err(error),
            };
            if death.is_some() || !observer(self.mounted().written()) {
                return Ok(self.mounted().figures(death));
            }
            done = self.measure().and_then(|()| self.go_on());
        }
    }
}

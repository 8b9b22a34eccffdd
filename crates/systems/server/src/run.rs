//! A run from its beginning to the end of its plan.

use crate::config::ServerError;
use crate::figures::ServerFigures;
use crate::world::Server;
use flashyard_kernel::FreeRun;
use flashyard_measure::{Observer, StopRule, Streamed};
use flashyard_ssd::Drive;
use flashyard_units::SimTime;

impl Server {
    /// Runs to the end of the plan and returns the figures. `observer` hears of progress.
    ///
    /// Errors: a source that fails, a request beyond its volume, a drive that wears out, an observer that stops the run.
    pub fn run(mut self, observer: Observer<'_>) -> Result<ServerFigures, ServerError> {
        let horizon = self.horizon();
        self.start();
        if let StopRule::After(span) = self.bench.plan.stop
            && SimTime::ZERO + self.bench.plan.warmup + span > horizon
        {
            return Err(ServerError::BeyondTime { horizon: horizon.since(SimTime::ZERO) });
        }
        while let Some(now) = self.runner.advance(&mut FreeRun) {
            let event = self.runner.take();
            if self.bench.timeline.due() < now {
                // Beside the reading of figures, which is rare, this costs nothing.
                if now > horizon {
                    return Err(ServerError::BeyondTime { horizon: horizon.since(SimTime::ZERO) });
                }
                self.read_timeline(now);
            }
            self.handle(now, event);
            self.steps += 1;
            if self.steps & 0x3FFF == 0 && !observer(self.bench.progress(now)) {
                return Err(ServerError::Interrupted);
            }
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            if self.is_over() {
                break;
            }
        }
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        observer(1.0);
        Ok(ServerFigures::of(self))
    }

    /// The end of simulated time: the busy time of all dies, or of all cores, is added up in the same 64 bits.
    fn horizon(&self) -> SimTime {
        let servers = |drive: &Drive| drive.config().nand.geometry.dies().max(drive.compute.cores());
        let most = self.drives.iter().map(servers).max().unwrap_or(1);
        SimTime::from_ps(u64::MAX / u64::from(most.max(2)))
    }
}

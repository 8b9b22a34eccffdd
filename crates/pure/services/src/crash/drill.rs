//! How a world of a service carries out a case: requests, events and faults by turns.

use super::client::Client;
use super::machine::Machine;
use flashyard_faults::{Case, Fault, Injector, Outcome};
use flashyard_service::Service;
use flashyard_units::SimTime;

/// A client, and the service that it asks, under faults.
pub trait Drill: Sized {
    /// The service.
    type Service: Service;

    /// The client, and the service over its legs.
    fn parts(&mut self) -> (&mut Client, &mut Machine<Self::Service>);

    /// When something happens next without a fault.
    fn next_time(&mut self) -> Option<SimTime> {
        self.parts().1.next_time()
    }

    /// Lets the next thing happen, which is event number `event`.
    fn step(&mut self, event: u64);

    /// A fault strikes before event number `event`.
    fn strike(&mut self, fault: Fault, event: u64);

    /// Ends the case, once no request is left: all that is still to be looked at is.
    fn end(self, injector: Injector<'_>) -> Outcome;

    /// Whether requests may fail by now.
    fn may_fail(&mut self) -> bool {
        self.parts().1.has_failed()
    }

    /// The client gets its answers.
    fn take_answers(&mut self) {
        let may_fail = self.may_fail();
        let (client, machine) = self.parts();
        for answer in std::mem::take(&mut machine.answers) {
            client.answered(machine.now, &answer, |_| may_fail);
        }
    }

    /// The client asks for as much as it wants now.
    fn issue_more(&mut self) {
        loop {
            let (client, machine) = self.parts();
            let Some((request, blocks)) = client.next(machine.now) else { return };
            machine.submit(request, blocks);
            self.take_answers();
        }
    }

    /// Carries a case out. It counts as stuck after `events_max` events.
    fn run(mut self, case: &Case, events_max: u64) -> Outcome {
        let mut injector = Injector::new(&case.plan);
        self.issue_more();
        while injector.events() < events_max {
            let next = self.next_time();
            if let Some((fault, at)) = injector.due(next.unwrap_or(SimTime::MAX)) {
                let (_, machine) = self.parts();
                machine.now = machine.now.max(at.unwrap_or(machine.now));
                self.strike(fault, injector.events());
            } else if next.is_some() && !self.parts().0.is_over() {
                self.step(injector.events());
                injector.handled();
            } else {
                break;
            }
            self.issue_more();
        }
        self.end(injector)
    }
}

//! The shape of every component, and how a parent runs a child.

use crate::EventQueue;
use flashyard_units::SimTime;

/// A deterministic component. It owns its state and nothing else: no clock, no socket, no thread.
pub trait Machine {
    /// What it can be told: commands, child completions and its own timers.
    type Event;
    /// What it tells its owner: completions, data to move, trace records.
    type Effect;

    /// Handles one event at `now`. Time never goes backwards between calls.
    fn handle(&mut self, now: SimTime, event: Self::Event, out: &mut impl Outbox<Self::Event, Self::Effect>);
}

/// Something that can wake a machine later: the event queue, or an outbox around it.
pub trait Schedule<Event> {
    /// Schedules `event` for the machine itself at `when`.
    fn at(&mut self, when: SimTime, event: Event);
}

/// Where a machine puts its consequences. Owned by the caller, so a step allocates nothing.
pub trait Outbox<Event, Effect>: Schedule<Event> {
    /// Tells the owner of `effect`, in this same step.
    fn emit(&mut self, effect: Effect);
}

/// The outbox that a parent gives a child: timers are wrapped into the parent's events, effects land in
/// a buffer that the parent reads in the same step.
pub struct Nested<'a, Parent, W, Effect> {
    parent: &'a mut Parent,
    wrap: W,
    effects: &'a mut Vec<Effect>,
}

impl<'a, Parent, W, Effect> Nested<'a, Parent, W, Effect> {
    /// An outbox that schedules through `parent` after `wrap`, and collects into `effects`.
    pub fn new(parent: &'a mut Parent, wrap: W, effects: &'a mut Vec<Effect>) -> Self {
        Self { parent, wrap, effects }
    }
}

/// How a parent names a child's event among its own. Any function of the event will do.
pub trait Wrap<Child> {
    /// The parent's event type.
    type Parent;
    /// The child's event as the parent's.
    fn wrap(&self, child: Child) -> Self::Parent;
}

impl<Child, Parent, F: Fn(Child) -> Parent> Wrap<Child> for F {
    type Parent = Parent;

    #[inline]
    fn wrap(&self, child: Child) -> Parent {
        self(child)
    }
}

impl<E: Copy> Schedule<E> for EventQueue<E> {
    #[inline]
    fn at(&mut self, when: SimTime, event: E) {
        self.push(when, event);
    }
}

impl<Event, Effect, Parent, W> Schedule<Event> for Nested<'_, Parent, W, Effect>
where
    W: Wrap<Event>,
    Parent: Schedule<W::Parent>,
{
    #[inline]
    fn at(&mut self, when: SimTime, event: Event) {
        self.parent.at(when, self.wrap.wrap(event));
    }
}

impl<Event, Effect, Parent, W> Outbox<Event, Effect> for Nested<'_, Parent, W, Effect>
where
    W: Wrap<Event>,
    Parent: Schedule<W::Parent>,
{
    #[inline]
    fn emit(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}

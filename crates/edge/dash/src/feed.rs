//! From snapshots to frames for clients: the latest frame, and the past for those who come later.

use flashyard_report::{LiveEvent, Points, Snapshot};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, watch};

/// Events that every frame repeats, so that a client that skips frames misses none.
pub const EVENTS_KEPT: usize = 100;
/// Snapshots of the past that a new client gets: at ten snapshots a second, a minute of them.
pub const HISTORY_KEPT: usize = 150;
/// Least distance of these snapshots on the wall clock, in seconds. Of ten a second it keeps every fourth, although
/// they are not quite even: the page's charts want one in every half second.
pub const HISTORY_STEP_SECONDS: f64 = 0.35;

/// A snapshot and its JSON form, which is made once for all clients.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) json: Arc<str>,
}

/// Record of the past.
#[derive(Debug, Default)]
pub(crate) struct Past {
    events: VecDeque<LiveEvent>,
    /// Snapshots without events and points, as JSON.
    snapshots: VecDeque<Arc<str>>,
    /// Number and wall time of the newest of them.
    newest: Option<(u64, f64)>,
}

impl Past {
    /// Takes a snapshot in; returns it with the events that are kept.
    fn keep(&mut self, mut snapshot: Snapshot) -> Snapshot {
        if self.newest.is_some_and(|(number, _)| number >= snapshot.number) {
            // The numbers begin again: another run.
            *self = Self::default();
        }
        if self.newest.is_none_or(|(_, seconds)| snapshot.wall_seconds - seconds >= HISTORY_STEP_SECONDS) {
            self.newest = Some((snapshot.number, snapshot.wall_seconds));
            let thin = Snapshot { events: Vec::new(), points: Points::default(), ..snapshot.clone() };
            self.snapshots.extend(json(&thin));
            self.snapshots.drain(..self.snapshots.len().saturating_sub(HISTORY_KEPT));
        }
        self.events.append(&mut snapshot.events.into());
        self.events.drain(..self.events.len().saturating_sub(EVENTS_KEPT));
        snapshot.events = self.events.iter().cloned().collect();
        snapshot
    }

    /// The snapshots of the past as a JSON list, oldest first.
    pub(crate) fn history(&self) -> String {
        let all: Vec<&str> = self.snapshots.iter().map(|one| &**one).collect();
        format!("[{}]", all.join(","))
    }
}

/// A snapshot as JSON. There is no snapshot that JSON cannot hold: figures that are not finite become `null`.
fn json(snapshot: &Snapshot) -> Option<Arc<str>> {
    serde_json::to_string(snapshot).ok().map(Arc::from)
}

/// Turns published snapshots into frames until the publisher is gone.
pub(crate) async fn feed(
    mut published: mpsc::Receiver<Snapshot>,
    past: Arc<Mutex<Past>>,
    frames: watch::Sender<Option<Frame>>,
) {
    while let Some(snapshot) = published.recv().await {
        let snapshot = past.lock().unwrap_or_else(PoisonError::into_inner).keep(snapshot);
        if let Some(json) = json(&snapshot) {
            frames.send_replace(Some(Frame { snapshot: Arc::new(snapshot), json }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_report::{DrivePoints, LiveEventKind};
    use serde_json::Value;

    fn snapshot(number: u64, events: usize) -> Snapshot {
        let event = LiveEvent {
            number,
            time_seconds: 0.0,
            kind: LiveEventKind::Setting,
            drive: None,
            text: "changed".to_owned(),
        };
        let points = Points { drives: vec![DrivePoints::default()], ..Points::default() };
        let wall_seconds = number as f64 * 0.1;
        Snapshot { number, wall_seconds, events: vec![event; events], points, ..Snapshot::default() }
    }

    #[test]
    fn a_frame_repeats_the_events_of_the_frames_before_it() {
        let mut past = Past::default();
        past.keep(snapshot(0, 2));
        past.keep(snapshot(1, 0));
        assert_eq!(past.keep(snapshot(2, 1)).events.len(), 3);
        assert_eq!(past.keep(snapshot(3, 2 * EVENTS_KEPT)).events.len(), EVENTS_KEPT);
    }

    #[test]
    fn the_history_is_a_minute_without_points() {
        let mut past = Past::default();
        for number in 0..2_000 {
            past.keep(snapshot(number, 1));
        }
        let history: Value = serde_json::from_str(&past.history()).unwrap();
        let list = history.as_array().unwrap();
        assert_eq!(list.len(), HISTORY_KEPT);
        assert!(list.iter().all(|one| one["points"]["drives"] == Value::Array(Vec::new())));
        let begin = list[0]["wall_seconds"].as_f64().unwrap();
        assert!((139.0..=141.0).contains(&begin), "{begin}");
    }

    #[test]
    fn another_run_begins_without_a_past() {
        let mut past = Past::default();
        for number in 0..100 {
            past.keep(snapshot(number, 1));
        }
        assert_eq!(past.keep(snapshot(0, 0)).events, []);
        assert_eq!(serde_json::from_str::<Vec<Value>>(&past.history()).unwrap().len(), 1);
    }

    #[test]
    fn figures_that_are_not_finite_are_null() {
        let snapshot = Snapshot { noise_us: f64::NAN, ..Snapshot::default() };
        assert!(json(&snapshot).unwrap().contains("\"noise_us\":null"));
    }
}

//! The page of volumes that serve, and their figures for monitoring.

use crate::volume_control::status;
use anyhow::Result;
use flashyard_dash::{VolumesDash, VolumesFrame};
use flashyard_volumes::{VolumeHandle, VolumeStatus};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two statuses.
const STEP: Duration = Duration::from_millis(500);

/// A page that follows volumes until this is dropped.
pub(crate) struct VolumePage {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl VolumePage {
    /// Serves the page; returns it with its address.
    ///
    /// Errors: an address that cannot be listened on, or no thread.
    pub(crate) fn start(address: SocketAddr, handle: VolumeHandle) -> Result<(Self, String)> {
        let dash = VolumesDash::start(address)?;
        let url = dash.url();
        let ends = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&ends);
        let thread = std::thread::Builder::new().name("volume page".to_owned()).spawn(move || {
            let (mut then, mut before) = (Instant::now(), Vec::new());
            // The engine ends before this does, or is asked no more.
            while !asked.load(Ordering::Relaxed) {
                std::thread::sleep(STEP);
                let Ok(found) = handle.call(|engine| engine.status()) else { break };
                let now = Instant::now();
                let shown = status(&found, &before, (now - then).as_secs_f64());
                dash.publish(VolumesFrame { status: shown.to_string(), metrics: metrics(&found) });
                (then, before) = (now, found);
            }
        })?;
        Ok((Self { ends, thread: Some(thread) }, url))
    }
}

impl Drop for VolumePage {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nothing left to save.
            let _ = thread.join();
        }
    }
}

/// A metric: its name, kind and meaning, and its samples with their labels.
fn metric(text: &mut String, (name, kind, help): (&str, &str, &str), samples: &[(String, u64)]) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "# HELP flashyard_{name} {help}\n# TYPE flashyard_{name} {kind}");
    for (labels, value) in samples {
        let _ = writeln!(text, "flashyard_{name}{{{labels}}} {value}");
    }
}

/// A label's value, as the format wants it.
fn quoted(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

/// Counts of volumes in the text format of Prometheus.
fn metrics(volumes: &[VolumeStatus]) -> String {
    let mut text = String::new();
    let of_volumes = |value: &dyn Fn(&VolumeStatus) -> Option<u64>| -> Vec<(String, u64)> {
        let labels = |volume: &VolumeStatus| format!("volume=\"{}\"", quoted(&volume.name));
        volumes.iter().filter_map(|volume| Some((labels(volume), value(volume)?))).collect()
    };
    let kinds = ["read", "write", "trim", "flush"];
    let answered = volumes.iter().flat_map(|volume| {
        let labels = move |kind: &str| format!("volume=\"{}\",kind=\"{kind}\"", quoted(&volume.name));
        kinds.into_iter().zip(volume.answered).map(move |(kind, count)| (labels(kind), count))
    });
    let what = ("volume_requests_total", "counter", "Requests answered, those that failed included.");
    metric(&mut text, what, &answered.collect::<Vec<_>>());
    let what = ("volume_failed_total", "counter", "Requests that failed.");
    metric(&mut text, what, &of_volumes(&|volume| Some(volume.failed)));
    let what = ("volume_under_way", "gauge", "Requests under way.");
    metric(&mut text, what, &of_volumes(&|volume| Some(volume.under_way as u64)));
    let what = ("volume_copies_left_blocks", "gauge", "Blocks whose copies on legs of mirrors are to be made.");
    metric(&mut text, what, &of_volumes(&|volume| Some(volume.rebuild?.left)));
    let what = ("volume_moved_chunks_total", "counter", "Chunks that arrays have moved between their legs.");
    metric(&mut text, what, &of_volumes(&|volume| volume.moved));
    let legs = |value: &dyn Fn(&flashyard_volumes::LegStatus) -> [u64; 2]| -> Vec<(String, u64)> {
        let each = volumes.iter().flat_map(|volume| volume.legs.iter().enumerate().map(move |leg| (volume, leg)));
        let samples = each.flat_map(|(volume, (number, leg))| {
            let labels = format!("volume=\"{}\",leg=\"{number}\",name=\"{}\"", quoted(&volume.name), quoted(&leg.name));
            let [reads, writes] = value(leg);
            [(format!("{labels},kind=\"read\""), reads), (format!("{labels},kind=\"write\""), writes)]
        });
        samples.collect()
    };
    metric(
        &mut text,
        ("leg_orders_total", "counter", "Orders that a leg was given."),
        &legs(&|leg| leg.carried.orders),
    );
    metric(&mut text, ("leg_bytes_total", "counter", "Bytes of these orders."), &legs(&|leg| leg.carried.bytes));
    let lost = volumes.iter().flat_map(|volume| {
        let labels = move |(number, leg): (usize, &flashyard_volumes::LegStatus)| {
            let labels = format!("volume=\"{}\",leg=\"{number}\",name=\"{}\"", quoted(&volume.name), quoted(&leg.name));
            (labels, u64::from(leg.gone.is_some()))
        };
        volume.legs.iter().enumerate().map(labels)
    });
    let what = ("leg_lost", "gauge", "Whether a leg has ended, 1 if so.");
    metric(&mut text, what, &lost.collect::<Vec<_>>());
    text
}

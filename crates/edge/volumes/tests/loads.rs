//! Random load on volumes of every kind, with every byte compared.

use flashyard_live::{ChannelFront, Load, Wake, run_load};
use flashyard_units::SimSpan;
use flashyard_volumes::{OpenDrive, VolumeReport, Volumes, open};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn no_drive(_: &Path, _: Option<&Path>, _: u16, _: Wake) -> Result<OpenDrive, String> {
    Err("no drive is served".to_owned())
}

fn no_secret(_: &Path) -> Result<flashyard_nvmf::secret::Secret, String> {
    Err("there is none".to_owned())
}

/// Loads the volume that `keys` describe; returns its report.
fn loaded(keys: &str, requests: u64, seed: u64) -> VolumeReport {
    let folder = tempfile::tempdir().expect("there is room");
    let text = format!("[[volume]]\nname = \"v\"\n{keys}\n");
    let Volumes { mut engine, .. } = open(&text, folder.path(), no_secret, no_drive).expect("it is right");
    let info = engine.fronts_mut().volumes()[0];
    let mut front = ChannelFront::new(engine.fronts_mut().waker());
    let mut volume = front.connect().volume(info);
    engine.fronts_mut().add(Box::new(front));
    let patience = SimSpan::from_ms(60_000);
    // Requests meet, and are longer than an order of a LATTE and the space is larger than its front end.
    let load = Load { blocks: 4096, requests, depth: 16, blocks_max: 80, reads: 0.5, seed, patience };
    let over = AtomicBool::new(false);
    let (seen, mut reports) = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let seen = run_load(&mut volume, &load, || false);
            over.store(true, Ordering::Relaxed);
            seen
        });
        let reports = engine.run(|_| over.load(Ordering::Relaxed)).expect("it serves");
        (client.join().expect("no panic").expect("it answers"), reports)
    });
    assert!(seen.wrong.is_empty(), "{keys}: {:?}", seen.wrong);
    assert!(seen.compared > requests / 2, "{keys}: {} slots were compared", seen.compared);
    let report = reports.remove(0);
    assert!(report.failed == 0 && report.unflushed.is_none(), "{keys}: {report}");
    report
}

#[test]
fn storage_alone_returns_what_was_written() {
    loaded("back = { memory = \"16 MiB\" }", 5000, 1);
    loaded("back = { file = \"disk\", size = \"16 MiB\" }", 3000, 2);
    loaded("back = { memory = \"16 MiB\", latency = \"100 us\", iops = 20000, bandwidth = \"2 GB/s\" }", 2000, 3);
}

#[test]
fn services_over_two_ends_return_what_was_written() {
    let ends = [
        ("memory = \"8 MiB\"", "memory = \"16 MiB\", latency = \"50 us\""),
        ("memory = \"8 MiB\"", "file = \"disk\", size = \"16 MiB\""),
        ("file = \"front\", size = \"8 MiB\"", "memory = \"16 MiB\""),
        ("memory = \"8 MiB\"", "memory = \"16 MiB\""),
    ];
    for (seed, (front, back)) in (4..).zip(ends) {
        for rule in ["front", "back", "shortest"] {
            let keys = format!("service = \"latte\"\nrule = \"{rule}\"\nfront = {{ {front} }}\nback = {{ {back} }}");
            let latte = loaded(&keys, 1500, seed).latte.expect("it has one");
            assert!(rule != "front" || (latte.front_writes > 0 && latte.flushes > 0), "{latte:?}");
        }
        let keys = format!("service = \"cache\"\nfront = {{ {front} }}\nback = {{ {back} }}");
        let cache = loaded(&keys, 1500, seed).latte.expect("it has one");
        assert!(cache.hits > 0 && cache.promotions > 0 && cache.front_writes == 0, "{cache:?}");
    }
}

//! Drives of a scenario as storage of volumes: an engine on a thread of its own runs them.

use crate::worlds::{set_up_world, tempo_of};
use anyhow::{Context, Result, bail};
use flashyard_blk::VolumeInfo;
use flashyard_live::{ChannelFront, Client, Engine, SetUp, Wake};
use flashyard_scenario::{Overrides, Purpose, resolve_with};
use flashyard_served::Session;
use flashyard_volumes::OpenDrive;
use flashyard_workbench::Source;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

/// Runs the enclosure of the scenario at `path`, its bytes in `data` or in memory, and hands out its exported volume `number`.
///
/// Errors: everything for which `flashyard serve` would refuse it, in one line.
pub(crate) fn open(path: &Path, data: Option<&Path>, number: u16, wake: Wake) -> Result<OpenDrive, String> {
    // A name of a scenario that the program carries has no file.
    let bare = path.file_name().map(Path::new).filter(|_| !path.exists());
    let path = bare.unwrap_or(path).to_owned();
    let (data, stop) = (data.map(Path::to_owned), Arc::new(AtomicBool::new(false)));
    let (name, stopped) = (path.display().to_string(), Arc::clone(&stop));
    let (ready, begun) = channel();
    let thread = std::thread::spawn(move || {
        let opened = engine(&path, data.as_deref(), number, wake);
        let (engine, client, info) = match opened {
            Ok(opened) => opened,
            Err(error) => return drop(ready.send(Err(format!("{error:#}")))),
        };
        let waker = engine.waker();
        // It looks a few times a second anyway.
        let wake: Wake = Box::new(move || _ = waker.wake());
        if ready.send(Ok((client, info, wake))).is_err() {
            return;
        }
        match engine.run(|_| stopped.load(Ordering::Relaxed)) {
            Ok(_) => {}
            Err(error) => {
                tracing::error!("{}: its drives have ended: {:#}", path.display(), anyhow::Error::from(error))
            }
        }
    });
    let (client, info, wake) = begun.recv().map_err(|_| format!("{name}: its drives cannot be run"))??;
    let engine = Box::new(Running { stop, wake, thread: Some(thread) });
    Ok(OpenDrive { client, info, engine, name })
}

/// An engine with one client inside this program.
fn engine(path: &Path, data: Option<&Path>, number: u16, wake: Wake) -> Result<(Engine, Client, VolumeInfo)> {
    let source = Source::open(path, None)?;
    let resolved = resolve_with(&source.text, &source.origin, &Overrides::default(), source.files)?;
    resolved.refuse_idle_flags(Purpose::Serve)?;
    let (SetUp { world, media, .. }, exports) = set_up_world(&resolved, data, source.files)?;
    let count = exports.len();
    let Some(volume) = exports.get(usize::from(number)) else {
        bail!("{}: it exports {count} volumes, and there is no number {number}", source.origin);
    };
    let (session, tempo) = (Session::new(world, None), tempo_of(resolved.scenario.serve.pace));
    let mut engine = Engine::new(session, media, &[*volume], tempo).context("the engine cannot begin")?;
    let info = engine.volumes()[0];
    let mut front = ChannelFront::new(engine.waker());
    let client = front.connect_with(Some(wake));
    engine.add_front(Box::new(front));
    Ok((engine, client, info))
}

/// An engine on its thread; dropped, it closes its media in order.
struct Running {
    stop: Arc<AtomicBool>,
    wake: Wake,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        (self.wake)();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the engine of a drive has failed");
        }
    }
}

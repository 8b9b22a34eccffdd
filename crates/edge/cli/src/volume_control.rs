//! The control socket of volumes that are served: their trees with rates, legs that are replaced, numbers of services.
//!
//! ```text
//! {"command":"status"}                                                       {"ok":true,"status":{"volumes":[...]}}
//! {"command":"replace","volume":"v","leg":1,"storage":"file = \"new\""}    {"ok":true}
//! {"command":"add","volume":"v","place":"s0","service":"service = \"priority\""}   {"ok":true}
//! {"command":"remove","volume":"v","place":"s0"}                             {"ok":true}
//! {"command":"attach","volume":"v","place":"s0","storage":"file = \"new\""}  {"ok":true}
//! {"command":"detach","volume":"v","leg":1}                                  {"ok":true}
//! {"command":"take","volume":"v"}                                            {"ok":true,"status":{"slot":1}}
//! {"command":"drop","volume":"v","slot":1}                                   {"ok":true}
//! {"command":"set","volume":"v","name":"batch_one_in","value":5}             {"ok":true}
//! ```

use crate::control::ControlSocket;
use anyhow::{Context, Result, bail};
use flashyard_volumes::{Carried, Part, Place, VolumeHandle, VolumeStatus};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Counts when they were asked for last.
type Last = Arc<Mutex<(Instant, Vec<VolumeStatus>)>>;

/// Listens at `path` for volumes.
pub(crate) fn open(path: &Path, handle: VolumeHandle) -> Result<ControlSocket> {
    let last: Last = Arc::new(Mutex::new((Instant::now(), Vec::new())));
    ControlSocket::listen(path, move |line| carry_out(line, &handle, &last))
}

fn carry_out(line: &str, handle: &VolumeHandle, last: &Last) -> Result<Option<Value>> {
    let command: Value = serde_json::from_str(line).context("this is no line of JSON")?;
    let text = |key: &str| {
        let text = command[key].as_str().map(str::to_owned);
        text.with_context(|| format!("{key:?} is {}, give a text", command[key]))
    };
    let number =
        |key: &str| command[key].as_u64().with_context(|| format!("{key:?} is {}, give a whole number", command[key]));
    match command["command"].as_str().unwrap_or_default() {
        "status" => {
            let now = Instant::now();
            let found = handle.call(|engine| engine.status())?;
            let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let seconds = (now - last.0).as_secs_f64();
            let status = status(&found, &last.1, seconds);
            *last = (now, found);
            return Ok(Some(status));
        }
        "replace" => {
            let (volume, leg, storage) = (text("volume")?, number("leg")?, text("storage")?);
            handle.replace(&volume, leg as usize, &storage)?;
        }
        "add" => {
            let (volume, place, keys) = (text("volume")?, text("place")?.parse::<Place>()?, text("service")?);
            let _alone = change()?;
            handle.insert(&volume, place, &keys)?;
            changed(handle, &volume)?;
        }
        "remove" => {
            let (volume, place) = (text("volume")?, text("place")?.parse::<Place>()?);
            let Place::Service(service) = place else {
                bail!("a leg is detached from its mirror, not removed; a service is s0 and so on");
            };
            let name = volume.clone();
            let _alone = change()?;
            handle.call(move |engine| engine.leave(&name, service))??;
            changed(handle, &volume)?;
        }
        "attach" => {
            let (volume, place, storage) = (text("volume")?, text("place")?.parse::<Place>()?, text("storage")?);
            let Place::Service(service) = place else {
                bail!("storage is attached to a mirror, which is s0 and so on")
            };
            handle.attach(&volume, service, &storage)?;
        }
        "detach" => {
            let (volume, leg) = (text("volume")?, number("leg")?);
            handle.call(move |engine| engine.detach(&volume, leg as usize))??;
        }
        "take" => {
            let volume = text("volume")?;
            let slot = handle.call(move |engine| engine.take_version(&volume))??;
            return Ok(Some(json!({ "slot": slot })));
        }
        "drop" => {
            let (volume, slot) = (text("volume")?, number("slot")?);
            let slot = u32::try_from(slot).context("there is no version of this number")?;
            handle.call(move |engine| engine.drop_version(&volume, slot))??;
        }
        "set" => {
            let (volume, name, value) = (text("volume")?, text("name")?, number("value")?);
            handle.call(move |engine| engine.set(&volume, &name, value))??;
        }
        _ => bail!(
            "\"command\" is {}, give status, add, remove, attach, detach, replace, take, drop or set",
            command["command"]
        ),
    }
    Ok(None)
}

/// Changes of trees come one after the other: each takes the one result that a volume keeps.
static CHANGING: Mutex<()> = Mutex::new(());

/// The right to change a tree.
///
/// Errors: another command changes one.
fn change() -> Result<MutexGuard<'static, ()>> {
    match CHANGING.try_lock() {
        Ok(alone) => Ok(alone),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => bail!("it is being changed already; try again"),
    }
}

/// Waits until a change of the tree has its result.
fn changed(handle: &VolumeHandle, volume: &str) -> Result<()> {
    loop {
        let volume = volume.to_owned();
        if let Some(result) = handle.call(move |engine| engine.reshaped(&volume))?? {
            return Ok(result?);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The volumes with their rates since `before`.
pub(crate) fn status(found: &[VolumeStatus], before: &[VolumeStatus], seconds: f64) -> Value {
    let volume = |volume: &VolumeStatus| {
        let then = before.iter().find(|then| then.name == volume.name);
        let answered = |of: &VolumeStatus| of.answered.iter().sum::<u64>();
        let leg = |number: usize| {
            let now = &volume.legs[number];
            let then = then.and_then(|then| then.legs.get(number)).map_or_else(Carried::default, |leg| leg.carried);
            let per_second =
                |now: u64, then: u64| if seconds > 0.0 { now.saturating_sub(then) as f64 / seconds } else { 0.0 };
            json!({
                "leg": number,
                "name": now.name,
                "state": if now.gone.is_some() { "lost" } else { "ready" },
                "why": now.gone,
                "note": now.note,
                "queue_depth": now.under_way,
                "reads_per_s": per_second(now.carried.orders[0], then.orders[0]),
                "writes_per_s": per_second(now.carried.orders[1], then.orders[1]),
                "read_bytes_per_s": per_second(now.carried.bytes[0], then.bytes[0]),
                "write_bytes_per_s": per_second(now.carried.bytes[1], then.bytes[1]),
            })
        };
        json!({
            "name": volume.name,
            "tree": tree_of(&volume.part, &leg),
            "queue_depth": volume.under_way,
            "iops": answered(volume).saturating_sub(then.map_or(0, answered)) as f64 / seconds.max(1e-9),
            "answered": volume.answered,
            "failed": volume.failed,
            "versions": volume.versions,
            "moved_chunks": volume.moved,
            "rebuild": volume.rebuild.map(|rebuild| {
                let done = rebuild.all.saturating_sub(rebuild.left);
                json!({ "left_blocks": rebuild.left, "share": done as f64 / rebuild.all.max(1) as f64 })
            }),
        })
    };
    json!({ "interval_seconds": seconds, "volumes": found.iter().map(volume).collect::<Vec<_>>() })
}

fn tree_of(part: &Part, leg: &impl Fn(usize) -> Value) -> Value {
    match part {
        Part::Leg(number) => leg(*number),
        Part::Service { number, name, note, below } => {
            json!({ "service": name, "number": number, "note": note, "below": below.iter().map(|part| tree_of(part, leg)).collect::<Vec<_>>() })
        }
    }
}

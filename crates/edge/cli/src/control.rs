//! The control socket of an enclosure that serves, and `flashyard ctl`: a line of JSON asks, a line of JSON answers.
//!
//! ```text
//! {"command":"pull","drive":3}                      {"ok":true}
//! {"command":"link","drive":99,"up":false}          {"ok":false,"error":"there is no drive 99, give 0 to 11"}
//! {"command":"resize","drive":0,"namespace":2,"bytes":536870912}   {"ok":true}
//! {"command":"status"}                              {"ok":true,"status":{...}}
//! ```
//!
//! A user that may write to the socket may control the enclosure: the socket is made for its owner only.

use crate::arguments::{AgeLevel, CtlOptions, NamespaceName, Switch};
use crate::{Outcome, output, status, unchanged};
use anyhow::{Context, Result, anyhow, bail, ensure};
use flashyard_live::{Changed, EngineAccess, Handle, Reader, SocketPath};
use flashyard_served::{Control, CoreLoan, Gauges, MemoryLoan, Presence};
use flashyard_units::{DriveId, SimSpan};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Bytes of a line at most.
const LINE_MAX: u64 = 4096;
/// How long a server may take for an answer: opening storage elsewhere takes seconds.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// A socket that is there as long as this is.
pub(crate) struct ControlSocket(#[expect(dead_code, reason = "its end removes the socket")] SocketPath);

impl ControlSocket {
    /// Listens at `path` on threads of their own, for an enclosure.
    pub(crate) fn open(path: &Path, handle: Handle) -> Result<Self> {
        Self::listen(path, move |line| carry_out(line, &handle))
    }

    /// Listens at `path` on threads of their own. `answer` carries out a line.
    pub(crate) fn listen(
        path: &Path,
        answer: impl Fn(&str) -> Result<Option<Value>> + Clone + Send + 'static,
    ) -> Result<Self> {
        let (name, listener) = SocketPath::listen(path).with_context(|| format!("--control {}", path.display()))?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answer = answer.clone();
                std::thread::spawn(move || serve(&stream, &answer));
            }
        });
        Ok(Self(name))
    }
}

/// Answers one connection, line by line, until it ends.
fn serve(stream: &UnixStream, answer: &impl Fn(&str) -> Result<Option<Value>>) {
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let read = std::io::Read::take(&mut lines, LINE_MAX).read_until(b'\n', &mut line);
        if !matches!(read, Ok(length) if length > 0) {
            return;
        }
        let is_whole = line.ends_with(b"\n");
        let answer = match if is_whole { text_of(&line).and_then(answer) } else { Err(no_end(&line)) } {
            Ok(Some(status)) => json!({ "ok": true, "status": status }),
            Ok(None) => json!({ "ok": true }),
            Err(error) => json!({ "ok": false, "error": output::told(&error) }),
        };
        let mut out = stream;
        // Nothing of a line that is too long may be taken for another one.
        if writeln!(out, "{answer}").is_err() || !is_whole {
            return;
        }
    }
}

fn text_of(line: &[u8]) -> Result<&str> {
    std::str::from_utf8(line).context("this is no line of JSON")
}

/// Why a line is not carried out.
fn no_end(line: &[u8]) -> anyhow::Error {
    match line.len() as u64 {
        LINE_MAX => anyhow!("a line has at most {LINE_MAX} bytes"),
        _ => anyhow!("a line ends with a newline"),
    }
}

fn carry_out(line: &str, handle: &Handle) -> Result<Option<Value>> {
    let command: Value = serde_json::from_str(line).context("this is no line of JSON")?;
    if command["command"] == "status" {
        return Ok(Some(handle.call(figures)?));
    }
    if command["command"] == "port" {
        let address = command["address"].as_str().and_then(|text| text.parse().ok());
        let address = address.with_context(|| format!("\"address\" is {}, give ADDRESS:PORT", command["address"]))?;
        let up = command["up"].as_bool().context("\"up\" is missing, give true or false")?;
        handle.call(move |engine| engine.port(address, up))??;
        return Ok(None);
    }
    if command["command"] == "resize" {
        resize(&command, handle)?;
        return Ok(None);
    }
    let control = parse(&command)?;
    let note = handle.call(move |engine| -> Result<Option<String>> {
        let world = engine.session().world();
        if let Control::Pull { drive } = control {
            ensure!(drive.get() >= world.drives() || !world.is_pulled(drive), "drive {drive} is pulled out already");
        }
        let note = unchanged::note(&control, world);
        engine.control(control)?;
        Ok(note)
    })??;
    Ok(note.map(|note| json!({ "note": note })))
}

/// Gives a namespace another size, and waits for that: blocks that it loses are deallocated first.
fn resize(command: &Value, handle: &Handle) -> Result<()> {
    let drive = drive_of(command)?;
    let nsid = command["namespace"].as_u64().and_then(|nsid| u32::try_from(nsid).ok());
    let nsid = nsid.with_context(|| format!("\"namespace\" is {}, give its number from 1", command["namespace"]))?;
    let bytes = command["bytes"].as_u64();
    let bytes = bytes.with_context(|| format!("\"bytes\" is {}, give a number of bytes", command["bytes"]))?;
    let changed = handle.call(move |engine| -> Result<Changed> {
        let drives = engine.session().world().drives();
        ensure!(drive.get() < drives, "there is no drive {drive}, give 0 to {}", drives.saturating_sub(1));
        Ok(engine.resize(drive, nsid, bytes))
    })??;
    let done = changed.recv().context("the server has ended before that was done")?;
    done.with_context(|| format!("drive-{drive}/{nsid} keeps its size")).map(drop)
}

fn drive_of(command: &Value) -> Result<DriveId> {
    let drive = command["drive"].as_u64().and_then(|drive| u16::try_from(drive).ok()).map(DriveId::new);
    drive.with_context(|| format!("\"drive\" is {}, give the number of a drive", command["drive"]))
}

/// A control from its JSON form.
fn parse(command: &Value) -> Result<Control> {
    let drive = || drive_of(command);
    let flag = |key: &str| -> Result<bool> {
        command[key].as_bool().with_context(|| format!("{key:?} is {}, give true or false", command[key]))
    };
    let number = |key: &str| -> Result<f64> {
        command[key].as_f64().with_context(|| format!("{key:?} is {}, give a number", command[key]))
    };
    Ok(match command["command"].as_str().unwrap_or_default() {
        "pull" => Control::Pull { drive: drive()? },
        "insert" => Control::Insert { drive: drive()? },
        "power" if flag("on")? => Control::PowerOn,
        "power" => Control::PowerOff,
        "link" => Control::Link { drive: drive()?, up: flag("up")? },
        "hang" => {
            let ms = number("ms")?;
            if !(0.0..=3_600_000.0).contains(&ms) {
                bail!("\"ms\" is {ms}, give 0 to 3600000");
            }
            Control::Hang { drive: drive()?, span: SimSpan::from_ns_f64(ms * 1e6) }
        }
        "age" if command.get("level").is_some() => Control::Wear { drive: drive()?, level: number("level")? },
        "age" => Control::Age { drive: drive()?, raw_bit_error_rate: number("raw_bit_error_rate")? },
        "harvest" => Control::Harvest { on: flag("on")? },
        _ => {
            bail!(
                "\"command\" is {}, give pull, insert, power, link, port, hang, age, resize, harvest or status; add, remove, attach, detach, replace, take, drop and set are for volumes",
                command["command"]
            )
        }
    })
}

/// Figures since they were asked for last.
fn figures(engine: &mut EngineAccess<'_>) -> Value {
    let gauges = engine.gauges(Reader::Operator);
    let world = engine.session().world();
    let states: Vec<_> =
        DriveId::first(world.drives()).map(|drive| world.capacity(drive).map(|capacity| capacity.states)).collect();
    let late = &engine.lateness().answers;
    let Gauges { at, span, drives, processor_lent, memory_lent, harvests, .. } = &gauges;
    let seconds = span.as_secs_f64();
    let per_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let drives: Vec<Value> = drives
        .iter()
        .enumerate()
        .map(|(number, drive)| {
            json!({
                "drive": number,
                "state": match drive.presence {
                    _ if drive.pulled => "pulled out",
                    Presence::Ready => "ready",
                    Presence::NoPower => "no power",
                    Presence::NoLink => "no link",
                    Presence::Starting => "starting",
                },
                "queue_depth": drive.depth,
                "iops": per_second(drive.ios),
                "read_bytes_per_s": per_second(drive.read_bytes),
                "write_bytes_per_s": per_second(drive.write_bytes),
                "latency_us": {
                    "mean": drive.latency.mean_us(),
                    "p50": drive.latency.percentile_us(0.5),
                    "p99": drive.latency.percentile_us(0.99),
                    "max": drive.latency.max_us(),
                },
                "processor_utilization": drive.processor,
                "lent_utilization": drive.lent,
                "bus_utilization": drive.bus,
                "die_utilization": drive.die,
                "mapping_miss_ratio": drive.miss_ratio(),
                "redirected_share": drive.redirected,
                "erases_mean": drive.health.erases_mean,
                "raw_bit_error_rate": drive.health.raw_bit_error_rate,
                "used_share": drive.health.endurance.map(|nominal| drive.health.used(nominal)),
                "spare_share": drive.health.spare(),
                "read_retries": drive.health.read_retries,
                "media_errors": drive.health.media_errors,
                "superblocks": states[number].map(|wear| {
                    json!({ "young": wear.young, "middle_aged": wear.middle_aged, "retired": wear.retired })
                }),
            })
        })
        .collect();
    let cores = processor_lent.iter().map(|&CoreLoan { lender, borrower, cores }| {
        json!({ "lender": lender.get(), "borrower": borrower.get(), "cores": cores })
    });
    let segments = memory_lent.iter().map(|&MemoryLoan { lender, borrower, segments }| {
        json!({ "lender": lender.get(), "borrower": borrower.get(), "segments": segments })
    });
    json!({
        "time_seconds": at.as_secs_f64(),
        "interval_seconds": seconds,
        "harvest": harvests,
        "lateness_us": { "p50": late.percentile_us(0.5), "p99": late.percentile_us(0.99), "max": late.max_us() },
        "processors_lent": cores.collect::<Vec<_>>(),
        "memory_lent": segments.collect::<Vec<_>>(),
        "drives": drives,
    })
}

/// `flashyard ctl`.
pub(crate) fn ctl(options: &CtlOptions) -> Result<Outcome> {
    let answer = ask(options)?;
    if answer["ok"] != true {
        bail!("{}", answer["error"].as_str().unwrap_or("refused without a word"));
    }
    if let Some(note) = answer["status"]["note"].as_str() {
        output::line(note);
    }
    if let (Some(found), Switch::Take { .. }) = (answer.get("status"), &options.command) {
        output::line(&found["slot"].to_string());
    }
    if let (Some(found), &Switch::Status { json, drive }) = (answer.get("status"), &options.command) {
        print_status(found, json, drive)?;
    }
    Ok(Outcome::Done)
}

/// The line that a command is to a server.
fn line_of(command: &Switch) -> Value {
    match command {
        &Switch::Pull { drive } => json!({ "command": "pull", "drive": drive }),
        &Switch::Insert { drive } => json!({ "command": "insert", "drive": drive }),
        Switch::PowerCut => json!({ "command": "power", "on": false }),
        Switch::PowerRestore => json!({ "command": "power", "on": true }),
        &Switch::Link { drive, state } => json!({ "command": "link", "drive": drive, "up": state.is_on() }),
        &Switch::Hang { drive, ms } => json!({ "command": "hang", "drive": drive, "ms": ms }),
        &Switch::Age { drive, level: AgeLevel::Used(level) } => {
            json!({ "command": "age", "drive": drive, "level": level })
        }
        &Switch::Age { drive, level: AgeLevel::ErrorRate(rate) } => {
            json!({ "command": "age", "drive": drive, "raw_bit_error_rate": rate })
        }
        &Switch::Resize { namespace: NamespaceName { drive, nsid }, size } => {
            json!({ "command": "resize", "drive": drive, "namespace": nsid, "bytes": size })
        }
        Switch::Harvest { state } => json!({ "command": "harvest", "on": state.is_on() }),
        Switch::Port { address, state } => {
            json!({ "command": "port", "address": address.to_string(), "up": state.is_on() })
        }
        Switch::Replace { volume, leg, storage } => {
            json!({ "command": "replace", "volume": volume, "leg": leg, "storage": storage })
        }
        Switch::Add { volume, place, service } => {
            json!({ "command": "add", "volume": volume, "place": place, "service": service })
        }
        Switch::Remove { volume, place } => json!({ "command": "remove", "volume": volume, "place": place }),
        Switch::Attach { volume, place, storage } => {
            json!({ "command": "attach", "volume": volume, "place": place, "storage": storage })
        }
        Switch::Detach { volume, leg } => json!({ "command": "detach", "volume": volume, "leg": leg }),
        Switch::Take { volume } => json!({ "command": "take", "volume": volume }),
        Switch::Drop { volume, slot } => json!({ "command": "drop", "volume": volume, "slot": slot }),
        Switch::Set { volume, name, value } => {
            json!({ "command": "set", "volume": volume, "name": name, "value": value })
        }
        Switch::Status { .. } => json!({ "command": "status" }),
    }
}

/// Sends the command to the server, and reads its answer.
fn ask(options: &CtlOptions) -> Result<Value> {
    let path = options.control.display();
    let stream = UnixStream::connect(&options.control).with_context(|| format!("{path}: no server listens there"))?;
    let mut out = &stream;
    // Deallocation takes a drive as long as it takes.
    let patience = if let Switch::Resize { .. } = options.command { None } else { Some(ANSWER_MAX) };
    stream.set_read_timeout(patience).with_context(|| path.to_string())?;
    writeln!(out, "{}", line_of(&options.command)).with_context(|| path.to_string())?;
    let mut line = Vec::new();
    let read = BufReader::new(&stream).read_until(b'\n', &mut line);
    if read.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock) {
        bail!(
            "{path}: no answer for {} s: the server stands still, or this is no control socket",
            ANSWER_MAX.as_secs()
        );
    }
    read.with_context(|| path.to_string())?;
    serde_json::from_slice(&line)
        .ok()
        .with_context(|| format!("{path}: the answer makes no sense: this is no control socket of `flashyard serve`"))
}

/// Prints the status of a server: of its volumes, or of its drives.
fn print_status(found: &Value, json: bool, drive: Option<u16>) -> Result<()> {
    if found.get("volumes").is_some() {
        if json {
            output::json(found)
        } else {
            output::line(&status::tree(found))
        }
        return Ok(());
    }
    let found = status::of_drive(found, drive)?;
    if json {
        output::json(&found)
    } else {
        output::line(&status::table(&found))
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Answers of a server to these bytes, after which nothing comes.
    fn answers(bytes: &[u8]) -> Vec<Value> {
        let (client, server) = UnixStream::pair().expect("a pair of sockets can be made");
        let thread = std::thread::spawn(move || serve(&server, &|line: &str| Ok(Some(json!(line.trim_end())))));
        (&client).write_all(bytes).expect("it is taken");
        client.shutdown(std::net::Shutdown::Write).expect("it is connected");
        let mut text = String::new();
        (&client).read_to_string(&mut text).expect("it is text");
        thread.join().expect("it ends");
        text.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect()
    }

    #[test]
    fn each_line_has_one_answer_and_the_rest_of_a_long_one_is_no_line() {
        assert_eq!(answers(b"a\nb\n"), [json!({ "ok": true, "status": "a" }), json!({ "ok": true, "status": "b" })]);
        let long = [vec![b' '; LINE_MAX as usize], b"{}\n".to_vec()].concat();
        assert_eq!(answers(&long), [json!({ "ok": false, "error": "a line has at most 4096 bytes" })]);
        let whole = [vec![b' '; LINE_MAX as usize - 2], b"x\n".to_vec()].concat();
        assert_eq!(answers(&whole)[0]["ok"], true);
        assert_eq!(answers(b"a\nb")[1], json!({ "ok": false, "error": "a line ends with a newline" }));
        let refused = &answers(b"\xff\xfe\n")[0];
        assert!(refused["error"].as_str().is_some_and(|why| why.starts_with("this is no line of JSON")), "{refused}");
    }
}

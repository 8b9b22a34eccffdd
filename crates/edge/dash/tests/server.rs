//! The dashboard over loopback, with a client that knows no more HTTP than it must.

use flashyard_dash::{CONNECTIONS_MAX, CONTROL_BYTES_MAX, Control, Dash, HESITATION_MAX, STREAMS_MAX};
use flashyard_report::{DrivePoints, DriveSnapshot, LiveCommand, LiveEvent, LiveEventKind, Points, Snapshot};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);

fn snapshot(number: u64) -> Snapshot {
    let drive = |name: &str| DriveSnapshot { name: name.to_owned(), ..DriveSnapshot::default() };
    let event = LiveEvent {
        number,
        time_seconds: 1.0,
        kind: LiveEventKind::Lost,
        drive: Some("busy-0".to_owned()),
        text: "pulled\nout".to_owned(),
    };
    Snapshot {
        number,
        wall_seconds: number as f64 * 0.1,
        drives: vec![drive("busy-0"), drive("idle-1")],
        events: vec![event],
        ..Snapshot::default()
    }
}

/// A snapshot of about a megabyte: a socket's buffers hold few.
fn large(number: u64) -> Snapshot {
    let points = DrivePoints { read_bytes_per_s: vec![0.123_456_789; 80_000], ..DrivePoints::default() };
    Snapshot { points: Points { drives: vec![points], ..Points::default() }, ..snapshot(number) }
}

/// A dashboard, and the commands that it hands on. Those for the harvest are refused.
fn start() -> (Dash, Receiver<LiveCommand>) {
    let (sender, commands) = channel();
    let control: Control = Box::new(move |command| match command {
        LiveCommand::Harvest { .. } => Err("this design does not lend".to_owned()),
        command => sender.send(command).map_err(|error| error.to_string()),
    });
    (Dash::start(SocketAddr::from(([127, 0, 0, 1], 0)), control).expect("a free port is there"), commands)
}

fn connect(dash: &Dash) -> TcpStream {
    let stream = TcpStream::connect(dash.address()).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream
}

/// Status, headers and body of a whole answer. `head` holds the request line and further headers.
fn ask_as(dash: &Dash, host: &str, head: &str, body: &str) -> (u16, String, String) {
    let mut stream = connect(dash);
    let length = body.len();
    let (line, rest) = head.split_once("\r\n").unwrap_or((head, ""));
    let rest = if rest.is_empty() { String::new() } else { format!("{rest}\r\n") };
    let request =
        format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{rest}\r\n{body}");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    (
        head.split(' ').nth(1).expect("an answer of HTTP").parse().expect("an answer of HTTP"),
        head.to_ascii_lowercase(),
        body.to_owned(),
    )
}

fn ask(dash: &Dash, head: &str, body: &str) -> (u16, String, String) {
    ask_as(dash, &dash.address().to_string(), head, body)
}

/// A command as a program gives it that knows the token.
fn command(dash: &Dash, headers: &str, body: &str) -> (u16, String) {
    let token = format!("\r\nAuthorization: Bearer {}", dash.token());
    let (status, _, answer) =
        ask(dash, &format!("POST /control\r\nContent-Type: application/json{token}{headers}"), body);
    (status, answer)
}

/// Publishes and waits until it is the latest.
fn show(dash: &mut Dash, snapshot: Snapshot) {
    let number = snapshot.number;
    dash.publish(snapshot);
    let begin = Instant::now();
    while latest(dash).is_none_or(|shown| shown["number"] != number) {
        assert!(begin.elapsed() < PATIENCE, "snapshot {number} is not shown");
        sleep(Duration::from_millis(2));
    }
}

fn latest(dash: &Dash) -> Option<Value> {
    let (status, _, body) = ask(dash, "GET /snapshot", "");
    (status == 200).then(|| serde_json::from_str(&body).expect("a snapshot is JSON"))
}

/// A stream of events, after its headers.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(dash: &Dash) -> (u16, Self) {
        let mut stream = connect(dash);
        write!(stream, "GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", dash.address()).expect("an answer of HTTP");
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).expect("an answer of HTTP");
        (line.split(' ').nth(1).expect("an answer of HTTP").parse().expect("an answer of HTTP"), Self(reader))
    }

    /// The next line with this field; `None` at the end of the stream.
    fn field(&mut self, name: &str) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line).expect("an answer of HTTP") == 0 {
                return None;
            }
            if let Some(rest) = line.trim_end().strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")) {
                return Some(rest.to_owned());
            }
        }
    }

    fn data(&mut self) -> Option<Value> {
        self.field("data").map(|data| serde_json::from_str(&data).expect("data is JSON"))
    }
}

#[test]
fn a_stream_begins_with_the_past_and_goes_on_with_what_is_published() {
    let (mut dash, _commands) = start();
    show(&mut dash, snapshot(1));
    let (status, mut events) = Events::open(&dash);
    assert_eq!(status, 200);
    assert_eq!(events.field("event").unwrap(), "history");
    let history = events.data().unwrap();
    assert_eq!(history[0]["drives"][0]["name"], "busy-0");
    assert_eq!(events.data().unwrap()["number"], 1);
    for number in 2..20 {
        dash.publish(snapshot(number));
        let shown = events.data().unwrap();
        assert_eq!(shown["number"], number);
        let texts = shown["events"].as_array().unwrap();
        assert_eq!(texts.len() as u64, number, "a frame repeats the events before it");
        assert_eq!(texts[0]["text"], "pulled\nout");
    }
}

/// A client that has begun a request and does not go on.
fn hesitant(dash: &Dash) -> TcpStream {
    let mut stream = connect(dash);
    stream.write_all(b"GET /sna").expect("it reads");
    stream
}

/// Whether the server ends the connection within `patience`.
fn ends_within(stream: &mut TcpStream, patience: Duration) -> bool {
    stream.set_read_timeout(Some(patience)).expect("not zero");
    matches!(stream.read(&mut [0; 4096]), Ok(0))
}

#[test]
fn clients_that_hesitate_are_left_after_a_while_and_those_that_watch_are_not() {
    let (mut dash, _commands) = start();
    show(&mut dash, snapshot(1));
    let (_, mut events) = Events::open(&dash);
    let (mut begun, mut silent, mut idle) = (hesitant(&dash), connect(&dash), connect(&dash));
    write!(idle, "GET /snapshot HTTP/1.1\r\nHost: {}\r\n\r\n", dash.address()).expect("it reads");
    assert!(idle.read(&mut [0; 1 << 16]).expect("it is answered") > 0);
    for stream in [&mut begun, &mut silent, &mut idle] {
        assert!(ends_within(stream, HESITATION_MAX + Duration::from_secs(5)));
    }
    dash.publish(snapshot(2));
    let shown = std::iter::from_fn(|| events.data()).find(|shown| shown["number"] == 2);
    assert!(shown.is_some(), "the stream goes on");
}

#[test]
fn connections_beyond_as_many_as_may_be_wait_for_their_turn() {
    let (mut dash, _commands) = start();
    show(&mut dash, snapshot(1));
    let mut held: Vec<TcpStream> = (0..CONNECTIONS_MAX).map(|_| hesitant(&dash)).collect();
    let mut next = connect(&dash);
    write!(next, "GET /snapshot HTTP/1.1\r\nHost: {}\r\n\r\n", dash.address()).expect("it reads");
    next.set_read_timeout(Some(Duration::from_millis(500))).expect("not zero");
    assert!(next.read(&mut [0; 16]).is_err(), "it is answered beside {CONNECTIONS_MAX} others");
    held.truncate(CONNECTIONS_MAX - 1);
    next.set_read_timeout(Some(PATIENCE)).expect("not zero");
    assert!(next.read(&mut [0; 16]).expect("its turn comes") > 0);
}

#[test]
fn before_the_first_snapshot_there_is_nothing_to_show() {
    let (dash, _commands) = start();
    for path in ["/snapshot", "/metrics"] {
        assert_eq!(ask(&dash, &format!("GET {path}"), "").0, 503, "{path}");
    }
    let (status, mut events) = Events::open(&dash);
    assert_eq!((status, events.data().unwrap()), (200, Value::Array(Vec::new())));
}

#[test]
fn the_page_is_one_file_that_nobody_may_frame() {
    let (dash, _commands) = start();
    let (status, headers, body) = ask(&dash, "GET /", "");
    assert_eq!(status, 200);
    assert!(headers.contains("content-type: text/html"), "{headers}");
    assert!(headers.contains("frame-ancestors 'none'") && headers.contains("x-frame-options: deny"), "{headers}");
    assert!(!headers.contains("access-control-allow-origin"), "{headers}");
    assert!(body.to_ascii_lowercase().starts_with("<!doctype html>"));
    assert_eq!(ask(&dash, "GET /else", "").0, 404);
}

#[test]
fn metrics_have_their_type_and_every_drive() {
    let (mut dash, _commands) = start();
    show(&mut dash, snapshot(1));
    let (status, headers, body) = ask(&dash, "GET /metrics", "");
    assert_eq!(status, 200);
    assert!(headers.contains("content-type: text/plain; version=0.0.4"), "{headers}");
    for drive in ["busy-0", "idle-1"] {
        assert!(body.contains(&format!("flashyard_drive_read_bytes_total{{drive=\"{drive}\"}} 0\n")), "{body}");
    }
}

#[test]
fn promtool_has_nothing_to_say_about_the_metrics() {
    if !flashyard_conformance::has_program("promtool", "only our own reader has checked the metrics") {
        return;
    }
    let (mut dash, _commands) = start();
    show(&mut dash, snapshot(1));
    let (_, _, body) = ask(&dash, "GET /metrics", "");
    let mut tool = Command::new("promtool");
    tool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = tool.spawn().expect("promtool starts");
    child.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let said = child.wait_with_output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn commands_reach_the_owner() {
    let (mut dash, commands) = start();
    show(&mut dash, snapshot(1));
    let own = format!("\r\nOrigin: http://{}\r\nSec-Fetch-Site: same-origin", dash.address());
    assert_eq!(command(&dash, &own, r#"{"command": "pull", "drive": "busy-0"}"#).0, 202);
    assert_eq!(commands.recv_timeout(PATIENCE).unwrap(), LiveCommand::Pull { drive: "busy-0".to_owned() });
    assert_eq!(command(&dash, "", r#"{"command": "power", "on": false}"#).0, 202);
    assert_eq!(commands.recv_timeout(PATIENCE).unwrap(), LiveCommand::Power { on: false });
    let refused = command(&dash, "", r#"{"command": "harvest", "on": true}"#);
    assert_eq!(refused, (409, "this design does not lend".to_owned()));
}

#[test]
fn commands_without_the_token_of_the_printed_address_do_not_and_everybody_may_look() {
    let (mut dash, commands) = start();
    show(&mut dash, snapshot(1));
    let (address, token) = dash.url().split_once("#token=").map(|(a, t)| (a.to_owned(), t.to_owned())).unwrap();
    assert_eq!((address, token.as_str()), (format!("http://{}/", dash.address()), dash.token()));
    let pull = r#"{"command": "pull", "drive": "busy-0"}"#;
    let own = format!("\r\nOrigin: http://{}\r\nSec-Fetch-Site: same-origin", dash.address());
    for head in ["", &own, "\r\nAuthorization: Bearer 00", &format!("\r\nAuthorization: Basic {token}")] {
        let (status, _, says) = ask(&dash, &format!("POST /control\r\nContent-Type: application/json{head}"), pull);
        assert_eq!(status, 401, "{head}");
        assert!(says.contains("the token of the address that the server printed"), "{says}");
    }
    // In the address of a request it is no token: addresses are written down in logs.
    let (status, ..) = ask(&dash, &format!("POST /control?token={token}\r\nContent-Type: application/json"), pull);
    assert_eq!(status, 401);
    assert!(commands.try_recv().is_err());
    assert!(latest(&dash).is_some());
    assert!(!ask(&dash, "GET /", "").2.contains(&token), "the page does not hold it");
    let (other, _) = start();
    assert_ne!(other.token(), token);
}

#[test]
fn commands_of_other_pages_do_not() {
    let (mut dash, commands) = start();
    show(&mut dash, snapshot(1));
    let pull = r#"{"command": "pull", "drive": "busy-0"}"#;
    let other = dash.address().port() ^ 1;
    for origin in ["http://evil.example".to_owned(), "null".to_owned(), format!("http://127.0.0.1:{other}")] {
        assert_eq!(command(&dash, &format!("\r\nOrigin: {origin}"), pull).0, 403, "{origin}");
    }
    assert_eq!(ask(&dash, "POST /control\r\nContent-Type: text/plain", pull).0, 415);
    assert_eq!(ask(&dash, "GET /control", "").0, 405);
    // A name that someone else points at this address, with that name as origin too.
    let rebound = "POST /control\r\nContent-Type: application/json\r\nOrigin: http://evil.example";
    assert_eq!(ask_as(&dash, "evil.example", rebound, pull).0, 421);
    assert_eq!(ask_as(&dash, "evil.example", "GET /snapshot", "").0, 421);
    // A browser asks before it sends JSON elsewhere; it gets no permission.
    let (status, headers, _) = ask(&dash, "OPTIONS /control\r\nOrigin: http://evil.example", "");
    assert!(status >= 400 && !headers.contains("access-control"), "{headers}");
    assert!(commands.try_recv().is_err());
}

#[test]
fn commands_that_make_no_sense_are_refused_with_the_reason() {
    let (mut dash, commands) = start();
    show(&mut dash, snapshot(1));
    let check = |body: &str, status: u16, says: &str| {
        let (given, answer) = command(&dash, "", body);
        assert_eq!(given, status, "{body}: {answer}");
        assert!(answer.contains(says), "{answer}");
    };
    check(r#"{"command": "melt"}"#, 400, "unknown variant `melt`");
    check("", 400, "this is no command");
    check(r#"{"command": "age", "drive": "busy-0", "raw_bit_error_rate": 0.6}"#, 400, "0 to 0.5");
    check(r#"{"command": "pull", "drive": "busy-7"}"#, 404, "busy-7");
    check(&" ".repeat(CONTROL_BYTES_MAX + 1), 413, "");
    assert!(commands.try_recv().is_err());
}

#[test]
fn a_client_that_does_not_read_holds_nobody_up_and_skips_snapshots() {
    let (mut dash, _commands) = start();
    show(&mut dash, large(1));
    let (_, mut slow) = Events::open(&dash);
    assert_eq!(slow.field("event").unwrap(), "history");
    let mut longest = Duration::ZERO;
    for number in 2..42 {
        let snapshot = large(number);
        let begin = Instant::now();
        dash.publish(snapshot);
        longest = longest.max(begin.elapsed());
        // As long as it takes to write one, so that the queue does not drop them.
        sleep(Duration::from_millis(20));
    }
    show(&mut dash, large(42));
    eprintln!("longest publish: {longest:?}");
    assert!(longest < Duration::from_millis(100), "publishing took {longest:?}");
    assert!(latest(&dash).is_some_and(|shown| shown["number"] == 42), "others see the latest");
    slow.data();
    let (mut numbers, mut events) = (Vec::new(), 0);
    while numbers.last() != Some(&42) {
        let shown = slow.data().unwrap();
        numbers.push(shown["number"].as_u64().unwrap());
        events = shown["events"].as_array().unwrap().len();
    }
    assert!(numbers.len() < 30, "it got {} of 42 snapshots", numbers.len());
    assert!(numbers.is_sorted_by(|a, b| a < b));
    assert_eq!(events, 42, "it missed events");
}

#[test]
fn events_of_snapshots_that_were_dropped_come_with_the_next() {
    let (mut dash, _commands) = start();
    // Far more than the queue holds, as fast as it goes.
    for number in 1..=90 {
        dash.publish(snapshot(number));
    }
    sleep(Duration::from_millis(50));
    show(&mut dash, snapshot(91));
    let shown = latest(&dash).unwrap();
    let numbers: Vec<u64> =
        shown["events"].as_array().unwrap().iter().map(|event| event["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=91).collect::<Vec<_>>());
}

#[test]
fn one_stream_too_many_is_told_to_come_back() {
    let (mut dash, _commands) = start();
    show(&mut dash, snapshot(1));
    let mut open: Vec<Events> = (0..STREAMS_MAX)
        .map(|_| {
            let (status, events) = Events::open(&dash);
            assert_eq!(status, 200);
            events
        })
        .collect();
    assert_eq!(Events::open(&dash).0, 503);
    assert!(latest(&dash).is_some(), "others are answered");
    open.pop();
    let begin = Instant::now();
    let mut number = 2;
    // The place is free once the server has noticed.
    while Events::open(&dash).0 != 200 {
        assert!(begin.elapsed() < PATIENCE);
        dash.publish(snapshot(number));
        number += 1;
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_end_is_quick_and_frees_the_address() {
    let (mut dash, _commands) = start();
    show(&mut dash, snapshot(1));
    let (_, mut events) = Events::open(&dash);
    let _idle = connect(&dash);
    let address = dash.address();
    let begin = Instant::now();
    dash.stop();
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    while events.data().is_some() {}
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn an_address_in_use_is_named() {
    let (dash, _commands) = start();
    let error = Dash::start(dash.address(), Box::new(|_| Ok(()))).unwrap_err();
    assert!(error.to_string().contains(&dash.address().to_string()), "{error}");
}

//! Lines of JSON between servers: whole, of a bounded length, each mistake told with its key.

use flashyard_describe::lending::server_problem;
use flashyard_units::{SimSpan, SimTime};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a line that a server takes at most.
pub(crate) const LINE_MAX: usize = 4096;
/// The answer to a longer one.
pub(crate) const TOO_LONG: &str = "a line has at most 4096 bytes of text";
/// Bytes of an answer at most: the posts of all servers.
const ANSWER_MAX: usize = 4 << 20;
/// Patience for a connection, and for what is sent. Source: \[A\] a rack's network answers within a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections of a server at most.
const CONNECTIONS_MAX: usize = 1024;

/// Time since a server began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn begin() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> SimTime {
        flashyard_live::time_of(self.0.elapsed())
    }
}

/// The next thing that a connection has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Line(String),
    /// No whole line has come in time.
    Nothing,
    /// It has ended.
    Ended,
    /// A line that is too long, or no text.
    TooLong,
}

/// A connection whose lines come whole, however they are cut on their way.
pub(crate) struct Lines {
    stream: TcpStream,
    come: Vec<u8>,
    most: usize,
    /// The rest of a line that is too long is not kept.
    skips: bool,
}

impl Lines {
    fn new(stream: TcpStream, most: usize) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, come: Vec::new(), most, skips: false })
    }

    /// Connects to a server.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        Self::new(TcpStream::connect_timeout(&address, PATIENCE)?, ANSWER_MAX)
    }

    /// Sends a line.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn say(&mut self, value: &Value) -> io::Result<()> {
        self.stream.write_all(format!("{value}\n").as_bytes())
    }

    /// Waits for a line.
    pub(crate) fn hear(&mut self, patience: Duration) -> Heard {
        let until = Instant::now() + patience;
        let mut looked = 0;
        loop {
            if let Some(end) = self.come[looked..].iter().position(|&byte| byte == b'\n') {
                let rest = self.come.split_off(looked + end + 1);
                let line = std::mem::replace(&mut self.come, rest);
                if std::mem::take(&mut self.skips) || line.len() > self.most {
                    return Heard::TooLong;
                }
                return String::from_utf8(line).map_or(Heard::TooLong, |line| Heard::Line(line.trim().to_owned()));
            }
            looked = self.come.len();
            if looked > self.most {
                (looked, self.skips) = (0, true);
                self.come.clear();
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Heard::Nothing;
            }
            if self.stream.set_read_timeout(Some(left)).is_err() {
                return Heard::Ended;
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Heard::Ended,
                Ok(count) => self.come.extend_from_slice(&bytes[..count]),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {}
                    _ => return Heard::Ended,
                },
            }
        }
    }

    /// Asks for one line and waits for it.
    ///
    /// Errors: in words.
    pub(crate) fn exchange(&mut self, value: &Value) -> Result<Value, String> {
        self.say(value).map_err(|error| error.to_string())?;
        match self.hear(PATIENCE) {
            Heard::Line(line) => serde_json::from_str(&line).map_err(|error| format!("its answer is no JSON: {error}")),
            Heard::Nothing => Err(format!("no answer for {} s", PATIENCE.as_secs())),
            Heard::Ended => Err("the connection has ended without an answer".to_owned()),
            Heard::TooLong => Err("its answer is too long".to_owned()),
        }
    }
}

/// Takes connections for as long as the program runs, each on a thread of its own.
///
/// Errors: the thread cannot begin.
pub(crate) fn listen(
    listener: TcpListener,
    name: &'static str,
    converse: impl Fn(Lines) + Clone + Send + 'static,
) -> io::Result<()> {
    let connections = Arc::new(AtomicUsize::new(0));
    let take = move || {
        for stream in listener.incoming() {
            let lines = stream.and_then(|stream| Lines::new(stream, LINE_MAX));
            let (Ok(lines), true) = (lines, connections.load(Ordering::Relaxed) < CONNECTIONS_MAX) else {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            };
            connections.fetch_add(1, Ordering::Relaxed);
            let (converse, connections) = (converse.clone(), Arc::clone(&connections));
            std::thread::spawn(move || {
                converse(lines);
                connections.fetch_sub(1, Ordering::Relaxed);
            });
        }
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(take).map(drop)
}

/// A line of JSON.
///
/// Errors: what is wrong, in words.
pub(crate) fn parse(line: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("this is no line of JSON: {error}"))?;
    if value.is_object() { Ok(value) } else { Err(format!("this is {value}, give an object of JSON")) }
}

/// The text of a key.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("{key:?} is {}, give a text", value[key]))
}

/// The name of a server.
pub(crate) fn server<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    let name = text(value, key)?;
    server_problem(name).map_or(Ok(name), |problem| Err(format!("{key:?}: {problem}")))
}

/// The whole number of a key.
pub(crate) fn number(value: &Value, key: &str) -> Result<u64, String> {
    value[key].as_u64().ok_or_else(|| format!("{key:?} is {}, give a whole number", value[key]))
}

/// A whole number of 32 bits.
pub(crate) fn small(value: &Value, key: &str) -> Result<u32, String> {
    let found = number(value, key)?;
    u32::try_from(found).map_err(|_| format!("{key:?} is {found}, give at most {}", u32::MAX))
}

/// A whole number that may be missing.
pub(crate) fn maybe(value: &Value, key: &str) -> Result<Option<u64>, String> {
    if value[key].is_null() { Ok(None) } else { number(value, key).map(Some) }
}

/// The address of a key.
pub(crate) fn address(value: &Value, key: &str) -> Result<SocketAddr, String> {
    let found = text(value, key)?;
    found.parse().map_err(|_| format!("{key:?} is {found:?}, give ADDRESS:PORT"))
}

/// The time of a key, in nanoseconds of its server's clock.
fn time(value: &Value, key: &str) -> Result<SimTime, String> {
    let ns = number(value, key)?;
    if ns > u64::MAX / 1000 {
        return Err(format!("{key:?} is {ns}, give at most {}", u64::MAX / 1000));
    }
    Ok(SimTime::ZERO + SimSpan::from_ns(ns))
}

fn ns(time: SimTime) -> u64 {
    time.saturating_since(SimTime::ZERO).as_ns()
}

/// An agreement as servers name it to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) consumer: String,
    pub(crate) incarnation: u32,
    pub(crate) number: u32,
}

/// A message about an agreement. See [`flashyard_billboard::Message`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Ask {
        mib: u32,
        asked: SimTime,
        lease_ms: u32,
    },
    Confirm {
        asked: SimTime,
        begun: SimTime,
        /// The run of the producer's program that has promised it.
        run: u64,
        /// Where the space is, over NVMe/TCP.
        address: SocketAddr,
        nqn: String,
    },
    Refuse {
        why: String,
    },
    Release,
    /// The answer to a release.
    Released,
    Leaving,
}

/// A line of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) name: Name,
    pub(crate) word: Word,
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        let (message, mut more) = match &self.word {
            Word::Ask { mib, asked, lease_ms } => {
                ("ask", json!({ "mib": mib, "asked_ns": ns(*asked), "lease_ms": lease_ms }))
            }
            Word::Confirm { asked, begun, run, address, nqn } => (
                "confirm",
                json!({
                    "asked_ns": ns(*asked), "begun_ns": ns(*begun), "run": run, "address": address.to_string(), "nqn": nqn
                }),
            ),
            Word::Refuse { why } => ("refuse", json!({ "why": why })),
            Word::Release => ("release", json!({})),
            Word::Released => ("released", json!({})),
            Word::Leaving => ("leaving", json!({})),
        };
        more["message"] = message.into();
        more["consumer"] = self.name.consumer.as_str().into();
        more["incarnation"] = self.name.incarnation.into();
        more["number"] = self.name.number.into();
        more
    }

    /// Errors: what is wrong with the line, in words.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let value = parse(line)?;
        let word = match value["message"].as_str().unwrap_or_default() {
            "ask" => Word::Ask {
                mib: small(&value, "mib")?,
                asked: time(&value, "asked_ns")?,
                lease_ms: small(&value, "lease_ms")?,
            },
            "confirm" => Word::Confirm {
                asked: time(&value, "asked_ns")?,
                begun: time(&value, "begun_ns")?,
                run: number(&value, "run")?,
                address: address(&value, "address")?,
                nqn: text(&value, "nqn")?.to_owned(),
            },
            "refuse" => Word::Refuse { why: text(&value, "why")?.to_owned() },
            "release" => Word::Release,
            "released" => Word::Released,
            "leaving" => Word::Leaving,
            "error" => return Err(text(&value, "error")?.to_owned()),
            _ => {
                return Err(format!(
                    "\"message\" is {}, give ask, confirm, refuse, release, released or leaving",
                    value["message"]
                ));
            }
        };
        let consumer = server(&value, "consumer")?.to_owned();
        let (incarnation, number) = (small(&value, "incarnation")?, small(&value, "number")?);
        Ok(Self { name: Name { consumer, incarnation, number }, word })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let name = Name { consumer: "b-1".to_owned(), incarnation: 7, number: 3 };
        let at = |ns| SimTime::ZERO + SimSpan::from_ns(ns);
        let address = "127.0.0.1:7".parse().expect("it is one");
        for word in [
            Word::Ask { mib: 64, asked: at(5), lease_ms: 1000 },
            Word::Confirm { asked: at(5), begun: at(9), run: u64::MAX, address, nqn: "nqn.x:y".to_owned() },
            Word::Refuse { why: "no room".to_owned() },
            Word::Release,
            Word::Released,
            Word::Leaving,
        ] {
            let said = Said { name: name.clone(), word };
            assert_eq!(Said::parse(&said.json().to_string()), Ok(said));
        }
    }

    #[test]
    fn a_bad_line_is_refused_with_its_key() {
        let wrong = |line: &str| Said::parse(line).expect_err("it is wrong");
        assert!(wrong("{").starts_with("this is no line of JSON"));
        assert!(wrong("3").starts_with("this is 3, give an object"));
        assert!(wrong("{}").starts_with("\"message\" is null, give ask"));
        assert!(wrong(r#"{"message":"release","consumer":"a b"}"#).contains("\"a b\" is no name of a server"));
        let ask = |mib: &str, asked: &str| {
            wrong(&format!(
                r#"{{"message":"ask","consumer":"a","incarnation":1,"number":1,"mib":{mib},"asked_ns":{asked},"lease_ms":1}}"#
            ))
        };
        assert_eq!(ask("4294967296", "1"), "\"mib\" is 4294967296, give at most 4294967295");
        assert_eq!(ask("-1", "1"), "\"mib\" is -1, give a whole number");
        assert!(ask("1", "18446744073709551615").contains("\"asked_ns\" is 18446744073709551615, give at most"));
    }
}

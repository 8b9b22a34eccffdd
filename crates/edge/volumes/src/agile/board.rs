//! The billboard: a server that keeps what producers post, for as long as each says.
//!
//! ```text
//! {"command":"post","server":"a","address":"127.0.0.1:7001","free_mib":4096,"free_iops":50000,"free_bandwidth":null,
//!  "lease_ms":30000,"keep_ms":180000}                                            {"ok":true}
//! {"command":"withdraw","server":"a"}                                            {"ok":true}
//! {"command":"read"}                                                             {"ok":true,"posts":[{"server":"a",...}]}
//! ```

use crate::agile::wire::{self, Heard, Lines, address, maybe, parse, server, small, text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Servers at most.
const SERVERS_MAX: usize = 4096;
/// A connection that asks nothing for so long is closed.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Time for which a post counts at most: an hour.
const KEEP_MAX_MS: u32 = 3_600_000;

/// Free resources of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) server: String,
    /// Where it is asked.
    pub(crate) address: SocketAddr,
    pub(crate) free_mib: u32,
    /// Requests a second; no limit is known without it.
    pub(crate) free_iops: Option<u64>,
    /// Bytes a second.
    pub(crate) free_bandwidth: Option<u64>,
    /// Length of its leases.
    pub(crate) lease_ms: u32,
    /// How long the post counts.
    pub(crate) keep_ms: u32,
}

impl Post {
    fn json(&self) -> Value {
        json!({
            "server": self.server,
            "address": self.address.to_string(),
            "free_mib": self.free_mib,
            "free_iops": self.free_iops,
            "free_bandwidth": self.free_bandwidth,
            "lease_ms": self.lease_ms,
            "keep_ms": self.keep_ms,
        })
    }

    fn parse(value: &Value) -> Result<Self, String> {
        let post = Self {
            server: server(value, "server")?.to_owned(),
            address: address(value, "address")?,
            free_mib: small(value, "free_mib")?,
            free_iops: maybe(value, "free_iops")?,
            free_bandwidth: maybe(value, "free_bandwidth")?,
            lease_ms: small(value, "lease_ms")?,
            keep_ms: small(value, "keep_ms")?,
        };
        for (key, ms) in [("lease_ms", post.lease_ms), ("keep_ms", post.keep_ms)] {
            if !(1..=KEEP_MAX_MS).contains(&ms) {
                return Err(format!("{key:?} is {ms}, give 1 to {KEEP_MAX_MS}"));
            }
        }
        Ok(post)
    }
}

/// The posts, each with the time at which it came.
type Posts = BTreeMap<String, (Post, Instant)>;

/// Serves a billboard at `listener` for as long as the program runs.
///
/// Errors: no thread for it.
pub fn serve_board(listener: TcpListener) -> io::Result<()> {
    let posts: Arc<Mutex<Posts>> = Arc::default();
    wire::listen(listener, "billboard", move |lines| converse(lines, &posts))
}

fn converse(mut lines: Lines, posts: &Mutex<Posts>) {
    loop {
        let answer = match lines.hear(IDLE_MAX) {
            Heard::Line(line) => {
                let mut posts = posts.lock().unwrap_or_else(PoisonError::into_inner);
                answer(&line, &mut posts, Instant::now())
            }
            Heard::TooLong => Err(wire::TOO_LONG.to_owned()),
            Heard::Nothing | Heard::Ended => return,
        };
        let answer = answer.unwrap_or_else(|error| json!({ "ok": false, "error": error }));
        if lines.say(&answer).is_err() {
            return;
        }
    }
}

/// Carries out a line.
///
/// Errors: what is wrong with it, in words.
fn answer(line: &str, posts: &mut Posts, now: Instant) -> Result<Value, String> {
    let value = parse(line)?;
    posts.retain(|_, (post, at)| now.saturating_duration_since(*at) < Duration::from_millis(post.keep_ms.into()));
    match value["command"].as_str().unwrap_or_default() {
        "post" => {
            let post = Post::parse(&value)?;
            match posts.get(&post.server) {
                Some((other, _)) if other.address != post.address => {
                    return Err(format!("the server {} posts from {} already", post.server, other.address));
                }
                None if posts.len() >= SERVERS_MAX => return Err(format!("there are {SERVERS_MAX} servers already")),
                _ => {}
            }
            posts.insert(post.server.clone(), (post, now));
        }
        "withdraw" => drop(posts.remove(server(&value, "server")?)),
        "read" => {
            let shown = |(post, at): &(Post, Instant)| {
                let mut shown = post.json();
                shown["age_ms"] = (now.saturating_duration_since(*at).as_millis() as u64).into();
                shown
            };
            return Ok(json!({ "ok": true, "posts": posts.values().map(shown).collect::<Vec<_>>() }));
        }
        _ => return Err(format!("\"command\" is {}, give post, withdraw or read", value["command"])),
    }
    Ok(json!({ "ok": true }))
}

/// Asks a billboard something.
///
/// Errors: in words.
fn ask(board: SocketAddr, question: &Value) -> Result<Value, String> {
    let mut lines = Lines::connect(board).map_err(|error| format!("the billboard at {board}: {error}"))?;
    let answer = lines.exchange(question).map_err(|problem| format!("the billboard at {board}: {problem}"))?;
    if answer["ok"] == true {
        return Ok(answer);
    }
    Err(format!("the billboard at {board} refuses: {}", text(&answer, "error").unwrap_or("without a word")))
}

/// Posts at a billboard.
///
/// Errors: in words.
pub(crate) fn post(board: SocketAddr, post: &Post) -> Result<(), String> {
    let mut question = post.json();
    question["command"] = "post".into();
    ask(board, &question).map(drop)
}

/// Takes the post of a server away.
///
/// Errors: in words.
pub(crate) fn withdraw(board: SocketAddr, server: &str) -> Result<(), String> {
    ask(board, &json!({ "command": "withdraw", "server": server })).map(drop)
}

/// Reads a billboard.
///
/// Errors: in words.
pub(crate) fn read(board: SocketAddr) -> Result<Vec<Post>, String> {
    let answer = ask(board, &json!({ "command": "read" }))?;
    let posts = answer["posts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let parsed = posts.iter().map(Post::parse).collect::<Result<Vec<_>, _>>();
    parsed.map_err(|problem| format!("the billboard at {board}: a post makes no sense: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(server: &str, port: u16) -> Post {
        Post {
            server: server.to_owned(),
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            free_mib: 64,
            free_iops: Some(1000),
            free_bandwidth: None,
            lease_ms: 1000,
            keep_ms: 5000,
        }
    }

    #[test]
    fn posts_are_kept_for_their_time_and_a_name_belongs_to_one_address() {
        let (mut posts, begun) = (Posts::new(), Instant::now());
        let line = |post: &Post| {
            let mut line = post.json();
            line["command"] = "post".into();
            line.to_string()
        };
        assert!(answer(&line(&some("a", 1)), &mut posts, begun).is_ok());
        assert!(answer(&line(&some("b", 2)), &mut posts, begun + Duration::from_secs(3)).is_ok());
        let other = answer(&line(&some("a", 3)), &mut posts, begun + Duration::from_secs(4));
        assert_eq!(other, Err("the server a posts from 127.0.0.1:1 already".to_owned()));
        let servers = |posts: &mut Posts, s: u64| {
            let answer = answer("{\"command\":\"read\"}", posts, begun + Duration::from_secs(s)).expect("it answers");
            let posts = answer["posts"].as_array().expect("it lists").clone();
            posts.iter().map(|post| post["server"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(servers(&mut posts, 4), ["a", "b"]);
        assert_eq!(servers(&mut posts, 5), ["b"]);
        assert!(answer(&line(&some("a", 3)), &mut posts, begun + Duration::from_secs(6)).is_ok());
        assert!(answer("{\"command\":\"withdraw\",\"server\":\"b\"}", &mut posts, begun).is_ok());
        assert_eq!(servers(&mut posts, 7), ["a"]);
    }

    #[test]
    fn a_bad_line_gets_one_error_and_the_next_one_its_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has ports");
        let board = listener.local_addr().expect("it is bound");
        serve_board(listener).expect("it serves");
        let mut lines = Lines::connect(board).expect("it listens");
        for (question, expected) in [
            (json!("x"), "this is \"x\", give an object"),
            (json!({ "command": "sell" }), "\"command\" is \"sell\", give post, withdraw or read"),
            (json!({ "command": "post", "server": "" }), "\"server\": \"\" is no name of a server"),
        ] {
            let answer = lines.exchange(&question).expect("it answers");
            assert_eq!(answer["ok"], false);
            assert!(answer["error"].as_str().expect("a reason").starts_with(expected), "{answer}");
        }
        post(board, &some("a", 1)).expect("it takes posts");
        assert_eq!(read(board), Ok(vec![some("a", 1)]));
        withdraw(board, "a").expect("it was there");
        assert_eq!(read(board), Ok(Vec::new()));
        let mut lines = Lines::connect(board).expect("it listens");
        lines.say(&json!("x".repeat(10_000))).expect("it reads");
        let Heard::Line(line) = lines.hear(Duration::from_secs(10)) else { panic!("it answers") };
        assert!(line.contains("at most 4096 bytes"), "{line}");
        assert!(lines.exchange(&json!({ "command": "read" })).expect("it goes on")["ok"] == true);
    }
}

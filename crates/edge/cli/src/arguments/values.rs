//! Values of options.

use flashyard_workbench::SEED_MAX;
use std::net::{SocketAddr, ToSocketAddrs};

/// A seed.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse().ok().filter(|seed| *seed <= SEED_MAX);
    seed.ok_or_else(|| format!("give a whole number from 0 to {SEED_MAX}"))
}

/// A number of seeds: one has no confidence interval.
pub(super) fn seeds(text: &str) -> Result<u64, String> {
    let seeds = text.parse().ok().filter(|seeds| (2..=1000).contains(seeds));
    seeds.ok_or_else(|| "give a whole number from 2 to 1000".to_owned())
}

/// An address with its port. A name is looked up; of several addresses one of IPv4 is preferred, as names of this machine
/// usually have both.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let wrong = |why: &str| format!("{why}; give ADDRESS:PORT, for example 127.0.0.1:4420 or [::1]:4420");
    let Some((name, port)) = text.rsplit_once(':') else { return Err(wrong("the port is missing")) };
    if port.parse::<u16>().is_err() {
        return Err(wrong(&format!("{port:?} is no port from 0 to 65535")));
    }
    if name.is_empty() {
        return Err(wrong("the address is missing"));
    }
    let found: Vec<SocketAddr> = text.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    let preferred = found.iter().find(|address| address.is_ipv4()).or(found.first());
    preferred.copied().ok_or_else(|| wrong(&format!("there is no host {name:?}")))
}

/// A number of drive writes: above zero, at most a million.
pub(super) fn drive_writes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && number <= 1e6 => Ok(number),
        _ => Err("give a number above 0, at most 1000000".to_owned()),
    }
}

/// A length of time on the wall.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "give a number of seconds".to_owned())?;
    if (0.0..=1e9).contains(&seconds) { Ok(seconds) } else { Err("give 0 to 1000000000 seconds".to_owned()) }
}

/// The same, but not none.
pub(super) fn some_seconds(text: &str) -> Result<f64, String> {
    match seconds(text) {
        Ok(seconds) if seconds > 0.0 => Ok(seconds),
        _ => Err("give more than 0 seconds, at most 1000000000".to_owned()),
    }
}

/// Requests in flight of a load.
pub(super) fn depth(text: &str) -> Result<u16, String> {
    let depth = text.parse().ok().filter(|depth| (1..=4096).contains(depth));
    depth.ok_or_else(|| "give the requests in flight, from 1 to 4096; without --load there are none".to_owned())
}

/// The number of a drive.
pub(super) fn number(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "give the number of a drive, from 0 on".to_owned())
}

/// The beginning of NVMe qualified names.
pub(super) fn nqn(text: &str) -> Result<String, String> {
    if text.starts_with("nqn.") && !text.contains(char::is_whitespace) {
        return Ok(text.to_owned());
    }
    Err("an NVMe qualified name begins with `nqn.`, and has no spaces".to_owned())
}

//! `flashyard-bench`: how fast the simulator is, and a hash of what it computed.
//!
//! One thread. Workloads (a), (b) and (c) of reference device R8, without and with all capabilities of its flash and its controller,
//! untimed ageing, memory for each physical
//! page, the twelve-drive XBOF run, and virtual drives behind a card with and without LATTE. The hash covers results only: it changes when results change and
//! at no other time.

mod ageing;
mod server;
mod timed;

use std::hash::{DefaultHasher, Hasher};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Parts that can be asked for by name; all of them without a name.
const PARTS: [&str; 5] = ["r8", "today", "ageing", "xbof", "server"];

/// Digest of results over all benchmarks.
pub(crate) struct Digest(DefaultHasher);

impl Digest {
    pub(crate) fn add(&mut self, number: u64) {
        self.0.write_u64(number);
    }
}

fn main() -> anyhow::Result<()> {
    let mut digest = Digest(DefaultHasher::new());
    let asked: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = asked.iter().find(|name| !PARTS.contains(&name.as_str())) {
        anyhow::bail!("{unknown}: there is no such benchmark, give some of {}", PARTS.join(", "));
    }
    let wanted = |part: &str| asked.is_empty() || asked.iter().any(|name| name == part);
    if wanted("r8") {
        println!("reference device R8, one thread");
        timed::r8(&mut digest)?;
    }
    if wanted("today") {
        println!("the same device with flash and a controller of today");
        timed::today(&mut digest)?;
    }
    if wanted("ageing") {
        println!("untimed ageing, uniform random writes, greedy, 256-page blocks, 20 % spare");
        ageing::measure("8 GiB", 8192, 10_000_000, &mut digest);
        ageing::measure("256 GiB", 262_144, 20_000_000, &mut digest);
    }
    if wanted("xbof") {
        println!("twelve-drive XBOF, and one such drive alone");
        timed::xbof(&mut digest)?;
    }
    if wanted("server") {
        println!("virtual drives of a server, 4 KiB random read, depth 128");
        server::measure(&mut digest)?;
    }
    println!("result hash {:016x}", digest.0.finish());
    Ok(())
}

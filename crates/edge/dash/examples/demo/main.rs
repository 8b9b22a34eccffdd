//! The dashboard without a JBOF: `cargo run -p flashyard-dash --example demo [ADDRESS]`, by default 127.0.0.1:8080.
//!
//! A made-up enclosure of twelve drives, six of them busy, is shown in real time and takes every command. Its figures
//! are no results.

mod jbof;

use flashyard_dash::Dash;
use jbof::{Jbof, STEP_SECONDS, STEPS};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::thread::sleep;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let address: SocketAddr = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned()).parse()?;
    let (sender, commands) = channel();
    // The engine takes commands when it has time for them; here that is once in 100 ms.
    let control = Box::new(move |command| sender.send(command).map_err(|error| error.to_string()));
    let mut dash = Dash::start(address, control)?;
    println!("{} shows a made-up enclosure; Ctrl-C ends it", dash.url());
    let mut jbof = Jbof::new(12, 6);
    let interval = Duration::from_secs_f64(STEP_SECONDS * f64::from(STEPS));
    let begin = Instant::now();
    let mut due = begin;
    loop {
        due += interval;
        sleep(due.saturating_duration_since(Instant::now()));
        for command in commands.try_iter() {
            jbof.follow(&command);
        }
        dash.publish(jbof.next(begin.elapsed().as_secs_f64()));
    }
}

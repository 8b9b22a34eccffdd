//! `flashyard billboard`: what servers of a rack have free, as they post it.

use crate::arguments::BillboardOptions;
use crate::{Outcome, output, parallel};
use anyhow::{Context, Result, ensure};
use flashyard_volumes::serve_board;
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// Time between two looks whether it is to end.
const STEP: Duration = Duration::from_millis(50);

/// Serves a billboard until Ctrl-C.
pub(crate) fn serve(options: &BillboardOptions) -> Result<Outcome> {
    let address = options.listen;
    ensure!(
        options.insecure || address.ip().to_canonical().is_loopback(),
        "--listen {address}: other machines reach this address, and posts prove nothing; use a network of the rack alone, and \
         say --insecure"
    );
    let listener = TcpListener::bind(address).with_context(|| format!("--listen {address}: cannot be listened on"))?;
    let found = listener.local_addr().context("--listen")?;
    parallel::catch_interrupt()?;
    serve_board(listener).context("the billboard cannot begin")?;
    output::line(&format!("billboard on {found}"));
    let (begun, seconds) = (Instant::now(), options.seconds.map(Duration::from_secs_f64));
    while !parallel::interrupted() && seconds.is_none_or(|seconds| begun.elapsed() < seconds) {
        std::thread::sleep(STEP);
    }
    Ok(Outcome::Done)
}

//! `flashyard load`: a host of NVMe/TCP that measures.

use crate::arguments::LoadOptions;
use crate::{Outcome, output, secrets};
use anyhow::{Context, Result, ensure};
use flashyard_live::{Host, HostLoad, Pattern, run_host_load};
use flashyard_nvmf::initiator::InitiatorConfig;
use serde_json::json;
use std::error::Error;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Requests before those that are measured.
const RAMP: Duration = Duration::from_millis(300);

pub(crate) fn load(options: &LoadOptions) -> Result<Outcome> {
    let LoadOptions { address, nqn, depth, queues, .. } = options;
    ensure!(options.reads <= 100, "--reads {}: give 0 to 100 percent", options.reads);
    let config = InitiatorConfig {
        io_queues: *queues,
        secret: options.secret_file.as_deref().map(|path| secret("--secret-file", path)).transpose()?,
        tls_key: options.tls_key_file.as_deref().map(|path| secret("--tls-key-file", path)).transpose()?,
        // A queue of n entries holds n - 1 commands.
        queue_entries: (depth.div_ceil(*queues) + 1).max(32),
        ..InitiatorConfig::new(&options.host_nqn, nqn)
    };
    let mut host = Host::connect(*address, config, PATIENCE).with_context(|| nqn.clone())?;
    let load = HostLoad {
        request_bytes: options.block_bytes,
        depth: usize::from(*depth),
        reads: f64::from(options.reads) / 100.0,
        pattern: if options.sequential { Pattern::Sequential } else { Pattern::Random },
        span: Duration::from_secs_f64(options.seconds),
        ramp: RAMP,
        seed: options.seed,
    };
    let seen = run_host_load(&mut host, &load).with_context(|| nqn.clone())?;
    let latency = &seen.latency;
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| latency.percentile_us(quantile));
    let gigabytes = seen.bytes as f64 / seen.span.as_secs_f64() / 1e9;
    if options.json {
        output::json(&json!({
            "depth": seen.depth, "iops": seen.iops(), "bytes_per_s": gigabytes * 1e9, "failed": seen.failed, "seconds": seen.span.as_secs_f64(),
            "latency_us": { "mean": latency.mean_us(), "p50": p50, "p99": p99, "p999": p999, "max": latency.max_us() },
        }));
    } else {
        if seen.depth < usize::from(*depth) {
            output::line(&format!("{} requests in flight: the controller's queues hold no more", seen.depth));
        }
        output::line(&format!(
            "{:.0} requests/s, {gigabytes:.3} GB/s; latency: mean {:.1} us, median {p50:.1} us, p99 {p99:.1} us, p99.9 {p999:.1} us, \
             max {:.1} us; {} failed",
            seen.iops(),
            latency.mean_us(),
            latency.max_us(),
            seen.failed
        ));
    }
    Ok(if seen.failed == 0 { Outcome::Done } else { Outcome::Violated })
}

fn secret<S: FromStr<Err: Error + Send + Sync + 'static>>(flag: &str, path: &Path) -> Result<S> {
    let text = secrets::read_private(flag, path)?;
    text.trim().parse().with_context(|| format!("{flag} {}", path.display()))
}

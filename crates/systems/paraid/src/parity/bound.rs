//! The most that each part of the array can carry, in closed form: written down from the definitions of the designs, without plans.

use super::config::{ParityConfig, ParityPath};
use flashyard_cxl::wire_bytes;

/// Part of the array that limits it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Bytes of data a second that the host writes at most.
    pub bytes_per_s: f64,
    /// The part: the host's link out of it, into it, its cores, or a drive's link, media or combinations.
    pub part: &'static str,
}

/// Work of a write of one kind.
struct Demand {
    data: f64,
    /// Bytes out of the host, into it.
    host: [f64; 2],
    /// Bytes into and out of all drives together.
    drives: [f64; 2],
    /// Bytes read and written of media of all drives together.
    media: [f64; 2],
    combined_by_host: f64,
    combined_by_drives: f64,
}

/// The rate of the part that allows least, and which part it is. Writes under way are as many as it takes.
pub fn bound(config: &ParityConfig) -> Bound {
    let demands = [(full(config), config.full_share), (partial(config), 1.0 - config.full_share)];
    let mean = |of: fn(&Demand) -> f64| demands.iter().map(|(demand, share)| share * of(demand)).sum::<f64>();
    let drives = config.width as f64;
    let host_rate = config.host_rate.get() as f64;
    let drive_rate = config.drive_rate.get() as f64 * drives;
    let media = mean(|demand| demand.media[0]) / config.drive.read_rate.get() as f64
        + mean(|demand| demand.media[1]) / config.drive.write_rate.get() as f64;
    let cores = config.host_combines.get() as f64 * f64::from(config.host_cores);
    let seconds = [
        ("host's link out", mean(|demand| demand.host[0]) / host_rate),
        ("host's link in", mean(|demand| demand.host[1]) / host_rate),
        ("host's cores", mean(|demand| demand.combined_by_host) / cores),
        ("drives' links in", mean(|demand| demand.drives[0]) / drive_rate),
        ("drives' links out", mean(|demand| demand.drives[1]) / drive_rate),
        ("drives' media", media / drives),
        (
            "drives' combinations",
            mean(|demand| demand.combined_by_drives) / (config.drive_combines.get() as f64 * drives),
        ),
    ];
    let (part, slowest) = seconds.into_iter().fold(("", 0.0), |most, next| if next.1 > most.1 { next } else { most });
    Bound { bytes_per_s: mean(|demand| demand.data) / slowest, part }
}

/// Bytes on the wire of a message with a capsule.
fn wire(config: &ParityConfig, bytes: u32) -> f64 {
    wire_bytes(u64::from(bytes) + u64::from(config.capsule)) as f64
}

fn full(config: &ParityConfig) -> Demand {
    let (data, parities) = (config.data() as f64, config.parities as f64);
    let chunk = wire(config, config.chunk);
    let capsule = wire(config, 0);
    let bytes = f64::from(config.chunk);
    let all = data + parities;
    let (host_out, peers, by_host, by_drives) = match config.path {
        ParityPath::Host => (all * chunk, 0.0, data * parities * bytes, 0.0),
        // A sum of n parts takes n messages by any way; a star combines all of them, the others one less.
        ParityPath::Star => (data * chunk + parities * capsule, data * parities * chunk, 0.0, data * parities * bytes),
        ParityPath::Chain | ParityPath::Tree => {
            (data * chunk + parities * capsule, data * parities * chunk, 0.0, (data - 1.0) * parities * bytes)
        }
    };
    Demand {
        data: data * bytes,
        host: [host_out, all * capsule],
        drives: [host_out + peers, all * capsule + peers],
        media: [0.0, all * bytes],
        combined_by_host: by_host,
        combined_by_drives: by_drives,
    }
}

fn partial(config: &ParityConfig) -> Demand {
    let parities = config.parities as f64;
    let part = wire(config, config.partial);
    let capsule = wire(config, 0);
    let bytes = f64::from(config.partial);
    let touched = 1.0 + parities;
    let media = [touched * bytes; 2];
    if config.path == ParityPath::Host {
        let host = [touched * (part + capsule), touched * (part + capsule)];
        let combined_by_host = 2.0 * parities * bytes;
        return Demand { data: bytes, host, drives: host, media, combined_by_host, combined_by_drives: 0.0 };
    }
    let host = [part + parities * capsule, touched * capsule];
    let drives = [host[0] + parities * part, host[1] + parities * part];
    Demand { data: bytes, host, drives, media, combined_by_host: 0.0, combined_by_drives: touched * bytes }
}

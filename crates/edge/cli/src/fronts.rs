//! How clients reach a box that serves: NVMe/TCP and NBD.

use crate::output;
use anyhow::{Context, Result, bail};
use flashyard_live::{Engine, Nbd, NbdAddress, NvmeTcp};
use flashyard_nvmf::target::{Host, Hosts, Limits, Namespace, Subsystem, TargetConfig};
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Blocks of 4 KiB: what drives map.
const BLOCK_LOG2: u8 = 12;
/// Entries of a queue: room for the depths that people try.
const QUEUE_ENTRIES: u16 = 1024;

/// NVMe over TCP at `addresses`, a subsystem for each exported drive.
///
/// Errors: an address that cannot be listened on, a file of hosts that cannot be read.
pub(crate) fn add_nvme(
    engine: &mut Engine,
    addresses: &[SocketAddr],
    hosts: Option<&Path>,
    nqn: &str,
    endurance_erases: u32,
) -> Result<()> {
    if addresses.is_empty() {
        return Ok(());
    }
    warn_beyond_loopback(addresses, hosts.is_some());
    let hosts = hosts.map_or(Ok(Hosts::Any), read_hosts)?;
    let exports = engine.exports().to_vec();
    let subsystems = exports.iter().map(|export| {
        let mut namespace = Namespace::new(1, u64::from(export.slots), BLOCK_LOG2);
        namespace.uuid = identity(nqn, export.drive);
        let mut subsystem =
            Subsystem::new(&format!("{nqn}{}", export.drive), &format!("FY{:06}", export.drive), vec![namespace]);
        subsystem.hosts = hosts.clone();
        subsystem.has_write_cache = !export.protected;
        subsystem.has_remap = export.remaps;
        subsystem
    });
    let limits = Limits { queue_entries: QUEUE_ENTRIES, ..Limits::default() };
    let mut config = TargetConfig { subsystems: subsystems.collect(), limits, ..TargetConfig::default() };
    // Challenges of authentication must not be guessed: the operating system's random numbers.
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut config.entropy))
        .context("/dev/urandom: no random numbers")?;
    let drives: Vec<u16> = exports.iter().map(|export| export.drive).collect();
    let front = NvmeTcp::new(addresses, config, drives, endurance_erases).context("--listen")?;
    for address in front.addresses() {
        output::line(&format!(
            "NVMe/TCP on {address}: {nqn}{}",
            range(&exports.iter().map(|e| e.drive).collect::<Vec<_>>())
        ));
    }
    engine.add_front(Box::new(front));
    Ok(())
}

/// NBD at `address`, an export for each drive.
///
/// Errors: an address that cannot be listened on.
pub(crate) fn add_nbd(engine: &mut Engine, address: &NbdAddress) -> Result<()> {
    if let NbdAddress::Tcp(address) = address {
        warn_beyond_loopback(&[*address], false);
    }
    let named: Vec<_> =
        engine.exports().iter().map(|export| (format!("drive-{}", export.drive), export.drive, export.slots)).collect();
    let front = Nbd::new(address, &named).with_context(|| format!("--nbd {address}: cannot be listened on"))?;
    let drives: Vec<u16> = named.iter().map(|(_, drive, _)| *drive).collect();
    output::line(&format!("NBD on {}: drive-{}", front.address(), range(&drives)));
    engine.add_front(Box::new(front));
    Ok(())
}

/// A name that stays the same over restarts: drives of one scenario have the same ones every time.
fn identity(nqn: &str, drive: u16) -> [u8; 16] {
    let mut state = 0xCBF2_9CE4_8422_2325_u64 ^ u64::from(drive);
    let mut words = [0; 16];
    for (place, word) in words.iter_mut().enumerate() {
        for byte in nqn.bytes().chain([place as u8]) {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        *word = (state >> 56) as u8;
    }
    // A UUID of version 8: of our own making.
    words[6] = 0x80 | (words[6] & 0x0F);
    words[8] = 0x80 | (words[8] & 0x3F);
    words
}

fn range(drives: &[u16]) -> String {
    match drives {
        [only] => only.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    }
}

fn warn_beyond_loopback(addresses: &[SocketAddr], has_hosts: bool) {
    for address in addresses.iter().filter(|address| !address.ip().is_loopback()) {
        let who = if has_hosts { "listed hosts" } else { "everybody who reaches it" };
        tracing::warn!("{address} is not of the loopback: {who} may read and write the drives");
    }
}

/// Lines of `NQN [SECRET [CONTROLLER-SECRET]]`; `#` begins a comment.
fn read_hosts(path: &Path) -> Result<Hosts> {
    let text = std::fs::read_to_string(path).with_context(|| format!("--hosts {}: cannot be read", path.display()))?;
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let place = || format!("{}:{number}", path.display());
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (nqn, secrets) = match words[..] {
            [] => continue,
            [nqn, ref secrets @ ..] if secrets.len() <= 2 => (nqn, secrets),
            _ => bail!(
                "{}: give the name of a host, its secret and the controller's, the last two only if wanted",
                place()
            ),
        };
        let secret = |index: usize| secrets.get(index).map(|text| text.parse()).transpose();
        hosts.push(Host {
            nqn: nqn.to_owned(),
            secret: secret(0).with_context(place)?,
            controller_secret: secret(1).with_context(place)?,
        });
    }
    if hosts.iter().any(|host| host.secret.is_some()) {
        refuse_shared(path)?;
    }
    Ok(Hosts::Listed(hosts))
}

/// Refuses a file of secrets that others may read.
fn refuse_shared(path: &Path) -> Result<()> {
    let found = std::fs::metadata(path).with_context(|| format!("--hosts {}: cannot be read", path.display()))?;
    if found.is_file() && found.mode() & 0o077 != 0 {
        let path = path.display();
        bail!(
            "--hosts {path}: others may read the secrets in it (mode {:o}); run `chmod 600 {path}`",
            found.mode() & 0o777
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn secrets_that_others_may_read_are_refused_and_names_alone_are_not() {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join("hosts");
        let set = |text: &str, mode| {
            std::fs::write(&path, text).expect("it can be written");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        set("nqn.2026-11.org.example:a\n", 0o644);
        read_hosts(&path).expect("a name is no secret");
        let secret = "nqn.2026-11.org.example:a DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:\n";
        for mode in [0o644, 0o640, 0o604] {
            set(secret, mode);
            let refused = read_hosts(&path).expect_err("others may read it").to_string();
            assert!(refused.contains("chmod 600"), "{refused}");
        }
        set(secret, 0o600);
        read_hosts(&path).expect("it is private");
    }
}

//! How clients reach an enclosure that serves, NVMe/TCP and NBD, and which may.

use crate::arguments::ServeOptions;
use crate::hosts::HostList;
use crate::output;
use anyhow::{Context, Result, bail};
use flashyard_live::{FrontEnds, Nbd, NbdAddress, NvmeTcp};
use flashyard_nvmf::target::{Limits, Namespace, Subsystem, TargetConfig, ZoneShape};
use flashyard_scenario::ZoneLayout;
use flashyard_units::VolumeId;
use flashyard_vhost_user::VhostUserBlk;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read};
use std::net::SocketAddr;
use std::path::Path;

/// Entries of a queue: room for the depths that people try.
const QUEUE_ENTRIES: u16 = 1024;
/// Blocks that hosts should deallocate in one command, 32 MiB. A drive takes up to 23 us for each, so that a queue of 128
/// such commands is done in 24 s, before Linux gives the last of them up after 30 s.
const DEALLOCATE_BLOCKS: u32 = 8192;

/// Names that clients know volumes by.
pub(crate) struct Names<'a> {
    /// The beginning of NVMe qualified names.
    pub(crate) nqn: &'a str,
    /// Those of volumes in the order of their numbers; drives go by their numbers.
    pub(crate) volumes: &'a [String],
}

impl Names<'_> {
    fn of(&self, volume: VolumeId) -> String {
        self.volumes.get(volume.index()).cloned().unwrap_or_else(|| volume.to_string())
    }

    /// Text that tells a volume with a name from those of other servers; drives of one scenario are told apart by number.
    fn unique(&self, volume: VolumeId) -> String {
        let name = self.volumes.get(volume.index()).map_or("", String::as_str);
        format!("{}{name}", self.nqn)
    }

    /// The name of a volume to clients that know no NVMe, and to lists of hosts.
    fn export(&self, volume: VolumeId) -> String {
        if self.volumes.is_empty() { format!("drive-{volume}") } else { self.of(volume) }
    }

    fn range(&self, volumes: &[VolumeId]) -> String {
        match volumes {
            [] => String::new(),
            [only] => self.of(*only),
            [first, .., last] if self.volumes.is_empty() => format!("{first} to {last}"),
            _ => self.volumes.join(", "),
        }
    }
}

/// Properties of the drives behind volumes that NVMe tells hosts.
pub(crate) struct Traits {
    /// Erases that a block takes.
    pub(crate) endurance_erases: u32,
    /// Those that are zoned.
    pub(crate) zones: BTreeMap<VolumeId, ZoneLayout>,
}

impl Traits {
    /// Volumes that do not wear and have no zones.
    pub(crate) const PLAIN: Self = Self { endurance_erases: u32::MAX, zones: BTreeMap::new() };
}

/// Where NVMe over TCP listens.
#[derive(Clone, Copy)]
pub(crate) struct Addresses<'a> {
    /// In clear text.
    plain: &'a [SocketAddr],
    /// Within TLS.
    tls: &'a [SocketAddr],
}

impl<'a> Addresses<'a> {
    pub(crate) fn of(options: &'a ServeOptions) -> Self {
        Self { plain: &options.listen, tls: &options.listen_tls }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(self) -> bool {
        self.plain.is_empty() && self.tls.is_empty()
    }
}

/// NVMe over TCP at `addresses`, a subsystem for each exported drive.
///
/// Errors: an address that cannot be listened on; a list of hosts that names a drive that is not there.
pub(crate) fn add_nvme(
    fronts: &mut FrontEnds,
    addresses: Addresses<'_>,
    hosts: &HostList,
    names: &Names<'_>,
    traits: &Traits,
) -> Result<()> {
    let ids: Vec<VolumeId> = fronts.drives().iter().map(|volume| volume.id).collect();
    hosts.check(&ids.iter().map(|&id| names.export(id)).collect::<Vec<_>>())?;
    if addresses.is_empty() {
        return Ok(());
    }
    let front = nvme(fronts, addresses, hosts, names, traits)?;
    let protections = [""].iter().cycle().take(addresses.plain.len()).chain([" over TLS 1.3"].iter().cycle());
    for (address, protection) in front.addresses().zip(protections) {
        output::line(&format!("NVMe/TCP{protection} on {address}: {}{}", names.nqn, names.range(&ids)));
    }
    fronts.add(Box::new(front));
    Ok(())
}

/// The only volume of some front ends under this name at an address; returns where it listens.
///
/// Errors: an address that cannot be listened on.
pub(crate) fn add_piece(
    fronts: &mut FrontEnds,
    address: SocketAddr,
    nqn: &str,
    hosts: &HostList,
) -> Result<SocketAddr> {
    let names = Names { nqn, volumes: &[String::new()] };
    let front = nvme(fronts, Addresses { plain: &[address], tls: &[] }, hosts, &names, &Traits::PLAIN)?;
    let found = front.addresses().next().context("it has no port")?;
    fronts.add(Box::new(front));
    Ok(found)
}

fn nvme(
    fronts: &FrontEnds,
    addresses: Addresses<'_>,
    hosts: &HostList,
    names: &Names<'_>,
    traits: &Traits,
) -> Result<NvmeTcp> {
    let volumes = fronts.drives().to_vec();
    let nqn = names.nqn;
    let subsystems = volumes.iter().map(|volume| {
        let block_log2 = volume.block_bytes.trailing_zeros() as u8;
        let zones = traits.zones.get(&volume.id);
        let blocks = zones.map_or(volume.limits.blocks, |zones| zones.zones * zones.zone_blocks);
        let mut namespace = Namespace::new(1, blocks, block_log2);
        namespace.zones = zones.map(|&zones| {
            let ZoneLayout { zone_blocks, capacity_blocks, open_max, active_max, .. } = zones;
            ZoneShape { zone_blocks, capacity_blocks, open_max, active_max }
        });
        namespace.is_read_only = volume.limits.read_only;
        namespace.uuid = identity(&names.unique(volume.id), volume.id);
        let mut subsystem = Subsystem::new(
            &format!("{nqn}{}", names.of(volume.id)),
            &format!("FY{:06}", volume.id.get()),
            vec![namespace],
        );
        subsystem.hosts = hosts.of(&names.export(volume.id));
        subsystem.has_write_cache = !volume.protected;
        subsystem.has_remap = volume.limits.remaps && zones.is_none();
        subsystem
    });
    let limits = Limits { queue_entries: QUEUE_ENTRIES, deallocate_blocks: DEALLOCATE_BLOCKS, ..Limits::default() };
    let mut config = TargetConfig { subsystems: subsystems.collect(), limits, ..TargetConfig::default() };
    // Challenges of authentication must not be guessed: the operating system's random numbers.
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut config.entropy))
        .context("/dev/urandom: no random numbers")?;
    let ids: Vec<VolumeId> = volumes.iter().map(|volume| volume.id).collect();
    let Addresses { plain, tls } = addresses;
    let flag = if plain.is_empty() { "--listen-tls" } else { "--listen" };
    NvmeTcp::with_tls(plain, tls, config, ids, traits.endurance_erases).context(flag)
}

/// Begins the trace of `--record`, if that is asked for.
///
/// Errors: a file that is there already, or cannot be written.
pub(crate) fn record(options: &ServeOptions, fronts: &mut FrontEnds) -> Result<()> {
    let Some(path) = &options.record else { return Ok(()) };
    output::refuse_existing("--record", path, options.force)?;
    let file = output::create_private(path);
    let file = file.with_context(|| format!("--record {}: cannot be written", path.display()))?;
    fronts.record(Box::new(BufWriter::new(file)));
    Ok(())
}

/// NBD at `address`, an export for each drive.
///
/// Errors: an address that cannot be listened on.
pub(crate) fn add_nbd(fronts: &mut FrontEnds, address: &NbdAddress, names: &Names<'_>) -> Result<()> {
    let named: Vec<_> = fronts.drives().iter().map(|&volume| (names.export(volume.id), volume)).collect();
    let front = Nbd::new(address, &named).with_context(|| format!("--nbd {address}: cannot be listened on"))?;
    let ids: Vec<VolumeId> = fronts.drives().iter().map(|volume| volume.id).collect();
    let drives = if names.volumes.is_empty() { "drive-" } else { "" };
    output::line(&format!("NBD on {}: {drives}{}", front.address(), names.range(&ids)));
    fronts.add(Box::new(front));
    Ok(())
}

/// vhost-user-blk at `path`, a socket for each drive.
///
/// Errors: a path that cannot be listened at.
pub(crate) fn add_vhost_user(fronts: &mut FrontEnds, path: &Path) -> Result<()> {
    let front = VhostUserBlk::new(path, fronts.drives());
    let front = front.with_context(|| format!("--vhost-user-blk {}: cannot be listened at", path.display()))?;
    let paths: Vec<String> = front.paths().map(|path| path.display().to_string()).collect();
    let shown = match &paths[..] {
        [first, .., last] => format!("{first} to {last}"),
        paths => paths.concat(),
    };
    output::line(&format!("vhost-user-blk at {shown}"));
    fronts.add(Box::new(front));
    Ok(())
}

/// A name that stays the same over restarts: drives of one scenario have the same ones every time.
fn identity(nqn: &str, volume: VolumeId) -> [u8; 16] {
    let mut state = 0xCBF2_9CE4_8422_2325_u64 ^ u64::from(volume.get());
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

/// Hosts that may connect over NVMe/TCP.
///
/// Errors: a file of hosts that cannot be read, or that others may read; a front end that lets hosts of other machines in
/// without a proof, unless that was asked for.
pub(crate) fn hosts(options: &ServeOptions) -> Result<HostList> {
    let hosts = options.hosts.as_deref().map_or(Ok(HostList::Any), HostList::read)?;
    if let (Some(address), false) = (options.listen_tls.first(), hosts.has_tls_keys()) {
        let file = options.hosts.as_deref().unwrap_or(Path::new("FILE")).display();
        bail!(
            "--listen-tls {address}: no host of --hosts {file} has a key of TLS; add one to its line, such as flashyard tls-key \
             prints"
        );
    }
    let found = openings(options, &hosts);
    if let (Some(opening), false) = (found.first(), options.insecure) {
        bail!("{opening}; or say --insecure");
    }
    found.iter().for_each(|opening| tracing::warn!("{opening}"));
    Ok(hosts)
}

/// Ways in for clients that prove nothing, each with what would close it.
fn openings(options: &ServeOptions, hosts: &HostList) -> Vec<String> {
    let beyond = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
    let file = options.hosts.as_deref().unwrap_or(Path::new("")).display();
    let mut found = Vec::new();
    for address in options.listen.iter().filter(beyond) {
        found.extend(match hosts {
            HostList::Any => Some(format!(
                "--listen {address}: other machines reach this address, and any host may read and write the drives; list \
                 those that may, with their secrets, by --hosts FILE"
            )),
            HostList::Listed { .. } => hosts.without_secret().map(|host| {
                format!(
                    "--listen {address}: other machines reach this address, and {} of --hosts {file} has no secret, so \
                     that any host may take its name; give it one (nvme gen-dhchap-key)",
                    host.nqn
                )
            }),
        });
    }
    if let Some(NbdAddress::Tcp(address)) = &options.nbd {
        if beyond(&address) {
            found.push(format!(
                "--nbd {address}: other machines reach this address, and NBD asks for no proof (--hosts is for NVMe/TCP \
                 only); use --nbd unix:PATH, or --listen with --hosts"
            ));
        } else if options.hosts.is_some() {
            found.push(format!(
                "--nbd {address} beside --hosts {file}: over NBD any user of this machine may read and write the drives \
                 that the list guards; use --nbd unix:PATH"
            ));
        }
    }
    if let Some(address) = options.dash.iter().find(|address| beyond(address)) {
        found.push(format!(
            "--dash {address}: other machines reach this address and may look at the page (--hosts is for NVMe/TCP only); \
             use an address of the loopback, and a proxy that asks who comes"
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command};
    use clap::Parser;
    use std::os::unix::fs::PermissionsExt;

    const SECRET: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";

    /// A file that only its owner may read.
    fn file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("there is room");
        std::fs::write(file.path(), text).expect("there is room");
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).expect("it is ours");
        file
    }

    fn options(arguments: &[&str]) -> ServeOptions {
        let all = ["flashyard", "serve", "x.toml"].iter().chain(arguments);
        match Arguments::try_parse_from(all).expect("the arguments are right").command {
            Command::Serve(options) => options,
            other => panic!("{other:?} does not serve"),
        }
    }

    /// Why these front ends are refused.
    fn refusal(arguments: &[&str]) -> Option<String> {
        let refused = hosts(&options(arguments)).err().map(|error| error.to_string());
        let insecure = options(&[arguments, &["--insecure"]].concat());
        assert!(hosts(&insecure).is_ok(), "{arguments:?} with --insecure");
        refused
    }

    #[test]
    fn beyond_the_loopback_nothing_is_open_unless_it_is_asked_for() {
        for address in ["192.0.2.1:4420", "0.0.0.0:4420", "[::]:4420", "[2001:db8::1]:4420"] {
            for flag in ["--listen", "--nbd", "--dash"] {
                let refused = refusal(&[flag, address]).unwrap_or_else(|| panic!("{flag} {address} is open"));
                assert!(refused.starts_with(&format!("{flag} {address}: ")), "{refused}");
                assert!(refused.contains("--hosts") && refused.ends_with("; or say --insecure"), "{refused}");
            }
        }
        for address in ["127.0.0.1:4420", "127.9.9.9:1", "[::1]:4420", "[::ffff:127.0.0.1]:4420"] {
            assert_eq!(refusal(&["--listen", address, "--nbd", address, "--dash", address]), None, "{address}");
        }
        assert_eq!(refusal(&["--nbd", "unix:somewhere"]), None);
        let second = refusal(&["--listen", "127.0.0.1:4420", "--listen", "192.0.2.1:4420"]);
        assert!(second.is_some_and(|refused| refused.starts_with("--listen 192.0.2.1:4420")));
    }

    #[test]
    fn ports_of_tls_need_keys_and_no_secrets() {
        const KEY: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
        let with_key = file(&format!("nqn.2026-01.test:a {KEY}\nnqn.2026-01.test:b\n"), 0o600);
        let path = with_key.path().to_str().expect("a name in Unicode");
        let tls = ["--listen-tls", "192.0.2.1:4420", "--hosts", path];
        assert_eq!(refusal(&tls), None);
        let beside = refusal(&[&tls[..], &["--listen", "192.0.2.1:4421"]].concat()).expect("names prove nothing there");
        assert!(beside.starts_with("--listen 192.0.2.1:4421: ") && beside.contains("has no secret"), "{beside}");
        let without = file("nqn.2026-01.test:a\n", 0o600);
        let path = without.path().to_str().expect("a name in Unicode");
        let refused = hosts(&options(&["--listen-tls", "127.0.0.1:4420", "--hosts", path, "--insecure"]));
        let refused = refused.expect_err("no host can come").to_string();
        assert!(refused.starts_with("--listen-tls 127.0.0.1:4420: no host of --hosts"), "{refused}");
    }

    #[test]
    fn only_a_list_with_secrets_guards_an_address_that_others_reach() {
        let listed = |text: &str, listen: &[&str]| {
            let file = file(text, 0o600);
            let path = file.path().to_str().expect("a name in Unicode").to_owned();
            refusal(&[listen, &["--hosts", &path]].concat())
        };
        let beyond = ["--listen", "192.0.2.1:4420"];
        let with_secret = format!("nqn.2026-01.test:a {SECRET}\n");
        assert_eq!(listed(&with_secret, &beyond), None);
        let refused = listed(&format!("{with_secret}nqn.2026-01.test:b\n"), &beyond).expect("one has no secret");
        assert!(refused.contains("nqn.2026-01.test:b of --hosts") && refused.contains("no secret"), "{refused}");
        assert_eq!(listed("nqn.2026-01.test:b\n", &["--listen", "127.0.0.1:4420"]), None);
        let tcp = ["--listen", "127.0.0.1:4420", "--nbd", "127.0.0.1:10809"];
        let beside = listed(&with_secret, &tcp).expect("the drives are open over NBD");
        assert!(beside.starts_with("--nbd 127.0.0.1:10809 beside --hosts"), "{beside}");
        assert_eq!(listed(&with_secret, &["--listen", "127.0.0.1:4420", "--nbd", "unix:x"]), None);
    }
}

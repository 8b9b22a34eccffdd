//! Files of hosts that may connect over NVMe/TCP, and of the drives that each may use.

use crate::secrets;
use anyhow::{Context, Result, bail};
use flashyard_nvmf::target::{Host, Hosts};
use flashyard_nvmf::tls;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Stands for all drives in the head of a section.
const ALL: &str = "*";

/// Hosts that may connect, by drive.
#[derive(Clone, Debug)]
pub(crate) enum HostList {
    /// Every host, to every drive.
    Any,
    /// Those of a file.
    Listed { path: PathBuf, entries: Vec<Entry> },
}

/// A host of a file, and what it may use.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) host: Host,
    place: Place,
    /// Drives of its section, with their places; `None` is all.
    drives: Option<Vec<(String, Place)>>,
}

/// A place in a file; lines and columns count from one, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    line: u32,
    column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl Entry {
    fn may_use(&self, drive: &str) -> bool {
        self.drives.as_ref().is_none_or(|drives| drives.iter().any(|(name, _)| name == drive))
    }

    /// Whether a drive is among those of both.
    fn meets(&self, other: &Self) -> bool {
        match (&self.drives, &other.drives) {
            (Some(drives), Some(_)) => drives.iter().any(|(name, _)| other.may_use(name)),
            _ => true,
        }
    }
}

/// Whether a host may have such a name: `nqn.`, a year and a month, a domain. Source: NVM Express Base 2.0, section 4.5.
fn is_qualified(name: &str) -> bool {
    let date = name.strip_prefix("nqn.").and_then(|rest| rest.split_once('.')).map(|(date, _)| date.as_bytes());
    date.is_some_and(|date| {
        matches!(date, [year @ .., b'-', _, _] if year.len() == 4)
            && date.iter().enumerate().all(|(place, byte)| place == 4 || byte.is_ascii_digit())
    })
}

impl HostList {
    /// Reads a file: lines of `NQN [SECRET [CONTROLLER-SECRET]] [TLS-KEY]`, for all drives, or for those that the line `[DRIVE…]` above
    /// them names; `#` begins a comment.
    ///
    /// Errors: a file that cannot be read, or holds secrets and can be read by others; a line that is wrong, with its place.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("--hosts {shown}: cannot be read"))?;
        let mut entries: Vec<Entry> = Vec::new();
        let mut drives = None;
        for (number, line) in (1_u32..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            let Some((_, first)) = words(line, number).next() else { continue };
            if line.trim_start().starts_with('[') {
                drives = section(line, number).with_context(|| format!("{shown}:{first}"))?;
                continue;
            }
            let entry = entry(line, number, drives.clone()).map_err(|(place, problem)| {
                // The problem of a secret has no place of its own.
                problem.context(format!("{shown}:{place}"))
            })?;
            let same = |other: &&Entry| other.host.nqn == entry.host.nqn && other.meets(&entry);
            if let Some(other) = entries.iter().find(same) {
                bail!("{shown}:{}: {} is listed in line {} already", entry.place, entry.host.nqn, other.place.line);
            }
            if !is_qualified(&entry.host.nqn) {
                tracing::warn!(
                    "{shown}:{}: {} does not look like an NVMe qualified name, such as nqn.2026-01.example:db-1; no host has another",
                    entry.place,
                    entry.host.nqn
                );
            }
            entries.push(entry);
        }
        let has_secret = |Host { secret, controller_secret, tls_key, .. }: &Host| {
            secret.is_some() || controller_secret.is_some() || tls_key.is_some()
        };
        if entries.iter().any(|entry| has_secret(&entry.host)) {
            secrets::check_private("--hosts", path)?;
        }
        Ok(Self::Listed { path: path.to_owned(), entries })
    }

    /// Looks whether every drive that is named is one of these.
    ///
    /// Errors: one that is not, with its place.
    pub(crate) fn check(&self, drives: &[String]) -> Result<()> {
        let Self::Listed { path, entries } = self else { return Ok(()) };
        let named = entries.iter().flat_map(|entry| entry.drives.iter().flatten());
        for (name, place) in named {
            if !drives.contains(name) {
                let shown = match drives {
                    [first, second, .., last] if drives.len() > 4 => format!("{first}, {second}, … {last}"),
                    drives => drives.join(", "),
                };
                bail!("{}:{place}: {name} is not served; there are {shown}", path.display());
            }
        }
        Ok(())
    }

    /// The hosts that may use a drive. A name that no file can have is for hosts of all drives.
    pub(crate) fn of(&self, drive: &str) -> Hosts {
        match self {
            Self::Any => Hosts::Any,
            Self::Listed { entries, .. } => {
                let may = entries.iter().filter(|entry| entry.may_use(drive));
                Hosts::Listed(may.map(|entry| entry.host.clone()).collect())
            }
        }
    }

    /// Whether any host has a key of TLS.
    pub(crate) fn has_tls_keys(&self) -> bool {
        match self {
            Self::Any => false,
            Self::Listed { entries, .. } => entries.iter().any(|entry| entry.host.tls_key.is_some()),
        }
    }

    /// A host that proves nothing at a port of clear text.
    pub(crate) fn without_secret(&self) -> Option<&Host> {
        match self {
            Self::Any => None,
            Self::Listed { entries, .. } => entries.iter().map(|entry| &entry.host).find(|host| host.secret.is_none()),
        }
    }
}

/// Words of a line, with their places.
fn words(line: &str, number: u32) -> impl Iterator<Item = (&str, Place)> {
    line.split_whitespace().map(move |word| {
        let before = &line[..word.as_ptr() as usize - line.as_ptr() as usize];
        (word, Place { line: number, column: before.chars().count() + 1 })
    })
}

/// Drives that the head of a section names; `None` is all.
fn section(line: &str, number: u32) -> Result<Option<Vec<(String, Place)>>> {
    const FORM: &str = "give [DRIVE…] with the names of drives, such as [drive-0 drive-3], or [*] for all";
    let inside = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).context(FORM)?;
    // Brackets as spaces keep the columns.
    let plain = line.replace(['[', ']'], " ");
    let drives: Vec<_> = words(&plain, number).map(|(name, place)| (name.to_owned(), place)).collect();
    match &drives[..] {
        [] => bail!(FORM),
        _ if inside.contains(['[', ']']) => bail!(FORM),
        [(only, _)] if only == ALL => Ok(None),
        names if names.iter().any(|(name, _)| name == ALL) => bail!(FORM),
        _ => Ok(Some(drives)),
    }
}

/// A line about a host.
fn entry(line: &str, number: u32, drives: Option<Vec<(String, Place)>>) -> Result<Entry, (Place, anyhow::Error)> {
    let (keys, words): (Vec<_>, Vec<_>) = words(line, number).partition(|(word, _)| word.starts_with(tls::PREFIX));
    if let Some((_, place)) = keys.get(1) {
        return Err((*place, anyhow::anyhow!("a host has one key of TLS; leave one out")));
    }
    let (nqn, place, secrets) = match &words[..] {
        [(nqn, place), secrets @ ..] if secrets.len() <= 2 => (*nqn, *place, secrets),
        words => {
            let place = words.get(3).map_or(Place { line: number, column: 1 }, |(_, place)| *place);
            let problem = "give the name of a host, its secret and the controller's, and its key of TLS, all but the name only if wanted";
            return Err((place, anyhow::anyhow!(problem)));
        }
    };
    let host = Host {
        secret: parsed(secrets.first())?,
        controller_secret: parsed(secrets.get(1))?,
        tls_key: parsed(keys.first())?,
        ..Host::new(nqn)
    };
    Ok(Entry { host, place, drives })
}

/// A word that is a secret.
fn parsed<S: FromStr<Err: Error + Send + Sync + 'static>>(
    given: Option<&(&str, Place)>,
) -> Result<Option<S>, (Place, anyhow::Error)> {
    given.map(|(text, place)| text.parse().map_err(|error| (*place, anyhow::Error::new(error)))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const SECRET: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
    const KEY: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";

    fn read(text: &str, mode: u32) -> Result<HostList, String> {
        let file = tempfile::NamedTempFile::new().expect("there is room");
        std::fs::write(file.path(), text).expect("there is room");
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).expect("it is ours");
        let shown = file.path().display().to_string();
        HostList::read(file.path()).map_err(|error| format!("{error:#}").replace(&shown, "FILE"))
    }

    fn names(list: &HostList, drive: &str) -> Vec<String> {
        match list.of(drive) {
            Hosts::Any => panic!("it is a list"),
            Hosts::Listed(hosts) => hosts.into_iter().map(|host| host.nqn).collect(),
        }
    }

    #[test]
    fn names_that_no_host_has_are_told_apart() {
        for name in ["nqn.2014-08.org.nvmexpress:uuid:1", "nqn.2026-01.example:db-1", "nqn.2026-01.example"] {
            assert!(is_qualified(name), "{name}");
        }
        for name in
            ["db-1", "nqn.a", "nqn.2026.example:x", "nqn.26-01.example:x", "NQN.2026-01.example:x", "nqn.2026-1x.a"]
        {
            assert!(!is_qualified(name), "{name}");
        }
    }

    #[test]
    fn hosts_are_read_line_by_line() {
        let text = format!("# who\n\nnqn.a\n  nqn.b {SECRET} # with a proof\nnqn.c\t{SECRET} {SECRET}\n");
        let Hosts::Listed(hosts) = read(&text, 0o600).expect("it is right").of("drive-7") else { panic!("a list") };
        let seen: Vec<_> = hosts
            .iter()
            .map(|host| (host.nqn.as_str(), host.secret.is_some(), host.controller_secret.is_some()))
            .collect();
        assert_eq!(seen, [("nqn.a", false, false), ("nqn.b", true, false), ("nqn.c", true, true)]);
        let refused = |text: &str, mode| read(text, mode).expect_err("it is wrong");
        assert!(refused("nqn.a\nnqn.b DHHC-1:00:x\n", 0o600).starts_with("FILE:2:7: a secret has the form"));
        let much = refused(&format!("nqn.a {SECRET} {SECRET} more\n"), 0o600);
        let column = 1 + "nqn.a ".len() + 2 * (SECRET.len() + 1);
        assert!(much.starts_with(&format!("FILE:1:{column}: give the name of a host")), "{much}");
        assert_eq!(refused("nqn.a\n\n nqn.a\n", 0o600), "FILE:3:2: nqn.a is listed in line 1 already");
        // Names alone may be seen; secrets may not.
        assert!(read("nqn.a\n", 0o644).is_ok());
        assert!(refused(&text, 0o644).contains("its mode 644 lets other users at them; chmod 600 "));
        assert!(format!("{:#}", HostList::read(Path::new("/nowhere")).expect_err("not there")).contains("/nowhere"));
    }

    #[test]
    fn a_key_of_tls_stands_anywhere_behind_a_name() {
        let text = format!("nqn.a {KEY}\nnqn.b {SECRET} {KEY}\nnqn.c {KEY} {SECRET} {SECRET}\nnqn.d\n");
        let list = read(&text, 0o600).expect("it is right");
        assert!(list.has_tls_keys());
        let Hosts::Listed(hosts) = list.of("drive-0") else { panic!("a list") };
        let seen: Vec<_> = hosts
            .iter()
            .map(|host| (host.secret.is_some(), host.controller_secret.is_some(), host.tls_key.is_some()))
            .collect();
        assert_eq!(seen, [(false, false, true), (true, false, true), (true, true, true), (false, false, false)]);
        let refused = |text: &str, mode| read(text, mode).expect_err("it is wrong");
        let wrong = refused(&format!("nqn.a\nnqn.b {}\n", KEY.replace("VRL", "VRM")), 0o600);
        assert!(wrong.starts_with("FILE:2:7: the checksum of the key is wrong") && !wrong.contains("VRM"), "{wrong}");
        let second = format!("FILE:1:{}: a host has one key", 1 + "nqn.a ".len() + KEY.len() + 1);
        assert!(refused(&format!("nqn.a {KEY} {KEY}\n"), 0o600).starts_with(&second));
        assert!(
            refused(&format!("nqn.a {KEY}\n"), 0o640).contains("its mode 640 lets other users at them; chmod 600 ")
        );
        assert!(!read(&format!("nqn.a {SECRET}\n"), 0o600).expect("it is right").has_tls_keys());
    }

    #[test]
    fn sections_limit_hosts_to_drives() {
        let text = "nqn.a\n[drive-0 drive-3]  # two\nnqn.b\n[ drive-1 ]\nnqn.b\nnqn.c\n[*]\nnqn.d\n";
        let list = read(text, 0o644).expect("it is right");
        assert_eq!(names(&list, "drive-0"), ["nqn.a", "nqn.b", "nqn.d"]);
        assert_eq!(names(&list, "drive-1"), ["nqn.a", "nqn.b", "nqn.c", "nqn.d"]);
        assert_eq!(names(&list, "drive-2"), ["nqn.a", "nqn.d"]);
        assert_eq!(names(&list, ""), ["nqn.a", "nqn.d"]);
        let drives = |count: u16| (0..count).map(|drive| format!("drive-{drive}")).collect::<Vec<_>>();
        assert!(list.check(&drives(4)).is_ok());
        let missing = format!("{:#}", list.check(&drives(2)).expect_err("drive 3 is not there"));
        assert!(missing.ends_with(":2:10: drive-3 is not served; there are drive-0, drive-1"), "{missing}");
        let list = read("[x]\nnqn.a\n", 0o644).expect("it is right");
        let missing = format!("{:#}", list.check(&drives(12)).expect_err("it is none of them"));
        assert!(missing.ends_with("there are drive-0, drive-1, … drive-11"), "{missing}");
    }

    #[test]
    fn a_host_without_a_secret_is_found_in_any_section() {
        let list = read(&format!("nqn.b {SECRET}\n[drive-1]\nnqn.a\n"), 0o600).expect("it is right");
        assert_eq!(list.without_secret().map(|host| host.nqn.as_str()), Some("nqn.a"));
    }

    #[test]
    fn sections_that_are_wrong_are_refused_with_their_place() {
        let refused = |text: &str| read(text, 0o644).expect_err("it is wrong");
        for head in ["[drive-0", "[]", "[ ]", "[drive-0] nqn.a", "[* drive-0]", "[[drive-0]]", "[drive-0]]"] {
            let found = refused(&format!("nqn.a\n {head}\n"));
            assert!(found.starts_with("FILE:2:2: give [DRIVE…]"), "{head}: {found}");
        }
        // A host twice for one drive, in whatever sections.
        assert_eq!(refused("nqn.a\n[drive-0]\nnqn.a\n"), "FILE:3:1: nqn.a is listed in line 1 already");
        let twice = "[drive-0 drive-1]\nnqn.a\n[drive-1 drive-2]\nnqn.a\n";
        assert_eq!(refused(twice), "FILE:4:1: nqn.a is listed in line 2 already");
        assert!(refused("é\té DHHC\n").starts_with("FILE:1:3: "), "columns are characters");
    }
}

//! The file that describes volumes of real storage, for `flashyard serve`: what they are made of, and the service above it.

use crate::arrays::{ArrayKeys, JournalName};
use crate::legs::{BORROW, RECORD, SPEED, array_problem, composed};
use crate::lending::{Lend, SERVER, server_problem};
use crate::quantity::{Size, Time};
use serde::Deserialize;
use toml::Spanned;

pub use crate::legs::{DescriptionError, Leg, RuleName, ServiceName};

/// Beginning of NVMe qualified names, unless the file has one.
const NQN: &str = "nqn.2026-11.io.flashyard:";
/// The most volumes of a file: each has a subsystem of its own.
const VOLUMES_MAX: usize = 256;

/// A whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Beginning of NVMe qualified names; the name of a volume follows.
    #[serde(default = "nqn")]
    pub nqn: String,
    /// Name of this server among those that lend each other space.
    pub server: Option<Spanned<String>>,
    /// Space that it lends.
    pub lend: Option<Spanned<Lend>>,
    /// The volumes, at least one.
    #[serde(default)]
    pub volume: Vec<Spanned<Volume>>,
}

fn nqn() -> String {
    NQN.to_owned()
}

/// One volume.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: Spanned<String>,
    /// The service above its storage.
    #[serde(default)]
    pub service: ServiceName,
    /// The end that takes writes, for LATTE.
    pub rule: Option<Spanned<RuleName>>,
    /// Age at which LATTE flushes a block.
    pub flush_age: Option<Spanned<Time>>,
    /// Storage in front of it.
    pub front: Option<Spanned<Leg>>,
    /// Storage of the volume, unless it has `legs`.
    pub back: Option<Spanned<Leg>>,
    /// Storage of a volume that is composed of several, in order.
    pub legs: Option<Vec<Spanned<Leg>>>,
    /// Bytes of a stripe on a leg before the next one.
    pub chunk: Option<Spanned<Size>>,
    /// The volume that it is another name of, for clients that are batch.
    pub batch_of: Option<Spanned<String>>,
    /// The volume whose versions it shows.
    pub version_of: Option<Spanned<String>>,
    /// The slot of the version that it shows.
    pub slot: Option<u32>,
    /// Versions that a volume keeps at most.
    pub versions: Option<Spanned<u32>>,
    /// Bytes that keep what versions have and the volume has no more.
    pub store: Option<Spanned<Size>>,
    /// Virtual channels of the volume.
    pub channels: Option<u16>,
    /// Physical channels beyond these.
    pub spares: Option<u16>,
    /// Requests of a channel under way below at most.
    pub depth: Option<u16>,
    /// The volume one of whose channels it shows.
    pub channel_of: Option<Spanned<String>>,
    /// The channel that it shows.
    pub channel: Option<u16>,
    /// Bytes of the log of atomic writes.
    pub log: Option<Spanned<Size>>,
    /// Whether a mirror keeps a record of what its legs have missed; it does without the key.
    pub record: Option<bool>,
    /// Chunks of a stripe of an array, parity included.
    pub stripe: Option<u8>,
    /// Those of parity.
    pub parity: Option<u8>,
    /// The way in which an array keeps changes under way.
    pub journal: Option<JournalName>,
    /// Changes of stripes of an array under way at once.
    pub slots: Option<u32>,
    /// Time between two stripes of a rebuild or a scrub of an array.
    pub pause: Option<Time>,
    /// Whether hot chunks of an array move to fast legs.
    pub moves: Option<bool>,
    /// Time between two of these moves.
    pub move_pause: Option<Time>,
    /// Time between two looks at what is hot.
    pub move_interval: Option<Time>,
    /// One access in so many counts there.
    pub move_sample: Option<u32>,
}

/// Versions of a volume, without `versions`. Source: \[A\].
pub const VERSIONS: u32 = 4;
/// Virtual channels of a volume, physical ones beyond these, and requests of each below, without the keys. Source: \[A\].
pub const CHANNELS: (u16, u16, u16) = (7, 1, 32);
/// Channels of a volume at most, virtual and beyond these.
const CHANNELS_MAX: u16 = 1024;

impl Volume {
    /// Keys of an array.
    pub const fn array_keys(&self) -> ArrayKeys {
        let Self { stripe, parity, journal, slots, pause, moves, move_pause, move_interval, move_sample, .. } = *self;
        ArrayKeys { stripe, parity, journal, slots, pause, moves, move_pause, move_interval, move_sample }
    }

    /// The first thing that is wrong with what only arrays have.
    fn array_problem(&self) -> Option<String> {
        let legs = || self.legs.iter().flatten().map(Spanned::get_ref);
        let ends = self.front.iter().chain(&self.back).map(Spanned::get_ref);
        array_problem(self.service == ServiceName::Array, self.array_keys(), legs)
            .or_else(|| ends.into_iter().any(|leg| leg.speed.is_some()).then(|| SPEED.to_owned()))
    }

    /// Virtual channels, physical ones beyond these, and requests of each below.
    pub fn channel_room(&self) -> (u16, u16, u16) {
        let (channels, spares, depth) = CHANNELS;
        (self.channels.unwrap_or(channels), self.spares.unwrap_or(spares), self.depth.unwrap_or(depth))
    }

    /// A key that another name of a volume, by this service, has no use for.
    fn idle_in_alias(&self, service: ServiceName) -> Option<String> {
        let ArrayKeys { stripe, parity, journal, slots, pause, moves, move_pause, move_interval, move_sample } =
            self.array_keys();
        let given = [
            ("rule", self.rule.is_some()),
            ("flush_age", self.flush_age.is_some()),
            ("chunk", self.chunk.is_some()),
            ("slot", self.slot.is_some() && service != ServiceName::Versions),
            ("versions", self.versions.is_some()),
            ("store", self.store.is_some()),
            ("channels", self.channels.is_some()),
            ("spares", self.spares.is_some()),
            ("depth", self.depth.is_some()),
            ("channel", self.channel.is_some() && service != ServiceName::OpenChannel),
            ("log", self.log.is_some()),
            ("record", self.record.is_some()),
            ("stripe", stripe.is_some()),
            ("parity", parity.is_some()),
            ("journal", journal.is_some()),
            ("slots", slots.is_some()),
            ("pause", pause.is_some()),
            ("moves", moves.is_some()),
            ("move_pause", move_pause.is_some()),
            ("move_interval", move_interval.is_some()),
            ("move_sample", move_sample.is_some()),
        ];
        let (key, _) = given.into_iter().find(|(_, given)| *given)?;
        Some(format!("{key} has no effect on another name of a volume; leave it out"))
    }

    /// The first thing that is wrong with the keys of channels.
    fn channel_keys(&self) -> Option<String> {
        if self.channel.is_some() {
            return Some("channel goes with channel_of".to_owned());
        }
        if self.service != ServiceName::OpenChannel {
            let given = self.channels.is_some() || self.spares.is_some() || self.depth.is_some();
            return given.then(|| "channels, spares and depth go with service = \"open-channel\"".to_owned());
        }
        let ((channels, spares, depth), legs) = (self.channel_room(), self.legs.as_ref().map_or(0, Vec::len).max(1));
        let all = channels.saturating_add(spares);
        if channels == 0 || all > CHANNELS_MAX {
            return Some(format!(
                "{channels} channels and {spares} spares, give 1 channel or more, {CHANNELS_MAX} of both at most"
            ));
        }
        if usize::from(all) % legs > 0 {
            return Some(format!("{channels} channels and {spares} spares do not share out among {legs} legs"));
        }
        (depth == 0).then(|| "depth is 1 or more".to_owned())
    }

    /// The first thing that is wrong with the keys of versions.
    fn version_keys(&self) -> Option<String> {
        if self.slot.is_some() {
            return Some("slot goes with version_of".to_owned());
        }
        if self.service != ServiceName::Versions {
            let given = self.versions.is_some() || self.store.is_some();
            return given.then(|| "versions and store go with service = \"versions\"".to_owned());
        }
        let versions = self.versions.as_ref().map_or(VERSIONS, |versions| *versions.get_ref());
        let store = self.store.as_ref().map_or(4096, |store| store.get_ref().0.get());
        if !(1..=64).contains(&versions) {
            return Some(format!("{versions} versions, give 1 to 64"));
        }
        (store == 0 || !store.is_multiple_of(4096)).then(|| "store is whole blocks of 4 KiB".to_owned())
    }
}

impl File {
    /// Reads the text of a file.
    ///
    /// Errors: the first thing that is wrong, with its place.
    pub fn parse(text: &str) -> Result<Self, DescriptionError> {
        let file: Self = toml::from_str(text).map_err(|error| DescriptionError::of_toml(&error, text))?;
        let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
        let wrong = |at: usize, problem: String| Err(DescriptionError::Value { line: line(at), problem });
        // A server that lends need not have any.
        if file.volume.is_empty() && file.lend.is_none() || file.volume.len() > VOLUMES_MAX {
            return wrong(0, format!("{} volumes, give 1 to {VOLUMES_MAX} ([[volume]])", file.volume.len()));
        }
        if let Some((at, problem)) = file.lending() {
            return wrong(at, problem);
        }
        let mut names: Vec<&str> = Vec::new();
        for volume in &file.volume {
            let volume = volume.get_ref();
            let (name, at) = (volume.name.get_ref().as_str(), volume.name.span().start);
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
                return wrong(at, format!("{name:?} is no name: give 1 to 64 letters, digits, -, _ and ."));
            }
            if names.contains(&name) {
                return wrong(at, format!("there is a volume {name} already"));
            }
            names.push(name);
            let aliases = [
                (&volume.batch_of, ServiceName::Priority),
                (&volume.version_of, ServiceName::Versions),
                (&volume.channel_of, ServiceName::OpenChannel),
            ];
            if let Some((of, service)) = aliases.iter().find_map(|(of, service)| Some((of.as_ref()?, *service))) {
                if let Some((at, problem)) = file.alias(volume, of, service) {
                    return wrong(at, problem);
                }
                continue;
            }
            if let Some(problem) = volume.version_keys().or_else(|| volume.channel_keys()) {
                return wrong(at, problem);
            }
            let legs = volume.legs.iter().flatten();
            for leg in volume.front.iter().chain(&volume.back).chain(legs) {
                if let Some(problem) = leg.get_ref().problem() {
                    return wrong(leg.span().start, problem);
                }
            }
            let chunk = volume.chunk.as_ref().map(|chunk| *chunk.get_ref());
            let service = Some(volume.service).filter(|service| *service != ServiceName::None || volume.legs.is_some());
            let log = volume.log.as_ref().map(|log| *log.get_ref());
            if volume.record.is_some() && volume.service != ServiceName::Mirror {
                return wrong(at, RECORD.to_owned());
            }
            if let Some(problem) = composed(service, false, volume.legs.as_ref().map(Vec::len), chunk, log) {
                return wrong(at, problem);
            }
            if let Some(problem) = volume.array_problem() {
                return wrong(at, problem);
            }
            match (&volume.back, volume.service.is_composed()) {
                (Some(back), true) => return wrong(back.span().start, format!("{name} has legs, and no back")),
                (None, false) => return wrong(at, format!("{name} needs storage: back = {{ … }}")),
                _ => {}
            }
            match (volume.service, &volume.front) {
                (service, Some(front)) if !matches!(service, ServiceName::Cache | ServiceName::Latte) => {
                    return wrong(
                        front.span().start,
                        "a front end goes with service = \"cache\" or \"latte\"".to_owned(),
                    );
                }
                (ServiceName::Cache | ServiceName::Latte, None) => {
                    let at = volume.back.as_ref().map_or(at, |back| back.span().start);
                    return wrong(at, format!("{name} needs a front end: front = {{ … }}"));
                }
                _ => {}
            }
            if volume.service != ServiceName::Latte
                && let Some(at) =
                    volume.rule.as_ref().map(Spanned::span).or(volume.flush_age.as_ref().map(Spanned::span))
            {
                return wrong(at.start, "rule and flush_age go with service = \"latte\"".to_owned());
            }
        }
        Ok(file)
    }

    /// The first thing that is wrong with what is lent and borrowed, with its place.
    fn lending(&self) -> Option<(usize, String)> {
        if let Some(name) = &self.server
            && let Some(problem) = server_problem(name.get_ref())
        {
            return Some((name.span().start, problem));
        }
        if let Some(lend) = &self.lend {
            let problem = lend.get_ref().problem().or_else(|| self.server.is_none().then(|| SERVER.to_owned()));
            if let Some(problem) = problem {
                return Some((lend.span().start, problem));
            }
        }
        for volume in self.volume.iter().map(Spanned::get_ref) {
            let ends = volume.front.iter().chain(&volume.back);
            let legs = volume.legs.iter().flatten();
            let stray = legs.clone().filter(|_| volume.service != ServiceName::Mirror).chain(ends.clone());
            if let Some(leg) = stray.into_iter().find(|leg| leg.get_ref().borrow.is_some()) {
                return Some((leg.span().start, BORROW.to_owned()));
            }
            let loan = ends.chain(legs).find(|leg| leg.get_ref().borrows());
            if let Some(leg) = loan.filter(|_| self.server.is_none()) {
                return Some((leg.span().start, SERVER.to_owned()));
            }
        }
        None
    }

    /// The first thing that is wrong with another name of a volume, with its place.
    fn alias(&self, volume: &Volume, of: &Spanned<String>, service: ServiceName) -> Option<(usize, String)> {
        let mut others = self.volume.iter().map(Spanned::get_ref);
        let other = others.find(|other| other.name.get_ref() == of.get_ref() && other.service == service);
        let Some(other) = other else {
            let problem = format!("{} is no volume with service = \"{}\"", of.get_ref(), service.name());
            return Some((of.span().start, problem));
        };
        let most = other.versions.as_ref().map_or(VERSIONS, |versions| *versions.get_ref());
        if service == ServiceName::Versions && !volume.slot.is_some_and(|slot| (1..=most).contains(&slot)) {
            return Some((volume.name.span().start, format!("give slot, 1 to {most}")));
        }
        let (channels, ..) = other.channel_room();
        if service == ServiceName::OpenChannel && volume.channel.is_none_or(|channel| channel >= channels) {
            return Some((volume.name.span().start, format!("give channel, 0 to {}", channels - 1)));
        }
        if let Some(problem) = volume.idle_in_alias(service) {
            return Some((volume.name.span().start, problem));
        }
        let has_own = volume.back.is_some() || volume.front.is_some() || volume.legs.is_some();
        let problem = format!("another name of {} has nothing of its own", of.get_ref());
        (has_own || volume.service != ServiceName::None).then_some((volume.name.span().start, problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        File::parse(text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_file_is_read() {
        let text = r#"
[[volume]]
name = "v0"
back = { file = "disk", size = "1 GiB" }

[[volume]]
name = "v1"
service = "latte"
rule = "front"
front = { memory = "64 MiB" }
back = { nvme_tcp = "127.0.0.1:4420", nqn = "nqn.2026-01.test:a", namespace = 1, latency = "200 us", iops = 50000 }
"#;
        let file = File::parse(text).expect("it is right");
        assert_eq!(file.nqn, NQN);
        let back_of = |volume: usize| file.volume[volume].get_ref().back.as_ref().expect("it has one").get_ref();
        let back = back_of(1);
        assert_eq!((back.iops, back.latency.map(|time| time.0.as_ns())), (Some(50_000), Some(200_000)));
        assert_eq!(back_of(0).latency, None);
    }

    /// Mistakes of what is lent and borrowed, each in a volume whose lines follow its name.
    fn lending_mistakes(volume: impl Fn(&str) -> String) {
        let lend = "server = \"s\"\n[lend]\nboard = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"\n";
        assert!(File::parse(&format!("{lend}memory = \"64 MiB\"")).is_ok(), "a lender needs no volume");
        for (rest, expected) in [
            ("", "line 2: lend one of memory"),
            ("memory = \"64 MiB\"\nfile = \"x\"", "line 2: lend one of memory"),
            ("memory = \"64 MiB\"\nsize = \"1 MiB\"", "line 2: size goes with file only"),
            ("memory = \"64 MiB\"\npiece = \"5 KiB\"", "line 2: piece is whole MiB"),
            ("memory = \"65 MiB\"", "line 2: memory is whole pieces of 64 MiB"),
            ("file = \"x\"\nsize = \"1 MiB\"", "line 2: size is whole pieces"),
            ("memory = \"64 MiB\"\nlease = \"10 ms\"", "line 2: lease is 1 s to 3600 s"),
            ("memory = \"64 MiB\"\ncolour = 1", "unknown field `colour`"),
        ] {
            let said = problem(&format!("{lend}{rest}"));
            assert!(said.contains(expected), "{rest}: {said}");
        }
        let everywhere = lend.replace("127.0.0.1:2", "0.0.0.0:2");
        assert!(problem(&format!("{everywhere}memory = \"64 MiB\"")).contains("not 0.0.0.0:2"));
        let nameless = format!("{}memory = \"64 MiB\"", &lend[13..]);
        assert!(problem(&nameless).contains("servers that lend and borrow have a name"));
        assert!(problem(&lend.replace("\"s\"", "\"a b\"")).starts_with("line 1: \"a b\" is no name of a server"));
        let loan = "borrow = \"64 MiB\", board = \"127.0.0.1:1\"";
        let named = |rest: &str| format!("server = \"s\"{}", volume(rest));
        let of = |keys: &str| named(&format!("service = \"mirror\"\nlegs = [{{ {keys} }}]"));
        assert!(File::parse(&of(loan)).is_ok());
        let striped = format!("service = \"stripe\", legs = [{{ {loan} }}, {{ {loan} }}]");
        for (text, expected) in [
            (of("borrow = \"64 MiB\""), "line 5: borrow needs the address"),
            (of("borrow = \"1 KiB\", board = \"127.0.0.1:1\""), "line 5: borrow is whole MiB"),
            (of(&format!("{loan}, memory = \"1 MiB\"")), "line 5: give one of memory"),
            (of(&format!("{loan}, choice = \"any\"")), "unknown variant `any`"),
            (of("memory = \"1 MiB\", free_iops = 1"), "line 5: free_iops goes with borrow only"),
            (of(&striped), "line 5: borrow is for legs of"),
            (of(loan)[12..].to_owned(), "line 5: servers that lend and borrow have a name"),
            (named(&format!("back = {{ {loan} }}")), "line 4: borrow is for legs of"),
        ] {
            let said = problem(&text);
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    #[test]
    fn an_array_is_read_and_its_mistakes_are_said() {
        let leg = "{ memory = \"8 MiB\", speed = 3 }";
        let of = |rest: &str, legs: usize| {
            format!("[[volume]]\nname = \"a\"\nservice = \"array\"\n{rest}\nlegs = [{}]", vec![leg; legs].join(", "))
        };
        let file =
            File::parse(&of("stripe = 6\nparity = 2\nchunk = \"16 KiB\"\npause = \"2 ms\"", 7)).expect("it is right");
        let keys = file.volume[0].get_ref().array_keys();
        assert_eq!(
            (keys.stripe_over(7), keys.parities(), keys.pause.map(|time| time.0.as_ns())),
            (6, 2, Some(2_000_000))
        );
        for (rest, legs, expected) in [
            ("", 2, "2 legs, give 3 to 64"),
            ("parity = 3", 5, "parity = 3, give 1 (RAID-5) or 2 (RAID-6)"),
            ("stripe = 6", 5, "stripe = 6 with parity = 1 over 5 legs, give 2 to 5"),
            ("parity = 2\nstripe = 2", 5, "stripe = 2 with parity = 2 over 5 legs, give 3 to 5"),
            ("journal = \"partial-parity\"\nparity = 2", 5, "goes with parity = 1"),
            ("journal = \"some\"", 5, "unknown variant `some`"),
            ("move_sample = 2", 5, "move_pause, move_interval and move_sample go with moves = true"),
            ("moves = true\nmove_sample = 0", 5, "move_sample = 0, give 1 or more"),
            ("moves = true\nmove_interval = \"1 us\"", 5, "move_interval is shorter than 1 ms"),
            ("slots = 0", 5, "slots = 0, give 1 to 4096"),
            ("chunk = \"5 KiB\"", 5, "chunk is whole blocks"),
        ] {
            let said = problem(&of(rest, legs));
            assert!(said.contains(expected), "{rest}: {said}");
        }
        let mirror = of("", 3).replace("array", "mirror");
        assert!(problem(&mirror).contains("speed is for legs of service = \"array\""), "{}", problem(&mirror));
        let stripe = of("parity = 1", 3).replace("array", "stripe").replace(", speed = 3", "");
        assert!(problem(&stripe).contains("go with service = \"array\""));
        let nested = of("", 3).replace(leg, "{ service = \"mirror\", legs = [{ memory = \"1 MiB\" }] }");
        assert!(problem(&nested).contains("legs of an array are storage"));
        let back = "[[volume]]\nname = \"a\"\nback = { memory = \"8 MiB\", speed = 3 }";
        assert!(problem(back).contains("speed is for"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let volume = |rest: &str| format!("\n[[volume]]\nname = \"a\"\n{rest}");
        assert!(problem("").contains("0 volumes"));
        assert!(problem(&volume("back = {}")).starts_with("line 4: give one of memory"));
        assert!(problem(&volume("back = { memory = \"1 MiB\", file = \"x\" }")).starts_with("line 4: give one of"));
        assert!(
            problem(&volume("back = { memory = \"1 MiB\", namespace = 1 }")).contains("namespace goes with nvme_tcp")
        );
        assert!(problem(&volume("back = { nvme_tcp = \"127.0.0.1:1\" }")).contains("nqn"));
        assert!(problem(&volume("back = { memory = \"1 MiB\", data = \"d\" }")).contains("data goes with drive"));
        assert!(problem(&volume("back = { memory = \"1 MiB\", iops = 0 }")).contains("above zero"));
        let front = "front = { memory = \"1 MiB\" }\nback = { memory = \"1 MiB\" }";
        assert!(problem(&volume(front)).starts_with("line 4: a front end goes with"));
        assert!(problem(&volume("service = \"latte\"\nback = { memory = \"1 MiB\" }")).starts_with("line 5: a needs"));
        assert!(
            problem(&volume(&format!("service = \"cache\"\nrule = \"back\"\n{front}"))).starts_with("line 5: rule")
        );
        assert!(problem(&volume("back = { memory = \"1\" }")).contains("unit is missing"));
        let unknown = problem(&volume("colour = 1\nback = { memory = \"1 MiB\" }"));
        assert!(unknown.starts_with("line 4: unknown field `colour`, expected one of"), "{unknown}");
        let twice = format!("{}{}", volume("back = { memory = \"1 MiB\" }"), volume("back = { memory = \"1 MiB\" }"));
        assert!(problem(&twice).starts_with("line 6: there is a volume a already"), "{}", problem(&twice));
        lending_mistakes(volume);
        assert!(problem("[[volume]]\nname = \"a b\"\nback = { memory = \"1 MiB\" }").contains("is no name"));
    }
}

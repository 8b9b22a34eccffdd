//! From a description to volumes that serve.

use crate::compose::{Composer, Part, Sizes};
use crate::engine::{Export, VolumeEngine};
use crate::error::OpenError;
use crate::leg::BLOCK;
use crate::opening::{Opening, OpensDrive, ReadSecret};
use crate::stack::{Services, Stack};
use crate::zeroing::Zeroing;
use flashyard_describe::volumes::{File, Leg, RuleName, ServiceName, VERSIONS, Volume};
use flashyard_latte::{Config, Latte, Learning, Rule};
use flashyard_service::PassThrough;
use std::path::Path;

/// Blocks of a front end at least: a LATTE takes no request of more than half of it at once. 8 MiB.
const FRONT_MIN: u64 = 2048;
/// Blocks of a LATTE at most: what its numbers have room for.
const LATTE_MAX: u64 = (1 << 31) - 1;
/// Blocks of the log of a cache, which takes no writes: as many as a request may have. 1 MiB.
const CACHE_LOG: u32 = 256;

/// Volumes that are ready to serve.
pub struct Volumes {
    /// They, without front ends.
    pub engine: VolumeEngine,
    /// Their names, in the order of their numbers.
    pub names: Vec<String>,
    /// Beginning of their NVMe qualified names.
    pub nqn: String,
}

/// Whether a text describes volumes: it has a table of one.
pub fn describes_volumes(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("[[volume]]"))
}

/// Opens the volumes that `text` describes; paths in it count from `folder`.
///
/// Errors: the first thing that is wrong, with its place or its volume.
pub fn open(text: &str, folder: &Path, secret: ReadSecret, drive: OpensDrive) -> Result<Volumes, OpenError> {
    let file = File::parse(text)?;
    let opening = Opening::new(folder, secret, drive);
    let volumes = || file.volume.iter().map(|volume| volume.get_ref());
    let own = volumes().filter(|volume| volume.batch_of.is_none() && volume.version_of.is_none());
    let stacks = own.map(|volume| stack(&opening, volume)).collect::<Result<Vec<_>, _>>()?;
    let export = |volume: &Volume| {
        let of = volume.batch_of.as_ref().or(volume.version_of.as_ref()).unwrap_or(&volume.name).get_ref();
        let stack = stacks.iter().position(|stack| stack.name == *of).unwrap_or(0);
        let class = if volume.batch_of.is_some() { BATCH } else { INTERACTIVE };
        let window = if volume.version_of.is_some() { volume.slot.unwrap_or(0) } else { 0 };
        Export { name: volume.name.get_ref().clone(), stack, class, window }
    };
    let exports: Vec<Export> = volumes().map(export).collect();
    let names = exports.iter().map(|export| export.name.clone()).collect();
    let waker = opening.waker();
    let mut engine = VolumeEngine::new(stacks, exports, opening).map_err(OpenError::Poll)?;
    // The first one to set it.
    let _ = waker.set(engine.fronts_mut().waker());
    Ok(Volumes { engine, names, nqn: file.nqn })
}

/// Number of clients of a volume's own name, and of those that are batch: priority tells them apart.
const INTERACTIVE: u16 = 0;
/// See [`INTERACTIVE`].
const BATCH: u16 = 1;

/// One volume.
fn stack(opening: &Opening, volume: &Volume) -> Result<Stack, OpenError> {
    let name = volume.name.get_ref();
    let open = |leg: &Leg| opening.leg(name, leg);
    let composed = |service, sizes: Sizes, legs: &mut dyn Iterator<Item = &Leg>| {
        let mut composer = Composer::new(name, &open);
        let (_, part) = composer.service(service, sizes, legs)?;
        let (tree, legs) = composer.finish()?;
        // A volume with versions is a row of windows.
        let windows = match service {
            ServiceName::Versions => 1 + sizes.versions.unwrap_or(VERSIONS),
            _ => 1,
        };
        Ok::<_, OpenError>(Stack::new(name.clone(), Services::Tree(Box::new(tree)), legs, part).with_windows(windows))
    };
    if let Some(legs) = &volume.legs {
        let chunk = volume.chunk.as_ref().map(|chunk| *chunk.get_ref());
        let log = volume.log.as_ref().map(|log| *log.get_ref());
        let versions = volume.versions.as_ref().map(|versions| *versions.get_ref());
        let sizes = Sizes { chunk, log, versions, store: volume.store.as_ref().map(|store| *store.get_ref()) };
        return composed(volume.service, sizes, &mut legs.iter().map(|leg| leg.get_ref()));
    }
    let no_storage = || OpenError::Size { volume: name.clone(), problem: "no storage: back = { … }".to_owned() };
    let back = volume.back.as_ref().ok_or_else(no_storage)?.get_ref();
    if let Some(service) = back.service {
        if volume.front.is_some() {
            let problem = "a service below a cache or a latte: serve it as a volume of its own".to_owned();
            return Err(OpenError::Size { volume: name.clone(), problem });
        }
        let sizes = Sizes { chunk: back.chunk, log: back.log, ..Sizes::default() };
        return composed(service, sizes, &mut back.legs.iter().flatten());
    }
    let back = opening.leg(name, back)?;
    let Some(front) = &volume.front else {
        return Ok(Stack::new(name.clone(), Services::None(PassThrough), vec![back], Part::Leg(0)));
    };
    let front = opening.leg(name, front.get_ref())?;
    let (fronts, backs) = (front.info().limits.blocks, back.info().limits.blocks);
    let wrong = |problem| Err(OpenError::Size { volume: name.clone(), problem });
    let mib = |blocks: u64| (blocks * BLOCK as u64) >> 20;
    if !(FRONT_MIN..=LATTE_MAX).contains(&fronts) {
        return wrong(format!("a front end of {} MiB, give {} MiB or more", mib(fronts), mib(FRONT_MIN)));
    }
    if backs > LATTE_MAX {
        return wrong(format!("a back end of {} MiB, give at most {}", mib(backs), mib(LATTE_MAX)));
    }
    let mut config = Config::halves(backs as u32, fronts as u32);
    if volume.service == ServiceName::Cache {
        (config.log_slots, config.cache_slots) = (CACHE_LOG, fronts as u32 - CACHE_LOG);
        config.rule = Rule::Back;
    }
    config.rule = volume.rule.as_ref().map_or(config.rule, |rule| rule_of(*rule.get_ref()));
    config.flush_age = volume.flush_age.as_ref().map_or(config.flush_age, |age| age.get_ref().0);
    let latte = Services::Latte(Box::new(Zeroing(Latte::new(config))));
    let part = Part::Service { name: volume.service.name(), below: vec![Part::Leg(0), Part::Leg(1)] };
    Ok(Stack::new(name.clone(), latte, vec![front, back], part))
}

fn rule_of(name: RuleName) -> Rule {
    match name {
        RuleName::Front => Rule::Front,
        RuleName::Back => Rule::Back,
        RuleName::Shortest => Rule::Shortest,
        // A run of a real volume is not repeated: any seed will do.
        RuleName::Learned => Rule::Learned(Learning::published(1)),
    }
}

//! From a description to volumes that serve.

use crate::compose::Composer;
use crate::engine::VolumeEngine;
use crate::error::OpenError;
use crate::leg::{BLOCK, DriveLeg, FileLeg, LegState, Memory, OpenDrive, Pace, RemoteLeg, Storage, Throttle};
use crate::stack::{Services, Stack};
use crate::zeroing::Zeroing;
use flashyard_describe::volumes::{File, Leg, RuleName, ServiceName, Volume};
use flashyard_latte::{Config, Latte, Learning, Rule};
use flashyard_live::{RemoteNamespace, Wake};
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_nvmf::secret::Secret;
use flashyard_service::PassThrough;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Blocks of a front end at least: a LATTE takes no request of more than half of it at once. 8 MiB.
const FRONT_MIN: u64 = 2048;
/// Blocks of a LATTE at most: what its numbers have room for.
const LATTE_MAX: u64 = (1 << 31) - 1;
/// Blocks of the log of a cache, which takes no writes: as many as a request may have. 1 MiB.
const CACHE_LOG: u32 = 256;
/// The name of this host, unless the file has one.
const HOST_NQN: &str = "nqn.2026-11.io.flashyard:volumes";
/// Commands under way at a namespace at most, and one more.
const QUEUE_ENTRIES: u16 = 256;

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

/// Reads a secret of the file at a path, and refuses it where others may read it, too.
pub type ReadSecret<'a> = &'a dyn Fn(&Path) -> Result<Secret, String>;

/// Runs the enclosure of the scenario at a path, its bytes in a directory, and hands out its volume of a number; the wake-up is called
/// when something has come.
pub type OpensDrive<'a> = &'a dyn Fn(&Path, Option<&Path>, u16, Wake) -> Result<OpenDrive, String>;

/// Opens the volumes that `text` describes; paths in it count from `folder`.
///
/// Errors: the first thing that is wrong, with its place or its volume.
pub fn open(text: &str, folder: &Path, secret: ReadSecret<'_>, drive: OpensDrive<'_>) -> Result<Volumes, OpenError> {
    let file = File::parse(text)?;
    let opening = Opening { folder, secret, drive, waker: Arc::default() };
    let stacks = file.volume.iter().map(|volume| opening.stack(volume.get_ref())).collect::<Result<Vec<_>, _>>()?;
    let names = stacks.iter().map(|stack| stack.name.clone()).collect();
    let mut engine = VolumeEngine::new(stacks).map_err(OpenError::Poll)?;
    // The first one to set it.
    let _ = opening.waker.set(engine.fronts_mut().waker());
    Ok(Volumes { engine, names, nqn: file.nqn })
}

struct Opening<'a> {
    folder: &'a Path,
    secret: ReadSecret<'a>,
    drive: OpensDrive<'a>,
    /// Of the engine, which begins after its legs.
    waker: Arc<OnceLock<Arc<mio::Waker>>>,
}

impl Opening<'_> {
    fn stack(&self, volume: &Volume) -> Result<Stack, OpenError> {
        let name = volume.name.get_ref();
        let open = |leg: &Leg| self.leg(name, leg);
        let composed = |service, chunk, legs: &mut dyn Iterator<Item = &Leg>| {
            let mut composer = Composer::new(name, &open);
            composer.service(service, chunk, legs)?;
            composer.finish()
        };
        if let Some(legs) = &volume.legs {
            let chunk = volume.chunk.as_ref().map(|chunk| *chunk.get_ref());
            let (tree, legs) = composed(volume.service, chunk, &mut legs.iter().map(|leg| leg.get_ref()))?;
            return Ok(Stack::new(name.clone(), Services::Tree(Box::new(tree)), legs));
        }
        let no_storage = || OpenError::Size { volume: name.clone(), problem: "no storage: back = { … }".to_owned() };
        let back = volume.back.as_ref().ok_or_else(no_storage)?.get_ref();
        if let Some(service) = back.service {
            if volume.front.is_some() {
                let problem = "a service below a cache or a latte: serve it as a volume of its own".to_owned();
                return Err(OpenError::Size { volume: name.clone(), problem });
            }
            let (tree, legs) = composed(service, back.chunk, &mut back.legs.iter().flatten())?;
            return Ok(Stack::new(name.clone(), Services::Tree(Box::new(tree)), legs));
        }
        let back = self.leg(name, back)?;
        let Some(front) = &volume.front else {
            return Ok(Stack::new(name.clone(), Services::None(PassThrough), vec![back]));
        };
        let front = self.leg(name, front.get_ref())?;
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
        Ok(Stack::new(name.clone(), latte, vec![front, back]))
    }

    fn leg(&self, volume: &str, leg: &Leg) -> Result<LegState, OpenError> {
        let (storage, name) = if let Some(size) = leg.memory {
            let blocks = size.0.get() / BLOCK as u64;
            if blocks == 0 {
                let problem = format!("memory of {} bytes, give {BLOCK} or more", size.0.get());
                return Err(OpenError::Size { volume: volume.to_owned(), problem });
            }
            (Storage::Memory(Memory::new(blocks)), "memory".to_owned())
        } else if let Some(path) = &leg.file {
            let waker = Arc::clone(&self.waker);
            let wake = move || {
                // A waker that fails is no reason to stop: the engine looks a few times a second anyway.
                waker.get().map(|waker| waker.wake());
            };
            let path = self.folder.join(path);
            let file = FileLeg::open(&path, leg.size.map(|size| size.0.get()), wake);
            let file = file.map_err(|source| OpenError::File { volume: volume.to_owned(), source })?;
            (Storage::File(file), path.display().to_string())
        } else if let Some(scenario) = &leg.drive {
            let waker = Arc::clone(&self.waker);
            let wake = Box::new(move || _ = waker.get().map(|waker| waker.wake()));
            let data = leg.data.as_ref().map(|data| self.folder.join(data));
            let opened = (self.drive)(&self.folder.join(scenario), data.as_deref(), leg.number.unwrap_or(0), wake);
            let opened = opened.map_err(|problem| OpenError::Drive { volume: volume.to_owned(), problem })?;
            if opened.info.block_bytes as usize != BLOCK {
                let problem = format!("{}: blocks of {} bytes, not {BLOCK}", opened.name, opened.info.block_bytes);
                return Err(OpenError::Drive { volume: volume.to_owned(), problem });
            }
            let name = opened.name.clone();
            (Storage::Drive(Box::new(DriveLeg::new(opened))), name)
        } else {
            self.remote(volume, leg)?
        };
        Ok(LegState { storage, name, throttle: pace_of(leg).map(Throttle::new), gone: None })
    }

    fn remote(&self, volume: &str, leg: &Leg) -> Result<(Storage, String), OpenError> {
        let (Some(address), Some(nqn)) = (leg.nvme_tcp, leg.nqn.clone()) else {
            let problem = "give one of memory, file, drive, nvme_tcp and service".to_owned();
            return Err(OpenError::Size { volume: volume.to_owned(), problem });
        };
        let read = |path: &PathBuf| {
            let refused = |problem| OpenError::Secret { volume: volume.to_owned(), problem };
            (self.secret)(&self.folder.join(path)).map_err(refused)
        };
        let config = InitiatorConfig {
            queue_entries: QUEUE_ENTRIES,
            secret: leg.secret_file.as_ref().map(read).transpose()?,
            controller_secret: leg.controller_secret_file.as_ref().map(read).transpose()?,
            ..InitiatorConfig::new(leg.host_nqn.as_deref().unwrap_or(HOST_NQN), &nqn)
        };
        match RemoteNamespace::connect_as(address, config, leg.namespace) {
            Ok(namespace) => {
                Ok((Storage::Remote(Box::new(RemoteLeg::new(namespace.with_zeroes()))), format!("{nqn} at {address}")))
            }
            Err(source) => {
                Err(OpenError::Namespace { volume: volume.to_owned(), nqn, address, source: Box::new(source) })
            }
        }
    }
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

/// The limits of a leg, if it has any.
fn pace_of(leg: &Leg) -> Option<Pace> {
    let Leg { iops, bandwidth, latency, .. } = leg;
    if iops.is_none() && bandwidth.is_none() && latency.is_none() {
        return None;
    }
    Some(Pace {
        iops: iops.map(|iops| iops as f64),
        bytes_per_s: bandwidth.map(|rate| rate.0.get() as f64),
        latency: latency.map_or_else(Default::default, |time| time.0),
    })
}

//! From a description to volumes that serve.

use crate::agile::borrow::Borrower;
use crate::agile::rack::{Lending, Rack};
use crate::compose::{Composer, Settings, latte};
use crate::engine::{Export, VolumeEngine, Window};
use crate::error::OpenError;
use crate::leg::LegState;
use crate::opening::{Opening, OpensDrive, ReadSecret};
use crate::services::Services;
use crate::stack::Stack;
use flashyard_describe::volumes::{File, Leg, ServiceName, VERSIONS, Volume};
use flashyard_service::PassThrough;
use std::path::Path;

/// Volumes that are ready to serve.
pub struct Volumes {
    /// They, without front ends.
    pub engine: VolumeEngine,
    /// Their names, in the order of their numbers.
    pub names: Vec<String>,
    /// Beginning of their NVMe qualified names.
    pub nqn: String,
    /// The server among those that it lends to and borrows from.
    pub rack: Rack,
}

/// Whether a text describes volumes: it has a table of one, or of what is lent.
pub fn describes_volumes(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| line.starts_with("[[volume]]") || line.starts_with("[lend]"))
}

/// Opens the volumes that `text` describes; paths in it count from `folder`.
///
/// Errors: the first thing that is wrong, with its place or its volume.
pub fn open(text: &str, folder: &Path, secret: ReadSecret, drive: OpensDrive) -> Result<Volumes, OpenError> {
    let file = File::parse(text)?;
    let server = file.server.as_ref().map(|server| server.get_ref().as_str());
    let borrower = server.map(Borrower::new);
    let opening = Opening::new(folder, secret, drive, borrower.clone());
    let lending = match (server, &file.lend) {
        (Some(server), Some(lend)) => Some(Lending::open(server, lend.get_ref(), folder, opening.for_another())?),
        _ => None,
    };
    let volumes = || file.volume.iter().map(|volume| volume.get_ref());
    let own = volumes()
        .filter(|volume| volume.batch_of.is_none() && volume.version_of.is_none() && volume.channel_of.is_none());
    let stacks = own.map(|volume| stack(&opening, volume)).collect::<Result<Vec<_>, _>>();
    // Space that was borrowed for others is given back at once.
    let stacks = stacks.inspect_err(|_| borrower.iter().for_each(Borrower::end))?;
    let export = |volume: &Volume| {
        let alias = volume.batch_of.as_ref().or(volume.version_of.as_ref()).or(volume.channel_of.as_ref());
        let of = alias.unwrap_or(&volume.name).get_ref();
        let stack = stacks.iter().position(|stack| stack.name == *of).unwrap_or(0);
        let class = if volume.batch_of.is_some() { BATCH } else { INTERACTIVE };
        let owner = volumes().find(|owner| owner.name.get_ref() == of).unwrap_or(volume);
        let window = window(volume, owner);
        Export { name: volume.name.get_ref().clone(), stack, class, window }
    };
    let exports: Vec<Export> = volumes().map(export).collect();
    let names = exports.iter().map(|export| export.name.clone()).collect();
    let waker = opening.waker();
    let mut engine = VolumeEngine::new(stacks, exports, opening).map_err(OpenError::Poll)?;
    // The first one to set it.
    let _ = waker.set(engine.fronts_mut().waker());
    let rack = Rack::new(borrower, lending, engine.handle());
    Ok(Volumes { engine, names, nqn: file.nqn, rack })
}

/// The part of a volume that one of its names shows: a version, a channel, or all.
fn window(volume: &Volume, owner: &Volume) -> Window {
    let (number, of) = match owner.service {
        ServiceName::Versions => {
            let versions = owner.versions.as_ref().map_or(VERSIONS, |versions| *versions.get_ref());
            (volume.slot.unwrap_or(0), 1 + versions)
        }
        ServiceName::OpenChannel => {
            let (channels, ..) = owner.channel_room();
            volume.channel.map_or((0, 1), |channel| (channel.into(), channels.into()))
        }
        _ => (0, 1),
    };
    Window { number, of, read_only: volume.version_of.is_some() }
}

/// Number of clients of a volume's own name, and of those that are batch: priority tells them apart.
const INTERACTIVE: u16 = 0;
/// See [`INTERACTIVE`].
const BATCH: u16 = 1;

/// One volume.
fn stack(opening: &Opening, volume: &Volume) -> Result<Stack, OpenError> {
    let name = volume.name.get_ref();
    let open = |leg: &Leg, beside: &[LegState]| opening.leg(name, leg, beside);
    let composed = |service, settings: Settings, legs: &mut dyn Iterator<Item = &Leg>| {
        let mut composer = Composer::new(name, &open);
        composer.service(service, settings, legs)?;
        let (tree, legs) = composer.finish()?;
        Ok::<_, OpenError>(Stack::new(name.clone(), Services::Tree(Box::new(tree)), legs))
    };
    let settings = Settings {
        chunk: volume.chunk.as_ref().map(|chunk| *chunk.get_ref()),
        log: volume.log.as_ref().map(|log| *log.get_ref()),
        record: volume.record,
        rule: volume.rule.as_ref().map(|rule| *rule.get_ref()),
        flush_age: volume.flush_age.as_ref().map(|age| *age.get_ref()),
        versions: volume.versions.as_ref().map(|versions| *versions.get_ref()),
        store: volume.store.as_ref().map(|store| *store.get_ref()),
        channels: volume.channel_room(),
        array: volume.array_keys(),
    };
    if let Some(legs) = &volume.legs {
        return composed(volume.service, settings, &mut legs.iter().map(|leg| leg.get_ref()));
    }
    let no_storage = || OpenError::Size { volume: name.clone(), problem: "no storage: back = { … }".to_owned() };
    let back = volume.back.as_ref().ok_or_else(no_storage)?.get_ref();
    let front = volume.front.as_ref().map(|front| front.get_ref());
    match (front, back.service) {
        (Some(front), service) if service.is_some() || front.service.is_some() => {
            composed(volume.service, settings, &mut [front, back].into_iter())
        }
        (None, Some(service)) => composed(service, Settings::of(back), &mut back.legs.iter().flatten()),
        (None, None) => {
            let back = opening.leg(name, back, &[])?;
            Ok(Stack::new(name.clone(), Services::None(PassThrough), vec![back]))
        }
        (Some(front), _) => {
            let legs = vec![opening.leg(name, front, &[])?, opening.leg(name, back, &[])?];
            let blocks = (legs[0].info().limits.blocks, legs[1].info().limits.blocks);
            let latte = latte(volume.service, settings, blocks);
            let latte = latte.map_err(|problem| OpenError::Size { volume: name.clone(), problem })?;
            Ok(Stack::new(name.clone(), Services::Latte(Box::new(latte)), legs))
        }
    }
}

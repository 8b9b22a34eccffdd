//! Arrays of unlike drives: which legs belong to one, before it starts.
//!
//! Each leg has a label in its first block. Legs whose labels do not fit each other, or the file, are refused before anything is written. A leg
//! that is not there, or blank, is one that parity makes up for; others must have all that they should.

use crate::error::{OpenError, told};
use crate::leg::{BLOCK, LegState, Source, Storage, Task};
use flashyard_array::{Array, ArrayConfig, Found, Journal, Label, MovesConfig, current_legs};
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_describe::Size;
use flashyard_describe::arrays::{ArrayKeys, JournalName};
use flashyard_service::Service;
use flashyard_units::SimSpan;

/// Bytes of a chunk, without `chunk`. Source: \[P\] sheet paraid §4.
const CHUNK: u64 = 64 << 10;
/// Changes of stripes under way at once, without `slots`. Source: \[A\] as many requests as a client of block devices usually has under way.
const SLOTS: u32 = 32;

/// Time between two looks at what is hot, and one access in so many counts. Source: \[A\] sheet paraid §3.4.
const INTERVAL: SimSpan = SimSpan::from_ms(1000);
const SAMPLE: u32 = 16;
/// Time between two moves, without `move_pause`: at most 64 MB/s of chunks of 64 KiB. Source: \[A\].
const MOVE_PAUSE: SimSpan = SimSpan::from_ms(1);
/// Time until it looks for idle legs again. Source: \[A\].
const LOOK: SimSpan = SimSpan::from_ms(1);
/// Runs that a map has room for: one of so many chunks, the least and the most, those of the layout of a column beside, and bytes of each. Source: \[A\].
const RUNS_ONE_IN: u64 = 16;
const RUNS: [u64; 2] = [256, 65_536];
const RUNS_OF_A_COLUMN: u64 = 64;
const RUN_BYTES: u64 = 17;
/// Moves at least until the map is written again. Source: \[A\].
const LOG_LEAST: u32 = 16;

/// Settings of an array.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ArraySettings {
    pub(crate) keys: ArrayKeys,
    pub(crate) chunk: Option<Size>,
    /// Tells it from other arrays if it is made now.
    pub(crate) id: u64,
}

/// A leg of an array, or why it is not there.
pub(crate) struct Opened {
    pub(crate) leg: Result<LegState, OpenError>,
    /// As the file says.
    pub(crate) speed: u64,
    pub(crate) name: String,
}

/// The beginning of a leg.
struct Probed {
    found: Found,
    /// The block behind the label.
    members: Vec<u8>,
}

/// The first two blocks of a leg.
///
/// Errors: it cannot be read.
fn probe(leg: &mut LegState) -> Result<Probed, String> {
    let mut bytes = vec![0; 2 * BLOCK];
    let task = Task { order: 0, operation: Operation::Read, first: 0, count: 2, durable: false };
    if leg.info().limits.blocks < 2 {
        return Err("it has no room for the records of an array".to_owned());
    }
    leg.carry_out_now(task, Source::Zeros, &mut bytes).map_err(|failure| format!("it cannot be read: {failure}"))?;
    let members = bytes.split_off(BLOCK);
    Ok(Probed { found: Label::find(&bytes), members })
}

/// Writes the label of a leg that holds nothing, durably; a record of members that is still behind it leaves before.
///
/// Errors: it cannot be written.
fn mark(leg: &mut LegState, label: &Label) -> Result<(), String> {
    let bytes = label.encode(BLOCK);
    let flush = Task { order: 0, operation: Operation::Flush, first: 0, count: 0, durable: false };
    let mut write = |first: u64, source: Source<'_>| {
        let write = Task { order: 0, operation: Operation::Write, first, count: 1, durable: false };
        leg.carry_out_now(write, source, &mut [])?;
        leg.carry_out_now(flush, Source::Zeros, &mut [])
    };
    let done = write(1, Source::Zeros).and_then(|()| write(0, Source::Bytes(&bytes)));
    done.map_err(|failure| format!("its label cannot be written: {failure}"))?;
    leg.label = Some(label.clone());
    Ok(())
}

/// Makes storage that takes the place of a leg of an array a member of it.
///
/// Errors: it belongs to something else, or cannot be written.
pub(crate) fn take_in(leg: &mut LegState, label: &Label) -> Result<(), String> {
    let name = leg.name.clone();
    match probe(leg).map_err(|problem| format!("{name}: {problem}"))?.found {
        Found::Label(found) if found.array == label.array && found.leg != label.leg => {
            return Err(format!("{name} is leg {} of this array", found.leg));
        }
        Found::Label(found) if found.array != label.array => return Err(format!("{name} is a leg of another array")),
        Found::Other => return Err(taken(&name)),
        Found::Label(_) | Found::Blank => {}
    }
    mark(leg, label).map_err(|problem| format!("{name}: {problem}"))
}

fn taken(name: &str) -> String {
    format!("{name} holds something else: take a new file, or make its first 4 KiB zeros")
}

/// An array over legs that were opened, with these.
///
/// Errors: legs that are not those of one array, or not enough of them; keys that do not fit the legs.
pub(crate) fn assemble(
    volume: &str,
    settings: &ArraySettings,
    opened: Vec<Opened>,
) -> Result<(Array, Vec<LegState>), OpenError> {
    let wrong = |problem: String| OpenError::Size { volume: volume.to_owned(), problem };
    let speeds: Vec<u64> = opened.iter().map(|opened| opened.speed).collect();
    let names: Vec<String> = opened.iter().map(|opened| opened.name.clone()).collect();
    let mut legs: Vec<Result<LegState, OpenError>> = opened.into_iter().map(|opened| opened.leg).collect();
    // Parity may make up for what is missing; what is in use or of another size is a mistake.
    if let Some(at) = legs.iter().position(|leg| leg.as_ref().is_err_and(|error| !error.is_absence())) {
        return Err(legs.swap_remove(at).map(|_| ()).err().unwrap_or_else(|| wrong(names[at].clone())));
    }
    let mut probed: Vec<Option<Probed>> = Vec::new();
    for (number, leg) in legs.iter_mut().enumerate() {
        let one = leg.as_mut().ok().map(probe).transpose();
        let mut one = one.map_err(|problem| wrong(format!("leg {number}, {}: {problem}", names[number])))?;
        // Without its label a leg is not what its record says that it was.
        if let Some(Probed { found: Found::Blank, members }) = &mut one {
            members.fill(0);
        }
        probed.push(one);
    }
    let Some(mut label) = common_label(&probed, &names).map_err(wrong)? else {
        return make(volume, settings, legs, speeds);
    };
    let sizes: Vec<u64> = label.legs.iter().map(|&(blocks, _)| blocks).collect();
    let moves = moves_of(settings, &sizes, label.width);
    let config = ArrayConfig { speeds: speeds.clone(), ..label.config(pause_of(settings), &moves) };
    agree(&label, settings, &speeds).map_err(wrong)?;
    let blocks = |number: usize| label.legs[number].0;
    for (number, leg) in legs.iter().enumerate() {
        let has = leg.as_ref().map_or(u64::MAX, |leg| leg.info().limits.blocks);
        if has < blocks(number) {
            let needs = blocks(number);
            return Err(wrong(format!(
                "leg {number}, {}: it has {has} blocks, the array needs {needs}",
                names[number]
            )));
        }
    }
    check_members(&label, &probed, &names).map_err(wrong)?;
    let infos: Vec<VolumeInfo> = (0..legs.len()).map(|number| info_of(blocks(number))).collect();
    let mut members = Vec::new();
    for (number, (leg, probed)) in legs.into_iter().zip(&probed).enumerate() {
        label.leg = number as u8;
        let mut leg = leg.unwrap_or_else(|error| absent(volume, number, &label, &names[number], &error));
        if matches!(probed, Some(Probed { found: Found::Blank, .. })) {
            tracing::warn!(volume, leg = number, name = %leg.name, "the leg is blank, and is rebuilt");
            mark(&mut leg, &label).map_err(|problem| wrong(format!("leg {number}, {}: {problem}", leg.name)))?;
        }
        leg.label = Some(label.clone());
        members.push(leg);
    }
    let mut array = Array::new(config, &infos).map_err(|error| wrong(error.to_string()))?;
    // A server that was killed may have left stripes whose parity is wrong, which nothing tells.
    if label.journal == Journal::None {
        array.set("scrub", 1);
    }
    Ok((array, members))
}

/// The label that all legs have which are there and not blank; `None` where all are blank.
fn common_label(probed: &[Option<Probed>], names: &[String]) -> Result<Option<Label>, String> {
    let mut first: Option<(usize, &Label)> = None;
    for (number, probed) in probed.iter().enumerate() {
        let name = &names[number];
        match probed.as_ref().map(|probed| &probed.found) {
            Some(Found::Other) => return Err(format!("leg {number}, {}", taken(name))),
            Some(Found::Label(label)) => {
                let &mut (before, one) = first.get_or_insert((number, label));
                if one.array != label.array {
                    return Err(format!(
                        "leg {number}, {name} is of another array than leg {before}, {}",
                        names[before]
                    ));
                }
                if usize::from(label.leg) != number {
                    return Err(format!(
                        "leg {number}, {name} is leg {} of its array: give the legs in that order",
                        label.leg
                    ));
                }
                if label.legs.len() != names.len() {
                    return Err(format!(
                        "leg {number}, {name} is of an array of {} legs, not {}",
                        label.legs.len(),
                        names.len()
                    ));
                }
            }
            Some(Found::Blank) | None => {}
        }
    }
    Ok(first.map(|(_, label)| label.clone()))
}

/// Whether the file says what the labels say.
fn agree(label: &Label, settings: &ArraySettings, speeds: &[u64]) -> Result<(), String> {
    let keys = &settings.keys;
    let differs = |key: &str, made: String, given: String| {
        Err(format!("the array was made with {key} = {made}, and the file says {given}"))
    };
    let (stripe, chunk) = (keys.stripe_over(speeds.len()), chunk_blocks(settings));
    if usize::from(label.width) != stripe {
        return differs("stripe", label.width.to_string(), stripe.to_string());
    }
    if label.parities != keys.parities() {
        return differs("parity", label.parities.to_string(), keys.parities().to_string());
    }
    if label.chunk_blocks != chunk {
        let kib = |blocks: u32| format!("\"{} KiB\"", (u64::from(blocks) * BLOCK as u64) >> 10);
        return differs("chunk", kib(label.chunk_blocks), kib(chunk));
    }
    let (made, given) = (name_of(label.journal), keys.journal.unwrap_or_default().name());
    if made != given {
        return differs("journal", format!("{made:?}"), format!("{given:?}"));
    }
    let (made, given) = (label.moves.is_some(), keys.moves == Some(true));
    if made != given {
        return differs("moves", made.to_string(), given.to_string());
    }
    let slots = keys.slots.unwrap_or(SLOTS);
    if label.slots != slots {
        return differs("slots", label.slots.to_string(), slots.to_string());
    }
    let blocks: Vec<u64> = label.legs.iter().map(|&(blocks, _)| blocks).collect();
    let moves = moves_of(settings, &blocks, label.width);
    let config = ArrayConfig { speeds: speeds.to_vec(), ..label.config(SimSpan::ZERO, &moves) };
    let given = Label::new(&config, &blocks).legs;
    if let Some(leg) = (0..speeds.len()).find(|&leg| given[leg] != label.legs[leg]) {
        return Err(format!(
            "the array was made with other speeds of its legs: leg {leg} had {} slower ones below it, and has {} by the file",
            label.legs[leg].1, given[leg].1
        ));
    }
    Ok(())
}

/// Whether enough legs have what they should. A first start that was cut short has no records of members yet: all are blank but for labels.
fn check_members(label: &Label, probed: &[Option<Probed>], names: &[String]) -> Result<(), String> {
    let blocks: Vec<Option<&[u8]>> =
        probed.iter().map(|probed| probed.as_ref().map(|probed| probed.members.as_slice())).collect();
    let all = (0..probed.len()).fold(0, |legs, leg| legs | 1_u64 << leg);
    let there = (0..).zip(probed).filter(|(_, probed)| probed.is_some()).fold(0, |legs, (leg, _)| legs | 1_u64 << leg);
    let current = current_legs(label.array, &blocks).unwrap_or(there);
    let lacks = all & !current;
    if lacks.count_ones() <= label.parities.into() {
        return Ok(());
    }
    let named = (0..).zip(names).filter(|(leg, _)| lacks >> leg & 1 == 1);
    let list: Vec<String> = named.map(|(leg, name)| format!("{leg} ({name})")).collect();
    let (count, of, parities) = (list.len(), names.len(), label.parities);
    Err(format!(
        "{count} of {of} legs are missing, blank or older than the others, and parity makes up for {parities}: legs {}",
        list.join(", ")
    ))
}

/// A leg that is not there.
fn absent(volume: &str, number: usize, label: &Label, name: &str, error: &OpenError) -> LegState {
    let why = told(error);
    tracing::warn!(volume, leg = number, why, "the array starts without a leg");
    let limits = VolumeLimits::new(label.legs[number].0, false);
    LegState { gone: Some(why), ..LegState::new(Storage::Absent(limits), name.to_owned()) }
}

/// An array over legs that are all blank.
fn make(
    volume: &str,
    settings: &ArraySettings,
    legs: Vec<Result<LegState, OpenError>>,
    speeds: Vec<u64>,
) -> Result<(Array, Vec<LegState>), OpenError> {
    let wrong = |problem: String| OpenError::Size { volume: volume.to_owned(), problem };
    // A leg that is not there counts only for an array that there is.
    let mut legs = legs.into_iter().collect::<Result<Vec<_>, _>>()?;
    let ArraySettings { keys, id, .. } = settings;
    let infos: Vec<VolumeInfo> = legs.iter().map(LegState::info).collect();
    let blocks: Vec<u64> = infos.iter().map(|info| info.limits.blocks).collect();
    let width = keys.stripe_over(legs.len()) as u8;
    let moves = moves_of(settings, &blocks, width);
    let config = ArrayConfig {
        id: *id,
        width,
        parities: keys.parities(),
        chunk_blocks: chunk_blocks(settings),
        journal: match keys.journal.unwrap_or_default() {
            JournalName::Whole => Journal::Whole,
            JournalName::PartialParity => Journal::PartialParity,
            JournalName::None => Journal::None,
        },
        slots: keys.slots.unwrap_or(SLOTS),
        aggregates: true,
        speeds,
        pause: pause_of(settings),
        reserved: 1,
        moves: (keys.moves == Some(true)).then_some(moves),
    };
    let mut label = Label::new(&config, &blocks);
    let mut array = Array::new(config.clone(), &infos).map_err(|error| {
        let (slots, base) = (
            config.slots,
            2 + u64::from(config.slots) * (1 + u64::from(config.width) * u64::from(config.chunk_blocks)),
        );
        let least = blocks.iter().min().copied().unwrap_or(0);
        match config.journal {
            Journal::Whole | Journal::PartialParity if least < base + u64::from(config.chunk_blocks) => wrong(format!(
                "{error}: the journal of {slots} slots takes {} KiB of each leg (slots = … makes it smaller)",
                (base * BLOCK as u64) >> 10
            )),
            _ => wrong(error.to_string()),
        }
    })?;
    for (number, leg) in legs.iter_mut().enumerate() {
        label.leg = number as u8;
        mark(leg, &label).map_err(|problem| wrong(format!("leg {number}, {}: {problem}", leg.name)))?;
    }
    // Parity is that of zeros where legs were made just now.
    if !legs.iter().all(|leg| leg.is_new) {
        array.set("scrub", 1);
    }
    Ok((array, legs))
}

fn chunk_blocks(settings: &ArraySettings) -> u32 {
    (settings.chunk.map_or(CHUNK, |chunk| chunk.0.get()) / BLOCK as u64).try_into().unwrap_or(u32::MAX)
}

fn pause_of(settings: &ArraySettings) -> SimSpan {
    settings.keys.pause.map_or(SimSpan::ZERO, |pause| pause.0)
}

/// The way in which chunks move. Maps have room for a sixteenth of all chunks by themselves, within limits.
fn moves_of(settings: &ArraySettings, blocks: &[u64], width: u8) -> MovesConfig {
    let keys = &settings.keys;
    let chunks = blocks.iter().sum::<u64>() / u64::from(chunk_blocks(settings).max(1));
    let runs = (chunks / RUNS_ONE_IN).clamp(RUNS[0], RUNS[1]) + RUNS_OF_A_COLUMN * u64::from(width);
    let map_blocks = (runs * RUN_BYTES).div_ceil(BLOCK as u64) as u32;
    MovesConfig {
        map_blocks,
        log_blocks: map_blocks.max(LOG_LEAST),
        interval: keys.move_interval.map_or(INTERVAL, |interval| interval.0),
        sample: keys.move_sample.unwrap_or(SAMPLE),
        pause: keys.move_pause.map_or(MOVE_PAUSE, |pause| pause.0),
        look: LOOK,
    }
}

const fn name_of(journal: Journal) -> &'static str {
    match journal {
        Journal::Whole => JournalName::Whole.name(),
        Journal::PartialParity => JournalName::PartialParity.name(),
        Journal::None => JournalName::None.name(),
    }
}

fn info_of(blocks: u64) -> VolumeInfo {
    let limits = VolumeLimits::new(blocks, false);
    VolumeInfo { id: flashyard_units::VolumeId::new(0), block_bytes: BLOCK as u32, limits, protected: false }
}

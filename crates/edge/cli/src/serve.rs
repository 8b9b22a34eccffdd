//! `flashyard serve` and `flashyard replay`.

use crate::arguments::{ReplayOptions, ServeOptions};
use crate::control::ControlSocket;
use crate::fronts::{Addresses, Names, Traits};
use crate::hosts::HostList;
use crate::watch::{Subject, Watch};
use crate::worlds::{serving, set_up_world, tempo_of};
use crate::{Outcome, fronts, output, parallel, volumes};
use anyhow::{Context, Result, bail, ensure};
use flashyard_blk::{VolumeError, VolumeInfo};
use flashyard_live::{
    BlockFormat, ChannelFront, ChannelVolume, Engine, Handle, Limits, Load, LoadReport, RecoveryReport, Remote, SetUp,
    Tempo, noise, run_load, set_format,
};
use flashyard_scenario::{Overrides, Purpose, Resolved, Scenario, resolve_with};
use flashyard_served::{JournalHeader, Session, read_journal, replay};
use flashyard_units::{DriveId, SimSpan};
use flashyard_volumes::describes_volumes;
use flashyard_workbench::{DiskFiles, Source, read_text, refuse_device};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{BufWriter, IsTerminal};
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Blocks of each volume that the load of `--load` touches at most: 1 GiB.
const LOAD_BLOCKS_MAX: u64 = 1 << 18;
/// Bytes of its blocks.
const UNIT_BYTES: u32 = 4096;
/// Blocks of one of its requests.
const LOAD_REQUEST_BLOCKS: u32 = 8;

/// Lets the process have as many files open as the system allows it. Each connection is one, and the soft limit is mostly 1024, for
/// programs that wait by `select`.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

/// The scenario with what the command line changes.
fn resolved(options: &ServeOptions, source: &Source) -> Result<Resolved> {
    let mut settings = options.set.clone();
    settings.extend(options.seed.map(|seed| format!("seed={seed}")));
    settings.extend(options.nqn.as_ref().map(|nqn| format!("serve.nqn={nqn}")));
    let overrides = Overrides { settings, ..Overrides::default() };
    let resolved = resolve_with(&source.text, &source.origin, &overrides, source.files)?;
    resolved.refuse_idle_flags(Purpose::Serve)?;
    Ok(resolved)
}

/// Where the drives' bytes are: as the command line says, or as the scenario does, below its directory.
///
/// Errors: a scenario, which may be somebody else's, that wants another place.
fn data_directory(options: &ServeOptions, folder: &Path, in_scenario: Option<&str>) -> Result<Option<PathBuf>> {
    let Some(name) = in_scenario.map(Path::new).filter(|_| options.data.is_none()) else {
        return Ok(options.data.clone());
    };
    if !name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        bail!(
            "{}: serve.data is {:?}, give a directory below that of the scenario; the command line takes any as --data DIR",
            options.scenario.display(),
            name
        );
    }
    Ok(Some(folder.join(name)))
}

pub(crate) fn serve(options: &ServeOptions) -> Result<Outcome> {
    log_to_standard_error(options.verbose);
    raise_open_files();
    // A server that is told to end while it begins ends as one that serves.
    parallel::catch_interrupt()?;
    let hosts = fronts::hosts(options)?;
    // A file that cannot be read is no scenario either, which says why.
    let text = read_text(&options.scenario).unwrap_or_default();
    if describes_volumes(&text) {
        return volumes::serve(options, &text, hosts);
    }
    serve_scenario(options, &hosts)
}

fn serve_scenario(options: &ServeOptions, hosts: &HostList) -> Result<Outcome> {
    let source = Source::open(&options.scenario, None)?;
    let resolved = resolved(options, &source)?;
    let scenario = &resolved.scenario;
    if let Some(path) = &options.hosts {
        flashyard_workbench::note_read(path);
    }
    if let Some(path) = &options.journal {
        output::refuse_existing("--journal", path, options.force)?;
    }
    let data = data_directory(options, &source.folder, scenario.serve.data.as_deref())?;
    let (SetUp { world, media, recovered }, exports) = set_up_world(&resolved, data.as_deref(), source.files)?;
    if let Some(bytes) = options.prefault {
        ensure!(data.is_none(), "--prefault goes with drives in memory: serve.data keeps these on a disk");
        output::line(&format!("taking {} MiB of memory for the drives", bytes >> 20));
        media.populate(bytes).context("--prefault: the memory cannot be taken")?;
    }
    let tempo = tempo_of(options.pace.unwrap_or(scenario.serve.pace));
    let journal = options.journal.as_ref().map(|path| {
        let contents = recovered.map(|_| DriveId::first(world.drives()).map(|drive| world.contents(drive)).collect());
        (path, JournalHeader { seed: scenario.seed, scenario: resolved.placed(source.files), contents })
    });
    let drives = world.drives();
    let session = Session::new(world, journal.as_ref().map(|(_, header)| header));
    let mut engine = Engine::new(session, media, &exports, tempo).context("the engine cannot begin")?;
    for &volume in &exports {
        let block = BlockFormat::with_protection(scenario.serve.block.bytes(), scenario.serve.protection.kind());
        let named = || format!("serve.block and serve.protection of {}", scenario.name);
        set_format(&mut engine, volume, block).with_context(named)?;
    }
    divide(&mut engine, &resolved, recovered.is_some())?;
    if options.load.is_some() && engine.volumes().iter().any(|volume| volume.block_bytes != UNIT_BYTES) {
        bail!("--load compares blocks of 4 KiB; set serve.block to \"4 KiB\", and format drives of other blocks");
    }
    let in_flight_bytes = usize::try_from(options.in_flight).unwrap_or(usize::MAX);
    engine.set_limits(Limits { connections: options.connections.into(), in_flight_bytes, ..Limits::default() });
    if let Some((path, _)) = &journal {
        let file = output::create_private(path);
        let file = file.with_context(|| format!("--journal {}: cannot be written", path.display()))?;
        engine.set_journal(Box::new(BufWriter::new(file)));
    }
    let traits = traits_of(options, &resolved, engine.fronts_mut().drives())?;
    let (remote, handle) = Remote::new(engine.waker());
    engine.add_hook(Box::new(remote));
    announce(&mut engine, &scenario.name, tempo, data.as_deref(), recovered);
    let names = Names { nqn: &scenario.serve.nqn, volumes: &[] };
    fronts::add_nvme(engine.fronts_mut(), Addresses::of(options), hosts, &names, &traits)?;
    options.nbd.as_ref().map(|address| fronts::add_nbd(engine.fronts_mut(), address, &names)).transpose()?;
    options.vhost_user_blk.as_ref().map(|path| fronts::add_vhost_user(engine.fronts_mut(), path)).transpose()?;
    fronts::record(options, engine.fronts_mut())?;
    let _control = options.control.as_ref().map(|path| ControlSocket::open(path, handle.clone())).transpose()?;
    let _watch = options.dash.map(|address| start_watch(address, scenario, drives, tempo, handle)).transpose()?;
    if !options.is_reachable() {
        tracing::warn!(
            "no client can reach the drives: give --listen, --nbd, --vhost-user-blk, --load, --control or --dash"
        );
    }
    let load = options.load.map(|depth| Loading::start(&mut engine, depth.into(), scenario.seed));
    let seconds = options.seconds.map(Duration::from_secs_f64);
    let report = engine.run(|elapsed| parallel::interrupted() || seconds.is_some_and(|seconds| elapsed >= seconds))?;
    output::line(&report.to_string());
    let tolerance = scenario.serve.lateness_tolerance.0;
    if matches!(tempo, Tempo::Scaled(_)) && report.lateness.answers.count() > 0 && !report.is_usable(tolerance) {
        output::line(&format!(
            "timings are not usable: more than one answer of a hundred was later than {tolerance}; \
             use fewer clients, a faster machine, or --pace 0.1"
        ));
    }
    match load {
        Some(load) => load.finish(),
        None => Ok(Outcome::Done),
    }
}

/// Gives drives the namespaces of the scenario, unless an earlier run has left them as they are.
///
/// Errors: sizes that do not fit; zones, which are of one namespace.
fn divide(engine: &mut Engine, resolved: &Resolved, is_kept: bool) -> Result<()> {
    let serve = &resolved.scenario.serve;
    let drives: Vec<VolumeInfo> = engine.fronts_mut().drives().to_vec();
    let served: Vec<(u16, u64)> =
        drives.iter().map(|it| (it.id.get(), it.size_bytes() / u64::from(UNIT_BYTES))).collect();
    let sizes = serve.namespace_units(&served).map_err(|error| resolved.locate(error, &[]))?;
    if serve.zones.size.is_some() {
        if !sizes.is_empty() {
            bail!("serve.namespaces: zoned drives (serve.zones) are one namespace; leave one of them out");
        }
        // Hosts may have divided the others.
        let layouts = serve.zones.of(&served).map_err(|error| resolved.locate(error, &[]))?;
        let mut zoned = drives.iter().zip(layouts).filter_map(|(drive, layout)| layout.map(|_| drive));
        if let Some(divided) = zoned.find(|drive| flashyard_live::is_divided(engine, drive.id)) {
            bail!(
                "drive {} was divided into namespaces, and zoned drives (serve.zones) are one; give another --data, or leave \
                 serve.zones out",
                divided.id
            );
        }
    }
    if sizes.is_empty() {
        return Ok(());
    }
    if is_kept {
        tracing::info!("drives of an earlier run keep their namespaces, whatever serve.namespaces says");
        return Ok(());
    }
    for drive in drives {
        let divided = flashyard_live::divide(engine, drive.id, &sizes);
        divided.with_context(|| format!("serve.namespaces: drive {} cannot be divided", drive.id))?;
    }
    Ok(())
}

/// Bytes of a block of a zoned drive.
const ZONED_BLOCK: u32 = 4096;

/// Properties of the volumes that are served, as the scenario has them.
///
/// Errors: zones that cannot be, or that no front end shows; load that knows nothing of zones.
fn traits_of(options: &ServeOptions, resolved: &Resolved, volumes: &[VolumeInfo]) -> Result<Traits> {
    let serve = &resolved.scenario.serve;
    let served: Vec<(u16, u64)> = volumes.iter().map(|it| (it.id.get(), it.limits.blocks)).collect();
    let layouts = serve.zones.of(&served).map_err(|error| resolved.locate(error, &[]))?;
    let zones = volumes.iter().zip(layouts).filter_map(|(volume, layout)| Some((volume.id, layout?)));
    let traits = Traits { endurance_erases: serve.endurance_erases, zones: zones.collect() };
    if let Some(zoned) = traits.zones.keys().next() {
        let because = format!("drive {zoned} is zoned (serve.zones)");
        if serve.protection.kind() > 0 {
            bail!("serve.protection: {because}, and zones have blocks without metadata; leave one of them out");
        }
        if options.load.is_some() {
            bail!("--load: {because}, and the load writes anywhere; leave one of them out");
        }
        if Addresses::of(options).is_empty() {
            bail!("{because}, and only NVMe/TCP shows zones; give --listen, or leave serve.zones out");
        }
        let is_small =
            |volume: &&VolumeInfo| traits.zones.contains_key(&volume.id) && volume.block_bytes != ZONED_BLOCK;
        if let Some(small) = volumes.iter().find(is_small) {
            bail!(
                "drive {} is zoned (serve.zones) and has blocks of {} bytes; zones have blocks of 4 KiB: leave serve.block \
                 out, format the drive to 4 KiB, or leave it out of serve.zones.drives",
                small.id,
                small.block_bytes
            );
        }
    }
    Ok(traits)
}

fn start_watch(address: SocketAddr, scenario: &Scenario, drives: u16, tempo: Tempo, handle: Handle) -> Result<Watch> {
    let subject = Subject {
        scenario: scenario.name.clone(),
        nqns: (0..drives).map(|drive| format!("{}{drive}", scenario.serve.nqn)).collect(),
        tempo,
        endurance_erases: scenario.serve.endurance_erases,
        noise_us: noise(Duration::from_millis(20)).percentile_us(0.99),
    };
    let (watch, url) = Watch::start(address, subject, handle)?;
    output::line(&format!("dashboard: {url}"));
    Ok(watch)
}

fn log_to_standard_error(verbose: bool) {
    let most = if verbose { tracing::Level::DEBUG } else { tracing::Level::INFO };
    // Escape codes are for terminals: in a file they are noise.
    let colours = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_max_level(most).with_target(false);
    log.with_ansi(colours).with_writer(std::io::stderr).init();
}

fn announce(engine: &mut Engine, name: &str, tempo: Tempo, data: Option<&Path>, recovered: Option<RecoveryReport>) {
    let pace = match tempo {
        Tempo::Scaled(scale) => format!("{scale} simulated seconds a second"),
        Tempo::Off => "as fast as possible".to_owned(),
    };
    let place = data.map_or("memory".to_owned(), |path| path.display().to_string());
    output::line(&format!("{name}: {} drives, bytes in {place}, pace: {pace}", engine.fronts_mut().drives().len()));
    if let Some(found) = recovered {
        let end = if found.clean { "in order" } else { "without order; all bytes were checked" };
        output::line(&format!(
            "found {} slots of an earlier run, which ended {end}: {} old copies, {} torn records, {} damaged slots",
            found.slots, found.superseded, found.torn, found.damaged
        ));
    }
}

/// Load from inside the program, which compares all that it reads.
struct Loading {
    stop: Arc<AtomicBool>,
    /// One for each volume.
    threads: Vec<std::thread::JoinHandle<Result<LoadReport, VolumeError>>>,
}

impl Loading {
    fn start(engine: &mut Engine, depth: usize, seed: u64) -> Self {
        let mut front = ChannelFront::new(engine.waker());
        let volumes: Vec<_> = engine.volumes().iter().map(|info| front.connect().volume(*info)).collect();
        engine.add_front(Box::new(front));
        let load = Load {
            blocks: LOAD_BLOCKS_MAX,
            requests: u64::MAX,
            depth: depth.div_ceil(volumes.len().max(1)),
            blocks_max: LOAD_REQUEST_BLOCKS,
            reads: 0.5,
            seed,
            patience: SimSpan::from_ms(60_000),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let on_one = |(number, mut volume): (u64, ChannelVolume)| {
            let (load, stopped) = (Load { seed: seed.wrapping_add(number), ..load.clone() }, Arc::clone(&stop));
            std::thread::spawn(move || run_load(&mut volume, &load, || stopped.load(Ordering::Relaxed)))
        };
        let threads = (0..).zip(volumes).map(on_one).collect();
        Self { stop, threads }
    }

    /// The engine has ended, and the load with it.
    fn finish(self) -> Result<Outcome> {
        self.stop.store(true, Ordering::Relaxed);
        let mut sum = LoadReport::default();
        for thread in self.threads {
            let Ok(report) = thread.join() else { bail!("the load has failed") };
            sum.add(report?);
        }
        let LoadReport { answered, compared, wrong, .. } = sum;
        output::line(&format!("load: {answered} requests, {compared} slots compared, {} wrong", wrong.len()));
        wrong.iter().take(5).for_each(|text| output::line(text));
        Ok(if wrong.is_empty() { Outcome::Done } else { Outcome::Violated })
    }
}

pub(crate) fn replay_journal(options: &ReplayOptions) -> Result<Outcome> {
    let path = options.journal.display();
    let bytes = refuse_device(&options.journal).and_then(|()| std::fs::read(&options.journal));
    let bytes = bytes.with_context(|| format!("{path}: the journal cannot be read"))?;
    let (header, records) = read_journal(&bytes).with_context(|| path.to_string())?;
    // The text has everything merged in: no file is needed, but for the state of drives that began as aged ones.
    let files = DiskFiles::leak(Path::new("."), None, None);
    let resolved = resolve_with(&header.scenario, "the journal's scenario", &Overrides::default(), files)?;
    let mut world = (serving(&resolved)?.world)(&resolved.scenario, files, header.contents.as_deref())?;
    let found = replay(&mut *world, records, |_| {}).with_context(|| path.to_string())?;
    output::line(&format!(
        "{} requests and controls, {} effects, {} events, {:.3} s simulated",
        found.records,
        found.effects,
        found.events,
        found.at.as_secs_f64()
    ));
    output::line(&format!("digest of all effects {:016x}", found.digest));
    if !found.complete {
        output::line("the journal does not end in order: its program was killed, or still runs");
    }
    match found.differs_at {
        Some(record) => {
            output::line(&format!("DIFFERS: the effects before record {record} are not those of the run"));
            Ok(Outcome::OutsideTolerance)
        }
        None => Ok(Outcome::Done),
    }
}

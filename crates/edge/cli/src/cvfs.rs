//! `flashyard cvfs`: volumes that shrink while they are in use.

use crate::arguments::{CvfsCommand, CvfsMkfsOptions, CvfsMountOptions, CvfsShrinkOptions};
use crate::{Outcome, output};
use anyhow::{Context, Result, anyhow, bail, ensure};
use flashyard_cvfs::{Config, DiscardPolicy, FileSystem, Format};
use flashyard_cvfs_mount::{Asked, Device, FileDevice, NvmeDevice, ask_info, ask_shrink, mount, parse_method};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub(crate) fn cvfs(command: &CvfsCommand) -> Result<Outcome> {
    match command {
        CvfsCommand::Mkfs(options) => mkfs(options),
        CvfsCommand::Mount(options) => serve(options),
        CvfsCommand::Shrink(options) => shrink(options),
        CvfsCommand::Fsck { device } => fsck(device),
        CvfsCommand::Info { path } => info(path),
    }
}

/// The device of this name: a file, or `tcp:ADDRESS:PORT/NQN`.
fn open(name: &str, bytes: Option<u64>, plays_remap: bool) -> Result<Device> {
    let Some(target) = name.strip_prefix("tcp:") else {
        let device = FileDevice::open(Path::new(name), bytes, plays_remap).with_context(|| name.to_owned())?;
        return Ok(Box::new(device));
    };
    ensure!(bytes.is_none(), "{name}: a drive has the size it has");
    let (address, nqn) = target.split_once('/').context("give a drive as tcp:ADDRESS:PORT/NQN")?;
    let address = address.parse().with_context(|| format!("{address}: not an address with a port"))?;
    Ok(Box::new(NvmeDevice::connect(address, nqn, None).with_context(|| name.to_owned())?))
}

fn mkfs(options: &CvfsMkfsOptions) -> Result<Outcome> {
    let device = open(&options.device, options.size, false)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let format = Format { segment_blocks: options.segment_blocks, id: since };
    let fs = FileSystem::format(device, format, Config::default(), since).context(options.device.clone())?;
    let usage = fs.usage();
    output::line(&format!(
        "{} blocks of 4 KiB, {} of them for files, in segments of {}",
        usage.blocks, usage.capacity, usage.segment_blocks
    ));
    Ok(Outcome::Done)
}

fn serve(options: &CvfsMountOptions) -> Result<Outcome> {
    let device = open(&options.device, None, options.play_remap)?;
    let discards = match options.discards.as_str() {
        "aggressive" => DiscardPolicy::AGGRESSIVE,
        "idle" => DiscardPolicy::IDLE_ONLY,
        "never" => DiscardPolicy::Never,
        other => bail!("--discards {other}: give aggressive, idle or never"),
    };
    let config = Config { discards, ..Config::default() };
    let fs = FileSystem::mount(device, config).context(options.device.clone())?;
    output::line(&format!("{} at {}", options.device, options.directory.display()));
    mount(fs, &options.directory, |mut unmounter| {
        let stop = move || {
            // Busy mounts stay: whoever uses them would lose what is not written yet.
            if let Err(error) = unmounter.unmount() {
                eprintln!("error: {error}");
            }
        };
        if let Err(error) = ctrlc::set_handler(stop) {
            eprintln!("warning: Ctrl-C will not unmount: {error}");
        }
    })?;
    Ok(Outcome::Done)
}

fn shrink(options: &CvfsShrinkOptions) -> Result<Outcome> {
    let method = parse_method(&options.method)
        .ok_or_else(|| anyhow!("--method {}: give remap, relocate or holes", options.method))?;
    let began = Instant::now();
    let done = ask_shrink(&options.mount, Asked { bytes: options.size, method })?;
    output::line(&format!("{done}, in {:.3} s", began.elapsed().as_secs_f64()));
    Ok(Outcome::Done)
}

fn fsck(device: &str) -> Result<Outcome> {
    // Mounting brings what was interrupted to an end, as it would for any other purpose.
    let mut fs = FileSystem::mount(open(device, None, true)?, Config::default()).context(device.to_owned())?;
    let report = fs.check()?;
    report.problems.iter().for_each(|problem| output::line(problem));
    output::line(&format!(
        "{} directories, {} files, {} symbolic links, {} blocks in use; {} problems",
        report.directories, report.files, report.symlinks, report.blocks, report.problem_count
    ));
    Ok(if report.is_clean() { Outcome::Done } else { Outcome::Violated })
}

fn info(path: &str) -> Result<Outcome> {
    let text = if Path::new(path).is_dir() {
        ask_info(Path::new(path))?
    } else {
        let fs = FileSystem::mount(open(path, None, true)?, Config::default()).context(path.to_owned())?;
        format!("{:#?}", fs.usage())
    };
    output::line(text.trim_end());
    Ok(Outcome::Done)
}

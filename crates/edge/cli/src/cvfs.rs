//! `flashyard cvfs`: volumes that shrink while they are in use.

use crate::arguments::{CvfsCommand, CvfsManageOptions, CvfsMkfsOptions, CvfsMountOptions, CvfsShrinkOptions};
use crate::{Outcome, output};
use anyhow::{Context, Result, anyhow, bail, ensure};
use flashyard_blk::{Blocking, Volume};
use flashyard_cvfs::{BLOCK_BYTES, Config, DiscardPolicy, FileSystem, Format, Usage};
use flashyard_cvfs_mount::{
    Asked, Device, DriveDevice, FileDevice, Looked, Management, MountedVolume, Wishes, ask_info, ask_shrink, mount,
    open_alone, parse_method,
};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) fn cvfs(command: &CvfsCommand) -> Result<Outcome> {
    match command {
        CvfsCommand::Mkfs(options) => mkfs(options),
        CvfsCommand::Mount(options) => serve(options),
        CvfsCommand::Shrink(options) => shrink(options),
        CvfsCommand::Manage(options) => manage(options),
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
    let (address, nqn) = drive_of(target)?;
    Ok(Box::new(DriveDevice::connect(address, nqn).with_context(|| name.to_owned())?))
}

/// Address and name of a drive, `ADDRESS:PORT/NQN`.
fn drive_of(target: &str) -> Result<(SocketAddr, &str)> {
    let (address, nqn) = target.split_once('/').context("give a drive as tcp:ADDRESS:PORT/NQN")?;
    let address = address.parse().with_context(|| format!("{address}: not an address with a port"))?;
    Ok((address, nqn))
}

fn mkfs(options: &CvfsMkfsOptions) -> Result<Outcome> {
    let usage = if options.device.starts_with("tcp:") {
        let mut device = open(&options.device, options.size, false)?;
        if !options.force && !is_blank(&mut device)? {
            bail!("{}: there is something on this drive already; give --force to write over it", options.device);
        }
        format(device, options)?
    } else {
        format_file(options)?
    };
    output::line(&format!(
        "{} blocks of 4 KiB, {} of them for files, in segments of {}",
        usage.blocks, usage.capacity, usage.segment_blocks
    ));
    Ok(Outcome::Done)
}

fn format(device: Device, options: &CvfsMkfsOptions) -> Result<Usage> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let format = Format { segment_blocks: options.segment_blocks, id: since };
    let mib = device.info().size_bytes() >> 20;
    let fs = FileSystem::format(device, format, Config::default(), since).with_context(|| {
        let blocks = options.segment_blocks;
        format!("{}: no file system of {mib} MiB in segments of {blocks} blocks can be made here", options.device)
    });
    Ok(fs?.usage())
}

/// Makes the file system in a file of its own, and puts it in place once it is whole: what fails leaves everything as it
/// was.
fn format_file(options: &CvfsMkfsOptions) -> Result<Usage> {
    let name = &options.device;
    let failed = || format!("{name}: no file system can be made here");
    // The file itself, whatever links lead there.
    let path = match std::fs::canonicalize(name) {
        Ok(path) => path,
        Err(_) => Path::new(name).to_owned(),
    };
    let mut found = std::fs::metadata(&path).ok();
    // A mount of what is there would go on in a file without a name. The lock is held until the new one is in its place.
    let mut replaced = None;
    if let Some(found) = &mut found {
        ensure!(found.is_file(), "{name}: this is no regular file; give one, or a drive as tcp:ADDRESS:PORT/NQN");
        let file = open_alone(&path, |path| File::open(path)).with_context(failed)?;
        // It may have been waited for.
        *found = file.metadata().with_context(failed)?;
        replaced = Some(file);
        if !options.force && !is_blank_file(&path, found).with_context(failed)? {
            bail!("{name}: there is something in this file already; give --force to put a file system in its place");
        }
    }
    let bytes = options.size.or(found.as_ref().map(Metadata::len));
    let bytes = bytes.with_context(|| format!("{name}: there is no such file; give --size to make one"))?;
    let file_name = path.file_name().with_context(failed)?.display();
    let beside = path.with_file_name(format!(".{file_name}.partial"));
    let made = format_beside(&beside, bytes, found.as_ref(), options).and_then(|usage| {
        std::fs::rename(&beside, &path).with_context(failed)?;
        Ok(usage)
    });
    drop(replaced);
    if made.is_err() {
        // The first error counts; a file that cannot be removed does no harm.
        let _ = std::fs::remove_file(&beside);
    }
    made
}

/// Makes the file system in a new file, with the mode of the file that it replaces.
fn format_beside(beside: &Path, bytes: u64, found: Option<&Metadata>, options: &CvfsMkfsOptions) -> Result<Usage> {
    let failed = || format!("{}: cannot be written", beside.display());
    match std::fs::remove_file(beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(failed),
        _ => {}
    }
    let device = FileDevice::open(beside, Some(bytes), false).with_context(failed)?;
    if let Some(found) = found {
        std::fs::set_permissions(beside, found.permissions()).with_context(failed)?;
    }
    format(Box::new(device), options)
}

/// Whether a file holds nothing but zeros.
fn is_blank_file(path: &Path, found: &Metadata) -> std::io::Result<bool> {
    if found.len() == 0 || found.blocks() == 0 {
        return Ok(true);
    }
    let mut file = File::open(path)?;
    let mut bytes = vec![0; 1 << 20];
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok(true),
            read if bytes[..read].iter().any(|&byte| byte != 0) => return Ok(false),
            _ => {}
        }
    }
}

/// Blocks in which file systems and partition tables say what they are.
const FIRST_BLOCKS: u64 = 32;

/// Whether there is nothing where file systems begin.
fn is_blank(device: &mut Device) -> Result<bool> {
    let mut device = Blocking::new(device);
    let mut bytes = vec![0; FIRST_BLOCKS.min(device.blocks()) as usize * BLOCK_BYTES];
    device.read(0_u64, &mut bytes)?;
    Ok(bytes.iter().all(|&byte| byte == 0))
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
            // Busy mounts stay: their users would lose what is not written yet.
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

/// Looks at the drive until it is ended by a signal: it keeps nothing that would have to be put away.
fn manage(options: &CvfsManageOptions) -> Result<Outcome> {
    ensure!(options.period > 0.0 && options.period <= 86_400.0, "--period {}: give 0.001 to 86400", options.period);
    let target = options.drive.strip_prefix("tcp:").context("give --drive as tcp:ADDRESS:PORT/NQN")?;
    let (address, nqn) = drive_of(target)?;
    let CvfsManageOptions { performance, reliability, watermark: watermark_bytes, .. } = *options;
    let wishes = Wishes { performance, reliability, watermark_bytes };
    let volume = MountedVolume(options.mount.clone());
    let mut management =
        Management::new(address, nqn, volume, wishes).with_context(|| format!("--drive {}", options.drive))?;
    let first = management.look()?;
    output::line(&describe(&first));
    tell(&first);
    if options.once {
        return Ok(Outcome::Done);
    }
    loop {
        std::thread::sleep(Duration::from_secs_f64(options.period));
        match management.look() {
            Ok(looked) => tell(&looked),
            // A drive that is pulled or a mount that begins again comes back.
            Err(error) => eprintln!("warning: {:#}", anyhow!(error)),
        }
    }
}

fn describe(looked: &Looked) -> String {
    let drive = &looked.drive;
    let mib = |blocks: u64| blocks / 256;
    let retirement = match drive.retires_at.get() {
        0 => "never retired".to_owned(),
        erases => format!("retired at {erases} erases"),
    };
    format!(
        "{} of {} MiB of flash in use, {} MiB exported, {} MiB mapped; superblocks: {} young, {} middle-aged, {} retired; \
         {retirement}, {} of {} erases on average",
        mib(drive.physical_blocks.get()),
        mib(drive.raw_blocks.get()),
        mib(drive.exported_blocks.get()),
        mib(drive.mapped_blocks.get()),
        drive.young,
        drive.middle_aged,
        drive.retired,
        drive.erases_mean,
        drive.endurance
    )
}

/// Says what a look has led to, if anything.
fn tell(looked: &Looked) {
    if let Some((blocks, came)) = &looked.asked {
        let retired = looked.drive.retired;
        let (Ok(words) | Err(words)) = came;
        let verb = if came.is_ok() { "shrunk" } else { "refused" };
        output::line(&format!("{retired} superblocks retired, {} MiB asked for: {verb}, {words}", blocks / 256));
    }
    if let Some(degraded) = looked.degraded {
        output::line(if degraded { "the drive is degraded" } else { "the drive is not degraded any more" });
    }
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

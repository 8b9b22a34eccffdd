//! Opens storage: when volumes are made, and when a leg is replaced later.

use crate::agile::borrow::Borrower;
use crate::error::OpenError;
use crate::leg::{BLOCK, DriveLeg, FileLeg, LegState, Memory, OpenDrive, Pace, RemoteLeg, Storage, Terms, Throttle};
use flashyard_billboard::Choice;
use flashyard_describe::lending::ChoiceName;
use flashyard_describe::volumes::Leg;
use flashyard_live::{RemoteNamespace, Wake};
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_nvmf::secret::Secret;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The name of this host, unless the file has one.
const HOST_NQN: &str = "nqn.2026-11.io.flashyard:volumes";
/// Commands under way at a namespace at most, and one more.
const QUEUE_ENTRIES: u16 = 256;

/// Reads a secret of the file at a path, and refuses it where others may read it, too.
pub type ReadSecret = fn(&Path) -> Result<Secret, String>;

/// Runs the enclosure of the scenario at a path, its bytes in a directory, and hands out its volume of a number; the wake-up is called
/// when something has come.
pub type OpensDrive = fn(&Path, Option<&Path>, u16, Wake) -> Result<OpenDrive, String>;

/// Opens storage, when the engine begins and later. A clone does so for the same engine.
#[derive(Clone)]
pub(crate) struct Opening {
    folder: PathBuf,
    secret: ReadSecret,
    drive: OpensDrive,
    /// Borrows space of other servers.
    pub(crate) borrower: Option<Borrower>,
    /// Of the engine, which begins after its legs.
    waker: Arc<OnceLock<Arc<mio::Waker>>>,
}

impl Opening {
    pub(crate) fn new(folder: &Path, secret: ReadSecret, drive: OpensDrive, borrower: Option<Borrower>) -> Self {
        Self { folder: folder.to_owned(), secret, drive, borrower, waker: Arc::default() }
    }

    /// Opens storage for another engine.
    pub(crate) fn for_another(&self) -> Self {
        Self { waker: Arc::default(), ..self.clone() }
    }

    /// Wakes the engine.
    pub(crate) fn wake(&self) -> impl Fn() + Send + Clone + use<> {
        let waker = Arc::clone(&self.waker);
        // A waker that fails is no reason to stop: the engine looks a few times a second anyway.
        move || _ = waker.get().map(|waker| waker.wake())
    }

    /// How the engine is woken, once it is there.
    pub(crate) fn waker(&self) -> Arc<OnceLock<Arc<mio::Waker>>> {
        Arc::clone(&self.waker)
    }

    /// Opens one piece of storage; what is borrowed for it comes from no server that lends one of the legs `beside` it.
    pub(crate) fn leg(&self, volume: &str, leg: &Leg, beside: &[LegState]) -> Result<LegState, OpenError> {
        if let Some(size) = leg.borrow {
            let terms = self.terms(volume, leg, size.0.get())?;
            let refused = || OpenError::Loan {
                volume: volume.to_owned(),
                problem: "the file gives this server no name: server = \"NAME\"".to_owned(),
            };
            return Ok(self.borrower.as_ref().ok_or_else(refused)?.first(terms, beside));
        }
        let (storage, name) = if let Some(size) = leg.memory {
            let blocks = size.0.get() / BLOCK as u64;
            if blocks == 0 {
                let problem = format!("memory of {} bytes, give {BLOCK} or more", size.0.get());
                return Err(OpenError::Size { volume: volume.to_owned(), problem });
            }
            (Storage::Memory(Memory::new(blocks)), "memory".to_owned())
        } else if let Some(path) = &leg.file {
            let path = self.folder.join(path);
            let file = FileLeg::open(&path, leg.size.map(|size| size.0.get()), self.wake());
            let file = file.map_err(|source| OpenError::File { volume: volume.to_owned(), source })?;
            (Storage::File(file), path.display().to_string())
        } else if let Some(scenario) = &leg.drive {
            let wake = Box::new(self.wake());
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
        let is_new = match &storage {
            Storage::Memory(_) => true,
            Storage::File(file) => file.is_new,
            Storage::Drive(_) | Storage::Remote(_) | Storage::Absent(_) => false,
        };
        Ok(LegState { throttle: pace_of(leg).map(Throttle::new), is_new, ..LegState::new(storage, name) })
    }

    /// How this host connects to a subsystem.
    fn host(&self, volume: &str, leg: &Leg, nqn: &str) -> Result<InitiatorConfig, OpenError> {
        let read = |path: &PathBuf| {
            let refused = |problem| OpenError::Secret { volume: volume.to_owned(), problem };
            (self.secret)(&self.folder.join(path)).map_err(refused)
        };
        Ok(InitiatorConfig {
            queue_entries: QUEUE_ENTRIES,
            secret: leg.secret_file.as_ref().map(read).transpose()?,
            controller_secret: leg.controller_secret_file.as_ref().map(read).transpose()?,
            ..InitiatorConfig::new(leg.host_nqn.as_deref().unwrap_or(HOST_NQN), nqn)
        })
    }

    /// The terms on which a leg borrows.
    fn terms(&self, volume: &str, leg: &Leg, bytes: u64) -> Result<Terms, OpenError> {
        let refused = |problem: String| OpenError::Loan { volume: volume.to_owned(), problem };
        let board = leg.board.ok_or_else(|| refused("give the address of the billboard: board".to_owned()))?;
        let mib = u32::try_from(bytes >> 20).map_err(|_| refused(format!("{bytes} bytes are too many")))?;
        let choice = match leg.choice.unwrap_or_default() {
            ChoiceName::First => Choice::First,
            ChoiceName::Most => Choice::Most,
            ChoiceName::Best => Choice::Best,
            ChoiceName::TwoRandom => Choice::TwoRandom,
        };
        Ok(Terms {
            mib,
            board,
            choice,
            free_iops: leg.free_iops.unwrap_or(0).into(),
            free_bandwidth: leg.free_bandwidth.map_or(0, |rate| rate.0.get()),
            pace: pace_of(leg),
            host: self.host(volume, leg, "")?,
        })
    }

    fn remote(&self, volume: &str, leg: &Leg) -> Result<(Storage, String), OpenError> {
        let (Some(address), Some(nqn)) = (leg.nvme_tcp, leg.nqn.clone()) else {
            let problem = "give one of memory, file, drive, nvme_tcp, borrow and service".to_owned();
            return Err(OpenError::Size { volume: volume.to_owned(), problem });
        };
        let config = self.host(volume, leg, &nqn)?;
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

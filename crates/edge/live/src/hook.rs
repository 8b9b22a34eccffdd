//! Hooks: code that the engine calls once a turn, which reads its figures and may do something to the world.

use crate::clock::Lateness;
use crate::front_ends::FrontEnds;
use crate::media::Media;
use crate::namespaces::Manage;
use crate::operator::{Changed, Wanted};
use flashyard_blk::VolumeInfo;
use flashyard_served::{Control, Gauges, Refused, Session};
use flashyard_units::{DriveId, SimTime};
use std::net::SocketAddr;
use std::time::Duration;

/// Code that the engine calls once a turn.
pub trait Hook {
    /// Called once a turn. What it asks to be done to the world is done at once.
    fn turn(&mut self, engine: &mut EngineAccess<'_>);
}

/// There is no such port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address} is no port of this server, give {}", list(ports))]
pub struct NoPort {
    /// Asked for.
    pub address: SocketAddr,
    /// Those that there are.
    pub ports: Vec<SocketAddr>,
}

fn list(ports: &[SocketAddr]) -> String {
    match ports {
        [] => "--listen when it starts: it has none".to_owned(),
        ports => ports.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" or "),
    }
}

/// Readers of the figures of an interval, each with an interval of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// An operator at the control socket.
    Operator,
    /// The dashboard.
    Dashboard,
}

/// Figures that the world has given, by reader that has not seen them yet.
#[derive(Default)]
pub(crate) struct Unseen([Option<Gauges>; 2]);

impl Unseen {
    fn take(&mut self, reader: Reader, latest: Gauges) -> Gauges {
        let mut whole = None;
        for (number, unseen) in self.0.iter_mut().enumerate() {
            match unseen {
                Some(unseen) => unseen.absorb(&latest),
                None => *unseen = Some(latest.clone()),
            }
            if number == reader as usize {
                whole = unseen.take();
            }
        }
        whole.unwrap_or(latest)
    }
}

/// Access of a hook to the engine.
pub struct EngineAccess<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) media: &'a mut Media,
    pub(crate) now: SimTime,
    pub(crate) elapsed: Duration,
    pub(crate) lateness: &'a Lateness,
    pub(crate) volumes: &'a [VolumeInfo],
    pub(crate) changed: bool,
    pub(crate) ports: Vec<(SocketAddr, bool)>,
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) fronts: &'a FrontEnds,
    pub(crate) in_flight_bytes: usize,
    pub(crate) turns: u64,
    pub(crate) unseen: &'a mut Unseen,
}

/// Does something to the enclosure, and keeps what outlives the process before that is announced.
///
/// Errors: as [`Session::control`].
pub(crate) fn carry_out(
    session: &mut Session,
    media: &mut Media,
    now: SimTime,
    control: Control,
) -> Result<(), Refused> {
    session.control(now, control)?;
    media.keep_control(&control, session.world());
    Ok(())
}

impl EngineAccess<'_> {
    /// Does something to the enclosure, now.
    ///
    /// Errors: as [`Session::control`].
    pub fn control(&mut self, control: Control) -> Result<(), Refused> {
        self.changed = true;
        carry_out(self.session, self.media, self.now, control)
    }

    /// Takes the port at `address` away from its front end, or gives it back, after this turn.
    ///
    /// Errors: a port that no front end has.
    pub fn port(&mut self, address: SocketAddr, up: bool) -> Result<(), NoPort> {
        let ports: Vec<SocketAddr> = self.fronts.iter().flat_map(|front| front.ports()).collect();
        if !ports.contains(&address) {
            return Err(NoPort { address, ports });
        }
        self.ports.push((address, up));
        Ok(())
    }

    /// Gives a namespace of a drive another size, from the end of this turn on; how that ends comes out of what is returned.
    pub fn resize(&mut self, drive: DriveId, nsid: u32, bytes: u64) -> Changed {
        let (wanted, changed) = Wanted::new(drive, Manage::Resize { nsid, bytes });
        self.wanted.push(wanted);
        changed
    }

    /// Connections of clients, over all front ends.
    pub fn connections(&self) -> u32 {
        self.fronts.iter().map(|front| front.connections()).sum()
    }

    /// Bytes that clients hold of [`crate::Limits::in_flight_bytes`].
    pub fn in_flight_bytes(&self) -> usize {
        self.in_flight_bytes
    }

    /// Turns of the engine so far: few while no client wants anything.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// The enclosure, to take figures of.
    pub fn session(&mut self) -> &mut Session {
        self.session
    }

    /// Figures of the interval since `reader` last took them. Media errors are those of the whole lifetime of a drive, as
    /// in its health log.
    pub fn gauges(&mut self, reader: Reader) -> Gauges {
        let latest = self.session.world_mut().gauges(self.now);
        let mut gauges = self.unseen.take(reader, latest);
        for (number, drive) in (0..).map(DriveId::new).zip(&mut gauges.drives) {
            let before = self.media.drive(number).before().media_errors;
            drive.health.media_errors = drive.health.media_errors.saturating_add(before);
        }
        gauges
    }

    /// Virtual time.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Time on the wall since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// How late answers were so far.
    pub fn lateness(&self) -> &Lateness {
        self.lateness
    }

    /// The volumes that clients see.
    pub fn volumes(&self) -> &[VolumeInfo] {
        self.volumes
    }
}

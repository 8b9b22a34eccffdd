//! A server among those that lend each other space: both of its sides, from the beginning to a clean end.

use crate::agile::borrow::Borrower;
use crate::agile::lend::{ExportsPiece, LendPlan, Lender};
use crate::agile::pieces::Pieces;
use crate::agile::shift::Shift;
use crate::engine::VolumeHandle;
use crate::error::OpenError;
use crate::leg::FileError;
use crate::opening::Opening;
use flashyard_describe::lending::Lend;
use flashyard_units::SimSpan;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

/// Storage that is to be lent.
pub(crate) struct Lending {
    pub(crate) plan: LendPlan,
    pub(crate) pieces: Pieces,
    pub(crate) opening: Opening,
}

impl Lending {
    /// Opens what a description lends; paths count from `folder`.
    ///
    /// Errors: a file that cannot be lent.
    pub(crate) fn open(server: &str, lend: &Lend, folder: &Path, opening: Opening) -> Result<Self, OpenError> {
        let piece = lend.piece_bytes();
        let pieces = match (&lend.memory, &lend.file) {
            (Some(size), _) => Pieces::of_memory(size.0.get(), piece),
            (None, Some(path)) => Pieces::of_file(&folder.join(path), lend.size.map(|size| size.0.get()), piece)
                .map_err(OpenError::Lend)?,
            (None, None) => return Err(OpenError::Lend(FileError::Missing("storage".to_owned()))),
        };
        let plan = LendPlan {
            server: server.to_owned(),
            nqn: String::new(),
            board: lend.board,
            listen: lend.listen,
            lease: SimSpan::from_ns(lend.lease_ns()),
            post_every: Duration::from_nanos(lend.post_ns()),
            iops: lend.iops.map(u64::from),
            bandwidth: lend.bandwidth.map(|rate| rate.0.get()),
        };
        Ok(Self { plan, pieces, opening })
    }
}

/// A server among those that lend each other space. Without a name it neither lends nor borrows.
pub struct Rack {
    pub(crate) borrower: Option<Borrower>,
    pub(crate) lending: Option<Lending>,
    pub(crate) engine: VolumeHandle,
    pub(crate) lender: Option<Lender>,
    pub(crate) shift: Option<JoinHandle<()>>,
}

impl Rack {
    pub(crate) fn new(borrower: Option<Borrower>, lending: Option<Lending>, engine: VolumeHandle) -> Self {
        Self { borrower, lending, engine, lender: None, shift: None }
    }

    /// Where consumers will ask it, if it is to lend.
    pub fn lends_at(&self) -> Option<SocketAddr> {
        self.lending.as_ref().map(|lending| lending.plan.listen)
    }

    /// Begins to lend under NVMe qualified names that begin with `nqn`, and to watch over what is borrowed.
    ///
    /// Errors: an address that cannot be listened on, or no thread.
    pub fn start(&mut self, nqn: &str, exports: ExportsPiece) -> io::Result<()> {
        if let Some(Lending { plan, pieces, opening }) = self.lending.take() {
            let plan = LendPlan { nqn: nqn.to_owned(), ..plan };
            self.lender = Some(Lender::start(plan, pieces, opening, exports)?);
        }
        if let Some(borrower) = &self.borrower {
            let shift = Shift::new(borrower.clone(), self.engine.clone());
            let thread = std::thread::Builder::new().name("loans".to_owned());
            self.shift = Some(thread.spawn(move || shift.run())?);
        }
        Ok(())
    }

    /// Promises nothing new, and asks consumers to move what they have here.
    pub fn leave(&self) {
        self.lender.iter().for_each(Lender::leave);
    }

    /// Whether no consumer has anything here, after [`Rack::leave`].
    pub fn has_left(&self) -> bool {
        self.lender.as_ref().is_none_or(Lender::has_left)
    }

    /// Agreements that consumers have with it, for people.
    pub fn agreements(&self) -> Vec<String> {
        self.lender.as_ref().map(Lender::agreements).unwrap_or_default()
    }

    /// Gives back what was borrowed, once the engine has ended.
    pub fn end(self) {
        // It ends with the engine.
        self.shift.into_iter().for_each(|thread| _ = thread.join());
        self.borrower.iter().for_each(Borrower::end);
    }
}

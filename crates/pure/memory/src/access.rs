//! Accesses of programs, and whatever makes them.

/// Kind of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessKind {
    /// Data is needed: the reorder window does not pass it.
    #[default]
    Load,
    /// Data is given: it is posted.
    Store,
    /// Data is given, and the core waits until it would outlive a loss of power.
    PersistentStore,
    /// No data is given: the core waits until everything that was changed, in all caches and in the memory, would outlive a loss of power, as
    /// after a Global Persistent Flush.
    Flush,
}

/// An access of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Its kind.
    pub kind: AccessKind,
    /// Byte address. Accesses do not straddle lines.
    pub address: u64,
    /// Instructions between the access before and this one that access nothing.
    pub gap: u32,
    /// Whether its address comes from the data of the load before it.
    pub depends: bool,
    /// Number of the function, or of the place in the program, that makes it.
    pub function: u16,
}

/// A program as a sequence of accesses. Making one takes no memory.
pub trait Accesses {
    /// The next access; `None` at the end.
    fn next_access(&mut self) -> Option<Access>;
}

impl<A: Accesses + ?Sized> Accesses for Box<A> {
    #[inline]
    fn next_access(&mut self) -> Option<Access> {
        (**self).next_access()
    }
}

/// Accesses that were written down.
impl Accesses for std::vec::IntoIter<Access> {
    fn next_access(&mut self) -> Option<Access> {
        self.next()
    }
}

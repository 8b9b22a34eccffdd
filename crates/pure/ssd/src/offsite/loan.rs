//! Which loan a segment belongs to.

use flashyard_units::DriveId;

/// A loan of mapping memory: the memory of one descriptor of one lender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoanId {
    /// The drive that lends it.
    pub lender: DriveId,
    /// The number of the offer among the lender's.
    pub offer: u16,
}

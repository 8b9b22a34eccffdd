//! Which loan a segment belongs to.

/// A loan of mapping memory: what one memory descriptor of one lender lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoanId {
    /// The drive whose memory it is.
    pub lender: u16,
    /// The number of the offer among the lender's.
    pub offer: u16,
}

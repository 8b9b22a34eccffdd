//! Waist: CXL transactions and flits.

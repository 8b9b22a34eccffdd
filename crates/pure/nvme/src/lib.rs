//! Waist: NVMe submission and completion vocabulary.

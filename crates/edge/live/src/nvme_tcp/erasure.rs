//! Formats and sanitizes of drives, between what hosts ask for and what the engine does.

use crate::front::Context;
use crate::media::{Erase, SanitizeOutcome};
use flashyard_nvmf::target::{Erasure, ErasureKind, Sanitized, Wish};
use flashyard_units::VolumeId;

/// How far the data of a volume is being erased, and what became of earlier times.
pub(super) fn of(volume: VolumeId, context: &Context<'_>) -> Erasure {
    let kept = context.erasures(volume);
    let (kind, command) = match kept.under_way {
        Some(Erase::Sanitize { command }) => (ErasureKind::Sanitize, command),
        _ => (ErasureKind::Format, kept.command),
    };
    let sanitized = match kept.sanitized {
        SanitizeOutcome::Never => Sanitized::Never,
        SanitizeOutcome::Done => Sanitized::Done,
        SanitizeOutcome::Failed => Sanitized::Failed,
        SanitizeOutcome::Left => Sanitized::Left,
    };
    Erasure { under_way: context.erasing(volume).map(|progress| (kind, progress)), sanitized, command }
}

/// The erasure that a host asks for, if it asks for one.
pub(super) fn wanted(wish: &Wish) -> Option<Erase> {
    match *wish {
        Wish::Format { block_log2, destroys } => Some(Erase::Format { block_bytes: 1 << block_log2, destroys }),
        Wish::Sanitize { command } => Some(Erase::Sanitize { command }),
        Wish::LeaveFailure => Some(Erase::LeaveFailure),
        Wish::Degraded(_) | Wish::Retirement(_) => None,
    }
}

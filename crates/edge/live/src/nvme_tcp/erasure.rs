//! Formats and sanitizes of drives, between what hosts ask for and what the engine does.

use crate::front::Context;
use crate::media::{BlockFormat, Erase, SanitizeOutcome};
use flashyard_nvme::NSID_ALL;
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
    let (progress, nsid) = context.erasing_of(volume).unzip();
    let under_way = progress.map(|progress| (kind, progress));
    Erasure { under_way, nsid: nsid.unwrap_or_default(), sanitized, command }
}

/// The erasure that a host asks for, if it asks for one, and the namespace that it is about, or all.
pub(super) fn wanted(wish: &Wish) -> Option<(u32, Erase)> {
    match *wish {
        Wish::Format { nsid, block_log2, metadata, destroys } => {
            Some((nsid, Erase::Format { block: BlockFormat { data_bytes: 1 << block_log2, metadata }, destroys }))
        }
        Wish::Sanitize { command } => Some((NSID_ALL, Erase::Sanitize { command })),
        Wish::LeaveFailure => Some((NSID_ALL, Erase::LeaveFailure)),
        Wish::Degraded(_)
        | Wish::Retirement(_)
        | Wish::Create(_)
        | Wish::Delete { .. }
        | Wish::Attach(_)
        | Wish::SelfTest { .. } => None,
    }
}

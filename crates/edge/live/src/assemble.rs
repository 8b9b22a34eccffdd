//! An enclosure and the bytes of its drives: new in memory, new in a directory, or as an earlier run left them.

use crate::media::{DataDirectory, Media, MediaError, Opened, RecoveryReport, Shape};
use flashyard_flash::SLOT_BYTES;
use flashyard_ftl::SuperblockContents;
use flashyard_served::Served;
use flashyard_units::DriveId;
use std::io;
use std::path::Path;

/// Why there is no enclosure.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError<E: std::error::Error + 'static> {
    /// The directory of the bytes.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// Memory for the bytes.
    #[error(
        "there is no memory for the drives' bytes, {gib} GiB: give fewer or smaller drives (drive.capacity, or drive.blocks_per_plane where that is given), or a directory with --data"
    )]
    Memory {
        /// All that the flash of the drives holds, in GiB.
        gib: u64,
        /// The operating system's word.
        source: io::Error,
    },
    /// The enclosure itself.
    #[error(transparent)]
    World(E),
}

/// An enclosure that is ready to serve, and its bytes.
pub struct SetUp {
    /// The enclosure.
    pub world: Box<dyn Served>,
    /// Its bytes.
    pub media: Media,
    /// Findings of an earlier run, if there was one.
    pub recovered: Option<RecoveryReport>,
}

/// Builds an enclosure of drives of these shapes: `build` makes it, from what its superblocks hold if there is an earlier run
/// in the directory `data`. Without a directory bytes are in memory.
///
/// Errors: the directory is in use, or keeps another enclosure; those of `build` and of the operating system.
pub fn set_up<E: std::error::Error + 'static>(
    data: Option<&Path>,
    shapes: &[Shape],
    build: impl Fn(Option<&[Vec<SuperblockContents>]>) -> Result<Box<dyn Served>, E>,
) -> Result<SetUp, SetUpError<E>> {
    let build = |contents: Option<&[Vec<SuperblockContents>]>| build(contents).map_err(SetUpError::World);
    let stock =
        |world: &dyn Served| -> Vec<_> { DriveId::first(world.drives()).map(|drive| world.contents(drive)).collect() };
    let Some(path) = data else {
        // Before the drives, which take long to make where they are many.
        let slots = shapes
            .iter()
            .map(|Shape { layout, .. }| u64::from(layout.superblocks) * u64::from(layout.slots_per_superblock));
        let gib = (slots.sum::<u64>() * u64::from(SLOT_BYTES)) >> 30;
        let memory = |source| SetUpError::Memory { gib, source };
        let mut media = Media::memory(shapes.iter().map(|shape| shape.layout)).map_err(memory)?;
        let world = build(None)?;
        media.adopt(&stock(&*world)).map_err(memory)?;
        return Ok(SetUp { world, media, recovered: None });
    };
    match DataDirectory::open(path, shapes)? {
        Opened::New(directory) => {
            let world = build(None)?;
            let media = Media::create(directory, shapes, &stock(&*world))?;
            Ok(SetUp { world, media, recovered: None })
        }
        Opened::Kept { media, contents, report } => {
            let world = build(Some(&contents))?;
            Ok(SetUp { world, media, recovered: Some(report) })
        }
    }
}

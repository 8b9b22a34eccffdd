//! `ioengine`: how requests are submitted, which is all that an engine says here.

/// How an engine submits requests. \[C\] fio 3.33, `--enghelp`, manual page and engines/
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// One at a time, and each is complete before the next one.
    Waits,
    /// As many as the depth allows.
    Queues,
    /// So, but trims are complete at once.
    QueuesAllButTrims,
    /// fio's own: it queues unless the depth is one.
    Null,
}

/// Every engine that reads and writes drives.
const ENGINES: [(&str, Engine); 17] = [
    ("libaio", Engine::QueuesAllButTrims),
    ("io_uring", Engine::QueuesAllButTrims),
    ("io_uring_cmd", Engine::Queues),
    ("posixaio", Engine::QueuesAllButTrims),
    ("solarisaio", Engine::Queues),
    ("windowsaio", Engine::Queues),
    ("null", Engine::Null),
    ("xnvme", Engine::Queues),
    ("libblkio", Engine::Queues),
    ("sync", Engine::Waits),
    ("psync", Engine::Waits),
    ("vsync", Engine::Waits),
    ("pvsync", Engine::Waits),
    ("pvsync2", Engine::Waits),
    ("mmap", Engine::Waits),
    ("splice", Engine::Waits),
    ("sg", Engine::Waits),
];

/// Whether the engine of this name has one request under way, whatever the depth; psync, fio's default, is one. Engines that are not
/// known, such as those of clients of a protocol, queue.
pub fn waits(name: &str) -> bool {
    Engine::named(name) == Ok(Engine::Waits)
}

impl Engine {
    /// The engine called `name`.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        ENGINES.iter().find(|engine| engine.0 == name).map(|engine| engine.1).ok_or_else(|| {
            let known = ENGINES.map(|engine| engine.0).join(", ");
            format!("{name:?} is no engine that reads and writes drives, give one of {known}")
        })
    }

    /// Whether requests of a direction (2: trims) are queued with this depth.
    pub(super) fn queues(self, direction: usize, depth: u32) -> bool {
        match self {
            Self::Waits => false,
            Self::Queues => true,
            Self::QueuesAllButTrims => direction < 2,
            Self::Null => depth > 1,
        }
    }
}

//! Mistakes of a scenario, and failures of its runs.

/// Why a scenario cannot be run. Every message says where and what is accepted.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The text is not TOML, or a key or value is wrong.
    #[error("{origin}: {message}")]
    Text {
        /// File, or "after --set".
        origin: String,
        /// With line and column.
        message: String,
    },
    /// A mistake in one of several like sections.
    #[error("{label}: {source}")]
    In {
        /// The path that the keys of the mistake stand under: `group.0.`.
        path: String,
        /// Which one it is, in words.
        label: String,
        /// The mistake.
        source: Box<ScenarioError>,
    },
    /// An override that is not `key=value`.
    #[error("--set {0:?}: write section.key=value, for example drive.cores=6")]
    Override(String),
    /// An axis without values.
    #[error("--sweep {0:?}: write section.key=value,value, for example drive.cores=2,3,6")]
    Sweep(String),
    /// An axis that there is already.
    #[error(
        "--sweep {0:?}: this key is swept already; give all of its values with one --sweep, as in drive.cores=2,3,6"
    )]
    SweptTwice(String),
    /// A profile that is not there.
    #[error("{place}: {section}.profile: there is no profile {name:?}; available: {available}")]
    Profile {
        /// Where it is named: file and line, or "--set" with the setting.
        place: String,
        /// Section that names it.
        section: String,
        /// The name.
        name: String,
        /// The profiles that there are.
        available: String,
    },
    /// A value outside its range.
    #[error("{key}: {message}")]
    Value {
        /// Path of the key.
        key: &'static str,
        /// The mistake, and what is accepted.
        message: String,
    },
    /// The world could not be built or run.
    #[error(transparent)]
    World(Box<dyn std::error::Error + Send + Sync>),
    /// The observer stopped the run.
    #[error("interrupted")]
    Interrupted,
    /// A mistake in the program.
    #[error("{0}")]
    Program(String),
    /// A run of a study whose figures cannot be trusted.
    #[error(
        "a run of {design} breaks a law that every run must obey ({law}), so that its figures mean nothing; \
         this is an error of the program, please report it"
    )]
    Law {
        /// The design that was run.
        design: &'static str,
        /// The law and both of its sides.
        law: String,
    },
}

impl ScenarioError {
    /// An error of a world, in its own words.
    pub fn of_world(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::World(Box::new(error))
    }

    /// A wrong value of `key`, with the mistake and what is accepted.
    pub fn value(key: &'static str, message: impl Into<String>) -> Self {
        Self::Value { key, message: message.into() }
    }

    /// Result of a run; `None` when its observer stopped it.
    ///
    /// Errors: any other end.
    pub fn unless_stopped<T>(run: Result<T, Self>) -> Result<Option<T>, Self> {
        match run {
            Ok(found) => Ok(Some(found)),
            Err(Self::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A wrong value of `key`, with the mistake and what is accepted.
pub(crate) fn value(key: &'static str, message: String) -> ScenarioError {
    ScenarioError::Value { key, message }
}

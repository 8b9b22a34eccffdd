//! Sections of scenarios that belong to systems.

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Purpose for which a scenario is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// `flashyard run`.
    Run,
    /// `flashyard age`.
    Age,
    /// `flashyard serve`.
    Serve,
    /// `flashyard faults`.
    Faults,
}

impl Purpose {
    /// The command.
    pub(crate) const fn command(self) -> &'static str {
        match self {
            Self::Run => "flashyard run",
            Self::Age => "flashyard age",
            Self::Serve => "flashyard serve",
            Self::Faults => "flashyard faults",
        }
    }
}

/// A section of scenarios that some systems have and others do not.
pub struct Section {
    /// Its name, as it stands in the file.
    pub(crate) name: &'static str,
    /// Commands that read a key, or the section with all its keys; the first line that fits counts.
    pub(crate) readers: &'static [(&'static str, &'static [Purpose])],
    /// Profiles that it may name by its key `profile`.
    pub(crate) profiles: Option<Profiles>,
    /// Whether it, or each of its entries where it is a list, has drives of its own: a `drive` that has what it does
    /// not say from `[drive]`.
    pub(crate) has_drives: bool,
    /// Whether scenarios of every system may have it.
    pub(crate) is_shared: bool,
    /// Keys that other sections have taken over: the old name, the new one, and why.
    pub(crate) moved: &'static [(&'static str, &'static str, &'static str)],
    /// Keys that hold names of files.
    pub(crate) files: &'static [&'static str],
    schema: fn(&mut SchemaGenerator) -> Schema,
}

/// Profiles of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Profiles {
    /// Their folder in `profiles`.
    pub folder: &'static str,
    /// Name and text of those that ship with the program.
    pub builtin: &'static [(&'static str, &'static str)],
}

/// The profiles of drives.
pub(crate) const DRIVES: Profiles = Profiles {
    folder: "drives",
    builtin: &[
        ("xbof-4tb", include_str!("../../../../profiles/drives/xbof-4tb.toml")),
        ("r8", include_str!("../../../../profiles/drives/r8.toml")),
        ("tlc-gen3-1920gb", include_str!("../../../../profiles/drives/tlc-gen3-1920gb.toml")),
        ("tlc-gen3-4tb", include_str!("../../../../profiles/drives/tlc-gen3-4tb.toml")),
        ("tlc-gen4-1920gb", include_str!("../../../../profiles/drives/tlc-gen4-1920gb.toml")),
        ("tlc-gen4-3840gb", include_str!("../../../../profiles/drives/tlc-gen4-3840gb.toml")),
        ("tlc-gen5-1920gb", include_str!("../../../../profiles/drives/tlc-gen5-1920gb.toml")),
        ("qlc-gen4-15360gb", include_str!("../../../../profiles/drives/qlc-gen4-15360gb.toml")),
        ("z-nand-800gb", include_str!("../../../../profiles/drives/z-nand-800gb.toml")),
        ("xpoint-750gb", include_str!("../../../../profiles/drives/xpoint-750gb.toml")),
        ("client-gen3-1tb", include_str!("../../../../profiles/drives/client-gen3-1tb.toml")),
        ("mqsim-default", include_str!("../../../../profiles/drives/mqsim-default.toml")),
    ],
};

impl Section {
    /// The section `name`, which is read as a `T`, and commands read it by `readers`.
    pub const fn of<T: JsonSchema>(name: &'static str, readers: &'static [(&'static str, &'static [Purpose])]) -> Self {
        Self {
            name,
            readers,
            profiles: None,
            has_drives: false,
            is_shared: false,
            moved: &[],
            files: &[],
            schema: |generator| generator.subschema_for::<T>(),
        }
    }

    /// The section with profiles.
    pub const fn with_profiles(self, folder: &'static str, builtin: &'static [(&'static str, &'static str)]) -> Self {
        Self { profiles: Some(Profiles { folder, builtin }), ..self }
    }

    /// The section with drives of its own.
    pub const fn with_drives(self) -> Self {
        Self { has_drives: true, ..self }
    }

    /// The section for scenarios of every system.
    pub const fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// The section with keys that hold names of files, `memory.trace`.
    pub const fn with_files(self, files: &'static [&'static str]) -> Self {
        Self { files, ..self }
    }

    /// The section without keys that others have taken over: the old name, the new one, and why.
    pub const fn with_moved(self, moved: &'static [(&'static str, &'static str, &'static str)]) -> Self {
        Self { moved, ..self }
    }

    pub(crate) fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }
}

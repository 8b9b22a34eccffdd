//! The repository as the checks see it: its files and its crates.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

/// Directories that hold no source: version control, build output, run output.
const SKIPPED_DIRECTORIES: [&str; 8] =
    [".git", "target", "out", "__pycache__", "node_modules", ".venv", ".mypy_cache", ".pytest_cache"];
/// A larger file is data, not text that a person wrote.
const TEXT_SIZE_MAX: usize = 4 << 20;

/// The files and crates of one working tree.
#[derive(Debug)]
pub struct Repository {
    /// Directory that holds the workspace manifest.
    pub root: PathBuf,
    /// Every source file, relative to the root, with forward slashes, sorted.
    pub files: Vec<String>,
    /// Where cargo puts what it builds.
    pub target_directory: PathBuf,
    pub(crate) crates: Vec<Crate>,
}

/// One workspace member, as far as the checks need it.
#[derive(Debug, Clone)]
pub(crate) struct Crate {
    /// The name of its directory, which is how `layers.toml` and the architecture call it.
    pub(crate) name: String,
    pub(crate) region: Region,
    /// Relative to the root, with forward slashes.
    pub(crate) directory: String,
    /// Root source files of its targets (library, programs, tests, benches, examples), relative to the root.
    pub(crate) targets: Vec<Target>,
    /// Those that its source names: not what `package.metadata.features-alone` lists.
    pub(crate) dependencies: Vec<Dependency>,
}

/// Which side of the operating system a crate is on, by its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
    Pure,
    Edge,
    Dev,
}

#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) path: String,
    /// A library or a program, which shows a crate page; not a test, bench or example.
    pub(crate) shipped: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Dependency {
    /// Directory name of a workspace member, package name of a third-party crate.
    pub(crate) name: String,
    pub(crate) internal: bool,
    pub(crate) dev: bool,
    /// The name source code uses: the package name with underscores.
    pub(crate) identifier: String,
}

impl Repository {
    /// The working tree that this program belongs to.
    ///
    /// Errors: no manifest directory around, or cargo cannot read the workspace.
    pub fn discover() -> Result<Self> {
        // Read at run time: a path compiled in would follow the first clone when two share a target directory.
        let start = match env::var_os("CARGO_MANIFEST_DIR") {
            Some(directory) => PathBuf::from(directory),
            None => env::current_dir().context("cannot tell the current directory")?,
        };
        let root = start
            .ancestors()
            .find(|directory| directory.join("layers.toml").is_file())
            .with_context(|| format!("no layers.toml in {} or above it", start.display()))?;
        Self::open(root)
    }

    /// The working tree at `root`.
    ///
    /// Errors: an unreadable directory, or a workspace that cargo refuses.
    pub fn open(root: &Path) -> Result<Self> {
        let root = root.canonicalize().with_context(|| format!("cannot open {}", root.display()))?;
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .context("cargo metadata failed")?;
        let crates = metadata.packages.iter().map(|package| describe(&root, package)).collect::<Result<_>>()?;
        let mut files = Vec::new();
        list_files(&root, &root, &mut files)?;
        files.sort();
        Ok(Self { root, files, target_directory: metadata.target_directory.into_std_path_buf(), crates })
    }

    /// The text of one file that must be there.
    pub(crate) fn read(&self, file: &str) -> Result<String> {
        fs::read_to_string(self.root.join(file)).with_context(|| format!("cannot read {file}"))
    }

    /// The text of one file; `None` when it is binary or too large to be source.
    pub(crate) fn text(&self, file: &str) -> Result<Option<String>> {
        let bytes = fs::read(self.root.join(file)).with_context(|| format!("cannot read {file}"))?;
        if bytes.len() > TEXT_SIZE_MAX || bytes.contains(&0) {
            return Ok(None);
        }
        Ok(String::from_utf8(bytes).ok())
    }
}

fn describe(root: &Path, package: &cargo_metadata::Package) -> Result<Crate> {
    let directory = package.manifest_path.parent().context("a manifest has a directory")?;
    let directory = relative(root, directory.as_std_path());
    let targets = package.targets.iter().map(|target| Target {
        path: relative(root, target.src_path.as_std_path()),
        shipped: target.is_lib() || target.is_bin() || target.is_proc_macro(),
    });
    let features_alone = package.metadata["features-alone"].as_array().cloned().unwrap_or_default();
    let named =
        package.dependencies.iter().filter(|dependency| !features_alone.iter().any(|name| *name == dependency.name));
    let dependencies = named.map(|dependency| {
        let home = dependency.path.as_ref().and_then(|path| path.file_name());
        let used_as = dependency.rename.as_ref().unwrap_or(&dependency.name);
        Dependency {
            name: home.unwrap_or(&dependency.name).to_owned(),
            internal: home.is_some(),
            dev: dependency.kind == DependencyKind::Development,
            identifier: used_as.replace('-', "_"),
        }
    });
    Ok(Crate {
        name: directory.rsplit('/').next().unwrap_or_default().to_owned(),
        region: if directory.starts_with("crates/pure/") || directory.starts_with("crates/systems/") {
            Region::Pure
        } else if directory.starts_with("crates/edge/") || directory == "python" {
            Region::Edge
        } else {
            Region::Dev
        },
        targets: targets.collect(),
        dependencies: dependencies.collect(),
        directory,
    })
}

/// `path` as seen from `root`, with forward slashes on every system.
fn relative(root: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(root).unwrap_or(path);
    inside.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn list_files(root: &Path, directory: &Path, files: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        // Builds lie beside manifests; a folder of sources may have any name.
        let is_source = relative(root, directory).split('/').any(|part| part == "src");
        if !is_source && SKIPPED_DIRECTORIES.iter().any(|skipped| name == *skipped) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            list_files(root, &path, files)?;
        } else {
            files.push(relative(root, &path));
        }
    }
    Ok(())
}

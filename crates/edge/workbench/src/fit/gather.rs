//! Figures of several results of fio and of data sheets, each load once.

use super::measured::{Figure, FigureKind, MeasuredError, measured};
use super::stated::{StatedError, stated};
use crate::read_text;
use std::io;
use std::path::{Path, PathBuf};

/// Why figures cannot be gathered.
#[derive(Debug, thiserror::Error)]
pub enum FiguresError {
    /// A file that cannot be read.
    #[error("{}: cannot be read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file that is no result of fio, or has a job of which no figure is read.
    #[error("{}", path.display())]
    Measured {
        /// The file.
        path: PathBuf,
        /// The mistake.
        source: MeasuredError,
    },
    /// A text that states no figure.
    #[error(transparent)]
    Stated(#[from] StatedError),
    /// A load that two of them have.
    #[error("{origin}: {kind} are there already, at depth {depth}")]
    Twice {
        /// The second one.
        origin: String,
        /// The load.
        kind: FigureKind,
        /// Requests in flight.
        depth: u32,
    },
}

/// Figures of results of fio in files, and those that texts state. Of a load at several depths the deepest counts: it says most about
/// what limits the drive.
///
/// Errors: files that cannot be read or are no results, texts that state no figure, a load twice at one depth.
pub fn gather(files: &[PathBuf], texts: &[String]) -> Result<Vec<Figure>, FiguresError> {
    let mut figures = Vec::new();
    for text in texts {
        add(&mut figures, stated(text)?, || text.clone())?;
    }
    for path in files {
        for figure in of_file(path)? {
            add(&mut figures, figure, || path.display().to_string())?;
        }
    }
    figures.sort_by_key(|figure| figure.kind);
    Ok(figures)
}

fn of_file(path: &Path) -> Result<Vec<Figure>, FiguresError> {
    let text = read_text(path).map_err(|source| FiguresError::File { path: path.to_owned(), source })?;
    measured(&text).map_err(|source| FiguresError::Measured { path: path.to_owned(), source })
}

fn add(figures: &mut Vec<Figure>, figure: Figure, origin: impl Fn() -> String) -> Result<(), FiguresError> {
    let Some(other) = figures.iter_mut().find(|other| other.kind == figure.kind) else {
        figures.push(figure);
        return Ok(());
    };
    if figure.depth == other.depth {
        return Err(FiguresError::Twice { origin: origin(), kind: figure.kind, depth: figure.depth });
    }
    if figure.depth > other.depth {
        *other = figure;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_two_results_of_a_load_the_deeper_one_counts_and_the_same_depth_twice_is_refused() {
        let directory = tempfile::tempdir().expect("there is room");
        let file = |name: &str, depth: u32, iops: f64| {
            let read = json!({ "iops": iops, "bw_bytes": iops * 4096.0, "lat_ns": { "mean": 1e5 } });
            let options = json!({ "rw": "randread", "bs": "4k", "ioengine": "libaio", "iodepth": depth.to_string() });
            let result = json!({ "jobs": [{ "jobname": name, "groupid": 0, "job options": options, "read": read }] });
            let path = directory.path().join(name);
            std::fs::write(&path, result.to_string()).expect("it can be written");
            path
        };
        let (shallow, deep) = (file("shallow", 8, 1e5), file("deep", 64, 2e5));
        let found = gather(&[shallow.clone(), deep.clone()], &[]).expect("both are results");
        assert_eq!(found.iter().map(|figure| (figure.depth, figure.value)).collect::<Vec<_>>(), [(64, 2e5)]);
        assert_eq!(gather(&[deep.clone(), shallow], &[]).expect("both are results"), found);
        let twice = gather(&[deep.clone(), deep.clone()], &[]).expect_err("it is there already");
        assert!(twice.to_string().contains("there already, at depth 64"), "{twice}");
        let text = "read-many=3 k/s at 64".to_owned();
        let twice = gather(&[deep], std::slice::from_ref(&text)).expect_err("it is there already");
        assert!(twice.to_string().contains("there already, at depth 64"), "{twice}");
        let texts = [text, "read-many=4 k/s at 64".to_owned()];
        let twice = gather(&[], &texts).expect_err("it is there already");
        assert!(twice.to_string().starts_with("read-many=4 k/s at 64: "), "{twice}");
    }
}

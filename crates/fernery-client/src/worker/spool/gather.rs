//! Takes over the reports of a worker that does not come back.

use super::super::event::WorkerError;
use super::{Opened, SEGMENT_PREFIX, Spool};
use std::fs;
use std::path::{Path, PathBuf};

/// What was in a spool that was taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gathered {
    /// How many reports the other spool has now.
    pub reports: usize,
    /// How many entries could not be read, and where they are kept.
    pub damaged: Option<(usize, PathBuf)>,
}

/// Moves the waiting reports of one spool into another; no worker may be using either. A crash leaves some reports in both,
/// which does no harm: a repeated report counts once.
pub fn gather_reports(from: &Path, into: &Path) -> Result<Gathered, WorkerError> {
    let unusable = |path: &Path, why: String| WorkerError::Spool { path: path.to_path_buf(), why };
    if !holds_reports(from) {
        return Ok(Gathered::default());
    }
    let Opened { spool: mut source, leftovers, damaged } =
        Spool::open(from).map_err(|why| unusable(from, why))?;
    if !leftovers.is_empty() {
        let mut target = Spool::open(into).map_err(|why| unusable(into, why))?.spool;
        target.save(&leftovers).map_err(|error| unusable(into, error.to_string()))?;
        let moved: Vec<_> = leftovers.iter().map(|report| report.proof.attempt_id).collect();
        source.forget(&moved);
    }
    Ok(Gathered { reports: leftovers.len(), damaged })
}

/// Looks without opening the spool: opening would create one.
fn holds_reports(path: &Path) -> bool {
    let Ok(files) = fs::read_dir(path) else { return false };
    files.flatten().any(|file| {
        let is_segment = file.file_name().to_str().is_some_and(|name| name.starts_with(SEGMENT_PREFIX));
        is_segment && file.metadata().is_ok_and(|meta| meta.len() > 0)
    })
}

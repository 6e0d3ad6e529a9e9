//! Captures on disk, from before they are sent until the server has answered: one file each, named by the capture's id.
//!
//! A capture has its id and its time before it is written here, and the server stores an id once. So any process may send a
//! file, also repeatedly and concurrently: a lost answer, a killed command or an absent server neither loses nor duplicates
//! a capture. Captures that the server refuses for good go to `refused/`. The directory is private (mode 0700, files 0600).

#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fernery_client::wire::CaptureRequest;
use fernery_core::Timestamp;
use fernery_core::artifact::{AzollaId, CaptureId};
use fernery_engine::door;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// The spool's folder in a data directory.
pub(crate) const DIR: &str = "captures";
/// The folder inside it for captures that the server refused for good.
const REFUSED: &str = "refused";
const SUFFIX: &str = ".json";
/// Prefix of files that are still being written.
const UNFINISHED: &str = ".new-";
/// After this time an unfinished file counts as abandoned.
const UNFINISHED_FOR: Duration = Duration::from_secs(3600);
/// Maximum bytes of one file: a capture with every byte escaped, and the other fields.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Up to so many files are synced one by one; for more, the whole file system is synced once.
const SYNCED_SINGLY_MAX: usize = 8;

/// A directory of captures that no server has answered yet.
#[derive(Clone, Debug)]
pub(crate) struct Spool {
    dir: PathBuf,
}

/// A capture in the spool.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
    pub(crate) request: CaptureRequest,
    /// Locked by the command that is about to send it, so that others leave it alone.
    _held: Option<File>,
}

/// What was found in a spool.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) kept: Vec<Kept>,
    /// Files without a readable capture, at their new place.
    pub(crate) damaged: Vec<PathBuf>,
}

/// Groups captures by the azolla that they name.
pub(crate) fn by_azolla(kept: Vec<Kept>) -> BTreeMap<Option<AzollaId>, Vec<Kept>> {
    let mut by_azolla: BTreeMap<Option<AzollaId>, Vec<Kept>> = BTreeMap::new();
    for kept in kept {
        by_azolla.entry(kept.request.azolla_id.clone()).or_default().push(kept);
    }
    by_azolla
}

/// Inboxes that accept nothing now, and why. `None` is the inbox of captures that name no azolla.
pub(crate) type Hindered = BTreeMap<Option<AzollaId>, String>;

impl Spool {
    pub(crate) fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes captures durable: all of them, or none and an error.
    pub(crate) fn save(&self, requests: Vec<CaptureRequest>) -> io::Result<Vec<Kept>> {
        make(&self.dir)?;
        let mut kept = Vec::with_capacity(requests.len());
        let written = self.write(requests, &mut kept);
        if written.is_err() {
            for one in &kept {
                let _ = fs::remove_file(self.unfinished(&one.path));
                self.forget(one);
            }
        }
        written.map(|()| kept)
    }

    fn write(&self, requests: Vec<CaptureRequest>, kept: &mut Vec<Kept>) -> io::Result<()> {
        let one_by_one = requests.len() <= SYNCED_SINGLY_MAX;
        for request in requests {
            let id = request.capture_id.as_ref().map_or("", CaptureId::as_str);
            let path = self.dir.join(format!("{id}{SUFFIX}"));
            let text = serde_json::to_vec(&request)?;
            let mut new = OpenOptions::new();
            let mut file = new.write(true).create_new(true).mode(0o600).open(self.unfinished(&path))?;
            kept.push(Kept { path, request, _held: None });
            file.write_all(&text)?;
            if one_by_one {
                file.sync_all()?;
                // Lock only a few: a thousand open files may exceed a limit, and sending twice is harmless.
                if let (Ok(()), Some(last)) = (file.try_lock(), kept.last_mut()) {
                    last._held = Some(file);
                }
            }
        }
        let dir = File::open(&self.dir)?;
        if !one_by_one {
            rustix::fs::syncfs(&dir)?;
        }
        for one in kept.iter() {
            fs::rename(self.unfinished(&one.path), &one.path)?;
        }
        dir.sync_all()
    }

    /// The name of a file while it is written.
    fn unfinished(&self, path: &Path) -> PathBuf {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        self.dir.join(format!("{UNFINISHED}{name}"))
    }

    /// Up to `max` captures that no running command is about to send, the oldest first.
    pub(crate) fn left_behind(&self, max: usize) -> io::Result<Found> {
        self.left_behind_but(max, &BTreeMap::new())
    }

    /// Like [`Self::left_behind`], without captures for these inboxes. Also removes abandoned unfinished files.
    pub(crate) fn left_behind_but(&self, max: usize, hindered: &Hindered) -> io::Result<Found> {
        let mut found = Found::default();
        let listed = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            listed => listed?,
        };
        let mut paths = Vec::new();
        for entry in listed {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
            if name.ends_with(SUFFIX) && !name.starts_with('.') {
                paths.push(path);
            } else if name.starts_with(UNFINISHED) {
                sweep(&path);
            }
        }
        // Ids are ordered by time.
        paths.sort_unstable();
        for path in paths {
            if found.kept.len() == max {
                break;
            }
            match read(&path) {
                Ok(Some(request)) if hindered.contains_key(&request.azolla_id) => {}
                Ok(Some(request)) => found.kept.push(Kept { path, request, _held: None }),
                // Another command is sending it, or has just sent it.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    found.damaged.extend(self.refuse(&path).ok());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Removes a capture that was answered. If a crash undoes the removal, it is sent again, which changes nothing.
    pub(crate) fn forget(&self, kept: &Kept) {
        let _ = fs::remove_file(&kept.path);
    }

    /// Moves a capture that was refused for good aside; returns its new path.
    pub(crate) fn refuse(&self, path: &Path) -> io::Result<PathBuf> {
        let aside = self.dir.join(REFUSED);
        DirBuilder::new().recursive(true).mode(0o700).create(&aside)?;
        let there = aside.join(path.file_name().unwrap_or_default());
        fs::rename(path, &there)?;
        Ok(there)
    }
}

/// Creates a directory and its parents durably.
fn make(dir: &Path) -> io::Result<()> {
    let is_new = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
    let new: Vec<&Path> = dir.ancestors().take_while(is_new).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    for parent in new.into_iter().filter_map(Path::parent) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// Removes an abandoned unfinished file. Its capture was reported as not captured, or its command was killed before it
/// reported anything.
fn sweep(path: &Path) {
    let changed = fs::metadata(path).and_then(|file| file.modified()).ok();
    let changed = changed.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let changed = changed.and_then(|since| i64::try_from(since.as_millis()).ok()).map(Timestamp::from_millis);
    if changed.is_some_and(|at| at.after(UNFINISHED_FOR) < door::wall_clock()) {
        let _ = fs::remove_file(path);
    }
}

/// The capture in a file; `None` while another command is about to send it.
fn read(path: &Path) -> io::Result<Option<CaptureRequest>> {
    let file = File::open(path)?;
    if file.try_lock().is_err() {
        return Ok(None);
    }
    let damaged = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_string());
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    let request: CaptureRequest =
        serde_json::from_slice(&bytes).map_err(|error| damaged(&error.to_string()))?;
    if request.capture_id.is_none() || raw(&request).is_none() {
        return Err(damaged("no capture with an id"));
    }
    Ok(Some(request))
}

/// A request that carries these bytes.
pub(crate) fn carried(raw: Vec<u8>) -> CaptureRequest {
    match String::from_utf8(raw) {
        Ok(text) => CaptureRequest { raw_content: Some(text), ..CaptureRequest::default() },
        Err(error) => {
            let raw_base64 = Some(BASE64_STANDARD.encode(error.as_bytes()));
            CaptureRequest { raw_base64, ..CaptureRequest::default() }
        }
    }
}

/// The bytes that a request carries.
pub(crate) fn raw(request: &CaptureRequest) -> Option<Vec<u8>> {
    match (&request.raw_content, &request.raw_base64) {
        (Some(text), None) => Some(text.clone().into_bytes()),
        (None, Some(coded)) => BASE64_STANDARD.decode(coded).ok(),
        _ => None,
    }
}

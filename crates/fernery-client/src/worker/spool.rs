//! Reports on disk, so that finished work survives the process that did it.
//!
//! A directory with a lock, numbered segments to which reports are appended, and what could not be read set aside. A
//! report is durable when [`Spool::save`] has returned: written and synced, the directory too where the segment is new.
//! A settled report is noted without a sync: a lost note only causes a repeated report, to which the server gives the same
//! answer. A segment without unsettled reports is emptied or deleted.
//!
//! The directory is private (mode 0700, files 0600): reports carry lease tokens.

mod entries;
mod gather;
#[cfg(test)]
mod tests;

pub use gather::{Gathered, gather_reports};

use super::report::Report;
use fernery_core::AttemptId;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes after which a new segment is begun.
const SEGMENT_BYTES_MAX: u64 = 8 << 20;
const LOCK: &str = "lock";
const SEGMENT_PREFIX: &str = "reports-";
const SEGMENT_SUFFIX: &str = ".spool";

/// The spool of one process.
#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    lock: File,
    /// The segment that reports are appended to; `None` after a failure, until a new one is created.
    current: Option<Segment>,
    next_number: u64,
    /// The segment of each unsettled report.
    unsettled: HashMap<AttemptId, u64>,
    /// How many unsettled reports each segment has.
    counts: BTreeMap<u64, usize>,
}

#[derive(Debug)]
struct Segment {
    number: u64,
    file: File,
    bytes: u64,
}

/// A spool, and what an earlier process left in it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) spool: Spool,
    /// Reports that are not known to be settled, oldest first.
    pub(crate) leftovers: Vec<Report>,
    /// How many entries could not be read, and where they are kept now.
    pub(crate) damaged: Option<(usize, PathBuf)>,
}

impl Spool {
    /// Opens the spool in this directory, which is made if it is missing. Only one process at a time may.
    pub(crate) fn open(path: &Path) -> Result<Opened, String> {
        let failed = |what: &str, error: io::Error| format!("{what}: {error}");
        make_private(path)?;
        let lock = lock(path)?;
        let segments = segments(path).map_err(|e| failed("it cannot be listed", e))?;
        let mut spool = Self {
            path: path.to_path_buf(),
            lock,
            current: None,
            next_number: segments.last().map_or(1, |last| last + 1),
            unsettled: HashMap::new(),
            counts: BTreeMap::new(),
        };
        let (mut reports, mut settled) = (Vec::new(), HashSet::new());
        let (mut damage, mut damaged_entries) = (Vec::new(), 0);
        for number in &segments {
            let path = spool.segment_path(*number);
            let mut bytes = Vec::new();
            File::open(&path)
                .and_then(|mut file| file.read_to_end(&mut bytes))
                .map_err(|e| failed(&format!("{} cannot be read", path.display()), e))?;
            let read = entries::read(&bytes);
            for range in read.damaged {
                damaged_entries += 1;
                damage.extend_from_slice(&bytes[range]);
            }
            settled.extend(read.settled);
            reports.extend(read.reports.into_iter().map(|report| (*number, report)));
        }
        let mut leftovers: Vec<Report> = Vec::new();
        for (number, report) in reports {
            let attempt = report.proof.attempt_id;
            if !settled.contains(&attempt) && !spool.unsettled.contains_key(&attempt) {
                spool.unsettled.insert(attempt, number);
                leftovers.push(report);
            }
        }
        let damaged = if damage.is_empty() {
            for number in spool.unsettled.values() {
                *spool.counts.entry(*number).or_default() += 1;
            }
            None
        } else {
            // Rewritten without the damage, so that it is reported only once.
            let aside =
                spool.set_aside(&damage).map_err(|e| failed("what cannot be read cannot be kept", e))?;
            spool.unsettled.clear();
            if !leftovers.is_empty() {
                spool.save(&leftovers).map_err(|e| failed("it cannot be written", e))?;
            }
            Some((damaged_entries, aside))
        };
        for number in segments {
            if !spool.counts.contains_key(&number) {
                spool.delete(number);
            }
        }
        Ok(Opened { spool, leftovers, damaged })
    }

    /// Makes reports durable. With no reports it only tests whether the spool is writable.
    pub(crate) fn save(&mut self, reports: &[Report]) -> io::Result<()> {
        let mut text = Vec::new();
        for report in reports {
            entries::write_report(&mut text, report);
        }
        if reports.is_empty() {
            entries::write_settled(&mut text, &[]);
        }
        let number = self.append(&text, true)?;
        for report in reports {
            let before = self.unsettled.insert(report.proof.attempt_id, number);
            *self.counts.entry(number).or_default() += 1;
            self.count_down(before);
        }
        Ok(())
    }

    /// Notes that these attempts are settled.
    pub(crate) fn forget(&mut self, attempts: &[AttemptId]) {
        let mut noted = Vec::new();
        for attempt in attempts {
            let Some(number) = self.unsettled.remove(attempt) else { continue };
            noted.push(*attempt);
            self.count_down(Some(number));
        }
        let current = self.current.as_ref().map(|segment| segment.number);
        let empty: Vec<u64> =
            self.counts.iter().filter(|(_, n)| **n == 0).map(|(number, _)| *number).collect();
        for number in empty {
            self.counts.remove(&number);
            if Some(number) != current {
                self.delete(number);
            }
        }
        if let Some(segment) = &mut self.current
            && !self.counts.contains_key(&segment.number)
            && segment.bytes > 0
            && segment.file.set_len(0).is_ok()
        {
            segment.bytes = 0;
        }
        if !self.unsettled.is_empty() && !noted.is_empty() && self.current.is_some() {
            let mut text = Vec::new();
            entries::write_settled(&mut text, &noted);
            // Without the note a later process repeats these reports, which changes nothing.
            let _ = self.append(&text, false);
        }
    }

    /// One report of this segment is settled.
    fn count_down(&mut self, number: Option<u64>) {
        if let Some(count) = number.and_then(|number| self.counts.get_mut(&number)) {
            *count -= 1;
        }
    }

    /// Appends to the current segment or to a new one; returns its number.
    fn append(&mut self, text: &[u8], durable: bool) -> io::Result<u64> {
        if self.current.as_ref().is_some_and(|segment| segment.bytes >= SEGMENT_BYTES_MAX) {
            self.current = None;
        }
        let mut segment = match self.current.take() {
            Some(segment) => segment,
            None => self.new_segment()?,
        };
        let written =
            segment.file.write_all(text).and_then(|()| if durable { segment.sync() } else { Ok(()) });
        match written {
            Ok(()) => {
                segment.bytes += text.len() as u64;
                let number = segment.number;
                self.current = Some(segment);
                Ok(number)
            }
            // After a failed sync nobody knows what is on the disk, so the next write goes to a new segment.
            Err(error) => {
                let _ = segment.file.set_len(segment.bytes);
                if !self.counts.contains_key(&segment.number) {
                    self.delete(segment.number);
                }
                Err(error)
            }
        }
    }

    fn new_segment(&mut self) -> io::Result<Segment> {
        self.stay_locked()?;
        let number = self.next_number;
        self.next_number += 1;
        let file =
            OpenOptions::new().append(true).create_new(true).mode(0o600).open(self.segment_path(number))?;
        File::open(&self.path)?.sync_all()?;
        Ok(Segment { number, file, bytes: 0 })
    }

    /// Makes sure that the directory on disk is still the one that is locked.
    fn stay_locked(&mut self) -> io::Result<()> {
        let ours = self.lock.metadata()?;
        match fs::metadata(self.path.join(LOCK)) {
            Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => Ok(()),
            _ => {
                make_private(&self.path).map_err(io::Error::other)?;
                self.lock = lock(&self.path).map_err(io::Error::other)?;
                Ok(())
            }
        }
    }

    fn set_aside(&mut self, damage: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(format!("damaged-{:08}.txt", self.next_number));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(damage)?;
        file.sync_all()?;
        File::open(&self.path)?.sync_all()?;
        Ok(path)
    }

    fn segment_path(&self, number: u64) -> PathBuf {
        self.path.join(format!("{SEGMENT_PREFIX}{number:08}{SEGMENT_SUFFIX}"))
    }

    /// If this fails, a later process repeats what the segment holds, which changes nothing.
    fn delete(&self, number: u64) {
        let _ = fs::remove_file(self.segment_path(number));
    }
}

impl Segment {
    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        if self.file.metadata()?.nlink() == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the spool was deleted"));
        }
        Ok(())
    }
}

/// Makes the directory, or makes sure that an existing one is private.
fn make_private(path: &Path) -> Result<(), String> {
    let refused = |error: io::Error| error.to_string();
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(refused)?;
    let mode = fs::metadata(path).map_err(refused)?.mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let ours = path.join(LOCK).exists() || fs::read_dir(path).map_err(refused)?.next().is_none();
    if !ours {
        return Err(format!(
            "other users can read it (mode {mode:o}), and it contains files that do not \
            belong to a spool"
        ));
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(refused)
}

fn lock(path: &Path) -> Result<File, String> {
    let path = path.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|e| format!("cannot open {}: {e}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            let holder = holder.trim();
            let whose = if holder.is_empty() { String::new() } else { format!(" by process {holder}") };
            return Err(format!("it is in use{whose}; every worker needs its own spool"));
        }
        Err(TryLockError::Error(e)) => return Err(format!("cannot lock {}: {e}", path.display())),
    }
    // Only for the message above; on a full disk the lock holds all the same.
    let _ = file.set_len(0).and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
    Ok(file)
}

/// The numbers of all segments, oldest first.
fn segments(path: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let number =
            name.to_str().and_then(|name| name.strip_prefix(SEGMENT_PREFIX)?.strip_suffix(SEGMENT_SUFFIX));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

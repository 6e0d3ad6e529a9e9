//! The trash: folders of finished runs. Folders whose patch was taken and handed in are deleted after a grace period;
//! all others stay until an operator removes them.

use super::run_folder::{PATCH_FILE, lock};
use crate::sandbox::modes::strip_loudly;
use fernery_core::Timestamp;
use fernery_door as door;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a folder whose work was handed in is kept.
const GRACE: Duration = Duration::from_secs(3 * 24 * 3600);
/// How many of those are kept at most: clones can be large.
const KEPT_MAX: usize = 30;
/// The note in a folder of the trash.
const NOTE_FILE: &str = "trash.json";

/// A folder in the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discarded {
    /// Its name in the trash.
    pub name: String,
    /// The ticket of the run; empty if unknown.
    #[serde(default)]
    pub objective_id: String,
    /// Whose work it holds.
    pub work_order_id: String,
    pub attempt_id: String,
    /// When it came here.
    pub discarded_at: Timestamp,
    /// Whether its work was handed in, or there was none. If not, it stays until an operator removes it.
    pub captured: bool,
    /// Why it is here.
    pub why: String,
}

/// The value of a folder that goes to the trash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The only copy of some work: stays until an operator removes it.
    OnlyCopy,
    /// Work that was handed in, or none: deleted after the grace period.
    Spare,
}

/// The run that a folder belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whose {
    pub objective_id: String,
    /// The workorder of that objective.
    pub work_order_id: String,
    /// The attempt at that workorder.
    pub attempt_id: String,
}

/// The trash of a data directory.
#[derive(Clone, Debug)]
pub struct Trash {
    folder: PathBuf,
}

impl Trash {
    /// The trash of this data directory.
    pub fn of(data: &Path) -> Self {
        Self { folder: data.join("trash") }
    }

    /// The data directory that it is of.
    pub fn data(&self) -> PathBuf {
        self.folder.parent().unwrap_or(Path::new("/")).to_owned()
    }

    /// Notes that the work in this folder was handed in and accepted.
    pub fn mark_handed_in(&self, folder: &Path) -> io::Result<()> {
        let found = self.list()?.into_iter().find(|of| self.folder.join(&of.name) == folder);
        let Some(discarded) = found else { return Ok(()) };
        let note = Discarded { captured: true, why: "its work was handed in".into(), ..discarded };
        fs::write(folder.join(NOTE_FILE), serde_json::to_vec_pretty(&note)?)
    }

    /// Moves a folder here; answers where it is now.
    pub fn take(&self, folder: &Path, whose: &Whose, content: Content, why: &str) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.folder)?;
        // Does what a dead process could not do any more.
        strip_loudly(folder);
        let discarded_at = door::wall_clock();
        let Whose { objective_id, work_order_id, attempt_id } = whose.clone();
        let name = format!("{}-{work_order_id}-{attempt_id}", discarded_at.as_millis());
        let why = why.to_string();
        let note = Discarded {
            name: name.clone(),
            objective_id,
            work_order_id,
            attempt_id,
            discarded_at,
            captured: content == Content::Spare,
            why,
        };
        // Write the note before the move: a folder without a note counts as one whose patch was not taken.
        fs::write(folder.join(NOTE_FILE), serde_json::to_vec_pretty(&note)?)?;
        let in_trash = self.folder.join(name);
        fs::rename(folder, &in_trash)?;
        Ok(in_trash)
    }

    /// All that is here, oldest first.
    pub fn list(&self) -> io::Result<Vec<Discarded>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let Some(name) = entry.file_name().to_str().map(str::to_string) else { continue };
            let note = fs::read(entry.path().join(NOTE_FILE)).ok();
            let note = note.and_then(|note| serde_json::from_slice::<Discarded>(&note).ok());
            found.push(match note {
                Some(note) => Discarded { name, ..note },
                None => Discarded {
                    name,
                    objective_id: String::new(),
                    work_order_id: String::new(),
                    attempt_id: String::new(),
                    discarded_at: Timestamp::from_millis(0),
                    captured: false,
                    why: "its description is missing".into(),
                },
            });
        }
        found.sort_by(|a, b| (a.discarded_at, &a.name).cmp(&(b.discarded_at, &b.name)));
        Ok(found)
    }

    /// Where a folder of the trash is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The patch that was taken of a folder; `None` if none was.
    pub fn patch(&self, name: &str) -> Option<PathBuf> {
        Some(self.path(name).join(PATCH_FILE)).filter(|file| file.is_file())
    }

    /// The path of the folder with this name, if it is in the trash.
    fn find(&self, name: &str) -> io::Result<PathBuf> {
        let plain = !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != "..";
        let folder = self.folder.join(name);
        match plain && folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            true => Ok(folder),
            false => Err(io::Error::new(io::ErrorKind::NotFound, format!("{name} is not in the trash"))),
        }
    }

    /// Locks a folder that is to be removed. `WouldBlock`: its run still uses it.
    pub fn hold(&self, name: &str) -> io::Result<Removal> {
        let folder = self.find(name)?;
        let lock = lock(&folder)?;
        Ok(Removal { folder, _lock: lock })
    }

    /// Moves a folder out of the trash to a path that does not exist yet.
    pub fn restore(&self, name: &str, to: &Path) -> io::Result<()> {
        let from = self.find(name)?;
        if to.symlink_metadata().is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} is there already", to.display()),
            ));
        }
        fs::rename(from, to)
    }

    /// Removes dangerous file modes from everything in the trash.
    pub fn strip(&self) {
        strip_loudly(&self.folder);
    }

    /// Deletes folders past their grace period; answers how many.
    pub fn empty(&self) -> io::Result<u64> {
        let mut gone = 0;
        for discarded in past_grace(self.list()?, door::wall_clock()) {
            match remove_all(&self.folder.join(&discarded.name)) {
                Ok(()) => gone += 1,
                Err(error) => {
                    tracing::warn!(%error, name = %discarded.name, "cannot delete a folder from the trash")
                }
            }
        }
        Ok(gone)
    }
}

/// A locked folder of the trash.
#[derive(Debug)]
pub struct Removal {
    folder: PathBuf,
    _lock: Option<fs::File>,
}

impl Removal {
    /// Removes it for good. If this process is killed meanwhile, the rest is still in the trash.
    pub fn carry_out(self) -> io::Result<()> {
        remove_all(&self.folder)
    }
}

/// Removes a folder with its content, also where a program removed its own access rights.
pub fn remove_all(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(folder)?;
            fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}

fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Links are not followed.
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

/// Folders to delete: handed in, and too old or too many.
fn past_grace(all: Vec<Discarded>, now: Timestamp) -> Vec<Discarded> {
    let mut captured: Vec<Discarded> = all.into_iter().filter(|discarded| discarded.captured).collect();
    let newest = captured.len().saturating_sub(KEPT_MAX);
    let mut nth = 0;
    captured.retain(|discarded| {
        nth += 1;
        nth <= newest || now.since(discarded.discarded_at) > GRACE
    });
    captured
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn only_what_was_handed_in_ever_goes() {
        let at = |ms, captured| Discarded {
            name: format!("{ms}-{captured}"),
            objective_id: "t".into(),
            work_order_id: "w".into(),
            attempt_id: "a".into(),
            discarded_at: Timestamp::from_millis(ms),
            captured,
            why: String::new(),
        };
        let day = 24 * 3600 * 1000;
        let now = Timestamp::from_millis(10 * day);
        let gone = past_grace(vec![at(day, false), at(2 * day, true), at(9 * day, true)], now);
        assert_eq!(gone, [at(2 * day, true)]);
        let many: Vec<_> = (0..40).map(|n| at(9 * day + n, true)).collect();
        let gone = past_grace(many, now);
        assert_eq!(gone.len(), 10);
        assert_eq!(gone[0], at(9 * day, true), "the oldest");
    }

    #[test]
    fn a_folder_goes_in_and_comes_out_whole() {
        let data = TempDir::new().expect("a folder");
        let trash = Trash::of(data.path());
        assert!(trash.list().expect("listed").is_empty());
        let run = data.path().join("run");
        fs::create_dir(&run).expect("a folder");
        fs::write(run.join("work"), "mine").expect("written");
        let setuid =
            |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o4755)).expect("set");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o7777;
        setuid(&run.join("work"));
        let whose = Whose { objective_id: "t".into(), work_order_id: "w".into(), attempt_id: "a".into() };
        let in_trash = trash.take(&run, &whose, Content::OnlyCopy, "its process died").expect("taken");
        assert!(in_trash.join("work").exists() && !run.exists());
        assert_eq!(mode(&in_trash.join("work")), 0o755, "nothing comes here that makes its owner of others");
        setuid(&in_trash.join("work"));
        trash.strip();
        assert_eq!(mode(&in_trash.join("work")), 0o755, "nor stays, whoever brought it");
        let listed = trash.list().expect("listed");
        assert_eq!(
            (listed.len(), listed[0].objective_id.as_str(), listed[0].captured, listed[0].why.as_str()),
            (1, "t", false, "its process died")
        );
        assert_eq!(trash.empty().expect("emptied"), 0);
        for bad in ["", "..", "a/b", "nothing"] {
            assert!(trash.restore(bad, &data.path().join("back")).is_err(), "{bad}");
        }
        assert!(trash.restore(&listed[0].name, data.path()).is_err(), "something is there");
        trash.restore(&listed[0].name, &data.path().join("back")).expect("restored");
        assert_eq!(fs::read_to_string(data.path().join("back/work")).expect("read"), "mine");
    }
}

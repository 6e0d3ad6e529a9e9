//! The folder of one run, and what becomes of it: `tree` and `home` are the agent's, everything beside them is ours.

use super::trash::{Trash, Whose, remove_all};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Locked as long as somebody works in the folder.
const LOCK_FILE: &str = "lock";
/// The commit that a clone is of.
const BASE_FILE: &str = "base";
/// The ticket that it is about.
const TICKET_FILE: &str = "ticket";
/// What was captured.
pub(super) const PATCH_FILE: &str = "captured.patch";

/// Where one run works.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    log: PathBuf,
    trash: Trash,
    whose: Whose,
    fernery: PathBuf,
    lock: Arc<Mutex<Option<File>>>,
}

impl Place {
    pub(crate) fn new(folder: PathBuf, log: PathBuf, trash: Trash, whose: Whose) -> io::Result<Self> {
        let fernery = std::env::current_exe()?;
        Ok(Self { folder, log, trash, whose, fernery, lock: Arc::default() })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The data directory, which no agent may see more of than its own folder.
    pub(super) fn data(&self) -> PathBuf {
        self.trash.data()
    }

    pub(super) fn attempt_id(&self) -> &str {
        &self.whose.attempt_id
    }

    pub(super) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.log.clone()
    }

    /// Where the agent finds its prompt, if it is to read it from a file.
    pub(super) fn prompt_file(&self) -> PathBuf {
        self.home().join("prompt.md")
    }

    /// This very program.
    pub(super) fn fernery(&self) -> String {
        self.fernery.display().to_string()
    }

    /// Makes the folder, and says that somebody works in it.
    pub(super) fn make(&self, base: &str) -> io::Result<()> {
        fs::create_dir_all(self.home())?;
        if let Some(logs) = self.log.parent() {
            fs::create_dir_all(logs)?;
        }
        *self.lock.lock().expect("not poisoned") = Some(occupy(&self.folder)?);
        fs::write(self.folder.join(TICKET_FILE), &self.whose.objective_id)?;
        fs::write(self.folder.join(BASE_FILE), base)
    }

    pub(super) fn write_prompt(&self, prompt: &str) -> io::Result<()> {
        fs::write(self.prompt_file(), prompt)
    }

    pub(super) fn write_patch(&self, patch: &str) {
        if !patch.is_empty() {
            let _ = fs::write(self.folder.join(PATCH_FILE), patch);
        }
    }

    /// It was never worked in.
    pub(super) fn remove(&self) {
        let _ = remove_all(&self.folder);
    }

    /// The run is over: its folder goes to the trash, which keeps it as long as its work is nowhere else. Answers where it is.
    pub(crate) fn keep(&self, captured: bool, why: &str) -> Option<PathBuf> {
        if !self.folder.exists() {
            return None;
        }
        // What an agent put into its home is nobody's work.
        let _ = remove_all(&self.home());
        match self.trash.take(&self.folder, &self.whose, captured, why) {
            Ok(place) => Some(place),
            Err(error) => {
                let folder = self.folder.display();
                tracing::warn!(%error, %folder, "a run's folder could not be moved to the trash and stays where it is");
                self.folder.exists().then(|| self.folder.clone())
            }
        }
    }
}

/// Whether somebody works in this folder.
pub(crate) fn in_use(folder: &Path) -> bool {
    File::open(folder.join(LOCK_FILE)).is_ok_and(|lock| {
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err()
    })
}

/// A folder that a run left whose process is gone. Nobody else takes it meanwhile.
#[derive(Debug)]
pub(crate) struct LeftPlace {
    pub(crate) folder: PathBuf,
    /// The commit that its clone is of.
    pub(crate) base: String,
    /// The ticket that it is about; empty where nobody said.
    pub(crate) objective_id: String,
    _lock: File,
}

impl LeftPlace {
    /// What is in this folder; `None`: it never was an agent's. An error: it is, and cannot be taken now.
    pub(crate) fn look(folder: &Path) -> io::Result<Option<Self>> {
        let base = match fs::read_to_string(folder.join(BASE_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            base => base?,
        };
        let lock = File::open(folder.join(LOCK_FILE))?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        let objective_id = fs::read_to_string(folder.join(TICKET_FILE)).unwrap_or_default();
        Ok(Some(Self { folder: folder.to_owned(), base, objective_id, _lock: lock }))
    }

    pub(crate) fn write_patch(&self, patch: &str) -> io::Result<()> {
        fs::write(self.folder.join(PATCH_FILE), patch)
    }
}

/// Says that somebody works in this folder for as long as what it answers is there.
pub(crate) fn occupy(folder: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let lock = File::create(folder.join(LOCK_FILE))?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    Ok(lock)
}

//! The folder of one run, and its fate: `tree` and `home` belong to the agent, everything else in it is ours.

use super::trash::{Content, Trash, Whose, remove_all};
use crate::sandbox::modes::{Private, make_plain, settle};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Locked while somebody works in the folder.
const LOCK_FILE: &str = "lock";
/// The commit that a clone is of.
const BASE_FILE: &str = "base";
/// The ticket that it is about.
const TICKET_FILE: &str = "ticket";
pub(super) const PATCH_FILE: &str = "captured.patch";

/// Where one run works.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
    log: PathBuf,
    trash: Trash,
    whose: Whose,
    private: Private,
    fernery: PathBuf,
    lock: Arc<Mutex<Option<File>>>,
}

impl RunFolder {
    pub fn new(
        path: PathBuf,
        log: PathBuf,
        trash: Trash,
        whose: Whose,
        private: Private,
    ) -> io::Result<Self> {
        let fernery = std::env::current_exe()?;
        Ok(Self { path, log, trash, whose, private, fernery, lock: Arc::default() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The data directory; an agent may see only its own folder of it.
    pub(super) fn data(&self) -> PathBuf {
        self.trash.data()
    }

    pub(super) fn attempt_id(&self) -> &str {
        &self.whose.attempt_id
    }

    pub(super) fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.log.clone()
    }

    /// The file with the prompt, for agents that read it from a file.
    pub(super) fn prompt_file(&self) -> PathBuf {
        self.home().join("prompt.md")
    }

    /// This very program.
    pub(super) fn fernery(&self) -> String {
        self.fernery.display().to_string()
    }

    /// Makes the folder and locks it.
    pub(super) fn make(&self, base: &str) -> io::Result<()> {
        *self.lock.lock().expect("not poisoned") = Some(occupy(&self.path)?);
        fs::create_dir_all(self.home())?;
        if let Some(logs) = self.log.parent() {
            fs::create_dir_all(logs)?;
        }
        fs::write(self.path.join(TICKET_FILE), &self.whose.objective_id)?;
        fs::write(self.path.join(BASE_FILE), base)
    }

    pub(super) fn write_prompt(&self, prompt: &str) -> io::Result<()> {
        fs::write(self.prompt_file(), prompt)
    }

    pub(super) fn write_patch(&self, patch: &str) {
        if !patch.is_empty() {
            let _ = fs::write(self.path.join(PATCH_FILE), patch);
        }
    }

    /// Nobody works in it any more: dangerous file modes are removed.
    pub(super) async fn settle(&self) {
        settle(&self.path, &self.private).await;
    }

    /// It was never worked in.
    pub(super) fn remove(&self) {
        let _ = remove_all(&self.path);
    }

    /// The run is over: its folder goes to the trash, which keeps it as long as it is the only copy of its work.
    /// Answers the new path.
    pub fn move_to_trash(&self, content: Content, why: &str) -> Option<PathBuf> {
        if !self.path.exists() {
            return None;
        }
        // The agent's home holds no work.
        let _ = remove_all(&self.home());
        match self.trash.take(&self.path, &self.whose, content, why) {
            Ok(in_trash) => Some(in_trash),
            Err(error) => {
                let folder = self.path.display();
                tracing::warn!(%error, %folder, "cannot move a run's folder to the trash; it stays in place");
                self.path.exists().then(|| self.path.clone())
            }
        }
    }
}

/// Whether somebody works in this folder.
pub fn in_use(folder: &Path) -> bool {
    File::open(folder.join(LOCK_FILE)).is_ok_and(|lock| {
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err()
    })
}

/// The folder of a run whose process is gone, locked for us.
#[derive(Debug)]
pub(super) struct DeadRunFolder {
    pub folder: PathBuf,
    /// The commit that its clone is of.
    pub base: String,
    /// The ticket of the run; empty if unknown.
    pub objective_id: String,
    _lock: File,
}

impl DeadRunFolder {
    /// What is in this folder; `None`: it is not an agent's. An error: it is, but cannot be taken now.
    pub(super) fn look(folder: &Path) -> io::Result<Option<Self>> {
        let base = match fs::read_to_string(folder.join(BASE_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            base => base?,
        };
        let lock = lock(folder)?.ok_or(io::ErrorKind::NotFound)?;
        let objective_id = fs::read_to_string(folder.join(TICKET_FILE)).unwrap_or_default();
        Ok(Some(Self { folder: folder.to_owned(), base, objective_id, _lock: lock }))
    }

    pub(super) fn write_patch(&self, patch: &str) -> io::Result<()> {
        fs::write(self.folder.join(PATCH_FILE), patch)
    }
}

/// Takes the lock of a run folder; `None`: it has no lock file. `WouldBlock`: somebody works in it.
pub(super) fn lock(folder: &Path) -> io::Result<Option<File>> {
    let lock = match File::open(folder.join(LOCK_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        lock => lock?,
    };
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    Ok(Some(lock))
}

/// Locks this folder for as long as the returned value lives.
pub fn occupy(folder: &Path) -> io::Result<File> {
    make_plain(folder)?;
    let lock = File::create(folder.join(LOCK_FILE))?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    Ok(lock)
}

//! What can be known to fail before an agent starts, found out before it costs anything.

use crate::git::repository::Repository;
use crate::worker::program;
use fernery_core::profile::Profile;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// What a run needs at least to be worth starting.
const DISK_BYTES_MIN: u64 = 256 << 20;
/// How long a program may take to say its version.
const VERSION_WITHIN: Duration = Duration::from_secs(10);
/// Characters of a version that are kept.
const VERSION_CHARS_MAX: usize = 200;

/// An agent's program, found.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Where it is.
    pub(super) file: PathBuf,
    /// Folders that it has to be able to read: its own, and where it really lies.
    pub(super) folders: Vec<PathBuf>,
    /// What it says is its version; `None` if it says none.
    pub(super) version: Option<String>,
}

/// Finds the program of a profile, and asks for its version.
pub(super) async fn program(profile: &Profile, argv: &[String], fernery: &str) -> Result<Program, String> {
    let word = argv.first().map(String::as_str).unwrap_or_default();
    let file =
        program::find(OsStr::new(word), std::env::var_os("PATH").as_deref()).map_err(|why| match profile
            .install
            .is_empty()
        {
            true => why,
            false => format!("{why}; to install it: {}", profile.install),
        })?;
    let file = std::path::absolute(&file).unwrap_or(file);
    let version = version(&file, &profile.version_command(fernery)).await;
    Ok(Program { folders: folders(&file), file, version })
}

/// The folders that a program lies in, before and after links; of one in a `bin` what is beside that as well, for that is
/// where what it needs is installed. A home is not shown for it.
fn folders(file: &Path) -> Vec<PathBuf> {
    let home = std::env::home_dir().unwrap_or_default();
    let mut found = Vec::new();
    for place in [Some(file.to_owned()), file.canonicalize().ok()].into_iter().flatten() {
        let Some(folder) = place.parent() else { continue };
        let beside = folder.parent().filter(|beside| {
            folder.ends_with("bin")
                && *beside != home
                && *beside != home.join(".local")
                && beside.parent().is_some()
        });
        // Of this program itself nothing but the file is shown.
        let shown = if std::env::current_exe().is_ok_and(|own| own == place) {
            &place
        } else {
            beside.unwrap_or(folder)
        };
        if !found.iter().any(|known| known == shown) {
            found.push(shown.to_owned());
        }
    }
    found
}

/// A program as it was when it was asked, and what it said.
type Versions = BTreeMap<(PathBuf, Option<SystemTime>), Option<String>>;

/// Versions that programs have said, as long as their files are the same.
static VERSIONS: Mutex<Versions> = Mutex::new(BTreeMap::new());

async fn version(file: &Path, command: &[String]) -> Option<String> {
    let (_, args) = command.split_first()?;
    let changed_at = std::fs::metadata(file).and_then(|meta| meta.modified()).ok();
    let key = (file.to_owned(), changed_at);
    if let Some(known) = VERSIONS.lock().expect("not poisoned").get(&key) {
        return known.clone();
    }
    let mut asked = tokio::process::Command::new(file);
    asked.args(args).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    asked
        .env_clear()
        .envs(["PATH", "HOME", "LANG"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    let said = tokio::time::timeout(VERSION_WITHIN, asked.output()).await.ok()?.ok();
    let said = said.filter(|said| said.status.success()).and_then(|said| {
        let text = fernery_core::names::showable(&String::from_utf8_lossy(&said.stdout));
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().take(VERSION_CHARS_MAX).collect::<String>())
    });
    VERSIONS.lock().expect("not poisoned").insert(key, said.clone());
    said
}

/// Whether the commit is there that work starts from.
pub(super) async fn ground(repository: &Repository, commit: &str) -> Result<(), String> {
    match repository.has_commit(commit).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("commit {commit} is not in the repository {}", repository.dir.display())),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether there is room for a clone.
pub(super) fn disk(folder: &Path) -> Result<(), String> {
    let Ok(stat) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    match free < DISK_BYTES_MIN {
        true => Err(format!(
            "{} MiB are free at {}; a run needs {}",
            free >> 20,
            folder.display(),
            DISK_BYTES_MIN >> 20
        )),
        false => Ok(()),
    }
}

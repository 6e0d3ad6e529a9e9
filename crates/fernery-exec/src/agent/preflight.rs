//! Finds out before an agent starts whether it would fail anyway.

use crate::git::repository::Repository;
use crate::profiles::{VERSION_WITHIN, printed};
use crate::program;
use fernery_core::profile::Profile;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

/// Free disk space that a run needs at least.
const DISK_BYTES_MIN: u64 = 256 << 20;
/// An agent's program, found.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) file: PathBuf,
    /// Folders that it must be able to read: the program's own, also after links are resolved.
    pub(super) folders: Vec<PathBuf>,
    /// The version that it prints; `None` if it prints none.
    pub(super) version: Option<String>,
}

/// Finds the program of a profile and asks for its version. Folders in `hidden` are never shown to an agent for the
/// sake of its program.
pub(super) async fn program(
    profile: &Profile,
    argv: &[String],
    fernery: &str,
    hidden: &[PathBuf],
) -> Result<Program, String> {
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
    Ok(Program { folders: folders(&file, hidden), file, version })
}

/// The folders that must be readable for a program, before and after links are resolved: for a `bin` folder its
/// parent, where the rest is installed, else its own folder. A folder that contains a home or something hidden is not
/// shown: instead of the parent the own folder is, and instead of that the file itself.
fn folders(file: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let home = std::env::home_dir().unwrap_or_default();
    let mut kept: Vec<PathBuf> = vec![home.clone(), home.join(".local")];
    kept.extend_from_slice(hidden);
    let real: Vec<PathBuf> = kept.iter().filter_map(|path| path.canonicalize().ok()).collect();
    kept.extend(real);
    kept.extend(std::env::current_exe());
    let holds_hidden = |folder: &Path| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        kept.iter().any(|path| path.starts_with(folder) || path.starts_with(&real))
    };
    let mut found = Vec::new();
    for place in [Some(file.to_owned()), file.canonicalize().ok()].into_iter().flatten() {
        let Some(folder) = place.parent() else { continue };
        let beside = folder.parent().filter(|_| folder.ends_with("bin"));
        let shown = [beside, Some(folder)].into_iter().flatten().find(|folder| !holds_hidden(folder));
        let shown = shown.unwrap_or(&place).to_owned();
        if !found.contains(&shown) {
            found.push(shown);
        }
    }
    found
}

/// A program file at the time of the question, and the answer.
type Versions = BTreeMap<(PathBuf, Option<SystemTime>), Option<String>>;

/// Versions of programs, valid as long as their files are unchanged.
static VERSIONS: Mutex<Versions> = Mutex::new(BTreeMap::new());

async fn version(file: &Path, command: &[String]) -> Option<String> {
    let (_, args) = command.split_first()?;
    let changed_at = std::fs::metadata(file).and_then(|meta| meta.modified()).ok();
    let key = (file.to_owned(), changed_at);
    if let Some(known) = VERSIONS.lock().expect("not poisoned").get(&key) {
        return known.clone();
    }
    let said = printed(file, args, VERSION_WITHIN).await.ok();
    VERSIONS.lock().expect("not poisoned").insert(key, said.clone());
    said
}

/// Whether a login is there, if the agent needs one.
pub(super) fn login(profile: &Profile) -> Result<(), String> {
    let home = std::env::home_dir().unwrap_or_default();
    let needs_none = profile.secrets.is_empty() && profile.login.is_empty();
    let is_set = |name: &String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if needs_none
        || profile.secrets.iter().any(is_set)
        || profile.login.iter().any(|file| home.join(file).exists())
    {
        return Ok(());
    }
    let name = &profile.name;
    Err(format!("{name} is not logged in here; `fernery agent check {name}` says what is missing"))
}

/// Whether the base commit is there.
pub(super) async fn ground(repository: &Repository, commit: &str) -> Result<(), String> {
    match repository.has_commit(commit).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("commit {commit} is not in the repository {}", repository.dir.display())),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether there is disk space for a clone.
pub(super) fn disk(folder: &Path) -> Result<(), String> {
    let Ok(stat) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    match free < DISK_BYTES_MIN {
        true => Err(format!(
            "only {} MiB are free at {}; a run needs {}",
            free >> 20,
            folder.display(),
            DISK_BYTES_MIN >> 20
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn no_home_and_no_data_directory_is_shown_for_a_programs_sake() {
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder.path().canonicalize().expect("it is there");
        let (data, bin) = (real.join("project/.fernery"), real.join("tool/bin"));
        for made in [&data, &bin] {
            fs::create_dir_all(made).expect("a folder");
        }
        let own = real.join("project/agent.sh");
        for file in [&own, &bin.join("agent")] {
            fs::write(file, "").expect("written");
        }
        let hidden = [data];
        assert_eq!(folders(&own, &hidden), vec![own.clone()], "beside it is what must stay hidden");
        assert_eq!(folders(&bin.join("agent"), &hidden), [real.join("tool")]);
        std::os::unix::fs::symlink(&own, bin.join("linked")).expect("a link");
        assert_eq!(folders(&bin.join("linked"), &hidden), [real.join("tool"), own]);
        let home = std::env::home_dir().expect("a home");
        assert!(folders(&home.join("bin/agent"), &hidden).iter().all(|shown| *shown != home));
    }
}

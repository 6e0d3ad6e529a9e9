//! Finds the configuration file and the data directory where nobody names them: upward from the current folder, as git
//! finds `.git`, then the user's own data folder.
//!
//! What belongs to another user is not used, wherever it is found: a configuration names programs that are run, and a
//! data directory says which server gets a person's notes. Whoever trusts it names it.

use super::DEFAULT_PATH;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The name of a data directory that is found.
pub const DATA_NAME: &str = ".fernery";

/// Where a data directory was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataPlace {
    /// In the current folder, or nowhere: a server would make it there.
    Here,
    /// In this folder above the current one.
    Above(PathBuf),
    /// In the user's own data folder.
    Own(PathBuf),
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    pub config: Option<PathBuf>,
    pub place: DataPlace,
    /// What belongs to other users, and was passed over.
    pub foreign: Vec<PathBuf>,
    here: PathBuf,
}

impl Discovery {
    /// Whether the data directory in the current folder belongs to somebody else.
    pub(super) fn foreign_here(&self) -> bool {
        self.foreign.contains(&self.here.join(DATA_NAME))
    }
}

impl DataPlace {
    /// The data directory; relative if it is in the current folder.
    pub fn data(&self) -> PathBuf {
        match self {
            Self::Here => PathBuf::from(DATA_NAME),
            Self::Above(folder) => folder.join(DATA_NAME),
            Self::Own(data) => data.clone(),
        }
    }
}

/// Who runs this: the user, and the one who called `sudo`.
#[derive(Clone, Copy, Debug)]
struct Trusted {
    user: u32,
    behind_sudo: Option<u32>,
}

impl Trusted {
    fn now(env: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let caller = || env("SUDO_UID")?.to_str()?.parse().ok();
        Self { user, behind_sudo: if user == 0 { caller() } else { None } }
    }

    /// Whether a file and, where it is a link, the link belong to somebody who may decide for this user.
    fn is_owner(&self, path: &Path) -> bool {
        let trusts = |uid: u32| uid == self.user || uid == 0 || self.behind_sudo == Some(uid);
        let link = path.symlink_metadata().is_ok_and(|meta| trusts(meta.uid()));
        // A link that leads nowhere is reported when it is read.
        link && path.metadata().map_or(true, |meta| trusts(meta.uid()))
    }
}

/// Looks from `here` upward, then into the user's own data folder.
pub fn look(here: &Path, env: &dyn Fn(&str) -> Option<OsString>) -> Discovery {
    let trusted = Trusted::now(env);
    let mut foreign = Vec::new();
    for (up, folder) in here.ancestors().enumerate() {
        // Paths of the current folder stay short.
        let at = |name: &str| if up == 0 { PathBuf::from(name) } else { folder.join(name) };
        let is_there = |path: &Path| here.join(path).symlink_metadata().is_ok();
        let config = Some(at(DEFAULT_PATH)).filter(|path| is_there(path));
        let data = Some(at(DATA_NAME)).filter(|path| here.join(path).is_dir());
        let mut others: Vec<PathBuf> = [&config, &data]
            .into_iter()
            .flatten()
            .filter(|path| !trusted.is_owner(&here.join(path)))
            .map(|path| here.join(path))
            .collect();
        if !others.is_empty() {
            foreign.append(&mut others);
            continue;
        }
        if config.is_some() || data.is_some() {
            let place = if up == 0 { DataPlace::Here } else { DataPlace::Above(folder.to_path_buf()) };
            return Discovery { config, place, foreign, here: here.to_path_buf() };
        }
    }
    let own = own_data(env).filter(|own| own.is_dir());
    let place = match own {
        Some(own) if trusted.is_owner(&own) => DataPlace::Own(own),
        Some(own) => {
            foreign.push(own);
            DataPlace::Here
        }
        None => DataPlace::Here,
    };
    Discovery { config: None, place, foreign, here: here.to_path_buf() }
}

/// The user's own data folder, also if it does not exist; `None`: the user has no home.
pub fn own_data(env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("fernery"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn env_of(own: &Path) -> impl Fn(&str) -> Option<OsString> + use<> {
        let own = own.as_os_str().to_os_string();
        move |name| (name == "XDG_DATA_HOME").then(|| own.clone())
    }

    #[test]
    fn the_nearest_folder_wins_and_then_the_users_own() {
        let root = tempfile::tempdir().unwrap();
        let (outer, inner) = (root.path().join("a"), root.path().join("a/b/c"));
        fs::create_dir_all(&inner).unwrap();
        let own = root.path().join("own");
        let env = env_of(&own);
        let at = |folder: &Path| look(folder, &env);
        assert_eq!((at(&inner).place, at(&inner).config), (DataPlace::Here, None));
        fs::create_dir_all(root.path().join("own/fernery")).unwrap();
        assert_eq!(at(&inner).place, DataPlace::Own(root.path().join("own/fernery")));
        fs::create_dir(outer.join(DATA_NAME)).unwrap();
        assert_eq!(at(&inner).place, DataPlace::Above(outer.clone()));
        assert_eq!(at(&inner).place.data(), outer.join(DATA_NAME));
        assert_eq!(at(&outer).place.data(), Path::new(DATA_NAME));
        // A configuration marks its folder, also before a server has made the data directory.
        fs::write(root.path().join("a/b/fernery.toml"), "").unwrap();
        let found = at(&inner);
        assert_eq!(found.config, Some(root.path().join("a/b/fernery.toml")));
        assert_eq!(found.place, DataPlace::Above(root.path().join("a/b")));
        // A file of that name is no data directory.
        fs::write(inner.join(DATA_NAME), "").unwrap();
        assert_eq!(at(&inner).place, DataPlace::Above(root.path().join("a/b")));
    }

    #[test]
    fn a_relative_or_missing_home_is_none() {
        assert_eq!(own_data(&|_| None), None);
        assert_eq!(own_data(&|_| Some("x".into())), None);
        let home = |name: &str| (name == "HOME").then(|| "/home/me".into());
        assert_eq!(own_data(&home), Some("/home/me/.local/share/fernery".into()));
    }

    #[test]
    fn what_belongs_to_others_is_passed_over() {
        let trusted = Trusted { user: 1000, behind_sudo: None };
        let root = Path::new("/");
        assert!(trusted.is_owner(root), "root decides about everything anyway");
        let file = tempfile::NamedTempFile::new().unwrap();
        let uid = fs::metadata(file.path()).unwrap().uid();
        let other = Trusted { user: uid.wrapping_add(1), behind_sudo: None };
        assert_eq!(other.is_owner(file.path()), uid == 0);
        let behind = Trusted { user: uid.wrapping_add(1), behind_sudo: Some(uid) };
        assert!(behind.is_owner(file.path()));
    }
}

//! Where profiles of agents come from on this machine, and whether an agent can be used here.
//!
//! A file `profiles/NAME.toml` beside a blueprint's own wins over the built-in profile of that name.

#[cfg(test)]
mod page;
mod usable;
mod version;

use fernery_core::blueprint::Flaw;
use fernery_core::limits;
use fernery_core::profile::Profile;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
pub use usable::{Machine, Usable, judged, looked_at};
pub use version::{VERSION_WITHIN, printed};

/// The folder beside a blueprint that profiles are looked for in.
pub const FOLDER: &str = "profiles";

/// The text of the profile of this name beside a blueprint in `folder`, if there is a file. If the file cannot be read,
/// answers why instead of the built-in profile, which its author did not mean.
pub fn beside(folder: &Path, name: &str) -> Result<Option<String>, String> {
    let file = folder.join(FOLDER).join(format!("{name}.toml"));
    match std::fs::metadata(&file) {
        Ok(found) => read(&file, &found).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn read(file: &Path, found: &std::fs::Metadata) -> Result<String, String> {
    // Opening a pipe would wait for a writer for ever.
    if !found.is_file() {
        return Err("it is no file".to_string());
    }
    let mut text = String::new();
    let file = File::open(file).map_err(|error| error.to_string())?;
    let most = limits::BLUEPRINT_BYTES_MAX as u64 + 1;
    file.take(most).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// A profile and where it comes from.
#[derive(Debug)]
pub struct Sourced {
    /// What blueprints call it.
    pub name: String,
    /// Its file; `None` if it is built in.
    pub file: Option<PathBuf>,
    /// What it says, or everything that is wrong with it.
    pub profile: Result<Profile, Vec<Flaw>>,
}

/// All profiles that blueprints in these folders could name: the built-in ones, and the files that win over them.
pub fn all(folders: &[PathBuf]) -> Vec<Sourced> {
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for folder in folders {
        let entries = std::fs::read_dir(folder.join(FOLDER)).into_iter().flatten().flatten();
        for file in entries.map(|entry| entry.path()) {
            let is_toml = file.extension().is_some_and(|extension| extension == "toml");
            if let Some(name) = file.file_stem().and_then(|name| name.to_str()).filter(|_| is_toml) {
                files.entry(name.to_string()).or_insert_with(|| file.clone());
            }
        }
    }
    let mut all: Vec<Sourced> = Profile::names().map(|name| sourced(name, files.remove(name))).collect();
    all.extend(files.into_iter().map(|(name, file)| sourced(&name, Some(file))));
    all
}

fn sourced(name: &str, file: Option<PathBuf>) -> Sourced {
    let wrong =
        |path: &str, message: String| vec![Flaw { line: 1, column: 1, path: path.to_string(), message }];
    let folder = file.as_deref().and_then(Path::parent).and_then(Path::parent);
    let beside = folder.map_or(Ok(None), |folder| beside(folder, name));
    let profile = match beside {
        Ok(Some(text)) => Profile::parse(&text),
        Ok(None) => Profile::parse(Profile::builtin_text(name).unwrap_or_default()),
        Err(why) => Err(wrong("", format!("cannot be read: {why}"))),
    };
    let profile = profile.and_then(|profile| match profile.name == name {
        true => Ok(profile),
        false => Err(wrong("name", format!("is `{}` in a file of another name", profile.name))),
    });
    Sourced { name: name.to_string(), file, profile }
}

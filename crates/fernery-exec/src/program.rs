//! Checks whether a command can be started, before the first job needs it.

use rustix::fs::{Access, access};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The file that a command's first word names, found as the system would: a word with a slash is a path, any other is
/// looked for in `PATH`.
pub fn find(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, String> {
    let shown = Path::new(program).display();
    if program.is_empty() {
        return Err("the command is empty".into());
    }
    if program.as_encoded_bytes().contains(&b'/') {
        let file = PathBuf::from(program);
        return match startable(&file) {
            Ok(()) => Ok(file),
            Err(why) => Err(format!("the command {shown} {why}")),
        };
    }
    let mut nearly = None;
    for folder in std::env::split_paths(path.unwrap_or_default()) {
        let file = folder.join(program);
        match startable(&file) {
            Ok(()) => return Ok(file),
            Err(why) if file.exists() => nearly = nearly.or(Some(format!("{} {why}", file.display()))),
            Err(_) => {}
        }
    }
    Err(match nearly {
        Some(nearly) => format!("the command {shown} was not found in PATH; {nearly}"),
        None => format!("the command {shown} was not found in PATH"),
    })
}

fn startable(file: &Path) -> Result<(), &'static str> {
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err("does not exist"),
        Err(_) => Err("cannot be looked at"),
        Ok(meta) if meta.is_dir() => Err("is a directory"),
        Ok(_) if access(file, Access::EXEC_OK).is_err() => Err("is not executable"),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_command_is_found_as_the_system_would_find_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tool");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let path = Some(folder.path().as_os_str());
        let why = find("tool".as_ref(), path).unwrap_err();
        assert!(why.contains("is not executable"), "{why}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(find("tool".as_ref(), path), Ok(file.clone()));
        assert_eq!(find(file.as_os_str(), None), Ok(file));
        for (bad, why) in
            [("tool", "not found"), ("./no/tool", "does not exist"), ("/", "is a directory"), ("", "empty")]
        {
            let told = find(bad.as_ref(), Some("/nowhere".as_ref())).unwrap_err();
            assert!(told.contains(why), "{bad}: {told}");
        }
    }
}

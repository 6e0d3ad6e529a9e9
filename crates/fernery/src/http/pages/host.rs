//! The host name of the pages for browsers on this machine.
//!
//! A browser knows a server by its host name and sends a cookie to every port of it. Under `localhost` every program on this
//! machine could collect the session of a person, also one that an agent wrote. So the pages live under `<random>.localhost`,
//! which browsers lead to this machine as well, and the name is told only to those who have shown a secret.

use fernery_engine::door;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The file in the data directory that holds the name.
const FILE: &str = "pages.host";
const SUFFIX: &str = ".localhost";
/// Random characters of a name: 80 bits.
const CHARS: usize = 16;

/// A new name.
pub fn random() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let random = door::random_bytes::<CHARS>();
    // It begins with a letter, whatever follows.
    let letters = random.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
    format!("f{}{SUFFIX}", letters.collect::<String>())
}

/// The name that is kept in a data directory, so that a browser stays signed in over a restart; made once.
pub fn kept(data_dir: &Path) -> io::Result<String> {
    let path = data_dir.join(FILE);
    let named = |why: &str| io::Error::other(format!("{}: {why}", path.display()));
    match fs::read_to_string(&path) {
        Ok(text) => {
            if fs::metadata(&path)?.permissions().mode() & 0o077 != 0 {
                return Err(named("other users can read it; delete the file to get a new name"));
            }
            let name = text.trim();
            match is_name(name) {
                true => Ok(name.to_string()),
                false => Err(named("it contains no host name; delete the file to get a new one")),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = random();
            let partial = data_dir.join(format!("{FILE}.partial"));
            let _ = fs::remove_file(&partial);
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
            writeln!(file, "{name}")?;
            file.sync_all()?;
            fs::rename(&partial, &path)?;
            Ok(name)
        }
        Err(error) => Err(named(&error.to_string())),
    }
}

fn is_name(text: &str) -> bool {
    let label = text.strip_suffix(SUFFIX).unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    label.len() > CHARS && label.len() < 63 && label.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_made_once_and_kept_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let name = kept(folder.path()).unwrap();
        assert!(is_name(&name), "{name}");
        assert_eq!(kept(folder.path()).unwrap(), name);
        let file = folder.path().join(FILE);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(kept(folder.path()).unwrap_err().to_string().contains("other users"));
        fs::remove_file(&file).unwrap();
        assert_ne!(kept(folder.path()).unwrap(), name);
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for bad in ["", "localhost", "evil.com", "a.localhost", "Fabcdefghijkmnpqrs.localhost"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}

//! What a mock agent does to the files of the current directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// An error that names its file.
fn at(path: &str) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{path}: {error}"))
}

fn made(path: &str) -> io::Result<File> {
    if let Some(folder) = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(at(path))?;
    }
    File::create(path).map_err(at(path))
}

pub(super) fn write(path: &str, text: &str) -> io::Result<()> {
    made(path)?.write_all(text.as_bytes()).map_err(at(path))
}

pub(super) fn append(path: &str, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(at(path))?;
    file.write_all(text.as_bytes()).map_err(at(path))
}

pub(super) fn delete(path: &str) -> io::Result<()> {
    let found = fs::symlink_metadata(path).map_err(at(path))?;
    if found.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.map_err(at(path))
}

/// What an attempt before this one has replaced is left as it is.
pub(super) fn replace(path: &str, from: &str, to: &str) -> io::Result<()> {
    let text = fs::read_to_string(path).map_err(at(path))?;
    if !text.contains(from) && !to.is_empty() && text.contains(to) {
        return Ok(());
    }
    if !text.contains(from) {
        return Err(io::Error::other(format!("{path} does not hold `{from}`")));
    }
    fs::write(path, text.replace(from, to)).map_err(at(path))
}

pub(super) fn symlink(path: &str, target: &str) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path).map_err(at(path))
}

pub(super) fn binary(path: &str) -> io::Result<()> {
    let bytes: Vec<u8> = (0..=255).cycle().take(4 << 10).collect();
    made(path)?.write_all(&bytes).map_err(at(path))
}

/// Of bytes that no compression makes small.
pub(super) fn huge(path: &str, mebibytes: u64) -> io::Result<()> {
    let mut file = made(path)?;
    let mut seed = 0x5eed_u64;
    let mut block = vec![0_u8; 1 << 20];
    for _ in 0..mebibytes {
        for bytes in block.chunks_mut(8) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            bytes.copy_from_slice(&seed.to_le_bytes()[..bytes.len()]);
        }
        file.write_all(&block).map_err(at(path))?;
    }
    Ok(())
}

/// Takes no room on the disk, however large it says it is.
pub(super) fn sparse(path: &str, mebibytes: u64) -> io::Result<()> {
    made(path)?.set_len(mebibytes << 20).map_err(at(path))
}

pub(super) fn commit(message: &str) -> io::Result<()> {
    git(&["add", "-A"])?;
    let who = ["-c", "user.name=mock", "-c", "user.email=mock@localhost", "-c", "commit.gpgsign=false"];
    git(&[&who[..], &["commit", "--quiet", "--message", message]].concat())
}

fn git(args: &[&str]) -> io::Result<()> {
    let output = Command::new("git").args(args).stdin(Stdio::null()).output().map_err(at("git"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("git: {}", String::from_utf8_lossy(&output.stderr).trim()))),
    }
}

pub(super) fn delete_git() -> io::Result<()> {
    delete(".git")
}

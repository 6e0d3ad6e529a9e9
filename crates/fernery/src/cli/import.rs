//! `fernery import`: brings a folder that `fernery export` has written into an instance without objectives.
//!
//! Here the folder is only collected: plain files of bounded size, by their names. The server checks and decides.

use super::failure::{Failure, Outcome};
use super::screen::{Screen, plain};
use clap::Args;
use fernery_client::Client;
use fernery_client::client::Reply;
use fernery_client::wire::{ImportFile, ImportRequest, ImportResponse};
use fernery_core::canonical::Digest;
use fernery_core::limits;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the server may check and write.
const WITHIN: Duration = Duration::from_secs(600);
/// Folders in folders: an export has two.
const DEPTH_MAX: usize = 4;

/// Bring an exported folder into an instance without objectives.
///
/// History comes in as it was. A ticket that was TODO or IN_PROGRESS is NEW here, and one that is unblocked becomes NEW: no
/// approval of this instance covers it. What was under way has ended. Nothing runs because of an import.
#[derive(Debug, Args)]
#[command(after_help = "\
Everything is checked before anything is written: each file against its schema and manifest.json, what artifacts say of
each other, the journal's chain, every verdict. It is all of the folder or nothing. The same folder again answers that it
came in before. As a request, which takes more than the files, a folder has at most 64 MiB, a file 8 MiB;
what is larger moves as a backup.

Whoever can compute all digests anew can change a folder and make it fit. Only the digest that `fernery export` printed
finds that out, if it was kept elsewhere: give it with --digest.

Exit codes: 0 it is in, 1 refused, 4 this instance has tickets already.

Examples:
  fernery import ./tickets-2026-11
  fernery import ./tickets-2026-11 --digest 3f0c…")]
pub(super) struct Import {
    /// What `fernery export` has written
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The digest that `fernery export` printed
    #[arg(long, value_name = "SHA256")]
    digest: Option<Digest>,
}

pub(super) async fn run(import: Import, client: &Client, screen: Screen) -> Outcome {
    let mut collected = Collected { root: import.dir, files: Vec::new(), bytes: 0 };
    collected.walk(Path::new(""), 0)?;
    if collected.files.is_empty() {
        return Err(collected.refused("", "there is nothing in it"));
    }
    let request = ImportRequest { digest: import.digest, files: std::mem::take(&mut collected.files) };
    if encoded(&request) > limits::IMPORT_BYTES_MAX {
        return Err(collected.too_large());
    }
    let reply: Reply<ImportResponse> = client.post("/v1/import", &request, WITHIN).await?;
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let answer = reply.read()?;
    let counts: Vec<String> = answer.counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let how = if answer.before { "came in before" } else { "is in" };
    screen.line(&plain(&format!("{} {how}: {}", collected.root.display(), counts.join(", "))))?;
    if !answer.as_new.is_empty() {
        let ids: Vec<&str> = answer.as_new.iter().map(|id| id.as_str()).collect();
        screen.line(&plain(&format!("to be approved anew, for they were under way: {}", ids.join(", "))))?;
    }
    Ok(())
}

/// Bytes of the request: within JSON every quotation mark and line end of a file takes two.
fn encoded(request: &ImportRequest) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // What cannot be spelled is told when it is sent.
    let _ = serde_json::to_writer(&mut count, request);
    count.0
}

struct Collected {
    root: PathBuf,
    files: Vec<ImportFile>,
    bytes: usize,
}

impl Collected {
    fn refused(&self, path: &str, why: impl std::fmt::Display) -> Failure {
        let place = self.root.join(path);
        Failure::usage(format!("cannot import {}: {why}; nothing was sent", place.display()))
    }

    fn too_large(&self) -> Failure {
        let most = limits::IMPORT_BYTES_MAX;
        self.refused(
            "",
            format!("as a request a folder has at most {most} bytes; what is larger moves as a backup"),
        )
    }

    /// Collects a folder, in the order of its names.
    fn walk(&mut self, folder: &Path, depth: usize) -> Outcome {
        let shown = folder.to_string_lossy().into_owned();
        if depth > DEPTH_MAX {
            return Err(self.refused(&shown, "an export has no folders so deep"));
        }
        let list = std::fs::read_dir(self.root.join(folder)).map_err(|e| self.refused(&shown, e))?;
        let mut names = Vec::new();
        for entry in list {
            names.push(entry.map_err(|e| self.refused(&shown, e))?.file_name());
        }
        names.sort();
        for name in names {
            let path = folder.join(&name);
            let shown = path.to_string_lossy().into_owned();
            let kind =
                std::fs::symlink_metadata(self.root.join(&path)).map_err(|e| self.refused(&shown, e))?;
            match path.to_str() {
                None => return Err(self.refused(&shown, "its name is not UTF-8")),
                Some(_) if kind.is_dir() => self.walk(&path, depth + 1)?,
                Some(path) if kind.is_file() => self.take(path)?,
                Some(_) => return Err(self.refused(&shown, "it is no plain file; an export has no links")),
            }
        }
        Ok(())
    }

    fn take(&mut self, path: &str) -> Outcome {
        // A link that takes the file's place meanwhile is not followed.
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let opened = OpenOptions::new().read(true).custom_flags(no_follow).open(self.root.join(path));
        let file = opened.map_err(|e| self.refused(path, e))?;
        let mut bytes = Vec::new();
        let most = limits::IMPORT_FILE_BYTES_MAX as u64 + 1;
        file.take(most).read_to_end(&mut bytes).map_err(|e| self.refused(path, e))?;
        if bytes.len() > limits::IMPORT_FILE_BYTES_MAX {
            return Err(
                self.refused(path, format!("a file has at most {} bytes", limits::IMPORT_FILE_BYTES_MAX))
            );
        }
        self.bytes += bytes.len();
        if self.bytes > limits::IMPORT_BYTES_MAX {
            return Err(self.too_large());
        }
        let content = String::from_utf8(bytes).map_err(|_| self.refused(path, "it is not UTF-8"))?;
        self.files.push(ImportFile { path: path.to_string(), content });
        Ok(())
    }
}

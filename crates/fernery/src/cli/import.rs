//! `fernery import`: imports a folder that `fernery export` wrote into an instance without tickets.
//!
//! This only collects the folder: regular files of bounded size. The server checks and decides.

use super::failure::{Failure, Outcome};
use super::screen::{Screen, counted, plain};
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

/// Import an exported folder into an instance without tickets
///
/// History is imported unchanged. A ticket that was TODO or IN_PROGRESS becomes NEW, and so does a blocked ticket when
/// it is unblocked, because no approval of this instance covers it. Runs that were in progress are ended. An import
/// starts no work: captures that waited for triage are held until `fernery triage release`.
#[derive(Debug, Args)]
#[command(after_help = "\
Everything is checked before anything is written: each file against its schema and manifest.json, the references \
between artifacts, the journal's chain, every verdict. Either the whole folder is imported or nothing. Importing the \
same folder again changes nothing. As a request a folder has at most 64 MiB, a file 8 MiB; move larger data as a \
backup.

Somebody who changes a folder can also compute all digests again. Only the digest that `fernery export` printed \
detects that, if you kept it somewhere else: give it with --digest.

Exit codes: 0 imported, 1 refused, 4 this instance already has tickets.

Examples:
  fernery import ./tickets-2026-11
  fernery import ./tickets-2026-11 --digest 3f0c…")]
pub(super) struct Import {
    /// The folder that `fernery export` wrote
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
        return Err(collected.refused("", "the folder is empty"));
    }
    let request = ImportRequest { digest: import.digest, files: std::mem::take(&mut collected.files) };
    if encoded(&request) > limits::IMPORT_BYTES_MAX {
        return Err(collected.too_large());
    }
    let answer = client.post("/v1/import", &request, WITHIN).await;
    // What is wrong is in the folder, not in how the command was called; a conflict stays one.
    let reply: Reply<ImportResponse> = answer.map_err(|error| match error.status() {
        Some(422) => Failure::from(error).for_now(),
        _ => Failure::from(error),
    })?;
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let answer = reply.read()?;
    let counts = answer.counts.iter().filter(|(_, count)| **count > 0);
    let counts: Vec<String> = counts.map(|(name, count)| format!("{count} {name}")).collect();
    let how = if answer.before { "already imported" } else { "is in" };
    screen.say(&plain(&format!("{} {how}: {}", collected.root.display(), counts.join(", "))))?;
    if !answer.as_new.is_empty() {
        let ids: Vec<&str> = answer.as_new.iter().map(|id| id.as_str()).collect();
        screen.say(&plain(&format!(
            "to be approved again, because they were in progress: {}",
            ids.join(", ")
        )))?;
    }
    if answer.held > 0 {
        screen.say(&format!(
            "held: {}; to release to triage: fernery triage release",
            counted(answer.held, "capture")
        ))?;
    }
    if answer.held_recurrences > 0 {
        screen.say(&format!(
            "held: {} (`fernery triage recurring` lists them); to let them come again: fernery triage release",
            counted(answer.held_recurrences, "recurring line")
        ))?;
    }
    Ok(())
}

/// Bytes of the request: in JSON every quotation mark and line end of a file takes two.
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
    // An error here is reported when it is sent.
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
            format!("as a request a folder has at most {most} bytes; move larger data as a backup"),
        )
    }

    /// Collects a folder, in the order of its names.
    fn walk(&mut self, folder: &Path, depth: usize) -> Outcome {
        let shown = folder.to_string_lossy().into_owned();
        if depth > DEPTH_MAX {
            return Err(self.refused(&shown, "an export has no folders nested so deeply"));
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
                Some(_) => {
                    return Err(self.refused(&shown, "it is not a regular file; an export has no links"));
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, path: &str) -> Outcome {
        // A link that replaces the file meanwhile is not followed.
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

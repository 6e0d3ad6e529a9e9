//! One fault in the life of a server, and what must hold after it.

pub(crate) mod file;
pub(crate) mod script;
pub(crate) mod traced;

use crate::program::Server;
use rustix::process::Signal;
use script::{CALLS, Client, Known, Place, Script};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use tempfile::TempDir;
use traced::{Fault, Kind, Traced};

/// How a server took a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Taken {
    /// The call was not reached in this run.
    NotReached,
    Killed,
    /// It did not start, and said why.
    RefusedToStart,
    /// It said that its database had failed, and ended.
    Ended,
    /// It refused something for a reason that may pass, and went on.
    RefusedAndWentOn,
    /// Nothing that a client sees.
    Unnoticed,
}

/// Says which fault it was, should anything fail.
struct Named<'f>(&'f Fault);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("failed with {:?}", self.0);
        }
    }
}

/// Lets a server run into the fault during the script; then starts it anew and looks whether all that was acknowledged is
/// there, whether the rest can be done, and whether the file is sound.
pub(crate) fn survive(dir: TempDir, fault: &Fault) -> Taken {
    let _named = Named(fault);
    let traced = Traced::start(dir.path(), fault.found, Some(fault));
    let client = traced.url.as_ref().map(|url| Client::new(url, &dir.path().join(".fernery")));
    let mut before = client.as_ref().map(|client| Script::new(client, 1));
    if let Some(script) = &mut before {
        file::assert_logged(&dir.path().join(".fernery"));
        script.run();
        // Where not even a sync succeeds, a pass in the background may end the server at any moment.
        if fault.kind == Kind::EnospcFromThere && fault.syscall == "pwrite64" {
            assert_places(script, client.as_ref().unwrap(), "on a full disk");
        }
    }
    let taken = end(traced, before.as_ref(), fault);
    file::assert_sound_after_crash(&dir.path().join(".fernery"));

    let server = Server::start_in(dir, &[]);
    let anew = Client::new(&server.url, &server.data());
    if let Some(mut script) = before {
        assert_places(&script, &anew, "after the fault");
        script.repeat(&anew);
        assert_places(&script, &anew, "after every call was repeated");
        assert_paused(&script, &anew);
    }
    let mut after = Script::new(&anew, 2);
    after.run();
    assert_eq!(after.acknowledged, CALLS, "everything goes on: {:?}", after.calls);
    assert_places(&after, &anew, "in the second round");
    server.signal(Signal::TERM);
    let (status, dir) = server.ended();
    assert_eq!(status.code(), Some(0));
    file::assert_at_rest(&dir.path().join(".fernery"));
    taken
}

fn end(traced: Traced, script: Option<&Script<'_>>, fault: &Fault) -> Taken {
    let failed = script.is_some_and(|script| script.failed);
    // One that failed ends by itself.
    if script.is_some() && !failed {
        traced.terminate();
    }
    let ending = traced.ended();
    let log = &ending.log;
    assert!(!log.contains("panicked"), "{log}");
    if fault.kind == Kind::Kill {
        let signal = ending.status.signal();
        assert!(
            signal == Some(Signal::KILL.as_raw()) || (!ending.hit && !failed),
            "{:?} {log}",
            ending.status
        );
        return if ending.hit { Taken::Killed } else { Taken::NotReached };
    }
    match script {
        None => {
            assert!(matches!(ending.status.code(), Some(1 | 2)), "{:?} {log}", ending.status);
            assert!(ending.hit && log.contains("error"), "it did not say why it does not start: {log}");
            Taken::RefusedToStart
        }
        // Also where it was a pass in the background that met the fault.
        Some(_) if failed || ending.status.code() == Some(1) => {
            assert_eq!(ending.status.code(), Some(1), "{log}");
            // Not always the last line: a thread that is slow to end may still find the store closed.
            let says_why =
                |line: &str| line.starts_with("error: ") && line.contains("restart the server to recover");
            assert!(log.lines().any(says_why), "{log}");
            Taken::Ended
        }
        Some(script) => {
            assert_eq!(ending.status.code(), Some(0), "{log}");
            let writes = ["pwrite64", "fsync", "fdatasync"].contains(&fault.syscall.as_str());
            // The log tells even where no call is refused: calls that shared the transaction run again, each alone, and may
            // all succeed; or it was a pass in the background.
            let logged =
                ["the disk is full; a transaction was rolled back", "could not save the newest timestamp"]
                    .iter()
                    .any(|line| log.contains(line));
            assert!(
                !(writes && ending.hit_file_before_term) || script.refused > 0 || logged,
                "a write or sync failed, and nobody was told: {:?} {log}",
                ending.injected
            );
            // Other calls are made by many threads, and fail once in each.
            if fault.syscall == "pwrite64" && fault.kind == Kind::Enospc {
                assert!(script.refused <= 1, "one failure refused more than one call: {log}");
            }
            if fault.kind == Kind::EnospcFromThere {
                assert_eq!(script.acknowledged_when_full, 0, "{:?}", script.calls);
            }
            match (script.refused > 0, ending.hit) {
                (true, hit) => {
                    assert!(hit, "refused without a reason: {log}");
                    Taken::RefusedAndWentOn
                }
                (false, true) => Taken::Unnoticed,
                (false, false) => Taken::NotReached,
            }
        }
    }
}

/// Every job is where the last acknowledged call left it, or where a call without an answer may have taken it.
fn assert_places(script: &Script<'_>, client: &Client, when: &str) {
    for (id, known) in &script.jobs {
        let (status, job) = client.get(&format!("/v1/jobs/{id}")).expect("an answer");
        if status == 404 {
            assert_eq!(known.acknowledged, None, "{when}: the acknowledged job {id} is gone");
            continue;
        }
        assert_eq!(status, 200, "{when}: {job}");
        assert!(fits(known, &job), "{when}: {known:?} became {job}");
    }
}

fn fits(known: &Known, job: &Value) -> bool {
    let attempt = |n: usize| job["attempts"][n]["attempt_id"].as_str().unwrap_or_default().to_string();
    let attempts = job["attempts"].as_array().unwrap().len();
    let place = match job["status"].as_str().unwrap() {
        "QUEUED" => Place::Queued,
        "RUNNING" => Place::Running(attempt(attempts - 1)),
        "SUCCEEDED" => Place::Succeeded(job["result"].clone()),
        "DEAD" => Place::Dead(job["error"]["code"].as_str().unwrap().to_string()),
        "CANCELLED" => Place::Cancelled,
        other => panic!("unknown status {other}"),
    };
    known.acknowledged.as_ref() == Some(&place)
        || known.possible.contains(&place)
        || (matches!(place, Place::Running(_)) && known.may_be_taken && may_wait(known))
}

/// Whether a claim could have found it.
fn may_wait(known: &Known) -> bool {
    matches!(known.acknowledged, None | Some(Place::Queued))
}

fn assert_paused(script: &Script<'_>, client: &Client) {
    let path = format!("/v1/streams/{}", script.stream("t"));
    if !script.calls.iter().any(|call| call.path == format!("{path}/pause")) {
        return;
    }
    let (status, stream) = client.get(&path).expect("an answer");
    assert_eq!((status, &stream["paused"]), (200, &Value::Bool(true)), "{stream}");
}

/// A data directory as a server leaves it that was killed as soon as it served.
pub(crate) fn left_behind() -> TempDir {
    let server = Server::start(&[]);
    server.signal(Signal::KILL);
    server.ended().1
}

/// A directory of its own with the same files.
pub(crate) fn copy_of(original: &Path) -> TempDir {
    use std::os::unix::fs::DirBuilderExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::DirBuilder::new().mode(0o700).create(dir.path().join(".fernery")).unwrap();
    for entry in std::fs::read_dir(original.join(".fernery")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, dir.path().join(".fernery").join(path.file_name().unwrap())).unwrap();
    }
    dir
}

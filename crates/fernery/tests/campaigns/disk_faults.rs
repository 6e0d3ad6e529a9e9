//! A fault at the Nth call on a file, for N over the whole life of a server on SQLite: `kill -9`, EIO, ENOSPC once, and
//! ENOSPC from there on.
//!
//! A scripted client takes jobs through every way there is and writes down what it was told. `strace` lets one write,
//! sync, truncation, opening, renaming or removal in the data directory fail, from the first file that is made to the last
//! checkpoint. Then the server is started anew without a fault. Whatever was acknowledged is there as it was acknowledged,
//! every call can be repeated, the file passes SQLite's check, the counts equal a recount, every lease runs out
//! (invariants 4, 5, 6, 17, 19).
//!
//! By default every fifth call is tried. `FERNERY_FAULT_EVERY=1` tries all of them, which takes about a minute for each
//! kind:
//!
//! ```sh
//! FERNERY_FAULT_EVERY=1 cargo nextest run --profile long -p fernery --test campaigns --no-capture disk_faults::
//! ```

use crate::disk::script::{CALLS, Client, Script};
use crate::disk::traced::{Fault, Found, Kind, Traced, counted};
use crate::disk::{Taken, copy_of, left_behind, survive};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

/// Servers at once: they wait for the disk most of the time.
const LANES: usize = 4;

/// How often a fault of this call was taken so.
type Tally = BTreeMap<(String, Taken), usize>;

#[test]
fn campaign_killed_at_any_call_on_a_file_nothing_acknowledged_is_lost() {
    let tally = sweep(Kind::Kill);
    assert!(tally.keys().all(|(_, taken)| matches!(taken, Taken::Killed | Taken::NotReached)), "{tally:?}");
}

#[test]
fn campaign_a_dying_disk_ends_the_server_and_nothing_acknowledged_is_lost() {
    let tally = sweep(Kind::Eio);
    assert!(
        happened(&tally, "pwrite64", Taken::Ended) && happened(&tally, "sync", Taken::Ended),
        "{tally:?}"
    );
    assert!(happened(&tally, "pwrite64", Taken::RefusedToStart), "{tally:?}");
    assert!(!happened(&tally, "pwrite64", Taken::RefusedAndWentOn), "{tally:?}");
    assert!(!happened(&tally, "sync", Taken::RefusedAndWentOn), "{tally:?}");
}

#[test]
fn campaign_a_disk_that_is_full_for_a_moment_refuses_no_more_than_one_call() {
    let tally = sweep(Kind::Enospc);
    assert!(happened(&tally, "pwrite64", Taken::RefusedAndWentOn), "{tally:?}");
}

#[test]
fn campaign_a_disk_that_stays_full_refuses_writes_keeps_reads_and_loses_nothing() {
    let tally = sweep(Kind::EnospcFromThere);
    assert!(happened(&tally, "pwrite64", Taken::RefusedAndWentOn), "{tally:?}");
}

fn happened(tally: &Tally, syscall: &str, wanted: Taken) -> bool {
    tally.keys().any(|(name, taken)| name.ends_with(syscall) && *taken == wanted)
}

fn every() -> usize {
    std::env::var("FERNERY_FAULT_EVERY").map_or(5, |n| n.parse().expect("FERNERY_FAULT_EVERY is a number"))
}

fn sweep(kind: Kind) -> Tally {
    let left = left_behind();
    let mut faults = points(Found::Nothing, kind, left.path());
    faults.extend(points(Found::LeftBehind, kind, left.path()));
    let all = faults.len();
    let faults: Vec<_> = faults.into_iter().step_by(every()).collect();
    let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::new()));
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let taken = survive(folder(fault.found, left.path()), fault);
                    *tally.lock().unwrap().entry((fault.syscall.clone(), taken)).or_default() += 1;
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap();
    println!("{kind:?}: {} of {all} calls: {tally:?}", faults.len());
    let missed: usize = tally.iter().filter(|((_, t), _)| *t == Taken::NotReached).map(|(_, n)| n).sum();
    assert!(missed * 10 <= faults.len(), "too few faults came to pass to prove anything");
    tally
}

fn folder(found: Found, left: &Path) -> TempDir {
    match found {
        Found::Nothing => tempfile::tempdir().unwrap(),
        Found::LeftBehind => copy_of(left),
    }
}

/// Every call that a run without a fault makes.
fn points(found: Found, kind: Kind, left: &Path) -> Vec<Fault> {
    let dir = folder(found, left);
    let traced = Traced::start(dir.path(), found, None);
    if let Some(url) = &traced.url {
        let client = Client::new(url, &dir.path().join(".fernery"));
        let mut script = Script::new(&client, 1);
        script.run();
        assert_eq!(script.acknowledged, CALLS, "the script goes through where nothing fails");
        traced.terminate();
    }
    traced.ended();
    let mut most = BTreeMap::<String, usize>::new();
    let threads = counted(dir.path());
    let threads = if found == Found::Nothing { &threads[..1] } else { &threads[..] };
    for (name, calls) in threads.iter().flatten() {
        let most = most.entry(name.clone()).or_default();
        *most = (*most).max(*calls);
    }
    println!("{found:?}: {most:?}");
    let syncs = most.get("fsync").max(most.get("fdatasync")).copied().unwrap_or(0);
    assert!(
        found == Found::Nothing || syncs >= CALLS,
        "each acknowledgement takes a sync of its own: {most:?}"
    );
    let faults = most.into_iter().flat_map(|(syscall, calls)| {
        (1..=calls).map(move |nth| Fault { kind, found, syscall: syscall.clone(), nth })
    });
    faults.collect()
}

//! `fernery fence` killed at any moment and run again: whatever the first had done, nobody from before can write.

use crate::fresh_database::fresh_database;
use crate::program::{fernery, run_in};
use crate::seed;
use fernery_core::{StreamName, WorkerId};
use fernery_engine::store::{Ask, Beat, BeatAnswer, Completion, NewJob, Proof, Store};
use fernery_engine::{Answer, Database, door, open_store};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::value::RawValue;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

const LEASES: usize = 4_000;
const ROUNDS: usize = 6;

async fn opened(database: &Database) -> Arc<dyn Store> {
    open_store(database, Default::default(), Default::default()).await.expect("opens")
}

fn nothing() -> Box<RawValue> {
    RawValue::from_string("{}".into()).unwrap()
}

/// Makes a database in which all jobs are held, and says by whom.
async fn all_held(database: &Database) -> Vec<Proof> {
    let store = opened(database).await;
    let stream = StreamName::stored("s");
    store.enqueue(vec![NewJob::new(stream.clone(), nothing()); LEASES]).await.expect("stored");
    let ask = Ask { worker_id: WorkerId::stored("w"), streams: [stream].into(), max: 1_000 };
    let mut held = Vec::with_capacity(LEASES);
    while held.len() < LEASES {
        held.extend(store.claim(ask.clone()).await.expect("claimed").iter().map(|job| job.proof()));
    }
    store.close().await;
    held
}

/// Every token from before is refused, in a heartbeat and in a report, and every job can be claimed.
async fn assert_fenced(database: &Database, held: &[Proof]) {
    let store = opened(database).await;
    let beats = held.iter().map(|proof| Beat { job_id: proof.job_id, token_hash: proof.token_hash });
    let answers = store.heartbeat(beats.collect()).await.expect("answered");
    let extended = answers.iter().filter(|answer| **answer != BeatAnswer::LeaseLost).count();
    assert_eq!((answers.len(), extended), (LEASES, 0), "leases that are still held");
    let reports = held.iter().map(|proof| Completion { proof: *proof, result: nothing() });
    let answers = store.complete(reports.collect()).await.expect("answered");
    let accepted = answers.iter().filter(|answer| !matches!(answer, Answer::LeaseLost { .. })).count();
    assert_eq!((answers.len(), accepted), (LEASES, 0), "reports that were not refused");
    let counts = store.stream(StreamName::stored("s")).await.expect("read").expect("there").counts;
    assert_eq!((counts.ready, counts.running), (LEASES as i64, 0));
    store.close().await;
}

/// Fences `made`, kills that after a part of what it takes, and fences it again.
async fn fenced_twice(dir: &Path, database: &str, life: Duration) {
    let mut first = fernery();
    first.current_dir(dir).args(["fence", "--database", database]);
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    sleep(life).await;
    first.kill().expect("killed");
    let ended = first.wait().expect("ended");
    let (dir, again) = (dir.to_owned(), database.to_string());
    let again = move || run_in(&dir, ["fence", "--json", "--database", &again]).exits(0).json();
    let freed = tokio::task::spawn_blocking(again).await.unwrap()["leases_freed"].clone();
    println!("killed after {life:?} ({ended}); the second run freed {freed} of {LEASES}");
}

/// The lives of those that are killed: parts of what a whole one takes.
fn lives(whole: Duration) -> Vec<Duration> {
    println!("a whole one takes {whole:?}");
    let mut rng = StdRng::seed_from_u64(seed::seed());
    (0..ROUNDS).map(|_| whole.mul_f64(rng.random_range(0.05..1.0))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_a_fence_that_was_killed_is_made_whole_by_another_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let copy_as = |name: &str| {
        let path = dir.path().join(name);
        if name != "made.db" {
            std::fs::copy(dir.path().join("made.db"), &path).expect("copied");
        }
        (format!("sqlite:{}", path.display()), Database::Sqlite(path))
    };
    let held = all_held(&copy_as("made.db").1).await;
    let (url, database) = copy_as("whole.db");
    let watch = door::stop_watch();
    run_in(dir.path(), ["fence", "--database", &url]).exits(0);
    let lives = lives(watch.elapsed());
    assert_fenced(&database, &held).await;
    for (round, life) in lives.into_iter().enumerate() {
        let (url, database) = copy_as(&format!("round-{round}.db"));
        fenced_twice(dir.path(), &url, life).await;
        assert_fenced(&database, &held).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_a_fence_that_was_killed_is_made_whole_by_another_on_postgres() {
    let dir = tempfile::tempdir().unwrap();
    let made = fresh_database().await;
    let held = all_held(&Database::Postgres(made.url())).await;
    let whole = made.copy().await;
    let watch = door::stop_watch();
    run_in(dir.path(), ["fence", "--database", &whole.url()]).exits(0);
    let lives = lives(watch.elapsed());
    assert_fenced(&Database::Postgres(whole.url()), &held).await;
    for life in lives {
        let copy = made.copy().await;
        fenced_twice(dir.path(), &copy.url(), life).await;
        assert_fenced(&Database::Postgres(copy.url()), &held).await;
    }
}

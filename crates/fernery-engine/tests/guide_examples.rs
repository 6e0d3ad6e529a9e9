//! The programs of `docs/guides/embed.md` do what the guide says, and the short forms they use keep the rules of the store.

mod support;

#[path = "../examples/embed.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod embed;

#[path = "../examples/order.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod order;

use fernery_core::job::report::Answer;
use fernery_engine::store::StoreSettings;
use fernery_engine::{Database, Engine, EngineSettings, JobId, JobStatus, Stop, StoreError};
use serde_json::json;
use std::time::Duration;
use support::fresh_database::fresh_database;

const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that is gone with it, and an engine in it.
async fn engine() -> (tempfile::TempDir, Engine) {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = Engine::sqlite(folder.path().join("jobs.db")).await.expect("opens");
    (folder, engine)
}

#[tokio::test]
async fn the_embedded_program_sends_one_mail_and_gives_up_on_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let ends = embed::run(&folder.path().join("jobs.db")).await.expect("it runs");
    assert_eq!(ends, [JobStatus::Succeeded, JobStatus::Dead]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_and_its_job_are_stored_together_or_not_at_all() {
    let database = fresh_database().await;
    let engine = Engine::postgres(database.url()).await.expect("opens");
    let mut client = database.client().await;
    client.batch_execute("CREATE TABLE orders (number int PRIMARY KEY)").await.expect("made");
    let job_id = order::order(&mut client, 7, r#"{"to": "ada"}"#).await.expect("stored");
    order::order(&mut client, 7, r#"{"to": "ada"}"#).await.expect_err("the number is taken");
    order::order(&mut client, 8, "[]").await.expect_err("a payload is an object");
    let job = engine.claim_one("mail", PATIENCE).await.expect("asked").expect("the first one's job");
    assert_eq!(job.job_id, JobId::from_uuid(job_id));
    assert!(engine.claim_one("mail", Duration::ZERO).await.expect("asked").is_none(), "no other");
    let orders = client.query("SELECT number FROM orders", &[]).await.expect("read");
    assert_eq!(orders.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [7]);
    engine.close().await;
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_with_the_reason() {
    let (_folder, engine) = engine().await;
    let long = "x".repeat(1 << 20);
    for (stream, payload, why) in [
        ("no name", json!({}), "a stream name has"),
        ("s", json!([1]), "a JSON object"),
        ("s", json!({ "x": long }), "the limit is 1048576"),
    ] {
        match engine.enqueue(stream, &payload).await {
            Err(StoreError::Refused(said)) => assert!(said.contains(why), "{said}"),
            other => panic!("{why}: {other:?}"),
        }
    }
    assert!(engine.store().streams(None, 1).await.expect("read").is_empty(), "nothing was stored");
    engine.close().await;
}

#[tokio::test]
async fn a_failure_of_any_length_is_kept_and_a_repeated_report_gets_the_same_answer() {
    let (_folder, engine) = engine().await;
    let job_id = engine.enqueue("s", &json!({})).await.expect("stored");
    let job = engine.claim_one("s", Duration::ZERO).await.expect("asked").expect("a job");
    let (code, message) = (format!("a\0{}", "ä".repeat(1_000)), "ö".repeat(100_000));
    let told = engine.fail_for_good(&job, &code, &message).await.expect("told");
    assert_eq!(told, Answer::Accepted { status: JobStatus::Dead });
    let again = engine.fail_for_good(&job, &code, &message).await.expect("told again");
    assert_eq!(again, Answer::Duplicate { status: JobStatus::Dead });
    assert_eq!(engine.complete(&job, &1).await.expect("told"), Answer::AttemptClosed);
    let view = engine.job(job_id, Duration::ZERO).await.expect("read").expect("there");
    let error = view.attempts[0].error.as_ref().expect("an error").get();
    assert!(error.contains("a\u{fffd}ä") && error.len() < 20_000, "{} bytes", error.len());
    engine.close().await;
}

#[tokio::test]
async fn a_released_job_is_claimable_at_once() {
    let (_folder, engine) = engine().await;
    let job_id = engine.enqueue("s", &json!({})).await.expect("stored");
    let first = engine.claim_one("s", Duration::ZERO).await.expect("asked").expect("a job");
    assert_eq!(engine.release(&first).await.expect("told"), Answer::Accepted { status: JobStatus::Queued });
    let second = engine.claim_one("s", Duration::ZERO).await.expect("asked").expect("again");
    assert_eq!((second.job_id, second.attempt_no), (job_id, 2));
    assert_eq!(engine.complete(&first, &1).await.expect("told"), Answer::LeaseLost { closed: true });
    engine.close().await;
}

#[tokio::test]
async fn work_goes_on_past_its_lease_and_ends_when_the_job_is_cancelled_or_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Database::Sqlite(folder.path().join("jobs.db"));
    let store = StoreSettings { lease_ttl: Duration::from_secs(3), ..StoreSettings::default() };
    let settings = EngineSettings { store, ..EngineSettings::default() };
    let engine = Engine::open(&database, settings).await.expect("opens");
    engine.enqueue("s", &json!({})).await.expect("stored");
    let job = engine.claim_one("s", Duration::ZERO).await.expect("asked").expect("a job");
    let version = async || {
        let view = engine.job(job.job_id, Duration::ZERO).await.expect("read").expect("there");
        view.attempts[0].claim_version
    };
    // Four renewals, a second apart: without them the lease of three seconds would have run out.
    let enough = version().await + 4;
    let work = async {
        while version().await < enough {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    engine.while_held(&job, work).await.expect("it was held");
    assert_eq!(engine.store().reap(10).await.expect("reaped").moved, 0);

    engine.store().cancel(job.job_id, false).await.expect("asked");
    let stop = engine.while_held(&job, std::future::pending::<()>()).await;
    assert_eq!(stop, Err(Stop::CancelRequested));
    engine.store().cancel(job.job_id, true).await.expect("ended");
    let stop = engine.while_held(&job, std::future::pending::<()>()).await;
    assert_eq!(stop, Err(Stop::LeaseLost));
    engine.close().await;
}

//! Jobs enqueued inside another program's transaction: nothing before its commit, everything after it, each once.

use crate::support::consistency::assert_consistent;
use crate::support::postgres::{fresh_database, open_store};
use crate::support::singly::{ask, counts, status, view};
use fernery_core::{JobId, JobStatus};
use fernery_engine::store::{Store, StoreSettings};
use fernery_engine::{Database, Engine, EngineSettings};
use std::time::Duration;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_a_transaction_exists_once_it_is_committed_and_not_before() {
    let database = fresh_database().await;
    let url = Database::Postgres(database.url());
    let engine = Engine::open(&url, EngineSettings::default()).await.expect("opens");
    let mut client = database.client().await;
    client.batch_execute("CREATE TABLE orders (id int)").await.expect("made");

    let undone = client.transaction().await.expect("begins");
    let row = undone.query_one("SELECT fernery.enqueue('mail', '{\"n\": 1}')", &[]).await.expect("enqueued");
    let never = JobId::from_uuid(row.get::<_, Uuid>(0));
    undone.rollback().await.expect("rolled back");

    let done = client.transaction().await.expect("begins");
    done.execute("INSERT INTO orders VALUES (7)", &[]).await.expect("stored");
    let row = done.query_one("SELECT fernery.enqueue('mail', '{\"n\": 2.50}')", &[]).await.expect("enqueued");
    let job_id = JobId::from_uuid(row.get::<_, Uuid>(0));
    assert_eq!(job_id.uuid().get_version_num(), 7, "ids are ordered by time, as the engine's own");
    assert!(engine.store().job(job_id).await.expect("read").is_none(), "not before the commit");
    done.commit().await.expect("committed");

    let claimed = engine.claim(ask(&["mail"], 1), Duration::from_secs(60)).await.expect("claim");
    assert_eq!(claimed[0].job_id, job_id);
    assert_eq!(claimed[0].payload.get(), r#"{"n": 2.50}"#, "to the byte");
    assert!(engine.store().job(never).await.expect("read").is_none());
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_that_empty_one_inbox_store_each_job_once_whoever_dies() {
    let database = fresh_database().await;
    let (one, _) = open_store(&database.url(), &StoreSettings::default()).await;
    let (other, _) = open_store(&database.url(), &StoreSettings::default()).await;
    let client = database.client().await;
    let fill = "INSERT INTO fernery.inbox (stream, payload) SELECT 's', json_build_object('n', n) FROM generate_series(1, 500) n";
    client.execute(fill, &[]).await.expect("filled");
    // As after a death between storing and forgetting: the jobs are there and the rows as well.
    client.batch_execute("CREATE TABLE saved AS SELECT * FROM fernery.inbox").await.expect("saved");
    let emptied = async |store: &dyn Store| while store.drain_intake(50).await.expect("emptied").full {};
    tokio::join!(emptied(&*one), emptied(&*other));
    client
        .execute(
            "INSERT INTO fernery.inbox (stream, payload, job_id) SELECT stream, payload, job_id FROM saved",
            &[],
        )
        .await
        .expect("filled again");
    emptied(&*one).await;
    assert_eq!(counts(&*one, "s").await.ready, 500);
    assert_eq!(client.query("SELECT FROM fernery.inbox", &[]).await.expect("read").len(), 0);
    assert_consistent(&*one).await;
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_inbox_rows_are_refused_at_insert_or_moved_to_inbox_refused() {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &StoreSettings::default()).await;
    let client = database.client().await;
    for (wrong, guard) in [
        ("('a b', '{}', 5, NULL)", "stream_is_a_name"),
        ("('s', '[]', 5, NULL)", "payload_is_an_object"),
        ("('s', json_build_object('x', repeat('x', 1048576)), 5, NULL)", "payload_is_at_most_1_mib"),
        ("('s', '{}', 0, NULL)", "max_attempts_is_1_to_1000"),
        ("('s', '{}', 5, '')", "unique_key_has_1_to_255_bytes"),
        ("('s', '{}', 5, E'a\\nb')", "unique_key_is_printable"),
        ("('diazotroph:x', '{}', 5, NULL)", "stream_is_not_reserved"),
    ] {
        let sql =
            format!("INSERT INTO fernery.inbox (stream, payload, max_attempts, unique_key) VALUES {wrong}");
        let error = client.execute(&sql, &[]).await.expect_err("refused");
        let named = error.as_db_error().and_then(|e| e.constraint().map(str::to_string));
        assert_eq!(named.as_deref(), Some(guard), "{error:?}");
    }
    let id = "00000000-0000-7000-8000-000000000001";
    for payload in [r#"{"n":1}"#, r#"{"n":2}"#] {
        let sql =
            format!("INSERT INTO fernery.inbox (stream, payload, job_id) VALUES ('s', '{payload}', '{id}')");
        client.execute(&sql, &[]).await.expect("inserted");
        store.drain_intake(10).await.expect("emptied");
    }
    let rows =
        client.query("SELECT payload::text, reason FROM fernery.inbox_refused", &[]).await.expect("read");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].get::<_, &str>(0), r#"{"n":2}"#);
    assert!(rows[0].get::<_, &str>(1).contains("other content"), "{:?}", rows[0]);
    let job_id = id.parse::<JobId>().expect("an id");
    assert_eq!(view(&*store, job_id).await.payload.get(), r#"{"n":1}"#);

    let late = "INSERT INTO fernery.inbox (stream, payload, unique_key, run_at, timeout_seconds)
                VALUES ('t', '{}', 'k', now() + interval '1 hour', 30), ('t', '{}', 'k', NULL, NULL)";
    client.execute(late, &[]).await.expect("inserted");
    store.drain_intake(10).await.expect("emptied");
    let counts = counts(&*store, "t").await;
    assert_eq!((counts.scheduled, counts.ready), (1, 0), "one unfinished job per key");
    assert_eq!(status(&*store, job_id).await, JobStatus::Queued);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_row_that_can_be_no_job_keeps_nobody_waiting() {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &StoreSettings::default()).await;
    let client = database.client().await;
    let deep = "[".repeat(40) + &"]".repeat(40);
    for sql in [
        "INSERT INTO fernery.inbox (stream, payload, run_at) VALUES ('s', '{}', 'infinity')",
        "INSERT INTO fernery.inbox (stream, payload, run_at) VALUES ('s', '{}', '12000-01-01')",
    ] {
        client.execute(sql, &[]).await.expect_err("no such day in the calendar");
    }
    // As a table that lost its guards.
    client
        .batch_execute(&format!(
            "ALTER TABLE fernery.inbox DROP CONSTRAINT run_at_is_in_the_calendar;
             INSERT INTO fernery.inbox (stream, payload, run_at) VALUES ('s', '{{}}', 'infinity');
             INSERT INTO fernery.inbox (stream, payload) VALUES ('s', '{{\"x\":{deep}}}'), ('s', '{{\"n\":1}}'),
                 ('s', ' {{\"n\":2}}'), ('s', '{{\"a\":1,\"a\":2}}');
             INSERT INTO fernery.inbox (stream, payload, run_at) VALUES ('s', '{{}}', now() + interval '20 years')"
        ))
        .await
        .expect("inserted");
    while store.drain_intake(10).await.expect("emptied").full {}
    assert_eq!(counts(&*store, "s").await.ready, 2);
    let rows =
        client.query("SELECT reason FROM fernery.inbox_refused ORDER BY inbox_id", &[]).await.expect("read");
    let reasons: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    // The rules are those of HTTP.
    for (reason, said) in reasons[1..].iter().zip(["nested more than 32", "stands twice", "days ahead"]) {
        assert!(reason.contains(said), "{reasons:?}");
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_may_only_insert_can_enqueue() {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &StoreSettings::default()).await;
    let client = database.client().await;
    let role = format!("shop_{:016x}", u64::from_ne_bytes(fernery_engine::door::random_bytes()));
    client
        .batch_execute(&format!(
            "CREATE ROLE {role}; GRANT USAGE ON SCHEMA fernery TO {role}; GRANT INSERT ON fernery.inbox TO {role};
             SET ROLE {role}"
        ))
        .await
        .expect("granted");
    client.query_one("SELECT fernery.enqueue('s', '{}')", &[]).await.expect("enqueued");
    client.execute("SELECT * FROM fernery.jobs", &[]).await.expect_err("and nothing else");
    client.batch_execute(&format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")).await.expect("gone");
    store.drain_intake(10).await.expect("emptied");
    assert_eq!(counts(&*store, "s").await.ready, 1);
    store.close().await;
}

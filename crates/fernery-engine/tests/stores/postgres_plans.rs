//! Statements that look many things up are planned as lookups by key, whatever the statistics say.

use crate::support::postgres::{fresh_database, open_store};
use fernery_engine::store::StoreSettings;
use std::path::Path;

const JUDGED: &str = include_str!("../../src/store/postgres/sql/hints_judged.sql");
const BEHIND: &str = include_str!("../../src/store/postgres/sql/outbox_take_behind.sql");
const RETAIN: &str = include_str!("../../src/store/postgres/sql/retain_find.sql");
const OPEN: &str = include_str!("../../src/pipeline/sql/objectives_open.sql");
const WEIGHED: &str = include_str!("../../src/pipeline/sql/objectives_weighed.sql");
const UNSEALED: &str = include_str!("../../src/pipeline/sql/unsealed_take.sql");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_messages_are_about_is_looked_up_by_key() {
    let asked = [(JUDGED, "('{}', '{}', '{}', '{}', '{}', '{}')"), (BEHIND, "(32, 'x')")];
    are_looked_up_by_key(&asked, &[" on ready", " on leases", " on jobs"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_to_be_sealed_is_looked_up_by_key() {
    are_looked_up_by_key(&[(UNSEALED, "(256)")], &[" on journal"]).await;
}

/// Those that are kept for good are many, and a pass comes twice a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retention_passes_over_no_dead_letters() {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &StoreSettings::default()).await;
    store.close().await;
    let client = database.client().await;
    let session = include_str!("../../src/store/postgres/sql/session.sql");
    client.query(session, &[]).await.expect("a session as ours");
    let many = "INSERT INTO fernery.jobs
                SELECT gen_random_uuid(), 's', '{}', 1, NULL, NULL, NULL, NULL, at, at, n, 'DEAD', at, 1
                FROM generate_series(1, 5000) n, (SELECT now() - interval '1 year' AS at) long_ago";
    for step in [many, "VACUUM ANALYZE", include_str!("../../src/store/postgres/sql/retain_begin.sql")] {
        client.batch_execute(step).await.expect(step);
    }
    client.batch_execute(&format!("PREPARE asked AS {RETAIN}")).await.expect("prepared");
    let asked = "EXPLAIN (ANALYZE, TIMING off) EXECUTE asked(604800000, 100, NULL)";
    let rows = client.query(asked, &[]).await.expect("a plan");
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let whole = plan.join("\n");
    assert!(!whole.contains("Rows Removed by Filter"), "{whole}");
}

/// Whether rows of these tables are only ever looked up by key by these statements, with these parameters.
async fn are_looked_up_by_key(asked: &[(&str, &str)], tables: &[&str]) {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &StoreSettings::default()).await;
    store.close().await;
    let client = database.client().await;
    let session = include_str!("../../src/store/postgres/sql/session.sql");
    client.query(session, &[]).await.expect("a session as ours");
    for analyzed in ["", "VACUUM ANALYZE"] {
        client.batch_execute(analyzed).await.expect("analyzed while empty");
        for (sql, parameters) in asked {
            client.batch_execute(&format!("PREPARE asked AS {sql}")).await.expect("prepared");
            let rows =
                client.query(&format!("EXPLAIN EXECUTE asked{parameters}"), &[]).await.expect("a plan");
            client.batch_execute("DEALLOCATE asked").await.expect("forgotten");
            let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            let whole = plan.join("\n");
            let of_tables = |line: &str| tables.iter().any(|table| line.contains(table));
            let lookups = plan.windows(2).filter(|two| of_tables(&two[0]));
            let by_key =
                lookups.clone().filter(|two| two[0].contains("Index") && two[1].contains("Index Cond"));
            assert_eq!(lookups.count(), by_key.count(), "{whole}");
            assert!(!whole.contains("hashed"), "{whole}");
        }
    }
}

/// What an azolla is asked for most is read in the order of an index up to the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_weightiest_objectives_are_read_in_order() {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &StoreSettings::default()).await;
    store.close().await;
    let client = database.client().await;
    client
        .query(include_str!("../../src/store/postgres/sql/session.sql"), &[])
        .await
        .expect("a session as ours");
    let many = "INSERT INTO fernery.objectives (objective_id, azolla_id, title, acceptance_criteria, objective_type, status,
                    importance, urgency, metadata, created_at, updated_at)
                SELECT 't' || n, 'mec', 'x', 'x', 'TICKET', CASE n % 2 WHEN 0 THEN 'NEW' ELSE 'DONE' END, n % 5, n % 3, '{}', now(), now()
                FROM generate_series(1, 20000) n";
    client.batch_execute(many).await.expect("objectives");
    client.batch_execute("VACUUM ANALYZE fernery.objectives").await.expect("analyzed");
    for (sql, indexes) in [
        (OPEN, &["objectives_open "][..]),
        (WEIGHED, &["objectives_open ", "objectives_cancelled ", "objectives_done "]),
    ] {
        client.batch_execute(&format!("PREPARE asked AS {sql}")).await.expect("prepared");
        let seen_at = if sql == OPEN { ", '9999-01-01'" } else { "" };
        let asked = format!(
            "EXPLAIN EXECUTE asked('mec', 500, '1970-01-01', '9999-01-01', '9999-01-01', '', ''{seen_at})"
        );
        let rows = client.query(&asked, &[]).await.expect("a plan");
        client.batch_execute("DEALLOCATE asked").await.expect("forgotten");
        let plan = rows.iter().map(|row| row.get(0)).collect::<Vec<String>>().join("\n");
        assert!(indexes.iter().all(|index| plan.contains(&format!("using {index}"))), "{plan}");
        // What both come to is put in order, at most twice the limit.
        assert!(plan.matches("Sort  (").count() < indexes.len(), "{plan}");
    }
}

/// What a statement looked at, by the lines of its plan, with a database of ours that these statements have filled.
async fn plan_of(fill: &[&str], sql: &str, parameters: &str) -> String {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &StoreSettings::default()).await;
    store.close().await;
    let client = database.client().await;
    let session = include_str!("../../src/store/postgres/sql/session.sql");
    client.query(session, &[]).await.expect("a session as ours");
    for step in fill.iter().chain(&["VACUUM ANALYZE"]) {
        client.batch_execute(step).await.expect(step);
    }
    client.batch_execute(&format!("PREPARE asked AS {sql}")).await.expect("prepared");
    let asked = format!("EXPLAIN (ANALYZE, TIMING off, COSTS off) EXECUTE asked{parameters}");
    let rows = client.query(&asked, &[]).await.expect("a plan");
    rows.iter().map(|row| row.get(0)).collect::<Vec<String>>().join("\n")
}

/// The most rows that any step of a plan came to, or left out.
fn most_rows(plan: &str) -> u64 {
    let after = |what: &'static str| plan.split(what).skip(1);
    let counts = after("actual rows=").chain(after("Rows Removed by Filter: "));
    let number = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    counts.filter_map(number).max().expect("a plan that ran")
}

/// However many ids begin alike, a look at them is as long as it may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_an_id_is_looked_up_in_a_bounded_range() {
    let objectives = "INSERT INTO fernery.objectives (objective_id, azolla_id, title, acceptance_criteria, objective_type, status,
                          importance, urgency, metadata, created_at, updated_at)
                      SELECT 't' || n, 'mec', 'x', 'x', 'TICKET', 'NEW', 2, 2, '{}', now(), now()
                      FROM generate_series(1, 20000) n";
    let jobs = "INSERT INTO fernery.jobs
                SELECT gen_random_uuid(), 's', '{}', 1, NULL, NULL, NULL, NULL, now(), now(), n, 'DEAD', now(), 1
                FROM generate_series(1, 20000) n";
    let of_objectives = include_str!("../../src/pipeline/sql/ids_of_objectives.sql");
    let of_jobs = include_str!("../../src/store/postgres/sql/job_ids_between.sql");
    let (lowest, highest) = ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff");
    for (fill, sql, parameters) in [
        (objectives, of_objectives, "('t', 't~', '%none', 10, 100)".to_string()),
        (jobs, of_jobs, format!("('{lowest}', '{highest}', '%none', NULL, 10, 100)")),
    ] {
        let plan = plan_of(&[fill], sql, &parameters).await;
        assert!(plan.contains("Index Cond") && !plan.contains("Seq Scan"), "{plan}");
        // One more is counted, to see whether there are more.
        assert!(most_rows(&plan) <= 101 && !plan.contains("Sort Key: objectives"), "{plan}");
    }
}

/// However many others are dead, a page of a stream or of an error code reads its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_dead_letters_reads_only_those_that_match() {
    let dead = "INSERT INTO fernery.dead_letters (job_id, stream, buried_at, reason, code)
                SELECT gen_random_uuid(), CASE n % 100 WHEN 0 THEN 'rare' ELSE 's' END, now() - n * interval '1 second', 'x',
                       CASE n % 50 WHEN 0 THEN 'E_RARE' ELSE 'E' END
                FROM generate_series(1, 20000) n";
    let place = "'9999-01-01', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 10";
    for (sql, of) in [
        (include_str!("../../src/store/postgres/sql/dead_letters_page_of_stream.sql"), "'rare'"),
        (include_str!("../../src/store/postgres/sql/dead_letters_page_of_code.sql"), "'E_RARE'"),
        (include_str!("../../src/store/postgres/sql/dead_letters_page_of_both.sql"), "'rare', 'E_RARE'"),
    ] {
        let plan = plan_of(&[dead], sql, &format!("({of}, {place})")).await;
        assert!(most_rows(&plan) <= 10 && !plan.contains("Seq Scan"), "{plan}");
    }
}

/// Snoozes that have passed, and those of what has ended, cost the count of what waits nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_counted_without_snoozes_that_have_passed() {
    let candidates = "INSERT INTO fernery.candidates (candidate_id, azolla_id, document, made_by, status, created_at, updated_at, urgency)
                      SELECT 'c' || n, 'a', '{}', 'builtin', CASE WHEN n <= 50 THEN 'WAITING' ELSE 'DISCARDED' END, now(), now(), 2
                      FROM generate_series(1, 10000) n";
    let snoozes = "INSERT INTO fernery.snoozes
                   SELECT 'candidate', 'c' || n, now() + CASE WHEN n <= 20 THEN interval '1 day' ELSE interval '-1 day' END
                   FROM generate_series(1, 10000) n";
    let count = include_str!("../../src/pipeline/sql/candidates_count.sql");
    let plan = plan_of(&[candidates, snoozes], count, "('a', 100000, now())").await;
    assert!(most_rows(&plan) <= 50 && !plan.contains("Seq Scan"), "{plan}");
}

/// The landing worker asks for them all the time, and patches that nobody lands stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn branches_with_patches_are_found_without_reading_the_patches() {
    let landings = "INSERT INTO fernery.landings (objective_id, azolla_id, run_id, work_order_id, repo_ref, base_branch, base_commit,
                        patch_sha256, state, open, opened_at, updated_at)
                    SELECT 't' || n, CASE n % 3 WHEN 0 THEN 'b' ELSE 'a' END, 'r', 'w', 'repo' || n % 2, 'branch' || n % 4, 'c', 's',
                        'OPEN', n % 5 > 0, now(), now()
                    FROM generate_series(1, 20000) n";
    let next = include_str!("../../src/pipeline/sql/landings_branch_after.sql");
    let plan = plan_of(&[landings], next, "('a', 'repo0', 'branch0')").await;
    assert!(most_rows(&plan) <= 1 && !plan.contains("Seq Scan"), "{plan}");
}

/// What opens a transaction is more than one statement.
const MANY: &[&str] = &["migrate_begin.sql", "retain_begin.sql"];

/// Each is whole, and means something in the schema as it is: it can be taken out of its file and pasted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_can_be_prepared_as_it_stands() {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &StoreSettings::default()).await;
    store.close().await;
    let client = database.client().await;
    let session = include_str!("../../src/store/postgres/sql/session.sql");
    client.query(session, &[]).await.expect("a session as ours");
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let (mut prepared, mut broken) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_string();
            if path.is_dir() && name != "sqlite" && name != "migrations" {
                folders.push(path);
            } else if name.ends_with(".sql") && !MANY.contains(&name.as_str()) {
                prepared += 1;
                let sql = std::fs::read_to_string(&path).expect("a statement");
                if let Err(error) = client.prepare(&sql).await {
                    let why =
                        error.as_db_error().map_or(error.to_string(), |error| error.message().to_string());
                    broken.push(format!("{}: {why}", path.display()));
                }
            }
        }
    }
    assert!(prepared > 200, "{prepared}");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

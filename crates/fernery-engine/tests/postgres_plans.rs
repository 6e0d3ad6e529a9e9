//! Statements that look many things up are planned as lookups by key, whatever the statistics say.

mod support;

use fernery_engine::store::StoreSettings;
use support::postgres::{fresh_database, open_store};

const JUDGED: &str = include_str!("../src/store/postgres/sql/hints_judged.sql");
const BEHIND: &str = include_str!("../src/store/postgres/sql/outbox_take_behind.sql");
const UNSEALED: &str = include_str!("../src/substrate/sql/unsealed_take.sql");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_messages_are_about_is_looked_up_by_key() {
    let asked = [(JUDGED, "('{}', '{}', '{}', '{}', '{}', '{}')"), (BEHIND, "(32, 'x')")];
    are_looked_up_by_key(&asked, &[" on ready", " on leases", " on jobs"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_to_be_sealed_is_looked_up_by_key() {
    are_looked_up_by_key(&[(UNSEALED, "(256)")], &[" on journal"]).await;
}

/// Whether rows of these tables are only ever looked up by key by these statements, with these parameters.
async fn are_looked_up_by_key(asked: &[(&str, &str)], tables: &[&str]) {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &StoreSettings::default()).await;
    store.close().await;
    let client = database.client().await;
    let session = include_str!("../src/store/postgres/sql/session.sql");
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

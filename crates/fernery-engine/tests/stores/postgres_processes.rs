//! The table of processes: it does not grow, and a process is back in it after whatever befell its connections.

use crate::support::backend::START;
use crate::support::postgres::{FreshDatabase, fresh_database, open_store};
use fernery_core::limits::{PROCESS_ALIVE, PROCESS_FORGOTTEN};
use fernery_engine::door::Chance;
use fernery_engine::store::{Process, StoreSettings};
use fernery_engine::{Engine, EngineSettings, Presence};
use std::time::Duration;
use uuid::Uuid;

const MOMENT: Duration = Duration::from_millis(1);

fn process(n: u32) -> Process {
    Process {
        process_id: Uuid::from_u128(u128::from(n)),
        host: "alpha".into(),
        pid: n,
        url: "http://127.0.0.1:1".into(),
        version: "0.1.0".into(),
        schema_version: 5,
        lease_ttl: Duration::from_secs(60),
        heartbeat_interval: Duration::from_secs(20),
        reap_interval: Duration::from_secs(5),
        transport: "none".into(),
        started_at: START,
    }
}

async fn rows(database: &FreshDatabase) -> Vec<i32> {
    let rows = database.client().await.query("SELECT pid FROM fernery.processes ORDER BY pid", &[]).await;
    rows.expect("rows").iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_of_killed_processes_are_removed_after_an_hour() {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &StoreSettings::default()).await;
    database.stop_clock(START).await;
    for n in 1..=3 {
        store.attend(process(n)).await.expect("attend");
    }
    database.step_clock((PROCESS_FORGOTTEN - MOMENT).as_millis() as i64).await;
    store.attend(process(3)).await.expect("attend");
    assert_eq!(rows(&database).await, [1, 2, 3]);
    database.step_clock(1).await;
    // One of them is in another's hands: nobody waits for it.
    let mut client = database.client().await;
    let held = client.transaction().await.expect("begins");
    held.execute("SELECT FROM fernery.processes WHERE pid = 2 FOR UPDATE", &[]).await.expect("locked");
    store.attend(process(3)).await.expect("attend");
    assert_eq!(rows(&database).await, [2, 3]);
    held.rollback().await.expect("rolled back");
    store.attend(process(4)).await.expect("attend");
    assert_eq!(rows(&database).await, [3, 4]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_is_shown_again_once_its_database_is_back() {
    let database = fresh_database().await;
    let (store, signals) = open_store(&database.url(), &StoreSettings::default()).await;
    database.stop_clock(START).await;
    let mut settings = EngineSettings::default();
    // Every interval of the engine is a hundredth of what it is.
    settings.store.chance = Chance { fixed_fraction: Some(-0.98) };
    let engine = Engine::start(store, signals, settings);
    let presence = Presence::begin(&engine, process(1)).await;
    // What it wrote is gone, and so are its connections.
    let client = database.client().await;
    client.batch_execute("TRUNCATE fernery.processes").await.expect("emptied");
    drop(client);
    database.terminate_connections().await;
    while rows(&database).await.is_empty() {
        tokio::task::yield_now().await;
    }
    // The table is away: the process goes on, and is there once the table is.
    let client = database.client().await;
    client.batch_execute("ALTER TABLE fernery.processes RENAME TO elsewhere").await.expect("taken away");
    assert!(engine.store().processes().await.is_err());
    client.batch_execute("ALTER TABLE fernery.elsewhere RENAME TO processes").await.expect("put back");
    database.step_clock(PROCESS_ALIVE.as_millis() as i64).await;
    while engine.store().processes().await.expect("processes").is_empty() {
        tokio::task::yield_now().await;
    }
    presence.end().await;
    assert!(rows(&database).await.is_empty());
    engine.close().await;
}

//! Who serves the database: listed while it says so, and for no longer than 15 seconds after.

use crate::support::backend::{Backend, START, settings};
use fernery_core::limits::{PROCESS_ALIVE, PROCESS_FORGOTTEN};
use fernery_engine::store::{LivingProcess, Process, Store};
use fernery_engine::{Engine, EngineSettings, Presence};
use std::time::Duration;
use uuid::Uuid;

on_every_backend!(
    what_a_process_says_of_itself_is_listed_oldest_first,
    a_process_is_alive_until_it_has_said_nothing_for_fifteen_seconds,
    a_process_that_leaves_is_gone_at_once,
    a_process_that_comes_back_after_a_long_silence_is_listed_as_before,
    a_process_is_listed_from_its_begin_to_its_end,
);

const MOMENT: Duration = Duration::from_millis(1);

fn process(n: u32) -> Process {
    Process {
        process_id: Uuid::from_u128(u128::from(n)),
        host: "alpha".into(),
        pid: 4_000 + n,
        url: format!("http://127.0.0.1:{n}"),
        version: "0.1.0".into(),
        schema_version: 5,
        lease_ttl: Duration::from_secs(60),
        heartbeat_interval: Duration::from_secs(20),
        reap_interval: Duration::from_millis(2_500),
        transport: "none".into(),
        started_at: START,
    }
}

async fn attend(store: &dyn Store, n: u32) {
    store.attend(process(n)).await.expect("attend");
}

async fn alive(store: &dyn Store) -> Vec<u128> {
    let alive = store.processes().await.expect("processes");
    alive.iter().map(|seen| seen.process.process_id.as_u128()).collect()
}

async fn what_a_process_says_of_itself_is_listed_oldest_first<B: Backend>() {
    let backend = B::open(settings()).await;
    let (store, other) = (&*backend.store(), &*backend.of_another_process().await);
    assert_eq!(store.processes().await, Ok(Vec::new()));
    let young = Process {
        host: "Ω b".into(),
        transport: "redis".into(),
        started_at: START.after(MOMENT),
        ..process(1)
    };
    store.attend(young.clone()).await.expect("attend");
    backend.advance(MOMENT).await;
    attend(other, 2).await;
    let old = LivingProcess { process: process(2), seen_at: START.after(MOMENT) };
    let expected = vec![old, LivingProcess { process: young, seen_at: START }];
    assert_eq!(store.processes().await, Ok(expected.clone()));
    assert_eq!(other.processes().await, Ok(expected));
}

async fn a_process_is_alive_until_it_has_said_nothing_for_fifteen_seconds<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    attend(store, 1).await;
    attend(store, 2).await;
    backend.advance(PROCESS_ALIVE - MOMENT).await;
    assert_eq!(alive(store).await, [1, 2]);
    attend(store, 2).await;
    backend.advance(MOMENT).await;
    assert_eq!(alive(store).await, [2]);
    attend(store, 1).await;
    assert_eq!(alive(store).await, [1, 2], "it was only slow");
}

async fn a_process_that_leaves_is_gone_at_once<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    attend(store, 1).await;
    attend(store, 2).await;
    for _ in 0..2 {
        assert_eq!(store.leave(Uuid::from_u128(1)).await, Ok(()), "once more does no harm");
        assert_eq!(alive(store).await, [2]);
    }
}

async fn a_process_that_comes_back_after_a_long_silence_is_listed_as_before<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    attend(store, 1).await;
    backend.advance(PROCESS_FORGOTTEN).await;
    attend(store, 2).await;
    assert_eq!(alive(store).await, [2]);
    attend(store, 1).await;
    let seen_at = START.after(PROCESS_FORGOTTEN);
    let expected = [1, 2].map(|n| LivingProcess { process: process(n), seen_at });
    assert_eq!(store.processes().await, Ok(expected.to_vec()));
}

async fn a_process_is_listed_from_its_begin_to_its_end<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let mut settings = EngineSettings { store: settings(), ..EngineSettings::default() };
    // Every interval is a hundredth of what it is.
    settings.store.chance.fixed_fraction = Some(-0.98);
    let engine = Engine::start(backend.store(), backend.signals(), settings);
    let presence = Presence::begin(&engine, process(1)).await;
    assert_eq!(alive(store).await, [1], "from the first moment on");
    for _ in 0..3 {
        backend.advance(PROCESS_ALIVE - MOMENT).await;
        let now = store.now().await.expect("the time");
        while store.processes().await.expect("processes")[0].seen_at < now {
            tokio::task::yield_now().await;
        }
    }
    presence.end().await;
    assert_eq!(alive(store).await, [0_u128; 0]);
    engine.close().await;
}

//! The journal's chain: whole, or the first thing that is wrong has a name.

use crate::pipeline::world::World;
use crate::support::backend::Backend;
use fernery_engine::StoreError;
use fernery_engine::pipeline::Substrate;
use fernery_engine::pipeline::journal::{self, Head, Strays, Verified};
use tokio::task::JoinSet;

on_both_backends!(
    a_chain_that_nobody_touched_verifies,
    a_changed_entry_is_found,
    a_removed_entry_is_found,
    an_inserted_entry_is_found,
    swapped_entries_are_found,
    a_cut_tail_is_found_by_what_is_left,
    a_truncated_journal_is_detected_by_the_saved_head,
    a_chain_made_anew_is_found_by_the_remembered_end,
    sealers_at_once_never_break_the_chain,
);

/// Small, so that every walk has several parts.
const PART: i64 = 3;

async fn verify(substrate: &Substrate, from: Option<Head>) -> Verified {
    let mut from = from;
    loop {
        let part = from.clone();
        let (verified, last) =
            substrate.read(move |sql| journal::verify(sql, part.clone(), PART)).await.expect("read");
        if verified.fault.is_some() {
            return verified;
        }
        if last {
            return Verified { fault: stray(substrate).await, ..verified };
        }
        from = verified.head;
    }
}

async fn stray(substrate: &Substrate) -> Option<String> {
    let mut after = String::new();
    loop {
        let from = after.clone();
        match substrate.read(move |sql| journal::strays(sql, &from, PART)).await.expect("read") {
            Strays::Found(fault) => return Some(fault),
            Strays::NotUpTo(next) => after = next,
            Strays::None => return None,
        }
    }
}

/// Eight sealed entries: a blueprint, and seven tickets.
async fn sealed<B: Backend>() -> (World<B>, Vec<String>, Head) {
    let world = World::<B>::new("").await;
    for n in 0..7 {
        world.create(&format!("t{n}")).await;
    }
    while world.substrate.transact(|sql| journal::seal(sql, PART)).await.expect("sealed").0 > 0 {}
    let ids = world.backend.rows(&["SELECT entry_id FROM seals ORDER BY place"]).await;
    let head = world.substrate.read(journal::head).await.expect("read").expect("an end");
    assert_eq!((ids.len(), head.place), (8, 8));
    (world, ids, head)
}

/// As somebody with access to the database: the triggers go first.
async fn tampered<B: Backend>(world: &World<B>, sql: &str) -> Option<String> {
    let drop = match world.store.backend() {
        "sqlite" => {
            "DROP TRIGGER journal_stay; DROP TRIGGER journal_kept; DROP TRIGGER seals_stay;
             DROP TRIGGER seals_kept;"
        }
        _ => {
            "DROP TRIGGER stays ON journal; DROP TRIGGER kept ON journal; DROP TRIGGER stays ON seals;
             DROP TRIGGER kept ON seals;"
        }
    };
    world.backend.raw(&format!("{drop} {sql}")).await.expect("an attacker can");
    verify(&world.substrate, None).await.fault
}

async fn a_chain_that_nobody_touched_verifies<B: Backend>() {
    let (world, _, head) = sealed::<B>().await;
    let found = verify(&world.substrate, None).await;
    assert_eq!(found, Verified { entries: 8, head: Some(head.clone()), fault: None });
    // What is not sealed yet is no fault, and what is remembered goes on being true.
    world.create("later").await;
    assert_eq!(verify(&world.substrate, None).await.fault, None);
    world.substrate.transact(|sql| journal::seal(sql, 100)).await.expect("sealed");
    let found = verify(&world.substrate, Some(head)).await;
    assert_eq!((found.entries, found.fault), (9, None));
}

async fn a_changed_entry_is_found<B: Backend>() {
    for change in ["actor = 'somebody else'", "act = 'approve'", "subject = 't9'", "why = '{}'"] {
        let (world, ids, _) = sealed::<B>().await;
        let (first, second) = (&ids[3], &ids[6]);
        let sql = format!("UPDATE journal SET {change} WHERE entry_id IN ('{first}', '{second}')");
        let named = format!("entry {first}, number 4, was changed, inserted or moved");
        assert_eq!(tampered(&world, &sql).await, Some(named));
    }
}

async fn a_removed_entry_is_found<B: Backend>() {
    let (world, ids, _) = sealed::<B>().await;
    let sql = format!("DELETE FROM journal WHERE entry_id IN ('{}', '{}')", ids[2], ids[4]);
    assert_eq!(tampered(&world, &sql).await, Some(format!("entry {}, number 3, was removed", ids[2])));
    let (world, ids, _) = sealed::<B>().await;
    let id = &ids[2];
    let sql =
        format!("DELETE FROM journal WHERE entry_id = '{id}'; DELETE FROM seals WHERE entry_id = '{id}'");
    assert_eq!(tampered(&world, &sql).await, Some("seal 3 was removed; the next one is 4".to_string()));
    let (world, ids, _) = sealed::<B>().await;
    let id = &ids[2];
    let closed = format!(
        "DELETE FROM journal WHERE entry_id = '{id}'; DELETE FROM seals WHERE entry_id = '{id}';
         UPDATE seals SET place = -place WHERE place > 3; UPDATE seals SET place = -place - 1 WHERE place < 0"
    );
    let named = format!("entry {}, number 3, was changed, inserted or moved", ids[3]);
    assert_eq!(tampered(&world, &closed).await, Some(named));
}

async fn an_inserted_entry_is_found<B: Backend>() {
    let (world, ids, _) = sealed::<B>().await;
    let copy = "INSERT INTO journal SELECT 'made-up', created_at, actor, act, subject, why FROM journal";
    let sql = format!("{copy} WHERE entry_id = '{}'", ids[4]);
    assert_eq!(
        tampered(&world, &sql).await,
        Some("entry made-up was inserted, or its seal was removed".to_string())
    );
    let (world, ids, _) = sealed::<B>().await;
    let sql = format!(
        "{copy} WHERE entry_id = '{}';
         UPDATE seals SET place = -place WHERE place > 4; UPDATE seals SET place = -place + 1 WHERE place < 0;
         INSERT INTO seals SELECT 5, 'made-up', hash FROM seals WHERE place = 4",
        ids[4]
    );
    let named = "entry made-up, number 5, was changed, inserted or moved".to_string();
    assert_eq!(tampered(&world, &sql).await, Some(named));
}

async fn swapped_entries_are_found<B: Backend>() {
    let (world, ids, _) = sealed::<B>().await;
    let sql = "UPDATE seals SET place = 0 WHERE place = 3; UPDATE seals SET place = 3 WHERE place = 5;
               UPDATE seals SET place = 5 WHERE place = 0";
    let named = format!("entry {}, number 3, was changed, inserted or moved", ids[4]);
    assert_eq!(tampered(&world, sql).await, Some(named));
}

async fn a_cut_tail_is_found_by_what_is_left<B: Backend>() {
    let (world, ids, _) = sealed::<B>().await;
    let found = tampered(&world, "DELETE FROM seals WHERE place > 6").await;
    assert_eq!(found, Some(format!("entry {} was inserted, or its seal was removed", ids[6])));
}

async fn a_truncated_journal_is_detected_by_the_saved_head<B: Backend>() {
    let (world, ids, head) = sealed::<B>().await;
    let cut = format!(
        "DELETE FROM seals WHERE place > 6; DELETE FROM journal WHERE entry_id IN ('{}', '{}')",
        ids[6], ids[7]
    );
    assert_eq!(tampered(&world, &cut).await, None, "the chain itself cannot know");
    let found = verify(&world.substrate, Some(head)).await.fault;
    assert_eq!(found, Some("seal 8 was removed; the chain ends at 6".to_string()));
}

async fn a_chain_made_anew_is_found_by_the_remembered_end<B: Backend>() {
    let (world, ids, head) = sealed::<B>().await;
    let anew = format!(
        "UPDATE journal SET actor = 'somebody else' WHERE entry_id = '{}'; DELETE FROM seals;
         INSERT INTO unsealed SELECT entry_id FROM journal",
        ids[3]
    );
    tampered(&world, &anew).await;
    world.substrate.transact(|sql| journal::seal(sql, 100)).await.expect("sealed");
    assert_eq!(verify(&world.substrate, None).await.fault, None, "the chain itself cannot know");
    let found = verify(&world.substrate, Some(head)).await.fault;
    assert_eq!(found, Some("seal 8 differs from the saved one".to_string()));
}

async fn sealers_at_once_never_break_the_chain<B: Backend>() {
    let world = World::<B>::new("").await;
    let mut tasks = JoinSet::new();
    for sealer in 0..4 {
        let hands = if sealer % 2 == 0 { (*world).clone() } else { world.elsewhere().await };
        tasks.spawn(async move {
            for n in 0..15 {
                hands.create(&format!("t{sealer}-{n}")).await;
                let sealed: Result<_, StoreError> =
                    hands.substrate.transact(|sql| journal::seal(sql, 7)).await;
                sealed.expect("of two one finds nothing to do, and that is no trouble");
            }
        });
    }
    tasks.join_all().await;
    while world.substrate.transact(|sql| journal::seal(sql, 100)).await.expect("sealed").0 > 0 {}
    let found = verify(&world.substrate, None).await;
    assert_eq!((found.entries, found.fault), (61, None));
}

//! An older copy of the database under a Redis that has gone on: after `fernery fence` nobody from before can write, and
//! jobs flow.

use crate::world::{World, claim, complete, enqueue, report};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::process::Command;

async fn held(world: &World, jobs: usize) -> Vec<Value> {
    let mut held = Vec::new();
    for n in 0..jobs {
        held.push(claim(&world.servers[n % 3].target, &["s"], 2_000).await.expect("a job"));
    }
    held
}

/// What each of these is told by every report that a holder can make.
async fn refusals(world: &World, held: &[Value]) -> Vec<u16> {
    let mut told = Vec::new();
    for (n, held) in held.iter().enumerate() {
        let target = &world.servers[n % 3].target;
        for verb in ["heartbeat", "fail", "complete"] {
            let mut report = report(held);
            report["result"] = json!({"from": "before"});
            report["error"] = json!({"code": "x", "message": "x", "retryable": true});
            let path = format!("/internal/worker/{verb}");
            told.push(target.insist(&target.worker, "POST", &path, &report).await.0);
        }
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restore_and_a_fence_every_older_lease_is_refused_and_jobs_flow() {
    let lease = ["--lease-ttl", "60s", "--heartbeat-interval", "20s", "--reap-interval", "1s"];
    let mut world = World::with(3, &lease).await;
    let jobs = world.enqueue("s", 30).await;
    let before = held(&world, 10).await;
    for server in &mut world.servers {
        server.stop().await;
    }
    let backup = world.database.copy().await;
    // What the copy knows nothing of.
    for server in &mut world.servers {
        server.restart().await;
    }
    for held in &before[..5] {
        complete(world.target(), held).await;
    }
    let after = held(&world, 10).await;
    let lost = world.enqueue("s", 5).await;
    for server in &mut world.servers {
        server.kill().await;
    }
    world.servers.clear();

    world.database = backup;
    let fenced = Command::new(env!("CARGO_BIN_EXE_fernery"))
        .args(["fence", "--json", "--database", &world.database.url()])
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .output()
        .await
        .expect("it runs");
    assert!(fenced.status.success(), "{fenced:?}");
    let said: Value = serde_json::from_slice(&fenced.stdout).expect("JSON");
    assert_eq!(said["leases_freed"], 10);
    for _ in 0..3 {
        let server = world.another(&lease, &[]).await;
        world.servers.push(server);
    }

    let (of_before, of_after) = (refusals(&world, &before).await, refusals(&world, &after).await);
    println!("refused: {} of leases the copy knew, {} of later ones", of_before.len(), of_after.len());
    assert_eq!(of_before, [409; 30], "leases that the copy knew");
    // A heartbeat names no attempt that could be unknown.
    assert!(of_after.iter().all(|status| matches!(status, 404 | 409)), "{of_after:?}");
    world.drains_all(&["s"], &jobs).await;
    assert_eq!(world.drain(&["s"]).await, [""; 0], "{lost:?} were enqueued after the backup");
    let more = enqueue(&world.servers[1].target, "s", 10).await;
    world.drains_all(&["s"], &more).await;
    world.is_at_rest(&["s"]).await;
    world.is_at_rest_everywhere().await;
}

//! PostgreSQL is killed, throws everybody out, or gives way to its standby, under three control planes and a load: nothing
//! that was acknowledged is lost, and each control plane serves again soon after.
//!
//! `FERNERY_ROUNDS` (1) repeats all faults so many times; with more than five, `cargo nextest run --profile long`.

use crate::campaign::Target;
use crate::campaign::load::{Load, judge};
use crate::cluster::Cluster;
use crate::fresh_database::empty_database_on;
use crate::proxy::{Fault, Proxy};
use crate::seed::seed;
use crate::world::{PATIENCE, World, complete};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, NoTls};

const RECOVERY_P99: Duration = Duration::from_secs(15);

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(otherwise)
}

/// A load for each control plane, and how long each of them took to serve again.
struct Watched {
    loads: Vec<Load>,
    recoveries: Vec<Duration>,
}

impl Watched {
    fn new(targets: &[Target], seed: u64) -> Self {
        let each = targets.iter().zip(0..);
        let loads = each.map(|(target, n)| Load::paced(std::slice::from_ref(target), seed + n, 1, 8, 200));
        Self { loads: loads.collect(), recoveries: Vec::new() }
    }

    /// From now, when the service is back, until each control plane has accepted a completion of a job.
    async fn recover(&mut self, from: &str) {
        let since = Instant::now();
        let before: Vec<usize> = self.loads.iter().map(Load::completed).collect();
        let mut took = vec![None; before.len()];
        while took.contains(&None) {
            for (n, load) in self.loads.iter().enumerate() {
                if took[n].is_none() && load.completed() > before[n] {
                    took[n] = Some(since.elapsed());
                }
            }
            assert!(since.elapsed() < 2 * RECOVERY_P99, "{from}: not all serve again: {took:?}");
            sleep(Duration::from_millis(5)).await;
        }
        println!("{from}: served again after {took:?}");
        self.recoveries.extend(took.into_iter().flatten());
    }

    /// Everything comes to its end, and nothing that was acknowledged is missing.
    async fn judge(mut self, world: &World, faults: usize, least_stale: usize) {
        let ledger = Load::settle_all(self.loads, world.target()).await;
        let (lost, stale) = judge(world.target(), &ledger).await;
        world.is_at_rest(&["a", "b"]).await;
        let jobs = ledger.enqueued.lock().expect("not poisoned").len();
        self.recoveries.sort();
        let at = |percent: usize| self.recoveries[(self.recoveries.len() * percent).div_ceil(100) - 1];
        println!(
            "{faults} faults, {} recoveries: p50 {:?}, p99 {:?}; {jobs} jobs, {lost} attempts lost, \
             {stale} stale writes refused",
            self.recoveries.len(),
            at(50),
            at(99),
        );
        assert!(at(99) < RECOVERY_P99, "too slow: {:?}", self.recoveries);
        assert!(jobs >= 200 && lost >= 5 && stale >= least_stale, "too little happened to prove anything");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_what_postgresql_acknowledged_outlives_its_death_and_storms_of_lost_connections() {
    let seed = seed();
    let mut rng = StdRng::seed_from_u64(seed);
    let mut cluster = Cluster::start().await;
    let mut world = World::on(empty_database_on(&cluster.url()).await).await;
    for _ in 0..3 {
        let server = world.another(&[], &[]).await;
        world.servers.push(server);
    }
    let targets: Vec<Target> = world.servers.iter().map(|server| server.target.clone()).collect();
    let mut watched = Watched::new(&targets, seed);
    let rounds = 4 * number("FERNERY_ROUNDS", 1);
    let mut faults = 0;
    for _ in 0..rounds {
        sleep(Duration::from_millis(rng.random_range(300..800))).await;
        cluster.kill();
        sleep(Duration::from_millis(rng.random_range(0..2_000))).await;
        cluster.run().await;
        watched.recover("killed").await;
        for _ in 0..10 {
            world.database.terminate_connections().await;
            sleep(Duration::from_millis(rng.random_range(0..100))).await;
        }
        watched.recover("storm").await;
        faults += 11;
    }
    watched.judge(&world, faults, 3).await;
}

fn address(cluster: &Cluster) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], cluster.port()))
}

async fn connect(cluster: &Cluster) -> Client {
    let (client, connection) = tokio_postgres::connect(&cluster.url(), NoTls).await.expect("it answers");
    tokio::spawn(connection);
    client
}

/// Makes commits wait for the standby, which is there.
async fn waits_for_standby(primary: &Cluster) {
    let client = connect(primary).await;
    for sql in ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"] {
        client.batch_execute(sql).await.expect("set");
    }
    let deadline = Instant::now() + PATIENCE;
    let sql = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
    while client.query_one(sql, &[]).await.expect("a count").get::<_, i64>(0) == 0 {
        assert!(Instant::now() < deadline, "the standby does not follow");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_a_synchronous_standby_that_takes_over_has_all_that_was_acknowledged() {
    let seed = seed();
    let mut primary = Cluster::start().await;
    let mut standby = primary.standby();
    standby.run().await;
    waits_for_standby(&primary).await;
    let moving = Proxy::to(address(&primary)).await;
    let both = format!("{},{}", address(&primary), address(&standby));
    let server =
        format!("postgres://fernery@{both}/postgres?sslmode=disable&target_session_attrs=read-write");
    let mut world = World::on(empty_database_on(&server).await).await;
    let by_name = world.database.url();
    let by_address = by_name.replace(&both, &moving.address().to_string());
    assert_ne!(by_name, by_address);
    for url in [&by_name, &by_name, &by_address] {
        let server = world.another_by(url, &world.redis.url(), &[], &[]).await;
        world.servers.push(server);
    }
    let targets: Vec<Target> = world.servers.iter().map(|server| server.target.clone()).collect();
    let mut watched = Watched::new(&targets, seed);
    let rounds = 3 * usize::try_from(number("FERNERY_ROUNDS", 1)).expect("a count");
    for _ in 0..rounds {
        sleep(Duration::from_millis(1_000)).await;
        primary.kill();
        connect(&standby).await.batch_execute("SELECT pg_promote()").await.expect("promoted");
        moving.point_at(address(&standby));
        watched.recover("promoted").await;
        std::mem::swap(&mut primary, &mut standby);
        standby.copy(&primary);
        // When it takes over there is nobody yet to wait for.
        standby.configure("synchronous_standby_names = ''");
        standby.run().await;
        waits_for_standby(&primary).await;
    }
    watched.judge(&world, rounds, 1).await;
}

/// Behind lines of its own, because a primary that is dead says so and one that hangs does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_takes_connections_and_hangs_is_passed_by_once_its_standby_takes_over() {
    let primary = Cluster::start().await;
    let mut standby = primary.standby();
    standby.run().await;
    waits_for_standby(&primary).await;
    let (first, second) = (Proxy::to(address(&primary)).await, Proxy::to(address(&standby)).await);
    let server = format!(
        "postgres://fernery@{},{}/postgres?sslmode=disable&target_session_attrs=read-write",
        first.address(),
        second.address()
    );
    let mut world = World::on(empty_database_on(&server).await).await;
    let up = world.another(&[], &[]).await;
    world.servers.push(up);
    let jobs = world.enqueue("s", 10).await;
    first.set(Fault::Mute);
    connect(&standby).await.batch_execute("SELECT pg_promote()").await.expect("promoted");
    let since = Instant::now();
    let mut left: HashSet<String> = jobs.into_iter().collect();
    while !left.is_empty() && since.elapsed() < RECOVERY_P99 {
        let target = world.target();
        let ask = json!({"worker_id": "w", "streams": ["s"], "max_wait_ms": 1_000});
        if let Ok((200, held)) = target.call(&target.worker, "POST", "/internal/worker/claim", &ask).await
            && held["claimed"] == json!(true)
        {
            assert!(left.remove(held["job_id"].as_str().expect("an id")), "handed out twice: {held}");
            complete(target, &held).await;
        }
    }
    println!("{} jobs wait {:?} after the promotion", left.len(), since.elapsed());
    // Whoever drops the database must not wait for the one that hangs.
    first.set(Fault::Reset);
    assert!(left.is_empty(), "{} jobs wait for a primary that hangs", left.len());
}

//! One of three control planes is cut off from PostgreSQL, from Redis, or from its workers: the others go on, it comes
//! back by itself, and every job ends once.
//!
//! `FERNERY_ROUNDS` (1) repeats all faults so many times; with more than five, `cargo nextest run --profile long`.

use crate::campaign::load::{Load, judge};
use crate::proxy::{Fault, Proxy};
use crate::seed::seed;
use crate::world::{PATIENCE, World};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Longer than a lease: what the one cut off holds is given to others meanwhile.
const FAULT: Duration = Duration::from_millis(2_500);
/// Jobs that the others complete meanwhile, at least.
const ELSEWHERE: usize = 20;
const CLAIMABLE_WITHIN: Duration = Duration::from_secs(10);
/// Where connections stay silent after the fault, each is found out by a time-out of its own.
const SILENCE_FOUND_OUT: Duration = Duration::from_secs(8);
/// The last one is for PostgreSQL: workers' patience is their own business, and that with Redis is a second.
const FAULTS: [Fault; 5] =
    [Fault::Delay(Duration::from_millis(300)), Fault::Cut, Fault::Reset, Fault::Swallow, Fault::Mute];

fn within(fault: Fault) -> Duration {
    if fault == Fault::Mute { CLAIMABLE_WITHIN + SILENCE_FOUND_OUT } else { CLAIMABLE_WITHIN }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToPostgres,
    ToRedis,
    FromWorkers,
}

/// Where a URL leads.
fn place(url: &str) -> SocketAddr {
    let (_, rest) = url.split_once("//").expect("a URL");
    let authority = rest.split('/').next().expect("a server");
    authority.rsplit('@').next().expect("a server").parse().expect("an address with a port")
}

fn by_way_of(url: &str, proxy: &Proxy) -> String {
    url.replace(&place(url).to_string(), &proxy.address().to_string())
}

/// Three control planes, the first of them behind three lines.
struct Divided {
    world: World,
    to_postgres: Proxy,
    to_redis: Proxy,
    from_workers: Proxy,
}

impl Divided {
    async fn new() -> Self {
        let mut world = World::new(0).await;
        let (database, redis) = (world.database.url(), world.redis.url());
        let to_postgres = Proxy::to(place(&database)).await;
        let to_redis = Proxy::to(place(&redis)).await;
        let (by_database, by_redis) = (by_way_of(&database, &to_postgres), by_way_of(&redis, &to_redis));
        let first = world.another_by(&by_database, &by_redis, &[], &[]).await;
        world.servers.push(first);
        for _ in 0..2 {
            let server = world.another(&[], &[]).await;
            world.servers.push(server);
        }
        let from_workers = Proxy::to(world.servers[0].target.address()).await;
        Self { world, to_postgres, to_redis, from_workers }
    }

    fn way(&self, way: Way) -> &Proxy {
        match way {
            Way::ToPostgres => &self.to_postgres,
            Way::ToRedis => &self.to_redis,
            Way::FromWorkers => &self.from_workers,
        }
    }

    /// Every job that waits or is held now is claimed, or is given back and claimed, in time.
    async fn everything_moves_on(&self, within: Duration) -> Duration {
        let since = Instant::now();
        let client = self.world.database.client().await;
        let held_or_waiting = "SELECT job_id, claim_version FROM fernery.ready
            UNION ALL SELECT resource_id, claim_version FROM fernery.leases";
        let note =
            format!("DROP TABLE IF EXISTS pg_temp.noted; CREATE TEMP TABLE noted AS {held_or_waiting}");
        client.batch_execute(&note).await.expect("noted");
        let left = format!(
            "SELECT count(*) FROM ({held_or_waiting}) AS now JOIN noted USING (job_id, claim_version)"
        );
        loop {
            let left: i64 = client.query_one(&left, &[]).await.expect("a count").get(0);
            if left == 0 {
                return since.elapsed();
            }
            assert!(since.elapsed() < within, "{left} jobs are stuck");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The one that was cut off says that all is well, and its workers complete again.
    async fn recovers(&self, cut_off: &Load, within: Duration) -> Duration {
        let since = Instant::now();
        let before = cut_off.completed();
        let target = &self.world.servers[0].target;
        loop {
            let ready = target.call(&target.operator, "GET", "/readyz", &Value::Null).await;
            let ready = ready.is_ok_and(|(status, body)| status == 200 && body["status"] == "ok");
            if ready && cut_off.completed() > before {
                return since.elapsed();
            }
            assert!(since.elapsed() < within, "it does not recover: ready {ready}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn cut_off(way: Way) {
    let seed = seed();
    let rounds = std::env::var("FERNERY_ROUNDS").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let divided = Divided::new().await;
    let servers = &divided.world.servers;
    let by_proxy = servers[0].target.through(divided.from_workers.address());
    let cut_off = Load::paced(&[by_proxy], seed, 1, 10, 250);
    let others = Load::paced(&[servers[1].target.clone(), servers[2].target.clone()], seed + 1, 2, 14, 250);
    let mut faults = 0;
    let kinds = if way == Way::ToPostgres { &FAULTS[..] } else { &FAULTS[..4] };
    for fault in (0..rounds).flat_map(|_| kinds).copied() {
        let within = within(fault);
        let line = divided.way(way);
        let (touched, went_on, came) = (line.touched(), others.completed(), cut_off.completed());
        line.set(fault);
        sleep(FAULT).await;
        // On a busy machine the others need longer to show that they go on.
        let until = Instant::now() + Duration::from_secs(60);
        while others.completed() - went_on < ELSEWHERE && Instant::now() < until {
            sleep(Duration::from_millis(50)).await;
        }
        line.set(Fault::None);
        let (touched, went_on) = (line.touched() - touched, others.completed() - went_on);
        let came = cut_off.completed() - came;
        let (recovered, moved_on) =
            tokio::join!(divided.recovers(&cut_off, within), divided.everything_moves_on(within));
        println!(
            "{fault:?}: {touched} pieces touched; meanwhile {came} completed there and {went_on} elsewhere; \
             recovered in {recovered:?}, all jobs moved on in {moved_on:?}"
        );
        assert!(touched > 0, "the fault met nobody");
        assert!(went_on >= ELSEWHERE, "the others stood still: {went_on}");
        // A slow Redis makes it slow, and the others quicker than it.
        if way == Way::ToRedis && !matches!(fault, Fault::Delay(_)) {
            assert!(came >= 1, "Redis decides nothing, and yet it stood still: {came}");
        }
        faults += 1;
    }
    let ledger = Load::settle_all(vec![cut_off, others], divided.world.target()).await;
    let (lost, stale) = judge(divided.world.target(), &ledger).await;
    divided.world.is_at_rest(&["a", "b"]).await;
    let jobs = ledger.enqueued.lock().expect("not poisoned").len();
    println!("{faults} faults, {jobs} jobs, {lost} attempts lost, {stale} stale writes refused");
    assert!(faults >= 4 && jobs >= 300 && lost >= 10 && stale >= 3, "too little happened to prove anything");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_a_control_plane_cut_off_from_postgresql_comes_back_by_itself_and_every_job_ends_once() {
    cut_off(Way::ToPostgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_a_control_plane_cut_off_from_redis_goes_on_and_every_job_ends_once() {
    cut_off(Way::ToRedis).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_a_control_plane_cut_off_from_its_workers_loses_nothing_they_were_told() {
    cut_off(Way::FromWorkers).await;
}

const NOBODY: &str = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";

/// As behind a balancer that hangs: whoever connects is taken on and hears nothing, then and later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_takes_connections_and_never_speaks_holds_nobody_up_once_another_answers() {
    let divided = Divided::new().await;
    let target = divided.world.servers[0].target.clone();
    divided.to_postgres.set(Fault::Reset);
    // Connections that were open are gone once a new one has been tried.
    let ready = || target.call(&target.operator, "GET", "/readyz", &Value::Null);
    let gone = async { while ready().await.is_ok_and(|(status, _)| status == 200) {} };
    timeout(PATIENCE, gone).await.expect("it notices");
    divided.to_postgres.set(Fault::Mute);
    let before = divided.to_postgres.touched();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let target = target.clone();
        let look = format!("/v1/jobs/{NOBODY}");
        calls.spawn(async move { target.call(&target.operator, "GET", &look, &Value::Null).await });
    }
    // More than it ever has at a time, the one that listens included: some were given up.
    let all = async {
        while divided.to_postgres.touched() < before + 11 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, all).await.expect("connections that never speak are given up, and others tried");
    divided.to_postgres.set(Fault::None);
    let since = Instant::now();
    let again = async { while !ready().await.is_ok_and(|(status, _)| status == 200) {} };
    timeout(PATIENCE, again).await.expect("it serves again");
    println!("served again after {:?}", since.elapsed());
    calls.join_all().await;
}

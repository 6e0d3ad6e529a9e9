//! PostgreSQL goes away, says nothing, or is not what it should be: nothing is lost, nothing is done twice, and no call
//! answers what it does not know.

use crate::support::cluster::Cluster;
use crate::support::consistency::assert_consistent;
use crate::support::fresh_database::empty_database;
use crate::support::postgres::{FreshDatabase, fresh_database, open_store};
use crate::support::proxy::Proxy;
use crate::support::singly::{ask, claim, completion, enqueue, failure, job_on, json, proof, status, view};
use fernery_core::job::report::Answer;
use fernery_core::{JobId, JobStatus};
use fernery_engine::StoreError;
use fernery_engine::signals::Signals;
use fernery_engine::store::postgres::PostgresStore;
use fernery_engine::store::{
    Ask, Beat, BeatAnswer, Claimed, Completion, Enqueued, Failure, NewJob, Proof, Store, StoreSettings,
};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// Short, so that what a lost claim took comes back within the test.
fn settings() -> StoreSettings {
    StoreSettings { lease_ttl: Duration::from_secs(1), ..StoreSettings::default() }
}

async fn refusal(url: &str) -> String {
    match PostgresStore::open(url, settings(), Arc::new(Signals::default())).await {
        Err(StoreError::Refused(why) | StoreError::Unavailable(why)) => why,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it opened"),
    }
}

/// Calls again as a client does, until the call is answered.
async fn insist<T, F: Future<Output = Result<T, StoreError>>>(mut call: impl FnMut() -> F) -> T {
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(StoreError::Unavailable(_) | StoreError::Busy(_)) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

fn job_with_id(n: usize) -> NewJob {
    let id = format!("00000000-0000-7000-8000-{n:012}").parse::<JobId>().expect("an id");
    NewJob { job_id: Some(id), ..job_on("s") }
}

/// Enqueues `jobs` jobs and carries them out while `trouble` goes on; then everything must have ended once.
async fn work_through(store: &Arc<dyn Store>, jobs: usize, trouble: impl Future<Output = ()>) {
    let mut tasks = JoinSet::new();
    let done = Arc::new(AtomicUsize::new(0));
    for lane in 0..4 {
        let store = store.clone();
        tasks.spawn(async move {
            for n in (lane..jobs).step_by(4) {
                let answers = insist(|| store.enqueue(vec![job_with_id(n)])).await;
                assert!(matches!(answers[..], [Enqueued::Created(_) | Enqueued::Exists(_)]), "{answers:?}");
            }
        });
    }
    for _ in 0..8 {
        let (store, done) = (store.clone(), done.clone());
        tasks.spawn(async move {
            while done.load(Ordering::Relaxed) < jobs {
                for claimed in insist(|| store.claim(ask(&["s"], 2))).await {
                    let answers = insist(|| store.complete(vec![completion(proof(&claimed))])).await;
                    // A lease of a second may run out while the database is away.
                    let counts = matches!(answers[..], [Answer::Accepted { .. } | Answer::Duplicate { .. }]);
                    done.fetch_add(usize::from(counts), Ordering::Relaxed);
                }
                insist(|| store.reap(100)).await;
            }
        });
    }
    trouble.await;
    tasks.join_all().await;
    assert_eq!(done.load(Ordering::Relaxed), jobs, "each is done once");
    for n in 0..jobs {
        let job_id = job_with_id(n).job_id.expect("an id");
        assert_eq!(status(&**store, job_id).await, JobStatus::Succeeded, "job {n}");
    }
    assert_consistent(&**store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_terminated_connections_loses_and_doubles_nothing() {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &settings()).await;
    work_through(&store, 300, async {
        for _ in 0..30 {
            database.terminate_connections().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let left = database.client().await;
    let row = left
        .query_one("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()", &[])
        .await
        .expect("a count");
    assert!(row.get::<_, i64>(0) <= 12, "lost connections are replaced, not collected");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_started_again_has_everything_that_was_acknowledged() {
    let mut cluster = Cluster::start().await;
    let (store, _) = open_store(&cluster.url(), &settings()).await;
    let again = store.clone();
    work_through(&again, 200, async {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cluster.kill();
            tokio::time::sleep(Duration::from_millis(300)).await;
            cluster.run().await;
        }
    })
    .await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_server_is_away_every_call_says_so_and_none_hangs() {
    let mut cluster = Cluster::start().await;
    let (store, _) = open_store(&cluster.url(), &settings()).await;
    let brief = enqueue(&*store, job_on("s")).await;
    cluster.kill();
    let asked = tokio::time::timeout(Duration::from_secs(60), async {
        tokio::join!(
            store.enqueue(vec![job_on("s")]),
            store.claim(ask(&["s"], 1)),
            store.cancel(brief.job_id, false),
            store.job(brief.job_id),
            store.reap(1),
        )
    });
    let (enqueued, claimed, cancelled, read, reaped) = asked.await.expect("none hangs");
    for error in [
        enqueued.expect_err("away"),
        claimed.expect_err("away"),
        cancelled.expect_err("away"),
        read.expect_err("away"),
        reaped.expect_err("away"),
    ] {
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    }
    cluster.run().await;
    assert_eq!(status(&*store, brief.job_id).await, JobStatus::Queued);
    assert_eq!(claim(&*store, "s").await.job_id, brief.job_id);
    store.close().await;
}

/// A store behind a proxy, with what belongs to it.
struct Behind {
    store: Arc<dyn Store>,
    proxy: Proxy,
    database: FreshDatabase,
}

async fn behind_a_proxy() -> Behind {
    let database = fresh_database().await;
    let url = database.url();
    let (front, name) = url.rsplit_once('/').expect("a database");
    let (credentials, host) = front.rsplit_once('@').expect("a user");
    let port = host.rsplit_once(':').expect("a port").1.parse().expect("a number");
    let proxy = Proxy::before(port).await;
    let url = format!("{credentials}@127.0.0.1:{}/{name}?sslmode=disable", proxy.port());
    let (store, _) = open_store(&url, &StoreSettings::default()).await;
    Behind { store, proxy, database }
}

/// Three leases are held meanwhile: none of them costs a claim of their stream anything before it runs out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_finds_nothing_costs_one_statement() {
    let b = behind_a_proxy().await;
    let store = &*b.store;
    // By another process: whoever takes jobs in tells others of them in its own time.
    let (producer, _) = open_store(&b.database.url(), &StoreSettings::default()).await;
    producer.enqueue(vec![job_on("a"); 3]).await.expect("stored");
    producer.close().await;
    assert_eq!(store.claim(ask(&["a"], 3)).await.expect("claim").len(), 3);
    // The first after one that got all it asked for looks again from the front of the line.
    assert!(store.claim(ask(&["a", "b"], 1)).await.expect("claim").is_empty());
    let before = b.proxy.statements();
    for _ in 0..10 {
        assert!(store.claim(ask(&["a", "b"], 1)).await.expect("claim").is_empty());
    }
    assert_eq!(b.proxy.statements() - before, 10);
    store.reap(10).await.expect("reaped");
    assert!(b.proxy.statements() - before > 11, "what is asked is counted");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enqueue_whose_reply_was_lost_stores_the_job_once() {
    let b = behind_a_proxy().await;
    for job in [job_on("s"), NewJob { unique_key: Some("k".into()), ..job_on("s") }] {
        b.proxy.lose_reply_to(br#"{"lost":1}"#);
        let brief = enqueue(&*b.store, NewJob { payload: json(r#"{"lost":1}"#), ..job }).await;
        assert_eq!(status(&*b.store, brief.job_id).await, JobStatus::Queued);
    }
    assert_eq!(b.proxy.lost(), 2);
    assert_eq!(b.store.claim(ask(&["s"], 10)).await.expect("claim").len(), 2, "stored once each");
    assert_consistent(&*b.store).await;
    b.store.close().await;
}

async fn lose_the_claim(b: &Behind) -> Claimed {
    b.proxy.lose_reply_to(b"worker-1");
    let lost = b.proxy.lost();
    let claimed = claim(&*b.store, "s").await;
    assert_eq!(b.proxy.lost(), lost + 1);
    claimed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_reply_was_lost_is_found_with_its_token() {
    let b = behind_a_proxy().await;
    let brief = enqueue(&*b.store, job_on("s")).await;
    let claimed = lose_the_claim(&b).await;
    assert_eq!((claimed.job_id, claimed.attempt_no), (brief.job_id, 1));
    let answers = b.store.complete(vec![completion(proof(&claimed))]).await.expect("complete");
    assert_eq!(answers, [Answer::Accepted { status: JobStatus::Succeeded }], "the token is the holder's");
    b.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_whose_reply_was_lost_finds_its_own_write() {
    let b = behind_a_proxy().await;
    let done = |status| [Answer::Duplicate { status }];
    for _ in 0..3 {
        enqueue(&*b.store, job_on("s")).await;
    }
    let held = claim(&*b.store, "s").await;
    let beat = Beat { job_id: held.job_id, token_hash: held.lease_token.hash() };
    b.proxy.lose_reply_to(&held.lease_token.hash().0);
    let beats = b.store.heartbeat(vec![beat]).await.expect("heartbeat");
    assert!(matches!(beats[..], [BeatAnswer::Extended { cancel_requested: false, .. }]), "{beats:?}");

    b.proxy.lose_reply_to(br#"{"lost":2}"#);
    let report = Completion { proof: proof(&held), result: json(r#"{"lost":2}"#) };
    assert_eq!(b.store.complete(vec![report]).await.expect("complete"), done(JobStatus::Succeeded));

    let held = claim(&*b.store, "s").await;
    b.proxy.lose_reply_to(br#"{"code":"lost"}"#);
    let report = Failure { error: json(r#"{"code":"lost"}"#), ..failure(proof(&held)) };
    assert_eq!(b.store.fail(vec![report]).await.expect("fail"), done(JobStatus::Queued));
    assert_eq!(view(&*b.store, held.job_id).await.attempts.len(), 1, "failed once");

    let held = claim(&*b.store, "s").await;
    b.proxy.lose_reply_to(b"RELEASED");
    let report: Proof = proof(&held);
    assert_eq!(b.store.release(vec![report]).await.expect("release"), done(JobStatus::Queued));
    assert_eq!(b.proxy.lost(), 4);
    assert_consistent(&*b.store).await;
    b.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_whose_reply_was_lost_is_reported_as_unknown() {
    let b = behind_a_proxy().await;
    let brief = enqueue(&*b.store, job_on("s")).await;
    // The statement is prepared on a connection that is kept, so the next one is a request with the id in it.
    let other = enqueue(&*b.store, job_on("t")).await;
    b.store.cancel(other.job_id, false).await.expect("cancel");
    b.proxy.lose_reply_to(b"COMMIT");
    let error = b.store.cancel(brief.job_id, false).await.expect_err("unknown");
    assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("unknown whether")), "{error:?}");
    assert_eq!(status(&*b.store, brief.job_id).await, JobStatus::Cancelled, "it had");
    b.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claimers_that_hang_up_at_any_moment_lose_no_job() {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &StoreSettings::default()).await;
    const JOBS: usize = 50;
    store.enqueue((0..JOBS).map(job_with_id).collect()).await.expect("enqueue");
    let stop = Arc::new(AtomicBool::new(false));
    let mut impatient = JoinSet::new();
    for n in 0..8u64 {
        let (store, stop) = (store.clone(), stop.clone());
        impatient.spawn(async move {
            let mut wait = n;
            while !stop.load(Ordering::Relaxed) {
                wait = (wait * 7 + 3) % 40;
                let one: Ask = ask(&["s"], 1);
                let claimed = tokio::time::timeout(Duration::from_micros(wait * 100), store.claim(one)).await;
                // Whoever is in time hands it back: nothing ends here.
                if let Ok(Ok(claimed)) = claimed {
                    for held in &claimed {
                        store.release(vec![proof(held)]).await.expect("release");
                    }
                }
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.store(true, Ordering::Relaxed);
    impatient.join_all().await;
    // What nobody accepted goes back in the background, at once and not when its lease runs out.
    let mut found = HashSet::new();
    let served = tokio::time::timeout(StoreSettings::default().lease_ttl / 2, async {
        while found.len() < JOBS {
            found.extend(store.claim(ask(&["s"], JOBS)).await.expect("claim").iter().map(|c| c.job_id));
            let dead = store.count_dead(fernery_engine::store::DeadFilter::default()).await.expect("count");
            if found.len() + dead as usize == JOBS {
                break;
            }
        }
    });
    served.await.expect("every job is back");
    assert_consistent(&*store).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_enqueued_in_one_process_is_heard_of_in_another() {
    let database = fresh_database().await;
    let (here, _) = open_store(&database.url(), &StoreSettings::default()).await;
    let (there, signals) = open_store(&database.url(), &StoreSettings::default()).await;
    let streams = [crate::support::singly::stream("s")];
    let parked = signals.parking.park(&streams);
    // The other process listens a moment after it has opened.
    let heard = async {
        loop {
            enqueue(&*here, job_on("s")).await;
            if tokio::time::timeout(Duration::from_millis(200), parked.nudged()).await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), heard).await.expect("a nudge");
    there.close().await;
    here.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_processes_that_start_together_migrate_once() {
    let database = empty_database().await;
    let url = database.url();
    let mut starts = JoinSet::new();
    for _ in 0..6 {
        let url = url.clone();
        starts.spawn(async move { open_store(&url, &StoreSettings::default()).await.0 });
    }
    for store in starts.join_all().await {
        enqueue(&*store, job_on("s")).await;
        store.close().await;
    }
}

/// Any other statement is given up after 6.5 s. A step that builds an index over a long history takes minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_takes_as_long_as_it_takes() {
    let database = empty_database().await;
    let client = database.client().await;
    let slow = "CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$
        BEGIN IF tg_tag = 'CREATE VIEW' THEN PERFORM pg_sleep(7.5); END IF; END $$;
        CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE VIEW') EXECUTE FUNCTION slow()";
    client.batch_execute(slow).await.expect("a slow step");
    let url = database.url();
    let starts = [url.clone(), url]
        .map(|url| tokio::spawn(async move { open_store(&url, &StoreSettings::default()).await.0 }));
    for start in starts {
        let store = start.await.expect("a process that migrates, and one that waits for it");
        enqueue(&*store, job_on("s")).await;
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_from_the_future_is_refused_and_left_alone() {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &settings()).await;
    store.close().await;
    let client = database.client().await;
    client
        .batch_execute("INSERT INTO fernery.schema_version VALUES (999, clock_timestamp())")
        .await
        .expect("a version from the future");
    let why = refusal(&database.url()).await;
    assert!(why.contains("999") && why.contains("newer"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_connection_is_told_without_the_password() {
    let cluster = Cluster::start().await;
    let url = format!("postgres://nobody:hunter2@127.0.0.1:{}/postgres?sslmode=disable", cluster.port());
    let why = refusal(&url).await;
    assert!(why.contains("nobody") && !why.contains("hunter2"), "{why}");
    let why = refusal("postgres://u:hunter2@127.0.0.1:1/db").await;
    assert!(!why.contains("hunter2"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_checks_as_much_of_the_certificate_as_the_url_asks_for() {
    let mut cluster = Cluster::start().await;
    let authority = authority("ours");
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = rcgen::CertificateParams::new(vec!["localhost".to_string()])
        .and_then(|params| params.signed_by(&key, &authority.1))
        .expect("a certificate");
    cluster.put("server.crt", &certificate.pem());
    cluster.put("server.key", &key.serialize_pem());
    cluster.configure("ssl = on");
    cluster.kill();
    cluster.run().await;
    let file = |name: &str, pem: &str| {
        let path = cluster.dir().join(name);
        std::fs::write(&path, pem).expect("a file");
        format!("sslrootcert={}", path.display())
    };
    let (ours, strange) =
        (file("ours.pem", &authority.0), file("strange.pem", &self::authority("strange").0));
    for (host, query, opens) in [
        ("localhost", format!("sslmode=verify-full&{ours}"), true),
        ("127.0.0.1", format!("sslmode=verify-full&{ours}"), false),
        ("localhost", format!("sslmode=verify-full&{strange}"), false),
        ("127.0.0.1", format!("sslmode=verify-ca&{ours}"), true),
        ("127.0.0.1", format!("sslmode=verify-ca&{strange}"), false),
        ("127.0.0.1", format!("sslmode=require&{strange}"), false),
        ("127.0.0.1", "sslmode=require".to_string(), true),
        ("127.0.0.1", "sslmode=prefer".to_string(), true),
        ("127.0.0.1", "sslmode=disable".to_string(), true),
    ] {
        let url = cluster.url_as(host, &query);
        if opens {
            let (store, _) = open_store(&url, &settings()).await;
            store.close().await;
        } else {
            let why = refusal(&url).await;
            assert!(why.contains("certificate"), "{query}: {why}");
        }
    }
}

/// A certificate authority: its certificate as a file, and what signs with it.
fn authority(name: &str) -> (String, rcgen::Issuer<'static, rcgen::KeyPair>) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).expect("a certificate");
    (certificate.pem(), rcgen::Issuer::new(params, key))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corrupt_lease_does_not_block_the_reaper() {
    let database = fresh_database().await;
    let settings = StoreSettings { lease_ttl: Duration::ZERO, ..StoreSettings::default() };
    let (store, _) = open_store(&database.url(), &settings).await;
    for _ in 0..3 {
        enqueue(&*store, job_on("s")).await;
    }
    assert_eq!(store.claim(ask(&["s"], 3)).await.expect("claim").len(), 3);
    let damage = "UPDATE fernery.leases SET token_hash = '\\x00'
                  WHERE resource_id = (SELECT resource_id FROM fernery.leases ORDER BY resource_id LIMIT 1)";
    assert_eq!(database.client().await.execute(damage, &[]).await.expect("damaged"), 1);
    assert_eq!(store.reap(100).await.expect("reaped").moved, 2);
    store.close().await;
}

/// One that cannot be settled spoils the statement that settles many; one that cannot be read takes the place of another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsettleable_leases_do_not_block_the_reaper() {
    let database = fresh_database().await;
    let settings = StoreSettings { lease_ttl: Duration::ZERO, ..StoreSettings::default() };
    let (store, _) = open_store(&database.url(), &settings).await;
    store.enqueue(vec![job_on("s"); 260]).await.expect("stored");
    assert_eq!(store.claim(ask(&["s"], 260)).await.expect("claim").len(), 260);
    let client = database.client().await;
    for damage in [
        // The attempt that is open is closed as well.
        "INSERT INTO fernery.attempts (job_id, attempt_no, attempt_id, token_hash, worker_id, started_at, finished_at,
                                       outcome, status, claim_version)
         SELECT resource_id, attempt_no, attempt_id, token_hash, owner_id, started_at, now(), 'LOST', 'QUEUED', 1
         FROM (SELECT * FROM fernery.leases ORDER BY resource_id LIMIT 30) front",
        "UPDATE fernery.leases SET token_hash = '\\x00' WHERE resource_id IN
            (SELECT resource_id FROM fernery.leases ORDER BY resource_id OFFSET 30 LIMIT 210)",
    ] {
        client.execute(damage, &[]).await.expect("damaged");
    }
    let pass = store.reap(15).await.expect("reaped");
    assert_eq!((pass.moved, pass.full), (15, true));
    assert_eq!(store.reap(100).await.expect("reaped").moved, 5);
    assert_eq!(store.reap(100).await.expect("reaped").moved, 0, "and the damaged ones are left alone");
    assert_eq!(store.claim(ask(&["s"], 260)).await.expect("claim").len(), 20);
    assert_eq!(
        store.claim(ask(&["s"], 1)).await.expect("claim").len(),
        1,
        "nor are claims kept from the others"
    );
    assert_eq!(client.query("SELECT FROM fernery.leases", &[]).await.expect("read").len(), 241);
    store.close().await;
}

/// Invariants 4 and 5: a fence beside claims and completions moves no job into two places.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_beside_a_running_server_loses_and_doubles_nothing() {
    let database = fresh_database().await;
    let (store, _) = open_store(&database.url(), &settings()).await;
    let (other, _) = open_store(&database.url(), &settings()).await;
    work_through(&store, 600, async {
        for _ in 0..20 {
            other.fence().await.expect("fence");
        }
    })
    .await;
    other.close().await;
    store.close().await;
}

//! PostgreSQL: one server for many processes.
//!
//! The database is the truth and its clock decides. The hot verbs are one statement each, so one round trip and one
//! commit; calls that arrive while one is in flight share the next (`grouper`). Everything else loads under lock, lets
//! `fernery-core` decide, and applies, in one short transaction.
//!
//! If a connection is lost during a commit, the outcome is unknown. Calls with an id of their own (enqueue, claim,
//! heartbeat, complete, fail, release) find it out: they read back by that id, or repeat an idempotent write. Other
//! calls report that the outcome is unknown.

mod after_commit;
mod bulk;
mod claim;
mod clock;
mod connection;
mod enqueue;
mod fence;
mod grouper;
pub mod health;
mod intake;
mod maintain;
mod messages;
mod migrate;
mod notify;
mod operate;
mod pipeline;
mod processes;
mod read;
mod reap;
mod report;
mod rows;
mod scan_start;
mod settle;
mod streams;

use self::claim::ClaimBatch;
use self::connection::pool::Pool;
use self::connection::retry::Trouble;
use self::connection::url::Target;
use self::enqueue::EnqueueBatch;
use self::grouper::Grouper;
use self::messages::relay::Messaging;
use self::messages::{relay, sweep};
use self::notify::Notifier;
use self::pipeline::ActBatch;
use self::report::{CompleteBatch, HeartbeatBatch};
use self::scan_start::ScanStarts;
use self::settle::SettleBatch;
use crate::error::StoreResult;
use crate::signals::Signals;
use crate::store::expiry::Expiries;
use crate::store::{Failure, Proof, SignIns, Stats, Store, StoreSettings, Tokens};
use crate::supervise::lock;
use async_trait::async_trait;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

/// A store in a PostgreSQL database, in its schema `fernery`.
pub struct PostgresStore {
    shared: Arc<Shared>,
    enqueues: Grouper<EnqueueBatch>,
    claims: Grouper<ClaimBatch>,
    heartbeats: Grouper<HeartbeatBatch>,
    completes: Grouper<CompleteBatch>,
    fails: Grouper<SettleBatch<Failure>>,
    releases: Grouper<SettleBatch<Proof>>,
    acts: Grouper<ActBatch>,
    taking_back: Mutex<Option<JoinHandle<()>>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    clock_kept: Mutex<Option<Instant>>,
}

/// How long closing waits for claims that nobody took to be put back; what is not back by then runs out.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// What all verbs need.
struct Shared {
    pool: Pool,
    settings: StoreSettings,
    signals: Arc<Signals>,
    notifier: Notifier,
    scan_starts: ScanStarts,
    expiries: Expiries,
    /// Where messages tell of jobs.
    messaging: Option<Messaging>,
    /// Nothing more will be claimed.
    closing: Notify,
}

impl PostgresStore {
    /// Connects, and makes or migrates the schema. A database of a newer version is refused.
    pub async fn open(url: &str, settings: StoreSettings, signals: Arc<Signals>) -> StoreResult<Self> {
        let mut target = Target::parse(url)?;
        target.emits = settings.transport.is_some();
        // Once outside the pool, where a refusal is told from a server that is away.
        drop(target.connect().await.map_err(Trouble::into_error)?);
        let pool = Pool::new(target);
        let session = pool.session().await.map_err(Trouble::into_error)?;
        migrate::migrate(&session).await?;
        drop(session);
        let (notifier, scan_starts) = (Notifier::new(), ScanStarts::default());
        let messaging = settings.transport.clone().map(Messaging::new);
        let (expiries, closing) = (Expiries::default(), Notify::new());
        let shared =
            Arc::new(Shared { pool, settings, signals, notifier, scan_starts, expiries, messaging, closing });
        let (undelivered, taken_back) = mpsc::unbounded_channel();
        let taken_back = Arc::new(tokio::sync::Mutex::new(taken_back));
        let taking_back = shared.supervised("take_back", move |shared| {
            let taken_back = taken_back.clone();
            async move { claim::take_back(shared, &mut *taken_back.lock().await).await }
        });
        let mut tasks =
            vec![shared.supervised("notifier", notify::send), shared.supervised("listener", notify::listen)];
        if shared.messaging.is_some() {
            tasks.push(shared.supervised("relay", relay::relay));
            tasks.push(shared.supervised("sweep", sweep::sweep));
        }
        Ok(Self {
            enqueues: Grouper::new(EnqueueBatch(shared.clone())),
            claims: Grouper::new(ClaimBatch { shared: shared.clone(), undelivered }),
            heartbeats: Grouper::new(HeartbeatBatch(shared.clone())),
            completes: Grouper::new(CompleteBatch(shared.clone())),
            fails: Grouper::new(SettleBatch::new(shared.clone())),
            releases: Grouper::new(SettleBatch::new(shared.clone())),
            acts: Grouper::new(ActBatch(shared.clone())),
            shared,
            taking_back: Mutex::new(Some(taking_back)),
            tasks: Mutex::new(tasks),
            clock_kept: Mutex::default(),
        })
    }
}

impl Shared {
    fn supervised<F>(
        self: &Arc<Self>,
        name: &'static str,
        work: impl Fn(Arc<Self>) -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let shared = self.clone();
        self.signals.loops.run(name, move || work(shared.clone()))
    }
}

impl Tokens for PostgresStore {}

impl SignIns for PostgresStore {}

impl Stats for PostgresStore {}

#[async_trait]
impl Store for PostgresStore {
    fn backend(&self) -> &'static str {
        "postgres"
    }

    async fn close(&self) {
        let taking_back = lock(&self.taking_back).take();
        if let Some(mut task) = taking_back {
            let put_back = async {
                self.claims.rest().await;
                self.shared.closing.notify_one();
                let _ = (&mut task).await;
            };
            if tokio::time::timeout(CLOSE_WAIT, put_back).await.is_err() {
                task.abort();
            }
        }
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        for task in tasks {
            task.abort();
        }
        self.shared.pool.close();
    }
}

//! SQLite: one file, one server process, one writer thread, readers apart.
//!
//! The file is the truth. `synchronous=FULL` in WAL mode: what was answered has been synced.

pub mod backup;
mod bulk;
mod claim;
mod clock;
mod enqueue;
pub mod health;
mod lock;
mod maintain;
mod open;
mod operate;
mod pipeline;
mod processes;
mod read;
mod readers;
mod reap;
mod report;
mod rows;
mod settle;
mod streams;
mod tx;
mod upgrade;
mod writer;

use self::maintain::Round;
use self::processes::LivingProcesses;
use self::readers::Readers;
use self::tx::Tx;
use self::writer::Writer;
use crate::door::{LeaseClock, stop_watch};
use crate::error::{StoreError, StoreResult};
use crate::signals::Signals;
use crate::store::expiry::Expiries;
use crate::store::{SignIns, Stats, Store, StoreSettings, Tokens};
use crate::supervise::{caught_now, lock};
use async_trait::async_trait;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

/// A store in one SQLite file.
pub struct SqliteStore {
    /// `None` once it is closed.
    writer: Mutex<Option<Writer>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    readers: Readers,
    clock: LeaseClock,
    /// Where retention goes on.
    retain_from: Arc<Mutex<Round>>,
    /// Dead letters were started over or are gone: retention goes through all jobs again.
    retain_anew: AtomicBool,
    /// Whether anything was written since the clock was last kept.
    wrote: AtomicBool,
    clock_kept: Mutex<Instant>,
    processes: Mutex<LivingProcesses>,
    expiries: Expiries,
    signals: Arc<Signals>,
}

impl SqliteStore {
    /// Opens or makes the file. A second server on the same file is refused with the holder's process id.
    pub fn open(
        path: &Path,
        settings: StoreSettings,
        clock: LeaseClock,
        signals: Arc<Signals>,
    ) -> StoreResult<Self> {
        open::refuse_network_file(path)?;
        let file_time = clock::file_time(path);
        let held = lock::lock(path)?;
        let db = open::writer(path)?;
        clock::set(&db, &clock, file_time)?;
        let (writer, mut queue) = Writer::new();
        let (writer_clock, own_signals) = (clock.clone(), signals.clone());
        // Fails here, not in the thread, if the schema is not what the statements expect.
        drop(Tx::new(&db, settings.clone(), clock.clone(), signals.clone())?);
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || {
                let mut work = || {
                    let tx = Tx::new(&db, settings.clone(), writer_clock.clone(), signals.clone())?;
                    writer::run(&db, tx, &mut queue);
                    Ok(())
                };
                signals.loops.known(WRITER);
                // A call that panics is rolled back by the writer. This is for a panic between calls.
                let ended = loop {
                    match caught_now(&mut work) {
                        Ok(ended) => break ended,
                        Err(panicked) => {
                            std::thread::park_timeout(signals.loops.panicked(WRITER, &panicked));
                            if !db.is_autocommit() {
                                let _ = db.execute_batch("ROLLBACK");
                            }
                        }
                    }
                };
                // Without its writer the store is of no use, and whoever serves it must know.
                if let Err(error) = ended {
                    signals.fail(error);
                }
                if let Err((_, error)) = db.close() {
                    tracing::error!(
                        %error,
                        "could not close the database cleanly; the next start recovers it"
                    );
                }
                drop(held);
            })
            .map_err(|e| StoreError::Unavailable(format!("cannot start the writer thread: {e}")))?;
        Ok(Self {
            writer: Mutex::new(Some(writer)),
            thread: Mutex::new(Some(thread)),
            readers: Readers::of(path),
            clock,
            retain_from: Arc::default(),
            retain_anew: AtomicBool::new(false),
            wrote: AtomicBool::new(false),
            clock_kept: Mutex::new(stop_watch()),
            processes: Mutex::default(),
            expiries: Expiries::default(),
            signals: own_signals,
        })
    }
}

/// The writer's name among the loops.
const WRITER: &str = "sqlite_writer";

impl Tokens for SqliteStore {}

impl SignIns for SqliteStore {}

impl Stats for SqliteStore {}

#[async_trait]
impl Store for SqliteStore {
    fn backend(&self) -> &'static str {
        "sqlite"
    }

    async fn close(&self) {
        // Readers first: the last to close folds the log back into the file, and they may not write.
        self.readers.close();
        drop(lock(&self.writer).take());
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // The thread ends when the last caller's writer is gone; waiting for it must not block the others.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

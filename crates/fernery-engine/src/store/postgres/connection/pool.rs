//! Connections: few, kept, replaced when they are lost. Each knows its statements.

use super::retry::Trouble;
use super::url::Target;
use crate::error::StoreError;
use crate::store::postgres::rows::Param;
use crate::supervise::lock;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_postgres::{Client, Row, Statement};

/// Connections of one process. Once statements are batched, more than a few only get into each other's way.
const CONNECTIONS_MAX: usize = 10;
/// How long a call waits for one of them.
const CONNECTION_WAIT: Duration = Duration::from_secs(5);
/// Beyond the server's own `statement_timeout`: what is not answered by then never will be.
const ANSWER_WAIT: Duration = Duration::from_millis(6_500);

pub(crate) struct Pool {
    target: Target,
    permits: Semaphore,
    idle: Mutex<Vec<Link>>,
}

/// An open connection and the statements that it has prepared.
struct Link {
    client: Client,
    prepared: Mutex<HashMap<(usize, usize), Statement>>,
}

impl Link {
    async fn statement(&self, sql: &'static str) -> Result<Statement, tokio_postgres::Error> {
        // A statement is a constant of this program, so where it lies names it.
        let key = (sql.as_ptr().addr(), sql.len());
        let known = lock(&self.prepared).get(&key).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        lock(&self.prepared).insert(key, statement.clone());
        Ok(statement)
    }
}

impl Pool {
    pub(crate) fn new(target: Target) -> Self {
        Self { target, permits: Semaphore::new(CONNECTIONS_MAX), idle: Mutex::default() }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Takes a connection out of the pool, or makes one.
    pub(crate) async fn session(&self) -> Result<Session<'_>, Trouble> {
        let permit = match timeout(CONNECTION_WAIT, self.permits.acquire()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => {
                return Err(Trouble::Final(StoreError::Unavailable("the store is closed".into())));
            }
            Err(_) => {
                return Err(Trouble::Final(StoreError::Busy("every database connection is in use".into())));
            }
        };
        let link = match self.take_idle() {
            Some(link) => link,
            None => {
                let client = self.target.connect().await.map_err(Trouble::or_later)?;
                Link { client, prepared: Mutex::default() }
            }
        };
        let (unanswered, in_transaction) = (AtomicUsize::new(0), AtomicBool::new(false));
        let patient = AtomicBool::new(false);
        Ok(Session { pool: self, link: Some(link), unanswered, in_transaction, patient, _permit: permit })
    }

    fn take_idle(&self) -> Option<Link> {
        let mut idle = lock(&self.idle);
        while let Some(link) = idle.pop() {
            if !link.client.is_closed() {
                return Some(link);
            }
        }
        None
    }

    pub(crate) fn close(&self) {
        self.permits.close();
        lock(&self.idle).clear();
    }
}

/// A connection in use. It goes back into the pool only if everything that was asked was answered and no transaction is
/// open: whoever is dropped in the middle takes the connection with it, and the server rolls back.
pub(crate) struct Session<'p> {
    pool: &'p Pool,
    link: Option<Link>,
    unanswered: AtomicUsize,
    in_transaction: AtomicBool,
    /// Whether answers may take as long as they take.
    patient: AtomicBool,
    _permit: SemaphorePermit<'p>,
}

impl Session<'_> {
    fn link(&self) -> Result<&Link, Trouble> {
        self.link.as_ref().ok_or_else(|| Trouble::Away("no connection".into()))
    }

    /// From here on answers are waited for without a bound: a step of a migration may build an index over a long history, or wait
    /// for another process that does. A peer that is gone is noticed by TCP (`tcp_user_timeout`, keepalives).
    pub(crate) fn wait_patiently(&self) {
        self.patient.store(true, Ordering::Relaxed);
    }

    async fn ask<T, F>(&self, committing: bool, work: F) -> Result<T, Trouble>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        let wait = if self.patient.load(Ordering::Relaxed) { Duration::MAX } else { ANSWER_WAIT };
        match timeout(wait, work).await {
            Ok(Ok(answer)) => {
                self.unanswered.fetch_sub(1, Ordering::Relaxed);
                Ok(answer)
            }
            Ok(Err(error)) => {
                let trouble = Trouble::from_driver(&error, committing);
                // A connection that led to the wrong place or nowhere is not kept.
                if !matches!(trouble, Trouble::Away(_) | Trouble::Maybe(_)) {
                    self.unanswered.fetch_sub(1, Ordering::Relaxed);
                }
                Err(trouble)
            }
            Err(_) if committing => Err(Trouble::Maybe("the database does not answer".into())),
            Err(_) => Err(Trouble::Away("the database does not answer".into())),
        }
    }

    /// Runs one statement: outside a transaction it is one of its own, and durable when this answers.
    pub(crate) async fn query(&self, sql: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>, Trouble> {
        let link = self.link()?;
        let committing = !self.in_transaction.load(Ordering::Relaxed);
        self.ask(committing, async {
            let statement = link.statement(sql).await?;
            link.client.query(&statement, params).await
        })
        .await
    }

    /// Runs statements of a transaction in one round trip, in this order. Where one fails, so do those after it.
    pub(crate) async fn query_all(
        &self,
        statements: &[(&'static str, Vec<Param<'_>>)],
    ) -> Result<Vec<Vec<Row>>, Trouble> {
        let link = self.link()?;
        self.ask(false, async {
            // Before, so that none leaves ahead of one that is only being prepared.
            let mut prepared = Vec::with_capacity(statements.len());
            for (sql, _) in statements {
                prepared.push(link.statement(sql).await?);
            }
            let each = prepared.iter().zip(statements);
            let asked = each.map(|(statement, (_, params))| link.client.query(statement, params));
            in_order(asked.map(Box::pin).collect()).await.into_iter().collect()
        })
        .await
    }

    /// Opens a transaction with its first statement, in one round trip.
    pub(crate) async fn begin_with(
        &self,
        begin: &'static str,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Trouble> {
        let link = self.link()?;
        self.in_transaction.store(true, Ordering::Relaxed);
        // The driver sends in the order in which these are first polled.
        let (began, rows) =
            tokio::join!(self.ask(false, link.client.batch_execute(begin)), self.query(sql, params));
        began?;
        rows
    }

    /// Runs the last statement of a transaction and commits it, in one round trip. If the statement fails, so does the
    /// commit: the server then rolls back.
    pub(crate) async fn commit_with(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Trouble> {
        let link = self.link()?;
        // Before, so that the commit does not leave ahead of a statement that is only being prepared.
        self.ask(false, link.statement(sql)).await?;
        let (rows, done) = tokio::join!(
            self.ask(true, async {
                let statement = link.statement(sql).await?;
                link.client.query(&statement, params).await
            }),
            self.commit()
        );
        let rows = rows?;
        done?;
        Ok(rows)
    }

    pub(crate) async fn commit(&self) -> Result<(), Trouble> {
        self.end("COMMIT", true).await
    }

    pub(crate) async fn rollback(&self) -> Result<(), Trouble> {
        self.end("ROLLBACK", false).await
    }

    async fn end(&self, how: &'static str, committing: bool) -> Result<(), Trouble> {
        self.ask(committing, self.link()?.client.batch_execute(how)).await?;
        self.in_transaction.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Runs statements that take no parameters, as they are.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), Trouble> {
        let committing = !self.in_transaction.load(Ordering::Relaxed);
        self.ask(committing, self.link()?.client.batch_execute(sql)).await
    }
}

/// Starts all of these in order, for the driver sends when a future is first polled, and waits for all.
async fn in_order<F: Future + Unpin>(mut asked: Vec<F>) -> Vec<F::Output> {
    let mut answers: Vec<Option<F::Output>> = Vec::new();
    poll_fn(|context| {
        answers = asked
            .iter_mut()
            .map(|future| match Pin::new(future).poll(context) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            })
            .collect();
        Poll::Ready(())
    })
    .await;
    let mut all = Vec::with_capacity(asked.len());
    for (future, answer) in asked.into_iter().zip(answers) {
        all.push(match answer {
            Some(answer) => answer,
            None => future.await,
        });
    }
    all
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let clean = *self.unanswered.get_mut() == 0 && !*self.in_transaction.get_mut();
        if let Some(link) = self.link.take()
            && clean
            && !link.client.is_closed()
            && !self.pool.permits.is_closed()
        {
            lock(&self.pool.idle).push(link);
        }
    }
}

//! A real server on a free port over a fresh database, and a client that sends exactly the bytes it is told to.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use crate::fresh_database::{FreshDatabase, fresh_database};
use fernery::http::{self, Running, ServeSettings, ensure_token_files, token_path};
use fernery::workers::{Pipeline, Surroundings, blueprints};
use fernery_client::wire::Role;
use fernery_engine::store::StoreSettings;
use fernery_engine::store::sqlite::SqliteStore;
use fernery_engine::{Database, Engine, EngineSettings, door};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Nothing in these tests takes longer unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Where the truth is kept.
#[derive(Clone, Copy, Debug)]
pub enum Backend {
    Sqlite,
    Postgres,
}

/// Runs promises that do not know their database on both of them.
#[macro_export]
macro_rules! on_both_backends {
    ($($promise:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise($crate::server::TestServer::on($crate::server::Backend::Sqlite).await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise($crate::server::TestServer::on($crate::server::Backend::Postgres).await).await;
            })+
        }
    };
}

/// How a test moves time on.
enum Hand {
    Clock(door::LeaseClock),
    Database(FreshDatabase),
}

pub struct TestServer {
    pub engine: Engine,
    pub running: Running,
    pub operator: String,
    pub worker: String,
    pub folder: TempDir,
    /// Last, so that a database outlives what uses it.
    hand: Hand,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_string()
    }

    /// The pointers of the wrong fields.
    pub fn pointers(&self) -> Vec<String> {
        let body = self.json();
        let errors = body["errors"].as_array().cloned().unwrap_or_default();
        errors.iter().map(|error| error["pointer"].as_str().unwrap_or_default().to_string()).collect()
    }
}

impl TestServer {
    pub async fn start() -> Self {
        Self::on(Backend::Sqlite).await
    }

    pub async fn on(backend: Backend) -> Self {
        Self::build(backend, |_| {}).await
    }

    /// Another server, on a database of its own of the same kind.
    pub async fn another(&self) -> Self {
        match &self.hand {
            Hand::Clock(_) => Self::on(Backend::Sqlite).await,
            Hand::Database(_) => Self::on(Backend::Postgres).await,
        }
    }

    pub async fn start_with(change: impl FnOnce(&mut ServeSettings)) -> Self {
        Self::build(Backend::Sqlite, change).await
    }

    pub async fn build(backend: Backend, change: impl FnOnce(&mut ServeSettings)) -> Self {
        let (folder, engine, hand) = Self::opened(backend).await;
        Self::serving(folder, engine, hand, change).await
    }

    /// A server whose workers run these files of its folder, each a name and a text.
    pub async fn working(backend: Backend, files: &[(&str, &str)]) -> (Self, Pipeline) {
        let (folder, engine, hand) = Self::opened(backend).await;
        let paths: Vec<PathBuf> = files.iter().map(|(name, _)| folder.path().join(name)).collect();
        for (path, (_, text)) in paths.iter().zip(files) {
            std::fs::write(path, text).expect("a file");
        }
        let read = blueprints::read(&paths).expect("blueprints");
        let around = Surroundings { azollas: Some(paths), ..Surroundings::default() };
        let data = folder.path().join("data");
        let workers = Pipeline::start(engine.clone(), read, data, around).await.expect("workers");
        let view = workers.view();
        (Self::serving(folder, engine, hand, |settings| settings.pipeline = view).await, workers)
    }

    async fn opened(backend: Backend) -> (TempDir, Engine, Hand) {
        let folder = tempfile::tempdir().expect("a folder");
        let (engine, hand) = match backend {
            Backend::Sqlite => on_sqlite(folder.path()),
            Backend::Postgres => on_postgres().await,
        };
        (folder, engine, hand)
    }

    async fn serving(
        folder: TempDir,
        engine: Engine,
        hand: Hand,
        change: impl FnOnce(&mut ServeSettings),
    ) -> Self {
        ensure_token_files(&engine, folder.path()).await.expect("token files");
        let token = |role| {
            let text = std::fs::read_to_string(token_path(folder.path(), role)).expect("a token file");
            text.trim().to_string()
        };
        let (operator, worker) = (token(Role::Operator), token(Role::Worker));
        let mut settings = ServeSettings::new("127.0.0.1:0".parse().expect("an address"));
        change(&mut settings);
        let running = http::serve(settings, engine.clone()).await.expect("a server");
        Self { engine, hand, running, operator, worker, folder }
    }

    /// Moves the clock that decides expiry.
    pub async fn advance(&self, by: Duration) {
        match &self.hand {
            Hand::Clock(clock) => clock.advance(by),
            Hand::Database(database) => {
                let sql = format!(
                    "CREATE OR REPLACE FUNCTION fernery.fernery_now() RETURNS timestamptz LANGUAGE sql VOLATILE
                     AS $$ SELECT clock_timestamp() + {} * interval '1 millisecond' $$",
                    by.as_millis()
                );
                database.client().await.batch_execute(&sql).await.expect("executed");
            }
        }
    }

    /// No step of an act on all jobs that match goes further than this: it fails, and is tried again.
    pub async fn bulk_acts_come_to(&self, most: u32) {
        match &self.hand {
            Hand::Clock(_) => self.on_sqlite(&format!(
                "CREATE TRIGGER held BEFORE UPDATE ON bulk_acts WHEN NEW.done > {most}
                 BEGIN SELECT RAISE(ABORT, 'held by a test'); END"
            )),
            Hand::Database(database) => {
                let sql = format!("ALTER TABLE fernery.bulk_acts ADD CONSTRAINT held CHECK (done <= {most})");
                database.client().await.batch_execute(&sql).await.expect("executed");
            }
        }
    }

    /// The acts on all jobs that match that are under way are refused one job more.
    pub async fn bulk_acts_are_refused_one(&self) {
        let sql = "UPDATE bulk_acts SET refused = refused + 1 WHERE state = 'RUNNING'";
        match &self.hand {
            Hand::Clock(_) => self.on_sqlite(sql),
            Hand::Database(database) => {
                let sql = sql.replace("bulk_acts", "fernery.bulk_acts");
                database.client().await.batch_execute(&sql).await.expect("executed");
            }
        }
    }

    fn on_sqlite(&self, sql: &str) {
        let beside = rusqlite::Connection::open(self.folder.path().join("fernery.db")).expect("its database");
        beside.busy_timeout(PATIENCE).expect("patience");
        beside.execute_batch(sql).expect("executed");
    }

    /// Its PostgreSQL database, beside it.
    pub async fn database(&self) -> tokio_postgres::Client {
        match &self.hand {
            Hand::Clock(_) => panic!("this server is on SQLite"),
            Hand::Database(database) => database.client().await,
        }
    }

    pub fn addr(&self) -> SocketAddr {
        self.running.local_addr
    }

    pub async fn stop(self) {
        self.running.shutdown().await;
        self.engine.close().await;
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr()).await.expect("a connection")
    }

    /// Sends bytes and reads until the server closes.
    pub async fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect().await;
        // The server may refuse and close before it has read everything.
        let _ = stream.write_all(bytes).await;
        read_to_end(&mut stream).await
    }

    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.raw(request(method, path, headers, body).as_bytes()).await
    }

    pub async fn call(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        self.send(method, path, &[("authorization", &bearer), ("content-type", "application/json")], body)
            .await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call(&self.operator, "GET", path, "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(&self.operator, "POST", path, &body.to_string()).await
    }

    /// A call of the worker contract, as a worker.
    pub async fn work(&self, verb: &str, body: &Value) -> Answer {
        self.call(&self.worker, "POST", &format!("/internal/worker/{verb}"), &body.to_string()).await
    }

    pub async fn enqueue(&self, stream: &str) -> String {
        let answer = self.post("/v1/jobs", &json!({ "stream": stream, "payload": { "n": 1 } })).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["job_id"].as_str().expect("an id").to_string()
    }

    pub async fn claim(&self, stream: &str) -> Value {
        let body = json!({ "worker_id": "w", "streams": [stream], "max_wait_ms": 0 });
        let answer = self.work("claim", &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// A job of a stream of its own, enqueued and claimed.
    pub async fn leased(&self, stream: &str) -> Value {
        let job_id = self.enqueue(stream).await;
        let claimed = self.claim(stream).await;
        assert_eq!(claimed["job_id"], job_id.as_str(), "{claimed}");
        claimed
    }

    /// A token of this role, made by the operator.
    pub async fn token(&self, role: &str) -> String {
        let mut asked = json!({ "role": role, "name": "test" });
        if role == "visitor" {
            asked["azolla_id"] = json!("laptop");
        }
        let answer = self.post("/v1/tokens", &asked).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["token"].as_str().expect("a token").to_string()
    }
}

fn on_sqlite(folder: &Path) -> (Engine, Hand) {
    let clock = door::LeaseClock::manual(door::wall_clock());
    let signals = Arc::default();
    let path = folder.join("fernery.db");
    let store = SqliteStore::open(&path, StoreSettings::default(), clock.clone(), Arc::clone(&signals));
    let store = Arc::new(store.expect("a database"));
    (Engine::start(store, signals, EngineSettings::default()), Hand::Clock(clock))
}

async fn on_postgres() -> (Engine, Hand) {
    let made = fresh_database().await;
    let database = Database::Postgres(made.url());
    let engine = Engine::open(&database, EngineSettings::default()).await.expect("a database");
    (engine, Hand::Database(made))
}

/// A request that asks for the connection to be closed.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        text.push_str("host: localhost\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    text + "\r\n" + body
}

/// Everything until the server closes, as one answer.
pub async fn read_to_end(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("an answer in time");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(read.is_ok() || !text.is_empty(), "{read:?}");
    parse(&text)
}

pub fn parse(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let status =
        lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|s| s.parse().ok()).unwrap_or(0);
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_string()))
        .collect();
    Answer { status, headers, body: body.to_string() }
}

//! A PostgreSQL database of a test's own, on the server that the test command started.

use fernery_core::Timestamp;
use fernery_engine::store::postgres::PostgresStore;
use fernery_engine::store::{Store, StoreSettings};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use tokio_postgres::{Client, NoTls};

const MISSING: &str = "run ./test, or scripts/with-services cargo nextest run";

/// Where the migrations are, from every crate of the workspace.
const MIGRATIONS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../fernery-engine/src/store/postgres/migrations");

/// The lock of whoever makes a template.
const LOCK: i64 = 0x6665_726e_6572_7901;

/// A database of a test's own, dropped with this.
pub(crate) struct FreshDatabase {
    server: String,
    name: String,
}

/// A new database on the test server, with the schema of this program and nothing in it.
pub(crate) async fn fresh_database() -> FreshDatabase {
    let server = test_server();
    let admin = connect(&server).await;
    let template = template(&server, &admin).await;
    created(&server, &admin, &template).await
}

/// A new database without a schema on the test server, for tests that are about what makes one.
pub(crate) async fn empty_database() -> FreshDatabase {
    empty_database_on(&test_server()).await
}

/// A new database without a schema on this server.
pub(crate) async fn empty_database_on(server: &str) -> FreshDatabase {
    created(server, &connect(server).await, "template1").await
}

fn test_server() -> String {
    std::env::var("FERNERY_TEST_POSTGRES").expect(MISSING)
}

async fn created(server: &str, admin: &Client, template: &str) -> FreshDatabase {
    let name = format!("test_{:032x}", u128::from_ne_bytes(fernery_engine::door::random_bytes()));
    create(admin, &name, template).await;
    FreshDatabase { server: server.to_string(), name }
}

async fn create(admin: &Client, name: &str, template: &str) {
    // Copying files takes half the time of writing them to the log. Before PostgreSQL 15 there was no other way.
    let has_strategy = "SELECT current_setting('server_version_num')::int >= 150000";
    let has_strategy: bool = admin.query_one(has_strategy, &[]).await.expect("its version").get(0);
    let strategy = if has_strategy { "STRATEGY file_copy" } else { "" };
    let sql = format!("CREATE DATABASE {name} TEMPLATE {template} {strategy}");
    admin.batch_execute(&sql).await.expect("a new database");
}

/// The name of a database with the schema and nothing else; made by the first test that asks. The migrations are in the name,
/// because a server may serve a whole afternoon of changes to them.
async fn template(server: &str, admin: &Client) -> String {
    let name = format!("migrated_{:016x}", digest_of_migrations());
    if exists(admin, &name).await {
        return name;
    }
    // It goes with the connection: a test that is killed here leaves no lock behind, only a half that nobody copies.
    admin.query("SELECT pg_advisory_lock($1)", &[&LOCK]).await.expect("locked");
    if !exists(admin, &name).await {
        let half = FreshDatabase { server: server.to_string(), name: format!("{name}_half") };
        let leftover = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", half.name);
        admin.batch_execute(&leftover).await.expect("dropped");
        create(admin, &half.name, "template1").await;
        let store = PostgresStore::open(&half.url(), StoreSettings::default(), Arc::default()).await;
        store.expect("it is migrated").close().await;
        half.terminate_connections().await;
        let whole = format!("ALTER DATABASE {} RENAME TO {name}", half.name);
        admin.batch_execute(&whole).await.expect("renamed");
    }
    admin.query("SELECT pg_advisory_unlock($1)", &[&LOCK]).await.expect("unlocked");
    name
}

async fn exists(admin: &Client, name: &str) -> bool {
    let sql = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)";
    admin.query_one(sql, &[&name]).await.expect("asked").get(0)
}

fn digest_of_migrations() -> u64 {
    let folder = std::fs::read_dir(MIGRATIONS).unwrap_or_else(|error| panic!("{MIGRATIONS}: {error}"));
    let mut files: Vec<_> = folder.map(|file| file.expect("a file").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no migrations in {MIGRATIONS}");
    let mut digest = DefaultHasher::new();
    for file in files {
        digest.write(&std::fs::read(file).expect("a migration"));
    }
    digest.finish()
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the test server answers");
    tokio::spawn(connection);
    client
}

impl FreshDatabase {
    /// Where it is.
    pub(crate) fn url(&self) -> String {
        let (base, query) = self.server.split_once('?').unwrap_or((&self.server, ""));
        let (server, _) = base.rsplit_once('/').expect("a URL that names a database");
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        format!("{server}/{}{query}", self.name)
    }

    /// Another one, as this is now. Nobody may be connected to this.
    pub(crate) async fn copy(&self) -> Self {
        self.terminate_connections().await;
        created(&self.server, &connect(&self.server).await, &self.name).await
    }

    /// A connection beside the store's.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.url()).await
    }

    /// From now on the database's clock stands still at `at`. The schema must be there.
    pub(crate) async fn stop_clock(&self, at: Timestamp) {
        let sql = format!(
            "CREATE SCHEMA test_clock;
             CREATE TABLE test_clock.hand AS SELECT to_timestamp({}::numeric / 1000) AS at;
             CREATE OR REPLACE FUNCTION fernery.fernery_now() RETURNS timestamptz LANGUAGE sql VOLATILE
                 AS $$ SELECT at FROM test_clock.hand $$",
            at.as_millis()
        );
        self.client().await.batch_execute(&sql).await.expect("a clock that stands still");
    }

    /// Moves the clock that stands still.
    pub(crate) async fn step_clock(&self, ms: i64) {
        let sql = format!("UPDATE test_clock.hand SET at = at + {ms} * interval '1 millisecond'");
        self.client().await.batch_execute(&sql).await.expect("the clock is stepped");
    }

    /// Ends every other connection to it.
    pub(crate) async fn terminate_connections(&self) {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        self.client().await.batch_execute(sql).await.expect("connections are ended");
    }
}

impl Drop for FreshDatabase {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // The runtime of the test cannot be waited for from inside it.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let (client, connection) = tokio_postgres::connect(&server, NoTls).await?;
                tokio::spawn(connection);
                client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?;
                Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
            })
        });
        // A server that is gone has taken the database with it.
        let _ = dropped.join();
    }
}

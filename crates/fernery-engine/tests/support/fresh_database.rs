//! A PostgreSQL database of a test's own, on the server that the test command started.

use fernery_core::Timestamp;
use tokio_postgres::{Client, NoTls};

const MISSING: &str = "run ./test, or scripts/with-services cargo nextest run";

/// An empty database, dropped with this.
pub(crate) struct FreshDatabase {
    server: String,
    name: String,
}

/// A new, empty database on the test server.
pub(crate) async fn fresh_database() -> FreshDatabase {
    let server = std::env::var("FERNERY_TEST_POSTGRES").expect(MISSING);
    fresh_database_on(&server).await
}

/// A new, empty database on this server.
pub(crate) async fn fresh_database_on(server: &str) -> FreshDatabase {
    let name = format!("test_{:032x}", u128::from_ne_bytes(fernery_engine::door::random_bytes()));
    let admin = connect(server).await;
    admin.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a new database");
    FreshDatabase { server: server.to_string(), name }
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
        let copy = fresh_database_on(&self.server).await;
        self.terminate_connections().await;
        let (from, name) = (&self.name, &copy.name);
        let admin = connect(&self.server).await;
        for sql in [format!("DROP DATABASE {name}"), format!("CREATE DATABASE {name} TEMPLATE {from}")] {
            admin.batch_execute(&sql).await.expect("copied");
        }
        copy
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

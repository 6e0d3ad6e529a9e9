//! A Redis server of a test's own: it may be flushed, paused, killed and started again.

use super::port::Port;
use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

pub(crate) struct OwnRedis {
    folder: tempfile::TempDir,
    port: Port,
    /// `:password@`, or nothing.
    login: &'static str,
    database: u8,
    more: Vec<String>,
    child: Child,
}

impl OwnRedis {
    pub(crate) async fn start() -> Self {
        Self::start_with("", 0, Vec::new()).await
    }

    /// One that wants this login, to be used by the database of this number, with more arguments.
    pub(crate) async fn start_with(login: &'static str, database: u8, more: Vec<String>) -> Self {
        let port = Port::reserve();
        let folder = tempfile::tempdir().expect("a folder");
        let child = spawn(&folder, &port, &more);
        let redis = Self { folder, port, login, database, more, child };
        redis.answers().await;
        redis
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}127.0.0.1:{}/{}", self.login, self.port.number(), self.database)
    }

    async fn answers(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.try_connect().await.is_err() {
            assert!(Instant::now() < deadline, "redis-server does not answer");
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn try_connect(&self) -> redis::RedisResult<MultiplexedConnection> {
        let mut connection = redis::Client::open(self.url())?.get_multiplexed_async_connection().await?;
        redis::cmd("PING").exec_async(&mut connection).await?;
        Ok(connection)
    }

    /// One command, on a connection of its own.
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &[&str]) -> T {
        let mut connection = self.try_connect().await.expect("Redis answers");
        let mut asked = redis::cmd(command[0]);
        for word in &command[1..] {
            asked.arg(word);
        }
        asked.query_async(&mut connection).await.unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// How many messages a stream holds, and how many of them somebody has in hand.
    pub(crate) async fn holds(&self, stream: &str) -> (usize, usize) {
        let length: usize = self.ask(&["XLEN", stream]).await;
        let mut connection = self.try_connect().await.expect("Redis answers");
        let pending: redis::RedisResult<redis::Value> =
            redis::cmd("XPENDING").arg(stream).arg("workers").query_async(&mut connection).await;
        let pending = match pending {
            Ok(redis::Value::Array(parts)) => match parts.first() {
                Some(redis::Value::Int(n)) => usize::try_from(*n).expect("a count"),
                other => panic!("{other:?}"),
            },
            // A stream that was never used has no group.
            _ => 0,
        };
        (length, pending)
    }

    /// `kill -9`; nothing was saved.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.expect("killed");
    }

    pub(crate) async fn start_again(&mut self) {
        self.child = spawn(&self.folder, &self.port, &self.more);
        self.answers().await;
    }

    /// Writes down what it holds now, to be found by the next start.
    pub(crate) async fn save(&self) {
        let _: String = self.ask(&["SAVE"]).await;
    }
}

fn spawn(folder: &tempfile::TempDir, port: &Port, more: &[String]) -> Child {
    Command::new("redis-server")
        .args([
            "--port",
            &port.number().to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ])
        .arg("--dir")
        .arg(folder.path())
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("redis-server is installed by ./test")
}

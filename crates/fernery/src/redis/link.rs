//! The connections to Redis: opened when needed, and closed when Redis does not answer in time. After a failure Redis is not
//! tried again for a moment.

use fernery_engine::transport::Away;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, Value};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Without an answer in this time, the caller uses the database alone.
const ANSWER_WITHIN: Duration = Duration::from_millis(1_000);
const CONNECT_WITHIN: Duration = Duration::from_millis(1_000);
/// How long after a failure Redis is not asked again.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    state: Mutex<State>,
    refused: Mutex<Refused>,
    /// Held by the caller that connects; the others continue without Redis.
    connecting: tokio::sync::Mutex<()>,
}

/// What Redis refuses although it answers.
#[derive(Debug, Default)]
struct Refused {
    /// Why nothing can be sent.
    sending: Option<String>,
    /// Why nothing can be read.
    reading: Option<String>,
}

enum State {
    Unknown,
    Up(MultiplexedConnection),
    Down { why: String, until: Instant },
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unknown => "unknown",
            Self::Up(_) => "up",
            Self::Down { .. } => "down",
        })
    }
}

impl Link {
    pub(super) fn new(url: &str) -> Result<Self, String> {
        let client = Client::open(url).map_err(|error| error.to_string())?;
        let (state, refused) = (Mutex::new(State::Unknown), Mutex::default());
        Ok(Self { client, state, refused, connecting: tokio::sync::Mutex::default() })
    }

    /// Server, port and database, without the password.
    pub(super) fn place(&self) -> String {
        let info = self.client.get_connection_info();
        format!("{}/{}", info.addr(), info.redis_settings().db())
    }

    fn refused(&self) -> MutexGuard<'_, Refused> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes whether messages can be sent; `trouble` says why not.
    pub(super) fn sends(&self, trouble: Option<String>) {
        self.refused().sending = trouble;
    }

    /// Notes whether messages can be read; `trouble` says why not, although Redis answers.
    pub(super) fn reads(&self, trouble: Option<String>) {
        self.refused().reading = trouble;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is not shared.
    pub(super) async fn connect(&self) -> Result<MultiplexedConnection, Away> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_WITHIN))
            .set_response_timeout(Some(ANSWER_WITHIN));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await;
        let connection = connection.map_err(|error| self.down(error.to_string()))?;
        // The callers that continued without Redis may ask again.
        let mut state = self.state();
        if matches!(*state, State::Down { .. }) {
            *state = State::Unknown;
        }
        drop(state);
        Ok(connection)
    }

    fn down(&self, why: String) -> Away {
        *self.state() = State::Down { why: why.clone(), until: Instant::now() + PAUSE };
        Away(why)
    }

    async fn connection(&self) -> Result<MultiplexedConnection, Away> {
        match &*self.state() {
            State::Up(connection) => return Ok(connection.clone()),
            State::Down { why, until } if Instant::now() < *until => return Err(Away(why.clone())),
            _ => {}
        }
        let Ok(_turn) = self.connecting.try_lock() else {
            return Err(Away("a connection is being opened".into()));
        };
        let connection = self.connect().await?;
        *self.state() = State::Up(connection.clone());
        Ok(connection)
    }

    /// Sends commands and waits for their answers. The answer to a refused command is an error; an error that means that
    /// Redis cannot serve now fails the whole call.
    pub(super) async fn ask(&self, commands: &Pipeline) -> Result<Vec<Value>, Away> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let mut connection = self.connection().await?;
        ask(&mut connection, commands).await.map_err(|Away(why)| self.down(why))
    }

    pub(super) fn trouble(&self) -> Option<String> {
        let refused = self.refused();
        if let Some(why) = refused.sending.as_ref().or(refused.reading.as_ref()) {
            return Some(why.clone());
        }
        drop(refused);
        match &*self.state() {
            State::Down { why, .. } => Some(why.clone()),
            State::Unknown | State::Up(_) => None,
        }
    }
}

/// Commands to be sent together; a refused command does not hide the answers to the others.
pub(super) fn commands() -> Pipeline {
    let mut commands = redis::pipe();
    commands.ignore_errors();
    commands
}

/// Sends commands over a connection; returns each answer unchanged.
pub(super) async fn answers(
    connection: &mut MultiplexedConnection,
    commands: &Pipeline,
) -> Result<Vec<Value>, Away> {
    commands.query_async(connection).await.map_err(|error| Away(error.to_string()))
}

/// Sends commands over a connection. An error that means that Redis cannot serve now fails the whole call.
pub(super) async fn ask(
    connection: &mut MultiplexedConnection,
    commands: &Pipeline,
) -> Result<Vec<Value>, Away> {
    let answers = answers(connection, commands).await?;
    for answer in &answers {
        if let Value::ServerError(error) = answer
            && cannot_serve(error.code())
        {
            return Err(Away(error.to_string()));
        }
    }
    Ok(answers)
}

/// Whether an error is about Redis as a whole and not about one key.
pub(super) fn cannot_serve(code: &str) -> bool {
    matches!(
        code,
        "OOM"
            | "LOADING"
            | "READONLY"
            | "MASTERDOWN"
            | "NOAUTH"
            | "NOPERM"
            | "MISCONF"
            | "CLUSTERDOWN"
            | "NOREPLICAS"
            | "BUSY"
            | "WRONGPASS"
    )
}

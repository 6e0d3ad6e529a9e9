//! Asks the server that runs, if one does.

use super::judge::settings::Process;
use crate::config::Settings;
use fernery_client::client::Query;
use fernery_client::wire::Health;
use fernery_client::{Client, ClientError};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// A server that is well answers at once.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How the command was told to find its server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// A server that was named, instead of the one that runs on the data directory.
    pub(crate) url: Option<String>,
    /// Certificates to trust instead of the system's.
    pub(crate) ca: Option<PathBuf>,
    /// The file in which a server on the data directory leaves its URL.
    pub(crate) url_file: &'static str,
}

/// Whether a server runs, and what it says of itself.
pub(super) async fn ask(settings: &Settings, caller: &Caller) -> Process {
    let left_behind = || std::fs::read_to_string(settings.data.join(caller.url_file)).ok();
    let Some(url) = caller.url.clone().or_else(left_behind).map(|url| url.trim().to_string()) else {
        return Process::None;
    };
    match timeout(ANSWER_WITHIN, questions(&url, caller)).await {
        Ok(Ok(process)) => process,
        Ok(Err(error)) => Process::Silent { url, why: error.to_string() },
        Err(_) => Process::Silent { url, why: format!("no answer within {} s", ANSWER_WITHIN.as_secs()) },
    }
}

async fn questions(url: &str, caller: &Caller) -> Result<Process, ClientError> {
    let client = Client::new(url, None, caller.ca.as_deref())?;
    let health = client.health().await?.read()?;
    let ready = client.get::<Health>("/readyz", &Query::new(), Duration::ZERO).await;
    Ok(Process::Answered {
        url: url.to_string(),
        version: health.version,
        backend: health.backend,
        unready: ready.err().map(|error| error.to_string()),
    })
}

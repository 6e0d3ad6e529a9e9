//! Asks the running server, if there is one, and the server that was named.

use super::judge::process::{Process, Reply, Server};
use crate::config::Settings;
use crate::http::token_path;
use crate::workers::reload::told;
use fernery_client::client::Query;
use fernery_client::wire::{Health, ReloadRequest, ReloadResponse, Role};
use fernery_client::{Client, ClientError};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// A healthy server answers at once.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How the command was told to find its server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// The named server, besides the one of the data directory.
    pub(crate) url: Option<String>,
    /// Certificates to trust instead of the system's.
    pub(crate) ca: Option<PathBuf>,
    /// The file in the data directory to which a server writes its URL.
    pub(crate) url_file: &'static str,
    /// How the data directory was chosen.
    pub(crate) data_origin: String,
}

/// What a server says to the operator whose token is in the data directory.
pub(super) struct Operator {
    pub(super) token: PathBuf,
    pub(super) works: bool,
    /// Azollas whose files were edited since the server read them, and what differs.
    pub(super) edited: Vec<String>,
}

/// Asks as the operator; `None`: nobody can be asked, or there is nothing to ask with.
pub(super) async fn ask_as_operator(own: &Process, settings: &Settings, caller: &Caller) -> Option<Operator> {
    let Process::Asked(Reply::Answered(Server { url, .. })) = own else { return None };
    let token = token_path(&settings.data, Role::Operator);
    let text = std::fs::read_to_string(&token).ok()?;
    let client = Client::new(url, Some(text.trim()), caller.ca.as_deref()).ok()?;
    let works = match timeout(ANSWER_WITHIN, client.tokens()).await.ok()? {
        Ok(_) => true,
        Err(error) if error.status() == Some(401) => false,
        Err(_) => return None,
    };
    let question = ReloadRequest { dry_run: true };
    let asked = async || -> Result<ReloadResponse, ClientError> {
        client.post("/v1/reload", &question, Duration::ZERO).await?.read()
    };
    // Files with mistakes are a finding of their own.
    let answer = timeout(ANSWER_WITHIN, asked()).await.ok().and_then(Result::ok);
    let edited = answer.map_or_else(Vec::new, |answer| answer.azollas);
    let edited = edited.iter().map(|change| format!("{} ({})", change.azolla_id, told(change))).collect();
    Some(Operator { token, works, edited })
}

/// Whether a server runs on the data directory, and what it says about itself.
pub(super) async fn ask_own(settings: &Settings, caller: &Caller) -> Process {
    let left_behind = settings.data.join(caller.url_file);
    match std::fs::read_to_string(&left_behind) {
        Ok(url) => Process::Asked(ask(url.trim(), caller).await),
        Err(error) if error.kind() == ErrorKind::NotFound => Process::None,
        Err(error) => Process::Unknown { why: format!("{}: {error}", left_behind.display()) },
    }
}

/// Asks the server that the caller named, unless it is the server of the data directory.
pub(super) async fn ask_named(own: &Process, caller: &Caller) -> Option<Reply> {
    let named = caller.url.as_deref().map(|url| url.trim().trim_end_matches('/'))?;
    if let Process::Asked(Reply::Silent { url, .. } | Reply::Answered(Server { url, .. })) = own
        && url.trim_end_matches('/') == named
    {
        return None;
    }
    Some(ask(named, caller).await)
}

async fn ask(url: &str, caller: &Caller) -> Reply {
    let silent = |why: String| Reply::Silent { url: url.to_string(), why };
    match timeout(ANSWER_WITHIN, questions(url, caller)).await {
        Ok(Ok(server)) => Reply::Answered(server),
        Ok(Err(error)) => silent(error.to_string()),
        Err(_) => silent(format!("no answer within {} s", ANSWER_WITHIN.as_secs())),
    }
}

async fn questions(url: &str, caller: &Caller) -> Result<Server, ClientError> {
    let client = Client::new(url, None, caller.ca.as_deref())?;
    let health = client.health().await?.read()?;
    let ready = client.get::<Health>("/readyz", &Query::new(), Duration::ZERO).await;
    let findings = match &ready {
        Ok(reply) => reply.read().map(|ready| ready.findings).unwrap_or_default(),
        Err(_) => Vec::new(),
    };
    Ok(Server {
        url: url.to_string(),
        version: health.version,
        backend: health.backend,
        unready: ready.err().map(|error| error.to_string()),
        degraded: findings.into_iter().map(|found| (found.detail, found.remedy)).collect(),
    })
}

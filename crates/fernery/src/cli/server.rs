//! Finds the server and a token for a command: the environment first, else the files that `fernery up` leaves in the data
//! directory.

use super::Global;
use super::arrival;
use super::failure::{Failure, Outcome};
use super::screen::remark;
use crate::config::table::setting;
use crate::config::{DEFAULT_PATH, Given, InForce, Inputs, Source, found};
use crate::outgoing::Target;
use crate::serve::data_dir::{self, URL_FILE};
use crate::serve::running::{self, HeldBy};
use fernery_client::Client;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// The file in the data directory that holds the operator's token.
pub(super) const TOKEN_FILE: &str = "operator.token";
/// The file in the data directory that holds the workers' token.
pub(super) const WORKER_TOKEN_FILE: &str = "worker.token";
/// Bytes of either at most.
const FILE_BYTES_MAX: u64 = 4_096;

/// An environment variable; an empty one counts as not set.
pub(super) fn env_text(name: &str) -> Outcome<Option<String>> {
    match std::env::var_os(name).filter(|v| !v.is_empty()).map(std::ffi::OsString::into_string) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => Err(Failure::usage(format!("{name}: not UTF-8"))),
    }
}

impl Global {
    /// What the global flags set.
    pub(super) fn flags(&self) -> Vec<Given> {
        let data = self.data.clone().map(|data| Given {
            setting: setting("data").expect("data is in the table"),
            values: vec![data],
            source: Source::Flag,
        });
        data.into_iter().collect()
    }

    /// The data directory. The file is read only if nothing closer names it.
    pub(super) fn data_dir(&self) -> Outcome<PathBuf> {
        if let Some(data) = &self.data {
            if data.is_empty() {
                return Err(Failure::usage("--data: expected a path"));
            }
            return Ok(PathBuf::from(data));
        }
        Ok(self.resolved(Vec::new())?.data()?)
    }

    /// The settings from all sources, with these flags. Says once what belongs to others and is not used.
    pub(super) fn resolved(&self, flags: Vec<Given>) -> Outcome<InForce> {
        static TOLD: Once = Once::new();
        let here = std::env::current_dir().ok();
        let env = |name: &str| std::env::var_os(name);
        let in_force = Inputs { flags, config: self.config.clone(), env: &env, here }.resolve()?;
        TOLD.call_once(|| {
            for path in &in_force.foreign {
                let flag = if path.ends_with(DEFAULT_PATH) { "--config" } else { "--data" };
                remark(&format!(
                    "{} belongs to another user and is not used; if you trust it, name it with {flag}",
                    path.display()
                ));
            }
        });
        Ok(in_force)
    }

    /// The data directory of a command that keeps something there, also without a server. Where there is none, it is the
    /// user's own one.
    pub(super) fn with_own_data(&self) -> Outcome<Self> {
        let is_named = self.names_data()? || self.url.is_some() || env_text("FERNERY_URL")?.is_some();
        if !is_named {
            let in_force = self.resolved(Vec::new())?;
            let own = found::own_data(&|name| std::env::var_os(name));
            if let Some(own) = own.filter(|_| !in_force.data_is_settled())
                && in_force.file.is_none()
                && !in_force.data()?.is_dir()
            {
                data_dir::prepare(&own).map_err(Failure::usage)?;
                return Ok(Self { data: Some(own.to_string_lossy().into_owned()), ..self.clone() });
            }
        }
        Ok(self.clone())
    }

    /// Whether the server at this URL is the one of this data directory: it says so, or the caller does.
    pub(super) fn is_of(&self, data: &Path, url: &str) -> bool {
        let runs_here = || read_line(&data.join(URL_FILE)).ok().flatten().is_some_and(|own| own == url);
        self.names_data().unwrap_or(false) || runs_here()
    }

    /// Whether the caller names the data directory.
    pub(super) fn names_data(&self) -> Outcome<bool> {
        Ok(self.data.is_some() || env_text("FERNERY_DATA")?.is_some())
    }

    /// The server that this command is about.
    pub(super) fn server(&self) -> Outcome<Server> {
        self.server_with(TOKEN_FILE)
    }

    /// The same call, without waiting for a server that is starting.
    pub(super) fn now(&self) -> Self {
        Self { waits: false, ..self.clone() }
    }

    /// The same, with the token in this file of the data directory.
    pub(super) fn server_with(&self, token_file: &str) -> Outcome<Server> {
        let url = match &self.url {
            Some(url) => Some(url.clone()),
            None => env_text("FERNERY_URL")?,
        };
        let token = env_text("FERNERY_TOKEN")?
            .map(|t| Token { text: t.trim().to_string(), from: "FERNERY_TOKEN".into() });
        let found_in = if url.is_none() { Some(self.data_dir()?) } else { None };
        let (url, token) = match (url, token) {
            (Some(url), Some(token)) => (url, Some(token)),
            (url, token) => self.found_in_data_dir(url, token, token_file)?,
        };
        let ca = std::env::var_os("FERNERY_CA").filter(|v| !v.is_empty()).map(PathBuf::from);
        let client = Client::new(&url, token.as_ref().map(|t| t.text.as_str()), ca.as_deref())?;
        Ok(Server { client, token_from: token.map(|t| t.from), found_in })
    }

    fn found_in_data_dir(
        &self,
        url: Option<String>,
        token: Option<Token>,
        token_file: &str,
    ) -> Outcome<(String, Option<Token>)> {
        let data = self.data_dir()?;
        let running = match url.is_some() || !self.waits {
            true => read_line(&data.join(URL_FILE))?,
            false => arrival::url(&data)?,
        };
        let url = match (url, &running) {
            (Some(url), _) => url,
            (None, Some(running)) if self.names_data()? || is_own(running, &data) => running.clone(),
            (None, Some(running)) => {
                return Err(Failure::unreachable(format!(
                    "{} names the server {running}, and no server runs on it here: if you trust it, say --url {running}",
                    data.join(URL_FILE).display()
                )));
            }
            (None, None) => {
                return Err(Failure::unreachable(format!(
                    "no server is running on {}: start one with `fernery up`, name another directory \
                     with --data, or another server with FERNERY_URL",
                    data.display()
                )));
            }
        };
        let token = match token {
            Some(token) => Some(token),
            // A token is sent only to its own server, to this machine, or to the server that the caller named together
            // with the data directory.
            None if !self.names_data()?
                && !Target::parse(&url).is_ok_and(|server| server.is_this_machine())
                && running.as_deref() != Some(&*url) =>
            {
                None
            }
            None => {
                let path = data.join(token_file);
                warn_if_open(&path);
                read_line(&path)?.map(|text| Token { text, from: path.display().to_string() })
            }
        };
        Ok((url, token))
    }
}

/// Whether a URL in a data directory that nobody named is that of a server of ours: it is on this machine, or a process holds the
/// directory. A folder that came with somebody else's files has neither.
fn is_own(url: &str, data: &Path) -> bool {
    let held = || matches!(running::holder(data), Ok(HeldBy::Process(_) | HeldBy::Hidden));
    Target::parse(url).is_ok_and(|server| server.is_this_machine()) || held()
}

struct Token {
    text: String,
    from: String,
}

/// A server, and the token for it.
pub(super) struct Server {
    pub(super) client: Client,
    token_from: Option<String>,
    /// The data directory that it was found by; `None` if its URL was named.
    pub(super) found_in: Option<PathBuf>,
}

impl Server {
    /// Says which token was refused.
    pub(super) fn explain_refusal(&self, failure: Failure) -> Failure {
        let url = self.client.url();
        match (failure.status, &self.token_from) {
            (Some(401), Some(from)) => failure.says(format!(
                "{url} does not accept the token in {from}: it belongs to another server, has expired or was revoked"
            )),
            (Some(401), None) => failure.says(format!(
                "{url} needs a token: set FERNERY_TOKEN, or --data to the server's data directory"
            )),
            (Some(403), Some(from)) => failure.hint(format_args!("the token is the one in {from}")),
            _ => failure,
        }
    }
}

/// The first line of a small file; `None` if there is no such file.
pub(super) fn read_line(path: &Path) -> Outcome<Option<String>> {
    let refused = |why: String| Failure::usage(format!("cannot read {}: {why}", path.display()));
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(error.to_string())),
        Ok(meta) if !meta.is_file() => return Err(refused("it is not a regular file".into())),
        Ok(_) => {}
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|e| refused(e.to_string()))?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|e| refused(e.to_string()))?;
    Ok(text.lines().next().map(|line| line.trim().to_string()).filter(|line| !line.is_empty()))
}

fn warn_if_open(path: &Path) {
    if let Ok(meta) = std::fs::metadata(path)
        && meta.mode() & 0o077 != 0
    {
        remark(&format!(
            "warning: other users can read {} (mode {:o}); `chmod 600` it, or create a new token",
            path.display(),
            meta.mode() & 0o777
        ));
    }
}

//! Finds the server and a token for a command: the environment first, else the files that `fernery up` leaves in the data
//! directory.

use super::Global;
use super::failure::{Failure, Outcome};
use super::screen::remark;
use crate::config::table::setting;
use crate::config::{Given, Inputs, Source};
use crate::outgoing::Target;
use crate::serve::data_dir::URL_FILE;
use fernery_client::Client;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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
        let inputs =
            Inputs { flags: Vec::new(), config: self.config.clone(), env: &|name| std::env::var_os(name) };
        Ok(inputs.resolve()?.data()?)
    }

    /// Whether the server at this URL is the one of this data directory: it says so, or the caller does.
    pub(super) fn is_of(&self, data: &Path, url: &str) -> bool {
        let runs_here = || read_line(&data.join(URL_FILE)).ok().flatten().is_some_and(|own| own == url);
        self.names_data().unwrap_or(false) || runs_here()
    }

    pub(super) fn names_data(&self) -> Outcome<bool> {
        Ok(self.data.is_some() || env_text("FERNERY_DATA")?.is_some())
    }

    /// The server that this command is about.
    pub(super) fn server(&self) -> Outcome<Server> {
        self.server_with(TOKEN_FILE)
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
        let running = read_line(&data.join(URL_FILE))?;
        let url = match (url, &running) {
            (Some(url), _) => url,
            (None, Some(running)) => running.clone(),
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
fn read_line(path: &Path) -> Outcome<Option<String>> {
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

//! `fernery up`: everything in one process.

mod detach;

use super::Global;
use super::config::flags::SettingFlags;
use super::config::{in_force, warn_of_unknown_env};
use super::failure::{Failure, Outcome};
use super::open;
use super::screen::{Screen, plain, remark};
use super::server::{TOKEN_FILE, read_line};
use crate::serve;
use clap::Args;
use fernery_client::Client;
use serde_json::json;
use std::io::IsTerminal;
use std::path::Path;

/// Start the server.
///
/// It prints `listening on URL` when it is ready. SIGTERM or SIGINT drains it: it accepts no new claims, answers the
/// open requests and then exits. A second signal ends it at once. SIGHUP reads the blueprints again, as `fernery azolla
/// reload` does.
#[derive(Debug, Args)]
#[command(after_help = "\
Every flag can also be set as FERNERY_… in the environment or as a key in the configuration file: flag > environment > \
file > default. Every process on this machine can read a password in --database; put it into FERNERY_DATABASE or the \
file.

Exit codes: 0 ended, or detached and serving, 1 it could not start, 2 called wrongly, 4 a server runs there already.

Examples:
  fernery up
  fernery up --detach                       then: fernery down
  fernery up --listen 127.0.0.1:0 --data /var/lib/fernery
  FERNERY_DATABASE=postgres://fernery:…@db/fernery fernery up \\
    --listen 0.0.0.0:8443 --tls-cert s.crt --tls-key s.key")]
pub(super) struct Up {
    /// Return when the server answers, and leave it running; its log goes to server.log in the data directory
    #[arg(long)]
    detach: bool,
    /// This process is the server that `--detach` leaves running
    #[arg(long, hide = true, conflicts_with = "detach")]
    detached: bool,
    #[command(flatten)]
    flags: SettingFlags,
}

pub(super) fn run(up: Up, global: &Global, screen: Screen) -> Outcome {
    if global.url.is_some() {
        return Err(Failure::usage(
            "--url names a server for other commands; `fernery up` listens on --listen",
        ));
    }
    let (found, settings) = in_force(global, up.flags)?;
    warn_of_unknown_env();
    if !up.detached && found.data_is_found() {
        remark(&plain(&format!(
            "the data directory is {} ({}); for one of its own here: fernery up --data .fernery",
            settings.data.display(),
            found.data_origin()
        )));
    }
    if !up.detached
        && let Some(already) = detach::already(&settings, up.detach)?
    {
        return Err(already);
    }
    if up.detach {
        return detach::run(&settings, screen);
    }
    if up.detached {
        // Nothing that happens to the terminal concerns it.
        rustix::process::setsid().map_err(|error| Failure::failed("start", format!("setsid: {error}")))?;
    }
    serve::host(&settings, async |url| {
        let line =
            if screen.json { json!({ "listening": url }).to_string() } else { format!("listening on {url}") };
        // The reader of its first line may be gone; the server goes on.
        let _ = screen.line(&line);
        // A link is a secret: it goes to a person, and into no file.
        if !screen.json && std::io::stdout().is_terminal() {
            show_link(url, &settings.data, screen).await;
        }
        std::future::pending().await
    })
}

/// Prints a link to the pages. A server that cannot be called from here, as through a certificate of its own, is opened by
/// `fernery open`.
async fn show_link(url: &str, data: &Path, screen: Screen) {
    let Ok(Some(token)) = read_line(&data.join(TOKEN_FILE)) else { return };
    let Ok(client) = Client::new(url, Some(&token), None) else { return };
    if let Ok((link, _)) = open::link(&client).await {
        let _ = screen.line(&format!("pages: {link}"));
    }
}

//! `fernery down`: stops the server of a data directory.

use super::Global;
use super::failure::{Failure, Outcome};
use super::screen::{Screen, json_inert};
use crate::serve::running::{self, HeldBy};
use clap::Args;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// How long a server may take to drain.
const END_WITHIN: Duration = Duration::from_secs(30);

/// Stop the server of the data directory
///
/// It is asked to end as by SIGTERM: it accepts no new claims, answers the open requests and exits. The server is the
/// process that holds the data directory now; no other process is ever signalled. A second `fernery down` while it
/// drains ends it at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 stopped, 1 it still drains, 3 no server runs there.

Examples:
  fernery down
  fernery down --data /srv/fernery")]
pub(super) struct Down {}

pub(super) fn run(_: &Down, global: &Global, screen: Screen) -> Outcome {
    if global.url.is_some() {
        return Err(Failure::usage(
            "--url: only a server on this machine can be stopped; name it with --data",
        ));
    }
    let data = std::path::absolute(global.data_dir()?)?;
    let shown = data.display();
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::failed("not_stopped", format!("cannot stop the server of {shown}: {why}"))
    };
    let Some(server) = running::process(&data).map_err(|error| cannot(&error))? else {
        return Err(nobody(&data));
    };
    let pid = server.pid.as_raw_pid();
    server.terminate().map_err(|error| cannot(&error))?;
    if !server.ends_within(END_WITHIN).map_err(|error| cannot(&error))? {
        return Err(cannot(&format_args!(
            "process {pid} was asked to end and still drains after {} s; `fernery down` again ends it at once",
            END_WITHIN.as_secs()
        )));
    }
    if screen.json {
        return screen.line(&json_inert(&json!({"stopped": pid, "data": shown.to_string()}).to_string()));
    }
    screen.line(&format!("stopped the server of {shown} (process {pid})"))
}

fn nobody(data: &Path) -> Failure {
    let shown = data.display();
    match running::holder(data) {
        Ok(HeldBy::Hidden) => Failure::conflict(format!(
            "the server of {shown} runs where this command cannot see it, for example in a container: stop it there"
        )),
        _ => Failure::not_found(format!("no server is running on {shown}")),
    }
}

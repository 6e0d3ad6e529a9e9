//! `fernery doctor`: checks everything that a server needs.

use super::Global;
use super::config::flags::SettingFlags;
use super::config::{in_force, warn_of_unknown_env};
use super::failure::{Failure, Outcome};
use super::input;
use super::screen::{Cell, Screen, json_inert};
use super::server::env_text;
use super::ticket::editor::{self, KeptDraft};
use crate::block_on::block_on;
use crate::doctor::{self, Caller, Finding, Level};
use crate::serve::data_dir::URL_FILE;
use clap::Args;
use std::path::PathBuf;

/// Check database, disk, settings and sandbox, and say what to do
///
/// Checks everything that `fernery up` needs: whether the database can be reached and has this version's schema, what
/// an acknowledged job survives, Redis if it is set, disk space, the clock, harmful lease settings, limits, who can
/// read the tokens, the repositories, the sandbox of executors and gates, and texts from the editor that were not sent. It takes the same settings as `fernery
/// up`.
///
/// It changes nothing: it works with and without a running server, writes nothing to the database and creates none.
/// Next to the database it writes one small file to measure a sync, and removes it.
#[derive(Debug, Args)]
#[command(after_help = "\
Levels: `ok`; `warning`: it works, but will cause trouble one day; `problem`: it does not work, or breaks a promise. \
Every warning and problem comes with a remedy. Exit code 1 if there is a problem, else 0.

With --json: check, level, found and remedy of each.

Examples:
  fernery doctor
  fernery doctor --database postgres://fernery@db/fernery
  fernery doctor --json | jq '.[] | select(.level != \"ok\")'")]
pub(super) struct Doctor {
    #[command(flatten)]
    flags: SettingFlags,
}

pub(super) fn run(doctor: Doctor, global: &Global, screen: Screen) -> Outcome {
    let (in_force, settings) = in_force(global, doctor.flags)?;
    warn_of_unknown_env();
    let url = match &global.url {
        Some(url) => Some(url.clone()),
        None => env_text("FERNERY_URL")?,
    };
    let ca = std::env::var_os("FERNERY_CA").filter(|v| !v.is_empty()).map(PathBuf::from);
    let caller = Caller { url, ca, url_file: URL_FILE, data_origin: in_force.data_origin() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut findings = block_on(&runtime, doctor::examine(&settings, &caller));
    findings.extend(editor::kept().iter().map(unsent));
    if screen.json {
        let text =
            serde_json::to_string(&findings).map_err(|error| Failure::lost("output", error.to_string()))?;
        screen.line(&json_inert(&text))?;
    } else {
        show(&findings, screen)?;
    }
    match findings.iter().map(|finding| finding.level).max() {
        Some(Level::Problem) => Err(Failure::told()),
        _ => Ok(()),
    }
}

/// A text that was typed into an editor and was not sent.
fn unsent(kept: &KeptDraft) -> Finding {
    let file = kept.path.display().to_string();
    let remedy = format!("to send it: {} {}; or delete it", kept.go_on, input::shell_word(&file));
    Finding::warning("drafts", format!("a text that was not sent: {file}"), remedy)
}

fn show(findings: &[Finding], screen: Screen) -> Outcome {
    let mut rows = Vec::new();
    for finding in findings {
        let level = Cell::state(finding.level.word());
        // Several mistakes get a row each.
        let mut found = finding.found.lines();
        rows.push(vec![level, finding.check.into(), found.next().unwrap_or_default().into()]);
        rows.extend(found.map(|line| vec!["".into(), "".into(), line.into()]));
        if let Some(remedy) = &finding.remedy {
            rows.push(vec!["".into(), "".into(), format!("→ {remedy}").into()]);
        }
    }
    screen.table(&["LEVEL", "CHECK", "FOUND"], rows)?;
    screen.line(&summary(findings))
}

fn summary(findings: &[Finding]) -> String {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let counted = |n: usize, what: &str| match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{n} {what}s"),
    };
    format!("{}, {}", counted(count(Level::Problem), "problem"), counted(count(Level::Warning), "warning"))
}

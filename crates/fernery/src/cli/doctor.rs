//! `fernery doctor`: is everything as a server needs it?

use super::Global;
use super::failure::{Failure, Outcome};
use super::screen::{Cell, Screen, json_inert};
use super::server::{URL_FILE, env_text};
use super::setting_flags::SettingFlags;
use super::settings::{in_force, warn_of_unknown_env};
use crate::doctor::{self, Caller, Finding, Level};
use clap::Args;
use std::path::PathBuf;

/// Check the database, the disk and the settings, and say what to do
///
/// Looks at everything that `fernery up` would run with and on: whether the database can be reached and is this version's,
/// what an acknowledged job really survives, Redis where it is set, room on the disk, the clock, lease settings that would
/// hurt, limits, who can read the tokens, the repositories, and what contains the programs of azollas. It takes the same settings as `fernery up`.
///
/// It only looks: it can be called while a server runs and when none does, writes nothing into the database, and makes
/// none. Beside the database it writes one small file, to see how long a sync takes, and removes it.
#[derive(Debug, Args)]
#[command(after_help = "\
Levels: `ok`; `warning`: it works, and will hurt one day; `problem`: it does not work or does not keep what it promises.
Every warning and every problem comes with a remedy. Exit code 1 if there is a problem, 0 if there are none but warnings.

Examples:
  fernery doctor
  fernery doctor --database postgres://fernery@db/fernery
  fernery doctor --json | jq '.[] | select(.level != \"ok\")'     check, level, found, remedy")]
pub(super) struct Doctor {
    #[command(flatten)]
    flags: SettingFlags,
}

pub(super) fn run(doctor: Doctor, global: &Global, screen: Screen) -> Outcome {
    let (_, settings) = in_force(global, doctor.flags)?;
    warn_of_unknown_env();
    let url = match &global.url {
        Some(url) => Some(url.clone()),
        None => env_text("FERNERY_URL")?,
    };
    let ca = std::env::var_os("FERNERY_CA").filter(|v| !v.is_empty()).map(PathBuf::from);
    let caller = Caller { url, ca, url_file: URL_FILE };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let findings = runtime.block_on(doctor::examine(&settings, &caller));
    if screen.json {
        let text =
            serde_json::to_string(&findings).map_err(|error| Failure::failed("output", error.to_string()))?;
        screen.line(&json_inert(&text))?;
    } else {
        show(&findings, screen)?;
    }
    match findings.iter().map(|finding| finding.level).max() {
        Some(Level::Problem) => Err(Failure::told()),
        _ => Ok(()),
    }
}

fn show(findings: &[Finding], screen: Screen) -> Outcome {
    let mut rows = Vec::new();
    for finding in findings {
        let level = Cell::state(finding.level.word());
        rows.push(vec![level, finding.check.into(), finding.found.as_str().into()]);
        if let Some(remedy) = &finding.remedy {
            rows.push(vec!["".into(), "".into(), format!("→ {remedy}").into()]);
        }
    }
    screen.table(&["LEVEL", "CHECK", "FOUND"], &rows)?;
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

//! `fernery config`: the current settings and where each comes from.

pub(super) mod flags;

use super::Global;
use super::failure::Outcome;
use super::screen::{Cell, Screen, json_inert, remark};
use crate::config::table::{OTHER_ENV, SETTINGS, nearest};
use crate::config::{self, Given, InForce, Settings, database, duration};
use crate::http::WorkerAuth;
use clap::Args;
use flags::SettingFlags;
use serde_json::{Map, Value, json};

/// Print every setting, its value and where the value comes from.
///
/// It checks everything that `fernery up` checks at start, and takes the same flags.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fernery config
  fernery config --lease-ttl 10s --json      with this flag
  fernery config --default > fernery.toml    all defaults, with comments")]
pub(super) struct Config {
    /// Print a commented configuration file with all defaults
    #[arg(long)]
    default: bool,
    #[command(flatten)]
    flags: SettingFlags,
}

/// The current settings, from all sources.
pub(super) fn in_force(global: &Global, flags: impl Into<Vec<Given>>) -> Outcome<(InForce, Settings)> {
    let mut all = global.flags();
    all.extend(flags.into());
    let in_force = global.resolved(all)?;
    let settings = in_force.check()?;
    Ok((in_force, settings))
}

pub(super) fn run(config: Config, global: &Global, screen: Screen) -> Outcome {
    if config.default {
        let text = config::DEFAULT_FILE.trim_end();
        return if screen.json {
            screen.line(&json!({ "file": text }).to_string())
        } else {
            screen.line(text)
        };
    }
    let (in_force, settings) = in_force(global, config.flags)?;
    warn_of_unknown_env();
    if screen.json {
        let rows: Map<String, Value> = in_force
            .rows
            .iter()
            .map(|row| {
                (row.setting.key.to_string(), json!({"value": value(row, &settings), "source": row.origin()}))
            })
            .collect();
        let file = in_force.file.map(|path| path.display().to_string());
        // The file may come with somebody else's repository.
        return screen.line(&json_inert(&json!({"file": file, "settings": rows}).to_string()));
    }
    let rows: Vec<Vec<Cell>> = in_force
        .rows
        .iter()
        .map(|row| {
            let shown = match value(row, &settings) {
                Value::Null => Cell::maybe(None::<&str>),
                Value::String(text) => text.into(),
                Value::Array(items) if items.is_empty() => Cell::maybe(None::<&str>),
                other => other.into(),
            };
            vec![row.setting.key.into(), shown, row.origin().into()]
        })
        .collect();
    screen.table(&["SETTING", "VALUE…", "FROM"], rows)
}

/// The current value, as a person or a program may see it.
fn value(row: &Given, settings: &Settings) -> Value {
    let path =
        |path: Option<&std::path::PathBuf>| path.map_or(Value::Null, |p| p.display().to_string().into());
    match row.setting.key {
        "listen" => settings.listen.to_string().into(),
        "data" => path(Some(&settings.data)),
        "database" => database::show(&settings.database).into(),
        "redis" => settings.transport.as_ref().map_or(Value::Null, |t| database::mask(&t.url).into()),
        "lease_ttl" => duration::show(settings.lease_ttl).into(),
        "heartbeat_interval" => duration::show(settings.heartbeat_interval).into(),
        "reap_interval" => duration::show(settings.reap_interval).into(),
        "retention" => duration::show(settings.retention).into(),
        "dead_letter_retention" => {
            settings.dead_letter_retention.map_or(Value::Null, |kept| duration::show(kept).into())
        }
        "azolla" => settings.azollas.iter().map(|file| file.display().to_string()).collect(),
        "repos" => settings.repos.values().map(ToString::to_string).collect(),
        "allowed_host" => settings.allowed_hosts.clone().into(),
        "worker_auth" => match settings.worker_auth {
            WorkerAuth::Token => "token".into(),
            WorkerAuth::None => "none".into(),
        },
        "requests_per_second" => settings.requests_per_second.map_or(Value::Null, |n| n.get().into()),
        "tls_cert" => path(settings.tls.as_ref().map(|tls| &tls.cert)),
        "tls_key" => path(settings.tls.as_ref().map(|tls| &tls.key)),
        "insecure_http" => settings.insecure_http.into(),
        // The other values hold no secret and were checked.
        _ => row.values.first().cloned().map_or(Value::Null, Value::from),
    }
}

/// A misspelt variable would otherwise be ignored silently.
pub(super) fn warn_of_unknown_env() {
    let names: Vec<String> = SETTINGS.iter().map(|s| s.env()).collect();
    let known = || names.iter().map(String::as_str).chain(OTHER_ENV.iter().copied());
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|n| n.starts_with("FERNERY_")) else { continue };
        if !known().any(|k| k == name)
            && let Some(near) = nearest(name, known()).filter(|near| strsim::levenshtein(near, name) <= 3)
        {
            remark(&format!("warning: {name} is not a setting; did you mean {near}?"));
        }
    }
}

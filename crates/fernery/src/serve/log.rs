//! The log, on stderr.

use crate::config::{LogFormat, Settings};
use std::io::IsTerminal;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts the log. A second start changes nothing.
pub(crate) fn start(settings: &Settings) {
    let filter: Targets = settings.log_level.parse().unwrap_or_default();
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(filter);
    let started = match settings.log_format {
        LogFormat::Json => registry.with(layer.json()).try_init(),
        LogFormat::Human => registry.with(layer.with_ansi(std::io::stderr().is_terminal())).try_init(),
    };
    debug_assert!(started.is_ok(), "the log is started once");
}

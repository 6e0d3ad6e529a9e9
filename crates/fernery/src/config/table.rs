//! The one table of settings. Flags, names in the environment, keys of the file and the output of `fernery config` all
//! come from it.

use Fallback::{Follows, Unset, Value};
pub use fernery_core::names::nearest;

/// How a setting is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    One,
    /// A list: the flag repeated, commas in the environment, an array in the file.
    Many,
    /// On or off.
    Switch,
}

/// The value of a setting that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    Value(&'static str),
    /// It is computed from another setting by this rule.
    Follows(&'static str),
    Unset,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its key in the file; before a dot is the name of its table. The flag has hyphens instead of dots and underscores. The
    /// variable has the prefix `FERNERY_`, capital letters, and underscores instead of dots.
    pub key: &'static str,
    /// The placeholder for its value in `--help`.
    pub value_name: &'static str,
    pub form: Form,
    pub fallback: Fallback,
    /// One line for people.
    pub help: &'static str,
}

impl Setting {
    /// Its table in the file; `None`: it is at the top level.
    pub(super) fn table(&self) -> Option<&'static str> {
        self.key.split_once('.').map(|(table, _)| table)
    }

    /// Its key within that table.
    pub(super) fn key_in_table(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(_, key)| key)
    }

    /// The long flag, without its hyphens in front.
    pub fn flag(&self) -> String {
        self.key.replace(['_', '.'], "-")
    }

    /// The name in the environment.
    pub fn env(&self) -> String {
        format!("FERNERY_{}", self.key.replace('.', "_").to_ascii_uppercase())
    }
}

/// Variables that are not settings: they tell the command line where to look, or hold secrets.
pub const OTHER_ENV: &[&str] =
    &["FERNERY_CONFIG", "FERNERY_URL", "FERNERY_TOKEN", "FERNERY_CA", "FERNERY_MOCK"];

const fn one(key: &'static str, value_name: &'static str, fallback: Fallback, help: &'static str) -> Setting {
    Setting { key, value_name, form: Form::One, fallback, help }
}

/// Every setting, in the order of the documentation.
pub static SETTINGS: &[Setting] = &[
    one(
        "listen",
        "ADDR:PORT",
        Value("127.0.0.1:8080"),
        "Address and port to listen on; port 0 picks a free one",
    ),
    one("data", "DIR", Value(".fernery"), "Directory for tokens, the SQLite database and the server's URL"),
    one(
        "database",
        "URL",
        Follows("sqlite:<data>/fernery.db"),
        "sqlite:PATH or postgres://user:password@host/name",
    ),
    one(
        "redis",
        "URL",
        Unset,
        "redis://:password@host/0 (rediss:// for TLS): Redis Streams carry messages; needs PostgreSQL",
    ),
    one("transport.group", "NAME", Value("workers"), "Consumer group in Redis, the same for all servers"),
    one(
        "transport.ack",
        "control-plane|worker",
        Value("control-plane"),
        "Who acknowledges messages in Redis: the server, or workers that talk to Redis themselves",
    ),
    one(
        "lease_ttl",
        "DURATION",
        Value("60s"),
        "How long a lease lasts after a claim or a heartbeat; 1s to 600s",
    ),
    one(
        "heartbeat_interval",
        "DURATION",
        Follows("lease_ttl / 3"),
        "How often workers are told to send a heartbeat; at most half of lease_ttl",
    ),
    one(
        "reap_interval",
        "DURATION",
        Follows("lease_ttl / 2, at most 5s"),
        "How often the reaper looks for expired leases; at most lease_ttl",
    ),
    one("retention", "DURATION", Value("7d"), "How long succeeded and cancelled jobs are kept"),
    one(
        "dead_letter_retention",
        "DURATION",
        Unset,
        "How long dead jobs are kept; if not set, until they are redriven or purged",
    ),
    Setting {
        key: "azolla",
        value_name: "FILE",
        form: Form::Many,
        fallback: Unset,
        help: "Blueprint of an azolla (project) to host, beside or instead of the built-in `mec`, \
            `task_management` and `tasks`; repeatable",
    },
    Setting {
        key: "repos",
        value_name: "NAME=PATH#BASE",
        form: Form::Many,
        fallback: Unset,
        help: "A repository that tickets may name as repo_ref, and its base branch (main); repeatable",
    },
    Setting {
        key: "registry",
        value_name: "NAME=URL;…",
        form: Form::Many,
        fallback: Unset,
        help: "An azolla of another server to query: NAME=URL;azolla_id=ID;token_env=VARIABLE (or \
            token_file=PATH); repeatable",
    },
    Setting {
        key: "visitors",
        value_name: "SOURCE=READS",
        form: Form::Many,
        fallback: Unset,
        help: "An azolla of another server that may query this one, and what it may read: \
            laptop=mec:objective+pause_state; repeatable",
    },
    Setting {
        key: "notices.hosts",
        value_name: "HOST",
        form: Form::Many,
        fallback: Unset,
        help: "Host that webhooks in blueprints may call; repeatable",
    },
    Setting {
        key: "notices.private",
        value_name: "",
        form: Form::Switch,
        fallback: Value("false"),
        help: "Allow webhooks to private and loopback addresses, and over plain HTTP",
    },
    Setting {
        key: "allowed_host",
        value_name: "NAME",
        form: Form::Many,
        fallback: Unset,
        help: "Additional host name that requests may use, besides loopback and the listen address; repeatable",
    },
    one(
        "worker_auth",
        "token|none",
        Value("token"),
        "Whether workers need a token; `none` works on loopback only, without allowed_host and insecure_http",
    ),
    one(
        "requests_per_second",
        "NUMBER",
        Unset,
        "Requests per second for each token, without the reports of workers; no limit if not set",
    ),
    one("tls_cert", "FILE", Unset, "Certificate chain (PEM) for HTTPS"),
    one("tls_key", "FILE", Unset, "Private key (PEM) of that certificate"),
    Setting {
        key: "insecure_http",
        value_name: "",
        form: Form::Switch,
        fallback: Value("false"),
        help: "Allow plain HTTP on other addresses than loopback, because a proxy does TLS",
    },
    one(
        "log_level",
        "LEVEL",
        Value("info"),
        "error, warn, info, debug or trace; also per target: info,fernery=debug",
    ),
    one("log_format", "human|json", Value("human"), "Format of the log on stderr"),
];

/// The setting with this key.
pub fn setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|s| s.key == key)
}

//! The running server, if there is one: whether it is healthy, and whether it is the one that these settings mean.

use super::super::finding::Finding;
use std::path::Path;

/// What is known about the server of a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// There is no sign of a running server.
    None,
    /// The check itself failed.
    Unknown { why: String },
    /// A server wrote its URL, and was asked there.
    Asked(Reply),
}

/// The result of asking a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Silent { url: String, why: String },
    Answered(Server),
}

/// What a server says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) version: String,
    pub(crate) backend: String,
    /// Why it is not ready.
    pub(crate) unready: Option<String>,
    /// Its own findings, each with a remedy.
    pub(crate) degraded: Vec<(String, String)>,
}

/// Who holds the lock of the database file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// PostgreSQL has no such lock: any number of servers may run.
    Many,
    Nobody,
    Process(u32),
    /// The check failed.
    Unknown(String),
}

impl Holder {
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Process(pid) => Some(*pid),
            Self::Many | Self::Nobody | Self::Unknown(_) => None,
        }
    }
}

/// What to compare a server's answer with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) version: &'a str,
    pub(crate) backend: &'a str,
    pub(crate) holder: &'a Holder,
}

/// Whether the server of the data directory, if one runs, is healthy and the one that is meant.
pub(crate) fn own(process: &Process, expected: Expected<'_>) -> Finding {
    const CHECK: &str = "server";
    match (process, expected.holder) {
        (Process::Unknown { why }, _) | (Process::None, Holder::Unknown(why)) => Finding::warning(
            CHECK,
            format!("unknown: {why}"),
            "run this command as the user that runs the server",
        ),
        (Process::None, Holder::Nobody | Holder::Many) => Finding::ok(CHECK, "no server is running here"),
        (Process::None, Holder::Process(pid)) => Finding::warning(
            CHECK,
            format!("process {pid} serves the database, but its address is unknown"),
            "unless it is just starting, name the server's data directory with --data",
        ),
        (Process::Asked(Reply::Silent { url, why }), Holder::Process(pid)) => Finding::problem(
            CHECK,
            format!("process {pid} serves the database, but does not answer at {url}: {why}"),
            format!("check its log; if it hangs, end it with `kill {pid}` and start `fernery up` again"),
        ),
        (Process::Asked(Reply::Silent { url, why }), _) => Finding::warning(
            CHECK,
            format!("the server at {url} does not answer any more: {why}"),
            "if it was killed, `fernery up` starts it again; nothing acknowledged is lost",
        ),
        (Process::Asked(Reply::Answered(server)), _) => answered(CHECK, server, expected),
    }
}

/// Whether the operator's token in the data directory still works.
pub(crate) fn token(path: &Path, works: bool) -> Finding {
    const CHECK: &str = "operator_token";
    match works {
        true => Finding::ok(CHECK, format!("the server accepts {}", path.display())),
        false => Finding::problem(
            CHECK,
            format!(
                "the server does not accept the token in {}: it was revoked, or has expired",
                path.display()
            ),
            "set FERNERY_TOKEN to another operator's token; if there is none, delete this file and restart the server: \
             it makes a new one",
        ),
    }
}

/// Whether the server works by other blueprints than its files have now.
pub(crate) fn edited(azollas: &[String]) -> Option<Finding> {
    (!azollas.is_empty()).then(|| {
        let found = format!("edited since the server read them: {}", azollas.join(", "));
        Finding::warning("blueprints", found, "`fernery azolla reload` applies them")
    })
}

/// Whether the server that the caller named answers, is healthy and is the one that is meant. Says nothing about the process
/// that holds the database: the named URL may be wrong while that process is healthy.
pub(crate) fn named(reply: &Reply, expected: Expected<'_>) -> Finding {
    const CHECK: &str = "named_server";
    match reply {
        Reply::Answered(server) => answered(CHECK, server, expected),
        Reply::Silent { url, why } => Finding::problem(
            CHECK,
            format!("no server answers at the URL you named, {url}: {why}"),
            "correct --url or FERNERY_URL, or start the server there",
        ),
    }
}

fn answered(check: &'static str, server: &Server, expected: Expected<'_>) -> Finding {
    const SAME_SETTINGS: &str =
        "run this command with the server's settings: the same --config, --database and environment";
    let Server { url, version, backend, unready, degraded } = server;
    if let Some(why) = unready {
        return Finding::problem(
            check,
            format!("the server at {url} is not ready: {why}"),
            "check its log and the findings about the database; it becomes ready again when they are fixed",
        );
    }
    if backend != expected.backend {
        let found =
            format!("the server at {url} uses {backend}, but these settings say {}", expected.backend);
        return Finding::warning(check, found, SAME_SETTINGS);
    }
    if *expected.holder == Holder::Nobody {
        let found = format!("the server at {url} serves another database than these settings name");
        return Finding::warning(check, found, SAME_SETTINGS);
    }
    if version != expected.version {
        return Finding::warning(
            check,
            format!("the server at {url} is version {version}, this program is {}", expected.version),
            "restart the server to run the installed version",
        );
    }
    if let Some((_, remedy)) = degraded.first() {
        let found: Vec<&str> = degraded.iter().map(|(found, _)| found.as_str()).collect();
        let found = format!("the server at {url} is degraded: {}", found.join("; "));
        return Finding::warning(check, found, remedy.clone());
    }
    Finding::ok(check, format!("{url} answers, version {version}"))
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Level::{Ok, Problem, Warning};
    use super::*;

    const HELD: Holder = Holder::Process(7);

    fn silent() -> Reply {
        Reply::Silent { url: "http://h".into(), why: "refused".into() }
    }

    fn answered(version: &str, backend: &str, unready: Option<&str>) -> Reply {
        Reply::Answered(Server {
            url: "http://h".into(),
            version: version.into(),
            backend: backend.into(),
            unready: unready.map(Into::into),
            degraded: Vec::new(),
        })
    }

    #[test]
    fn a_server_is_judged_by_its_answer_and_by_who_holds_the_file() {
        let hidden = || Holder::Unknown("permission denied".into());
        for (seen, holder, level) in [
            (Process::None, Holder::Nobody, Ok),
            (Process::None, HELD, Warning),
            (Process::None, hidden(), Warning),
            (Process::Unknown { why: "permission denied".into() }, Holder::Nobody, Warning),
            (Process::Asked(silent()), Holder::Nobody, Warning),
            (Process::Asked(silent()), hidden(), Warning),
            (Process::Asked(silent()), HELD, Problem),
            (Process::Asked(answered("1.0.0", "sqlite", None)), HELD, Ok),
            (Process::Asked(answered("1.0.0", "sqlite", None)), hidden(), Ok),
            (Process::Asked(answered("1.0.0", "sqlite", None)), Holder::Nobody, Warning),
            (Process::Asked(answered("0.9.0", "sqlite", None)), HELD, Warning),
            (Process::Asked(answered("1.0.0", "postgres", None)), Holder::Nobody, Warning),
            (Process::Asked(answered("1.0.0", "sqlite", Some("the disk is full"))), HELD, Problem),
        ] {
            let expected = Expected { version: "1.0.0", backend: "sqlite", holder: &holder };
            let finding = own(&seen, expected);
            assert_eq!(finding.level, level, "{seen:?} {holder:?}: {finding:?}");
            assert_eq!(finding.remedy.is_none(), level == Ok);
        }
        let expected = Expected { version: "1.0.0", backend: "postgres", holder: &Holder::Many };
        assert_eq!(own(&Process::Asked(answered("1.0.0", "postgres", None)), expected).level, Ok);
    }

    #[test]
    fn a_url_that_nobody_answers_says_nothing_about_the_process_that_serves() {
        let expected = Expected { version: "1.0.0", backend: "sqlite", holder: &HELD };
        let finding = named(&silent(), expected);
        assert_eq!(finding.level, Problem, "{finding:?}");
        assert!(!finding.remedy.unwrap().contains("kill"));
        assert_eq!(named(&answered("1.0.0", "sqlite", None), expected).level, Ok);
        let elsewhere = Expected { holder: &Holder::Nobody, ..expected };
        assert_eq!(named(&answered("1.0.0", "sqlite", None), elsewhere).level, Warning);
    }
}

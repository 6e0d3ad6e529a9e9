//! Settings that are allowed and would hurt, and the process that runs under them.

use super::super::finding::Finding;
use crate::config::duration::show;
use std::time::Duration;

/// Below this, an ordinary pause (a collection of garbage, a slow disk) costs a lease.
const TTL_COMFORTABLE: Duration = Duration::from_secs(5);
/// Above this, a worker that died blocks its job for longer than anybody waits.
const TTL_PATIENT: Duration = Duration::from_secs(300);

/// The three intervals of a lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intervals {
    pub(crate) lease_ttl: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) reap: Duration,
}

/// Whether they fit each other and the world.
pub(crate) fn leases(set: Intervals) -> Finding {
    const CHECK: &str = "lease_settings";
    let Intervals { lease_ttl, heartbeat, reap } = set;
    let found = format!(
        "leases of {}, heartbeats every {}, expired ones looked for every {}",
        show(lease_ttl),
        show(heartbeat),
        show(reap)
    );
    if heartbeat * 2 >= lease_ttl {
        let remedy =
            "set heartbeat_interval under half of lease_ttl: one lost heartbeat would cost the lease";
        return Finding::problem(CHECK, found, remedy);
    }
    if reap > lease_ttl {
        let remedy = "set reap_interval to lease_ttl or less: expired leases would wait for the reaper";
        return Finding::problem(CHECK, found, remedy);
    }
    if lease_ttl < TTL_COMFORTABLE {
        let remedy = "set lease_ttl to 5s or more: an ordinary pause of a worker costs it a shorter lease";
        return Finding::warning(CHECK, found, remedy);
    }
    if lease_ttl > TTL_PATIENT {
        let remedy = "set lease_ttl to 5m or less and let workers send heartbeats: a worker that dies keeps its job for \
                      the whole lease";
        return Finding::warning(CHECK, found, remedy);
    }
    if reap * 2 > lease_ttl {
        let remedy = "set reap_interval to half of lease_ttl or less, or leave it out";
        return Finding::warning(CHECK, found, remedy);
    }
    Finding::ok(CHECK, found)
}

/// What became of the question to the server process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// Nothing says that one runs.
    None,
    /// One should be there and did not answer.
    Silent { url: String, why: String },
    /// It answered, and is ready or says why not.
    Answered { url: String, version: String, backend: String, unready: Option<String> },
}

/// What this program and the database's lock know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) version: &'a str,
    pub(crate) backend: &'a str,
    /// The process that holds the database file.
    pub(crate) holder: Option<u32>,
}

/// Whether the server that runs, if one does, is well and the one that is meant.
pub(crate) fn process(process: &Process, expected: Expected<'_>) -> Finding {
    const CHECK: &str = "server";
    match (process, expected.holder) {
        (Process::None, None) => Finding::ok(CHECK, "no server runs here"),
        (Process::None, Some(pid)) => Finding::warning(
            CHECK,
            format!("process {pid} serves the database and has not said where it listens"),
            "if it is not just starting, name the server's data directory with --data",
        ),
        (Process::Silent { url, why }, None) => Finding::warning(
            CHECK,
            format!("a server was at {url} and does not answer: {why}"),
            "if it was killed, `fernery up` starts it again; nothing acknowledged is lost",
        ),
        (Process::Silent { url, why }, Some(pid)) => Finding::problem(
            CHECK,
            format!("process {pid} serves the database and does not answer at {url}: {why}"),
            format!("look at its log; if it hangs, end it with `kill {pid}` and start `fernery up` again"),
        ),
        (Process::Answered { url, unready: Some(why), .. }, _) => Finding::problem(
            CHECK,
            format!("the server at {url} is not ready: {why}"),
            "look at its log and at the findings about the database; it is ready again by itself once they are mended",
        ),
        (Process::Answered { url, backend, .. }, _) if backend != expected.backend => Finding::warning(
            CHECK,
            format!("the server at {url} runs on {backend}, these settings say {}", expected.backend),
            "call this command with the settings of the server: the same --config, --database and environment",
        ),
        (Process::Answered { url, version, .. }, _) if version != expected.version => Finding::warning(
            CHECK,
            format!("the server at {url} is version {version}, this program is {}", expected.version),
            "restart the server so that it runs the program that is installed",
        ),
        (Process::Answered { url, version, .. }, _) => {
            Finding::ok(CHECK, format!("{url} answers, version {version}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Level::{self, Ok, Problem, Warning};
    use super::*;

    #[test]
    fn intervals_that_hurt_are_told() {
        let cases: &[(u64, u64, u64, Level)] = &[
            (60_000, 20_000, 5_000, Ok),
            (5_000, 1_666, 2_500, Ok),
            (300_000, 100_000, 5_000, Ok),
            (4_999, 1_000, 1_000, Warning),
            (300_001, 100_000, 5_000, Warning),
            (60_000, 20_000, 31_000, Warning),
            (60_000, 30_000, 5_000, Problem),
            (60_000, 29_999, 5_000, Ok),
            (60_000, 20_000, 60_001, Problem),
        ];
        for &(ttl, heartbeat, reap, level) in cases {
            let set = Intervals {
                lease_ttl: Duration::from_millis(ttl),
                heartbeat: Duration::from_millis(heartbeat),
                reap: Duration::from_millis(reap),
            };
            assert_eq!(leases(set).level, level, "{set:?}");
        }
    }

    #[test]
    fn a_server_is_judged_by_its_answer_and_by_who_holds_the_file() {
        let silent = Process::Silent { url: "http://h".into(), why: "refused".into() };
        let answered = |version: &str, backend: &str, unready: Option<&str>| Process::Answered {
            url: "http://h".into(),
            version: version.into(),
            backend: backend.into(),
            unready: unready.map(Into::into),
        };
        for (seen, holder, level) in [
            (Process::None, None, Ok),
            (Process::None, Some(7), Warning),
            (silent.clone(), None, Warning),
            (silent, Some(7), Problem),
            (answered("1.0.0", "sqlite", None), Some(7), Ok),
            (answered("0.9.0", "sqlite", None), Some(7), Warning),
            (answered("1.0.0", "postgres", None), None, Warning),
            (answered("1.0.0", "sqlite", Some("the disk is full")), Some(7), Problem),
        ] {
            let finding = process(&seen, Expected { version: "1.0.0", backend: "sqlite", holder });
            assert_eq!(finding.level, level, "{seen:?} {holder:?}: {finding:?}");
            assert_eq!(finding.remedy.is_none(), level == Ok);
        }
    }
}

//! The processes that serve one database: which are alive, and whether their settings differ.

use super::super::finding::Finding;
use crate::config::duration::show;
use crate::serve::peers::{Common, Difference, differences};
use fernery_engine::store::{LivingProcess, Process};

/// One finding for each living process, then one on whether their settings are equal.
pub(crate) fn judged(alive: &[LivingProcess]) -> Vec<Finding> {
    const CHECK: &str = "processes";
    if alive.is_empty() {
        return vec![Finding::ok(CHECK, "no process is serving this database")];
    }
    let mut findings: Vec<Finding> =
        alive.iter().map(|seen| Finding::ok("process", described(&seen.process))).collect();
    let different = differences(alive.iter().map(|seen| &seen.process));
    if different.is_empty() {
        let found = if alive.len() == 1 {
            "1 is alive".into()
        } else {
            format!("{} are alive, all with the same settings", alive.len())
        };
        findings.push(Finding::ok(CHECK, found));
    }
    for Difference { what, values } in different {
        let values: Vec<String> =
            values.into_iter().map(|(value, names)| format!("{value} at {}", names.join(", "))).collect();
        let found = format!("{} differs: {}", what.name(), values.join("; "));
        findings.push(Finding::warning(CHECK, found, remedy(what)));
    }
    findings
}

fn described(process: &Process) -> String {
    format!(
        "{} at {}, version {}, schema version {}, leases of {}, transport {}, since {}",
        process.name(),
        process.url,
        process.version,
        process.schema_version,
        show(process.lease_ttl),
        process.transport,
        process.started_at
    )
}

fn remedy(what: Common) -> &'static str {
    match what {
        Common::Version => "stop all processes and start them with the same version",
        Common::SchemaVersion => {
            "stop the processes of the older version: the database schema was changed after they started"
        }
        Common::LeaseTtl => {
            "start all with the same lease_ttl: a lease that is renewed at the process with the shorter one \
            may expire before the next heartbeat"
        }
        Common::Transport => {
            "start all with the same --redis, group and ack, or all without Redis: a process without Redis \
            sends no messages, and with two different ones lost messages are not sent again; to change \
            Redis, stop all first"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Level::{Ok, Warning};
    use super::*;
    use crate::serve::peers::tests::process;
    use fernery_core::Timestamp;

    fn alive(processes: Vec<Process>) -> Vec<LivingProcess> {
        let seen = |process| LivingProcess { process, seen_at: Timestamp::from_millis(0) };
        processes.into_iter().map(seen).collect()
    }

    #[test]
    fn processes_that_differ_are_told_with_a_remedy() {
        assert_eq!(judged(&[]).len(), 1);
        let alike = judged(&alive(vec![process(1, 60, "none"), process(2, 60, "none")]));
        assert!(alike.iter().all(|finding| finding.level == Ok), "{alike:?}");
        assert!(alike[0].found.starts_with("alpha:1 at http://127.0.0.1:1"), "{alike:?}");
        let differ =
            judged(&alive(vec![process(1, 60, "none"), process(2, 30, "none"), process(3, 60, "redis")]));
        let told: Vec<&str> = differ
            .iter()
            .filter(|finding| finding.level == Warning)
            .map(|finding| finding.found.as_str())
            .collect();
        assert_eq!(
            told,
            [
                "lease_ttl differs: 30s at alpha:2; 60s at alpha:1, alpha:3",
                "transport differs: none at alpha:1, alpha:2; redis at alpha:3"
            ]
        );
        assert!(differ.iter().all(|finding| finding.remedy.is_some() == (finding.level == Warning)));
        let newer = Process { version: "1.1.0".into(), schema_version: 6, ..process(2, 60, "none") };
        let differ = judged(&alive(vec![process(1, 60, "none"), newer]));
        assert_eq!(differ.iter().filter(|finding| finding.level == Warning).count(), 2, "{differ:?}");
    }
}

//! An act on all jobs that match in words, the same in the terminal and on the pages; and the command that asks for it.

use fernery_client::wire::{BulkRequest, BulkView};
use fernery_core::JobStatus;
use fernery_core::job::bulk::{BulkState, BulkVerb, Counted};

/// What is done to what: `cancel all QUEUED jobs of the stream mail`.
pub(crate) fn sentence(asked: &BulkRequest) -> String {
    let BulkRequest { verb, status, stream, code, .. } = asked;
    let stream = stream.as_ref().map_or(String::new(), |stream| format!(" of the stream {stream}"));
    let code = code.as_deref().map_or(String::new(), |code| match code {
        "" => " without an error code".to_string(),
        code => format!(" with the error code {code}"),
    });
    format!("{verb} all {status} jobs{stream}{code}")
}

/// How many jobs: `12 jobs`, `at least 10000 jobs`.
pub(crate) fn jobs(count: u64, counted: Counted) -> String {
    let bound = match counted {
        Counted::Exact => "",
        Counted::AtLeast => "at least ",
        Counted::AtMost => "at most ",
    };
    format!("{bound}{count} {}", if count == 1 { "job" } else { "jobs" })
}

/// What was done, in one word for the number before it: `12 cancelled`.
pub(crate) fn done(verb: BulkVerb, status: JobStatus) -> &'static str {
    match (verb, status) {
        (BulkVerb::Cancel, JobStatus::Running) => "asked to end",
        (BulkVerb::Cancel, _) => "cancelled",
        (BulkVerb::Retry, _) => "queued again",
        (BulkVerb::Purge, _) => "deleted",
    }
}

/// How far it is: `12 of 40 jobs cancelled, 1 refused`. What was counted is left out once it says nothing more: at the end, and where
/// there were more than that.
pub(crate) fn progress(act: &BulkView) -> String {
    let word = done(act.verb, act.status);
    let refused = if act.refused > 0 { format!(", {} refused", act.refused) } else { String::new() };
    match act.state == BulkState::Running && act.done + act.refused <= act.expected {
        true => format!("{} of {} {word}{refused}", act.done, jobs(act.expected, act.counted)),
        false => format!("{} {word}{refused}", jobs(act.done, Counted::Exact)),
    }
}

/// Which jobs of this status are meant, before the instant that bounds them.
pub(crate) fn bound(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Queued => "what was enqueued before",
        JobStatus::Running => "what began to run before",
        JobStatus::Succeeded | JobStatus::Dead | JobStatus::Cancelled => "what ended before",
    }
}

/// The request for an act like this one.
pub(crate) fn request(act: &BulkView) -> BulkRequest {
    BulkRequest {
        verb: act.verb,
        status: act.status,
        stream: act.stream.clone(),
        code: act.code.clone(),
        before: Some(act.before),
        act_id: None,
        dry_run: false,
    }
}

/// The same in a terminal. `quoted` makes a word of a text.
pub(crate) fn command(asked: &BulkRequest, quoted: impl Fn(&str) -> String) -> String {
    let BulkRequest { verb, status, stream, code, before, .. } = asked;
    let mut command = format!("fernery job bulk {verb}");
    if *verb != BulkVerb::Purge {
        command.push_str(&format!(" --status {status}"));
    }
    let flags = [
        ("stream", stream.as_ref().map(ToString::to_string)),
        ("code", code.as_deref().map(quoted)),
        ("before", before.map(|before| before.to_string())),
    ];
    for (name, value) in flags.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        command.push_str(&format!(" --{name} {value}"));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use fernery_core::StreamName;

    #[test]
    fn an_act_is_told_in_one_sentence_and_as_a_command() {
        let mut asked = BulkRequest {
            verb: BulkVerb::Retry,
            status: JobStatus::Dead,
            stream: Some(StreamName::new("mail").unwrap()),
            code: Some("E 1".into()),
            before: None,
            act_id: None,
            dry_run: false,
        };
        assert_eq!(sentence(&asked), "retry all DEAD jobs of the stream mail with the error code E 1");
        let quoted = |text: &str| format!("'{text}'");
        assert_eq!(
            command(&asked, quoted),
            "fernery job bulk retry --status DEAD --stream mail --code 'E 1'"
        );
        (asked.verb, asked.stream, asked.code) = (BulkVerb::Purge, None, Some(String::new()));
        assert_eq!(sentence(&asked), "purge all DEAD jobs without an error code");
        assert_eq!(command(&asked, quoted), "fernery job bulk purge --code ''");
    }

    #[test]
    fn each_status_has_its_own_bound() {
        let bounds = [JobStatus::Queued, JobStatus::Running, JobStatus::Dead].map(bound);
        assert_eq!(bounds, ["what was enqueued before", "what began to run before", "what ended before"]);
    }

    #[test]
    fn a_count_says_whether_it_is_whole() {
        assert_eq!(jobs(1, Counted::Exact), "1 job");
        assert_eq!(jobs(10_000, Counted::AtLeast), "at least 10000 jobs");
        assert_eq!(jobs(7, Counted::AtMost), "at most 7 jobs");
    }

    #[test]
    fn what_was_counted_is_told_as_long_as_it_says_something() {
        let told = |state: &str, done: u64, refused: u64| {
            let act = serde_json::json!({"act_id": "a", "verb": "cancel", "status": "QUEUED",
                "before": "2026-11-19T10:00:00Z", "actor": "o", "state": state, "expected": 10, "counted": "AT_LEAST",
                "done": done, "refused": refused, "created_at": "2026-11-19T10:00:00Z",
                "updated_at": "2026-11-19T10:00:00Z"});
            progress(&serde_json::from_value(act).expect("an act"))
        };
        assert_eq!(told("RUNNING", 9, 1), "9 of at least 10 jobs cancelled, 1 refused");
        assert_eq!(told("RUNNING", 25, 0), "25 jobs cancelled");
        assert_eq!(told("RUNNING", 10, 1), "10 jobs cancelled, 1 refused");
        assert_eq!(told("DONE", 1, 0), "1 job cancelled");
        assert_eq!(told("STOPPED", 4, 0), "4 jobs cancelled");
    }
}

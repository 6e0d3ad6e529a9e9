//! Detects that a failed attempt repeats the one before it. An executor that was told the failure and ends the same way
//! will do so again, so the rest of the envelope is saved.

use super::evidence::Evidence;
use super::membrane::{Outcome, outcome};
use crate::artifact::{GateResult, OutputBundle};
use crate::limits;

/// How an attempt repeats the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// The same patch on the same commit.
    Patch,
    /// The same gate failed, with the same exit code and the same end of its log.
    Failure { gate: String },
}

impl Repetition {
    pub fn why(&self) -> String {
        match self {
            Self::Patch => "this attempt made the same patch as the one before it".to_string(),
            Self::Failure { gate } => format!("gate {gate} failed in the same way as in the attempt before"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    pub bundle: &'a OutputBundle,
    /// The commit that it started from, if it is about a repository.
    pub base: Option<&'a str>,
    /// The reason in its run record.
    pub reason: &'a str,
    pub evidence: &'a [Evidence],
}

/// How a failed attempt repeats the one before it, which failed under the same approval; `None`: it does not.
pub fn repetition(before: &Attempt<'_>, now: &Attempt<'_>) -> Option<Repetition> {
    // An attempt that was broken off, or that no gate could judge, is not compared.
    let judged = |attempt: &Attempt<'_>| attempt.evidence.iter().all(|found| found.trouble.is_none());
    if !judged(before) || outcome(&before.bundle.metadata) != outcome(&now.bundle.metadata) {
        return None;
    }
    let (was, is) = (&before.bundle.content, &now.bundle.content);
    // Rework starts from a patch: an executor that failed hands that in again without having made it.
    let ended = outcome(&now.bundle.metadata);
    let made = (ended.is_success() || ended == Outcome::NoChange) && !is.is_empty();
    if now.base.is_some() && before.base == now.base && was == is && made {
        return Some(Repetition::Patch);
    }
    let failure = failure(now);
    (failure == self::failure(before)).then(|| Repetition::Failure { gate: failure.0.to_string() })
}

/// The failed gate, the exit code of its program, and the end of its output.
fn failure<'a>(attempt: &Attempt<'a>) -> (&'a str, Option<i32>, Vec<String>) {
    match attempt.evidence.iter().find(|found| found.result == Some(GateResult::Fail)) {
        Some(found) => (&found.gate, found.exit, end_of(&found.log_tail)),
        // Every gate passed, but the work was not done.
        None => ("outcome", None, end_of(attempt.reason)),
    }
}

/// The last lines of a log without what differs from run to run: numbers, times, paths, ids. Two logs are alike if
/// these are equal.
pub fn end_of(log: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        log.lines().rev().map(plain).filter(|line| !line.is_empty()).take(limits::ALIKE_LINES).collect();
    lines.reverse();
    lines
}

/// One line without what differs from run to run.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line.trim();
    while let Some(c) = rest.chars().next() {
        let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        if length == 0 {
            rest = &rest[c.len_utf8()..];
            match c.is_whitespace() {
                true if text.ends_with(' ') => {}
                true => text.push(' '),
                false => text.push(c),
            }
            continue;
        }
        let word = &rest[..length];
        rest = &rest[length..];
        if word.contains('/') {
            text.push('/');
        } else {
            text.push_str(&without_numbers(word));
        }
    }
    text
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | '+' | '@' | '%')
}

/// A word without its numbers: `took 0.31s` and `took 12ms` are alike, `test_1` and `test_2` are not. A word of hexadecimal
/// digits is an id.
fn without_numbers(word: &str) -> String {
    const ID_CHARS_MIN: usize = 7;
    let digits = |part: &str| part.bytes().any(|b| b.is_ascii_digit());
    let hex = |part: &str| part.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let is_id = word.len() >= ID_CHARS_MIN && digits(word) && hex(word);
    if is_id || word.starts_with(|c: char| c.is_ascii_digit()) {
        return "#".to_string();
    }
    // Parts joined by a dash or a dot are separate words: `attempt-3`, `in.12`.
    let parts = word.split_inclusive(['-', '.', '+', '@', '%', '~']);
    let mut text = String::new();
    for part in parts {
        let number = part.trim_end_matches(['-', '.', '+', '@', '%', '~']);
        if number.starts_with(|c: char| c.is_ascii_digit()) {
            text.push('#');
            text.push_str(&part[number.len()..]);
        } else {
            text.push_str(part);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::artifact::{ObjectiveId, OutputId};
    use serde_json::json;

    fn bundle(outcome: &str, content: &str) -> OutputBundle {
        OutputBundle {
            output_id: OutputId::stored("o"),
            objective_id: ObjectiveId::stored("t"),
            title: "t".into(),
            metadata: [("outcome".to_string(), json!(outcome))].into(),
            content: content.into(),
            notes: String::new(),
            created_at: Timestamp::from_millis(0),
        }
    }

    fn failed(gate: &str, exit: i32, log: &str) -> Vec<Evidence> {
        let result = Some(GateResult::Fail);
        vec![
            Evidence { gate: "schema".into(), result: Some(GateResult::Pass), ..Evidence::default() },
            Evidence {
                gate: gate.into(),
                exit: Some(exit),
                log_tail: log.into(),
                result,
                ..Evidence::default()
            },
        ]
    }

    fn compared(
        (before, was_at, was): (&OutputBundle, &str, &[Evidence]),
        (now, is_at, is): (&OutputBundle, &str, &[Evidence]),
    ) -> Option<Repetition> {
        let before = Attempt { bundle: before, base: Some(was_at), reason: "", evidence: was };
        repetition(&before, &Attempt { bundle: now, base: Some(is_at), reason: "", evidence: is })
    }

    #[test]
    fn the_same_patch_on_the_same_commit_is_a_repetition_whatever_the_gates_say() {
        let (one, other) = (bundle("PATCH", "a"), bundle("PATCH", "b"));
        let (was, is) = (failed("tests", 1, "x"), failed("lint", 2, "y"));
        let of = |now: &OutputBundle, at: &str| compared((&one, "c1", &was), (now, at, &is));
        assert_eq!(of(&one, "c1"), Some(Repetition::Patch));
        assert_eq!(of(&one, "c2"), None, "the base has moved on");
        assert_eq!(of(&other, "c1"), None);
        let nothing = bundle("NO_CHANGE", "");
        assert_eq!(compared((&nothing, "c1", &was), (&nothing, "c1", &is)), None, "no patch at all");
    }

    #[test]
    fn an_executor_that_failed_twice_over_the_patch_it_started_from_made_none() {
        let failure = bundle("FAILED", "a");
        let of = |said: &str| failed("outcome", 1, said);
        let again = compared((&failure, "c", &of("no such text")), (&failure, "c", &of("no such text")));
        assert_eq!(again, Some(Repetition::Failure { gate: "outcome".into() }));
        assert_eq!(compared((&failure, "c", &of("no such text")), (&failure, "c", &of("no memory"))), None);
    }

    #[test]
    fn the_same_gate_exit_and_end_of_the_log_are_a_repetition() {
        let (one, other) = (bundle("PATCH", "a"), bundle("PATCH", "b"));
        let log = "running 3 tests\n/tmp/a1/x.rs:12:5: assertion failed\ntest result: FAILED in 0.31s";
        let like = "running 4 tests\n/var/b2/x.rs:13:9: assertion failed\n\ntest result: FAILED in 12.7s\n";
        let was = failed("tests", 1, log);
        let of = |is: &[Evidence]| compared((&one, "c", &was), (&other, "c", is));
        assert_eq!(of(&failed("tests", 1, like)), Some(Repetition::Failure { gate: "tests".into() }));
        assert_eq!(of(&failed("tests", 2, like)), None, "another exit code");
        assert_eq!(of(&failed("lint", 1, like)), None, "another gate");
        assert_eq!(of(&failed("tests", 1, "something else")), None, "it says something else");
    }

    #[test]
    fn an_attempt_that_was_not_judged_or_broken_off_is_not_repeated() {
        let (patch, crash) = (bundle("PATCH", "a"), bundle("FAILED", "a"));
        let was = failed("tests", 1, "x");
        assert_eq!(compared((&crash, "c", &was), (&patch, "c", &was)), None);
        let mut unjudged = was.clone();
        unjudged[1].trouble = Some("no disk".into());
        assert_eq!(compared((&patch, "c", &unjudged), (&patch, "c", &was)), None);
    }

    #[test]
    fn without_a_gate_that_failed_the_reason_is_compared() {
        let (one, two) = (bundle("FAILED", "x"), bundle("FAILED", "y"));
        let of = |reason| Attempt { bundle: &one, base: None, reason, evidence: &[] };
        let now =
            Attempt { bundle: &two, base: None, reason: "the outcome is FAILED: exit 3", evidence: &[] };
        assert!(repetition(&of("the outcome is FAILED: exit 4"), &now).is_some());
        assert!(repetition(&of("the outcome is FAILED: killed"), &now).is_none());
    }

    #[test]
    fn what_differs_from_run_to_run_is_taken_out_of_a_log() {
        for (one, other) in [
            ("took 0.31s", "took 12ms"),
            ("at 2026-11-18T00:15:17.5Z", "at 2025-01-02T10:00:00Z"),
            ("12:30:01 error", "08:00:59 error"),
            ("/tmp/x/a.py:3: wrong", "./b/c.py:44: wrong"),
            ("id 019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f", "id fe9a8c5e-ab1a-bcc3-d8c4-ac0c0c07398f"),
            ("object deadbeef1", "object 1234567"),
            ("0x7ffd10 freed", "0x55aa freed"),
            ("worker-3 died", "worker-12 died"),
            ("a  b\tc", "a b c"),
        ] {
            assert_eq!(end_of(one), end_of(other));
        }
        for (one, other) in [
            ("test_1 failed", "test_2 failed"),
            ("FAILED a/b.py::one", "FAILED a/b.py::two"),
            ("expected sha256", "expected sha512"),
            ("facade", "decade"),
            ("a b", "ab"),
        ] {
            assert_ne!(end_of(one), end_of(other));
        }
        assert_eq!(end_of("3 of 12 in src/x.rs\n\n  "), ["# of # in /"]);
        let long: Vec<String> = (0..50).map(|n| format!("{} x", "y".repeat(n))).collect();
        let end = end_of(&long.join("\n"));
        assert_eq!(end.len(), limits::ALIKE_LINES);
        assert_eq!(end.last(), long.last());
    }
}

//! From evidence to a verdict, and to the next state of the objective.
//!
//! A gate that did not run never counts as passed. A gate that could not run says nothing about the work: it is tried
//! again, and finally a person gets its error.

use super::envelope::{Spent, exhausted};
use super::evidence::{Evidence, plain_evidence};
use super::lifecycle::Step;
use super::membrane::{Outcome, outcome};
use super::possible::TicketState;
use super::protection::Protected;
use super::question;
use super::repetition::Repetition;
use super::scheduling::{again, answer_it, first_line, whole_line};
use crate::artifact::{
    BlockerKind, GateResult, Objective, ObjectiveId, ObjectiveStatus, OutputBundle, PauseReason, RunId,
};
use crate::blueprint::{Blueprint, Gate};

/// The verdict of all gates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every gate ran and passed.
    Pass,
    /// A gate ran and did not pass.
    Fail(String),
    /// A gate could not run.
    Trouble(String),
}

impl Verdict {
    /// As a run record has it.
    pub fn recorded(&self) -> (GateResult, String) {
        match self {
            Self::Pass => (GateResult::Pass, "every gate passed".to_string()),
            Self::Fail(why) => (GateResult::Fail, why.clone()),
            Self::Trouble(why) => (GateResult::Fail, format!("not judged: {why}")),
        }
    }
}

/// The verdict from the evidence, which has each gate of the blueprint in order, up to the first that does not pass.
/// Whatever the gates are, an output that was not executed or did not succeed never passes.
pub fn verdict(gates: &[Gate], evidence: &[Evidence], bundle: &OutputBundle) -> Verdict {
    match gates_verdict(gates, evidence) {
        Verdict::Pass => match plain_evidence(&Gate::Outcome, bundle, None) {
            Some(Evidence { result: Some(GateResult::Fail), log_tail, .. }) => Verdict::Fail(log_tail),
            _ => Verdict::Pass,
        },
        other => other,
    }
}

fn gates_verdict(gates: &[Gate], evidence: &[Evidence]) -> Verdict {
    for (n, gate) in gates.iter().enumerate() {
        let Some(found) = evidence.get(n).filter(|found| found.gate == gate.name()) else {
            return Verdict::Trouble(format!("gate {} did not run", gate.name()));
        };
        match (found.result, &found.trouble) {
            (Some(GateResult::Pass), None) => {}
            (Some(GateResult::Fail), None) => {
                let said = found.log_tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
                let mut how: Vec<String> = found.exit.iter().map(|exit| format!("exit {exit}")).collect();
                let kept = found.protected.as_ref().and_then(Protected::kept_in_words);
                how.extend(kept.map(|kept| format!("with the base's {}", first_line(&kept))));
                let how = if how.is_empty() { String::new() } else { format!(" ({})", how.join(", ")) };
                return Verdict::Fail(format!("gate {}{how}: {}", gate.name(), first_line(said)));
            }
            (_, trouble) => {
                let why = trouble.as_deref().unwrap_or("no result");
                return Verdict::Trouble(format!("gate {} could not run: {}", gate.name(), first_line(why)));
            }
        }
    }
    // The last evidence is about the branch: without it nobody could see the patch that passed.
    let unfinished = evidence.get(gates.len()).and_then(|after| after.trouble.as_deref());
    unfinished
        .map_or(Verdict::Pass, |why| Verdict::Trouble(format!("no branch was made: {}", first_line(why))))
}

/// The verdict on a stored run: gates that need only the bundle and whose rules never change judge again; for the
/// others, the stored evidence counts.
pub fn verdict_again(gates: &[Gate], stored: &[Evidence], bundle: &OutputBundle) -> Verdict {
    let again = |(gate, stored): (&Gate, &Evidence)| {
        // Whatever kept a gate from running is not in the artifacts. The parsers of patches and answers may become
        // stricter in later versions: what passed then was judged by the rules of that time.
        let as_then = stored.trouble.is_some() || matches!(gate, Gate::Patch(_) | Gate::Answers);
        let again = (!as_then).then(|| plain_evidence(gate, bundle, None)).flatten();
        again.unwrap_or_else(|| stored.clone())
    };
    let mut evidence: Vec<Evidence> = gates.iter().zip(stored).map(again).collect();
    evidence.extend(stored.iter().skip(gates.len()).cloned());
    verdict(gates, &evidence, bundle)
}

/// What a run means for its objective.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub result: GateResult,
    /// For the run record, in words.
    pub reason: String,
    /// The objective's step; `None` if it has moved already.
    pub step: Option<Step>,
    pub blocker: Option<(BlockerKind, String)>,
    pub pause: PauseReason,
    /// One to three (invariant 16).
    pub actions: Vec<String>,
}

/// What the gate worker has read.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// The objective as it is now.
    pub objective: &'a Objective,
    pub bundle: &'a OutputBundle,
    /// The blueprint that the workorder was made under.
    pub blueprint: &'a Blueprint,
    /// What all attempts have used, this one included.
    pub spent: Spent,
    /// Gate failures of this objective since it was approved, before this one.
    pub failures: u32,
    /// How this attempt repeats the one before it under the same approval.
    pub repeats: Option<Repetition>,
    /// The last earlier run of it that passed.
    pub passed_before: Option<RunId>,
}

/// Decides what a verdict means. Where an earlier run passed and nothing goes on by itself, that run can be kept.
pub fn judge(case: &Case<'_>, verdict: &Verdict) -> Judgement {
    let mut judgement = judged(case, verdict);
    if let (Some(run), Some(Step::GiveUp)) = (&case.passed_before, judgement.step) {
        let id = &case.objective.objective_id;
        // Three at most: who keeps the run reads it first.
        judgement.actions.retain(|action| *action != look(id));
        judgement.actions.push(keep_run(id, run));
    }
    judgement
}

/// How a person keeps a run that passed, where what came after it did not.
pub fn keep_run(id: &ObjectiveId, run: &RunId) -> String {
    format!("Or keep the run that passed before: fernery ticket confirm {id} --run {run}")
}

fn look(id: &ObjectiveId) -> String {
    format!("Read the run: fernery ticket show {id}")
}

fn judged(case: &Case<'_>, verdict: &Verdict) -> Judgement {
    let id = &case.objective.objective_id;
    let outcome = outcome(&case.bundle.metadata);
    let look = look(id);
    let (result, reason) = verdict.recorded();
    let stop = |step, pause, blocker, actions| Judgement {
        result,
        reason: reason.clone(),
        step,
        blocker,
        pause,
        actions,
    };
    if case.objective.status != ObjectiveStatus::InProgress {
        let again = TicketState::of(case.objective).taken_up();
        return stop(None, PauseReason::GateFailed, None, vec![look, again]);
    }
    let unblock = format!("Then: fernery ticket unblock {id} --all");
    let give_up = |pause, kind, description: String, first: String| {
        stop(Some(Step::GiveUp), pause, Some((kind, description)), vec![first, look.clone(), unblock.clone()])
    };
    match verdict {
        Verdict::Pass if case.blueprint.is_for_people() => {
            let nothing = "Nothing to do: a person did it and confirmed it".to_string();
            let reopen = format!("Not right? fernery ticket reopen {id} --note \"what is missing\"");
            stop(Some(Step::Pass), PauseReason::RunComplete, None, vec![nothing, reopen])
        }
        Verdict::Pass => {
            let confirm = format!("Look at the output and confirm it: fernery ticket confirm {id}");
            let reopen = format!("Not right? fernery ticket reopen {id} --note \"what is missing\"");
            stop(Some(Step::Pass), PauseReason::RunComplete, None, vec![confirm, look, reopen])
        }
        Verdict::Trouble(why) => give_up(
            PauseReason::GateFailed,
            BlockerKind::EnvironmentAccess,
            why.clone(),
            "Make the gate able to run".to_string(),
        ),
        Verdict::Fail(_) if outcome == Outcome::Budget => give_up(
            PauseReason::BudgetExhausted,
            BlockerKind::UserInput,
            "the budget of the workorder is spent".to_string(),
            "Make the ticket smaller, or the blueprint's budget larger".to_string(),
        ),
        Verdict::Fail(_) if outcome == Outcome::Blocked => {
            let asked = question::asked(case.bundle).unwrap_or_default();
            let first = answer_it(id, &asked);
            let blocker = Some((BlockerKind::UserInput, question::description(&asked)));
            stop(Some(Step::GiveUp), PauseReason::GateFailed, blocker, vec![first, look])
        }
        Verdict::Fail(_) if outcome == Outcome::Infra => give_up(
            PauseReason::GateFailed,
            BlockerKind::EnvironmentAccess,
            format!("could not be executed: {}", whole_line(&case.bundle.notes)),
            "Fix what kept it from being executed".to_string(),
        ),
        Verdict::Fail(_) => {
            if let Some(why) = exhausted(&case.blueprint.envelope, &case.spent) {
                // The gate is the reason; that there is no further attempt is only why a person has to look.
                let blocker = Some((BlockerKind::UserInput, format!("{reason} ({why})")));
                let actions = vec![look, again(id)];
                return stop(Some(Step::GiveUp), PauseReason::BudgetExhausted, blocker, actions);
            }
            if let Some(repeats) = &case.repeats {
                let blocker = Some((BlockerKind::UserInput, format!("{}: {reason}", repeats.why())));
                return stop(Some(Step::GiveUp), PauseReason::GateFailed, blocker, vec![otherwise(id)]);
            }
            if case.failures < case.blueprint.retry.gate_failures {
                let (n, of) = (case.failures + 2, case.blueprint.retry.gate_failures + 1);
                let wait = format!("Nothing to do: attempt {n} of {of} is told what failed");
                let cancel = format!("Or stop it: fernery ticket cancel {id}");
                return stop(Some(Step::TryAgain), PauseReason::GateFailed, None, vec![wait, look, cancel]);
            }
            let first = format!("Read why the gate failed: {}", first_line(&reason));
            give_up(PauseReason::GateFailed, BlockerKind::UserInput, reason.clone(), first)
        }
    }
}

/// The action for an objective whose attempts repeat each other: one more attempt would end the same way.
fn otherwise(id: &ObjectiveId) -> String {
    format!(
        "Read both runs (fernery ticket show {id}), say in the ticket what to do differently (fernery ticket edit {id}), \
         then: fernery ticket unblock {id} --all, and approve it again if it is NEW"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::OutputId;
    use crate::{Timestamp, patch};
    use serde_json::json;

    fn bundle(outcome: &str) -> OutputBundle {
        OutputBundle {
            output_id: OutputId::stored("o"),
            objective_id: ObjectiveId::stored("t"),
            title: "t".into(),
            metadata: [("outcome".to_string(), json!(outcome))].into(),
            content: String::new(),
            notes: String::new(),
            created_at: Timestamp::from_millis(0),
        }
    }

    fn command(name: &str) -> Gate {
        let (argv, env, timeout) = (vec!["x".into()], Vec::new(), std::time::Duration::from_secs(1));
        Gate::Command { name: name.into(), argv, timeout, env, sandbox: None, protects: None }
    }

    fn found(gate: &str, result: Option<GateResult>) -> Evidence {
        Evidence { gate: gate.into(), result, ..Evidence::plain(&Gate::Schema, None) }
    }

    #[test]
    fn a_gate_that_did_not_run_is_never_green() {
        let gates = [Gate::Schema, command("tests")];
        let pass = Some(GateResult::Pass);
        let (good, of) =
            (bundle("OUTPUT"), |evidence: &[Evidence]| verdict(&gates, evidence, &bundle("OUTPUT")));
        assert_eq!(of(&[found("schema", pass), found("tests", pass)]), Verdict::Pass);
        assert!(matches!(of(&[found("schema", pass)]), Verdict::Trouble(_)), "{good:?}");
        assert!(matches!(of(&[]), Verdict::Trouble(_)));
        assert!(matches!(of(&[found("schema", pass), found("others", pass)]), Verdict::Trouble(_)));
        assert!(matches!(of(&[found("schema", pass), found("tests", None)]), Verdict::Trouble(_)));
        assert!(matches!(of(&[found("schema", Some(GateResult::Fail))]), Verdict::Fail(_)));
    }

    #[test]
    fn a_patch_is_not_judged_again_by_rules_that_came_later() {
        let gates = [Gate::Patch(patch::policy::PatchPolicy::default())];
        let mut output = bundle("OUTPUT");
        output.content = "no patch at all".into();
        let fault = plain_evidence(&gates[0], &output, None).expect("it needs no program");
        assert_eq!(fault.result, Some(GateResult::Fail));
        assert!(matches!(verdict_again(&gates, &[fault], &output), Verdict::Fail(_)));
        let passed = [found("patch", Some(GateResult::Pass))];
        assert_eq!(verdict_again(&gates, &passed, &output), Verdict::Pass);
    }

    #[test]
    fn what_was_not_executed_passes_no_gates_at_all() {
        let evidence = [found("schema", Some(GateResult::Pass))];
        for outcome in ["NO_CHANGE", "FAILED", "BUDGET", "BLOCKED", "INFRA", "PROTOCOL", "CANCELLED", "?"] {
            let verdict = verdict(&[Gate::Schema], &evidence, &bundle(outcome));
            assert!(matches!(verdict, Verdict::Fail(_)), "{outcome}: {verdict:?}");
        }
    }
}

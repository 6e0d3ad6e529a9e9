//! What every act of an operator shares: who acts, under which record id, and how a refusal is answered. The refusal
//! becomes a problem that says what to do instead.

use super::named::missing;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::Call;
use crate::http::wire::json;
use fernery_client::wire::{Difference, FieldProblem};
use fernery_core::artifact::{ObjectiveId, RecordId};
use fernery_core::pipeline::Violation;
use fernery_engine::door;
use fernery_engine::pipeline::acts::{Actor, Refusal as Refusing};
use fernery_engine::pipeline::ticket_state::NotNow;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Display;

/// Who acts, as the record has it.
pub(in crate::http) fn actor(call: &Call) -> Actor {
    // The routes let nobody in without a token.
    let token = call.caller.0.as_ref();
    Actor(token.map_or_else(|| "nobody".into(), |t| format!("{} ({})", t.row.name, t.row.token_id)))
}

pub(in crate::http) fn optional<T: DeserializeOwned + Default>(call: &Call) -> Result<T, Refused> {
    if call.body.is_empty() { Ok(T::default()) } else { json::read(&call.body) }
}

/// The id that the caller gave to the act, or a new one, which all tries of this call share.
pub(in crate::http) fn record(given: Option<RecordId>) -> RecordId {
    given.unwrap_or_else(|| RecordId::stored(&door::artifact_id()))
}

/// The answer to a refused act on an objective.
pub(in crate::http) fn refused(refusal: Refusing, id: &ObjectiveId) -> Refused {
    refused_on("ticket", id, refusal)
}

/// The answer to a refused act. `what` is the kind of artifact that the act is about.
pub(in crate::http) fn refused_on(what: &str, id: &impl Display, refusal: Refusing) -> Refused {
    match refusal {
        Refusing::Unknown => missing(what, id),
        Refusing::UnknownAzolla { named, known } => {
            let known: Vec<&str> = known.iter().map(|id| id.as_str()).collect();
            let detail = match known.as_slice() {
                [] => format!("there is no azolla {named}, and no other one yet"),
                known => format!("there is no azolla {named}; there are: {}", known.join(", ")),
            };
            Refusal::field(Code::Invalid, "/azolla_id", detail)
        }
        Refusing::Status(not_now) => wrong_status(*not_now),
        Refusing::Taken => {
            Refusal::new(Code::Conflict, "the id of this act is already used for something else")
        }
        Refusing::Changed { now, difference } => {
            let detail =
                format!("{id} changed after it was read; read it again, then approve {}", now.digest);
            let mut refused = Refusal::new(Code::Changed, detail);
            let change = |(path, before, now)| Difference { path, before, now };
            refused.more.digest = Some(now.digest.to_string());
            refused.more.shown = Some(now.content);
            refused.more.difference = difference.into_iter().map(change).collect();
            refused
        }
        Refusing::OtherRun(last) => {
            let detail = format!(
                "the last run of {id} is {}, not the one that was checked; check it, then confirm that one",
                last.run_id
            );
            let mut refused = Refusal::new(Code::Changed, detail);
            refused.more.shown = Some(json!({ "run_record": last }));
            refused
        }
        Refusing::Conflict(why) => Refusal::new(Code::Conflict, why),
        Refusing::NoRepository(why) => Refusal::new(Code::NoRepository, why),
        Refusing::Nobody(why) => Refusal::new(Code::NotFound, why),
        Refusing::Unfit(violations) => Refusal::fields(fields(violations)),
    }
}

/// The refusal where something else has the id that a new one was to have.
pub(in crate::http) fn taken(id: &impl Display) -> Refused {
    Refusal::new(Code::Conflict, format!("the id {id} is already used for something else"))
}

pub(in crate::http) fn fields(violations: Vec<Violation>) -> Vec<FieldProblem> {
    violations.into_iter().map(|v| FieldProblem { pointer: v.path, detail: v.message }).collect()
}

fn wrong_status(not_now: NotNow) -> Refused {
    let mut refused = Refusal::new(Code::WrongStatus, not_now.why);
    refused.more.objective_status = Some(not_now.status.to_string());
    refused.more.possible = not_now.possible.iter().map(ToString::to_string).collect();
    refused
}

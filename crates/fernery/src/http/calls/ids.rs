//! Whole ids for parts of ids, so that people can type what a table shows.

use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use fernery_client::wire::{IdKind, MeantId, MeantIds};
use fernery_core::JobId;
use fernery_core::id_part::{self, IdPart};
use fernery_engine::pipeline::ids::{self, Kind};
use fernery_engine::store::IdsLike;

/// Ids of one kind in an answer.
const IDS_MAX: usize = 10;

/// `GET /v1/ids/{part}`
pub async fn meant(call: Call) -> Replied {
    let text = call.param.clone();
    if text.contains('\0') {
        return Err(Refusal::new(Code::NotFound, "no id contains a NUL character"));
    }
    let own = call.caller.only_own().map(str::to_string);
    let mut found = Vec::new();
    // Whoever may read only its own jobs may not learn that something else is there.
    if own.is_none() {
        let part = text.clone();
        let limit = IDS_MAX as i64;
        let substrate = call.server.engine().substrate();
        let meant = substrate.read(move |sql| ids::meant(sql, &Kind::ALL, &part, limit));
        let meant = meant.await?;
        if let Some(part) = meant.beyond {
            return Err(too_many(part.head(), part.looked_at_max()));
        }
        found.extend(meant.ids.into_iter().map(|(kind, id)| MeantId { kind: shown(kind), id }));
    }
    let mut jobs = Vec::new();
    for part in searches(&text) {
        let like = IdsLike { producer: own.clone(), ..part };
        let most = like.looked_at_max;
        let meant = call.server.engine().store().job_ids(like, IDS_MAX).await?;
        if meant.beyond {
            return Err(too_many(&text, most));
        }
        jobs.extend(meant.ids);
    }
    jobs.sort();
    jobs.dedup();
    found.extend(jobs.into_iter().map(|id| MeantId { kind: IdKind::Job, id: id.to_string() }));
    Reply::json(200, &MeantIds { ids: found })
}

/// Nobody has looked at all of them, so neither one id nor none would be true.
fn too_many(beginning: &str, most: i64) -> Refused {
    let detail = format!(
        "more than {most} ids begin like {beginning}; type more characters of the beginning, or the whole id"
    );
    Refusal::new(Code::Invalid, detail)
}

fn shown(kind: Kind) -> IdKind {
    match kind {
        Kind::Objective => IdKind::Ticket,
        Kind::Candidate => IdKind::Candidate,
        Kind::Capture => IdKind::Capture,
        Kind::Workorder => IdKind::Workorder,
        Kind::Run => IdKind::Run,
    }
}

/// Ranges of job ids that a text means.
fn searches(text: &str) -> Vec<IdsLike> {
    let exact = text.parse::<JobId>().ok().map(|id| (id, id, String::new(), 2));
    let parts = IdPart::meanings(text).into_iter().filter_map(|part| {
        let padded = |with: char| -> Option<JobId> {
            let mut whole = part.head().to_string();
            while whole.len() < id_part::MADE_CHARS {
                whole.push(if matches!(whole.len(), 8 | 13 | 18 | 23) { '-' } else { with });
            }
            whole.parse().ok()
        };
        Some((padded('0')?, padded('f')?, part.tail().to_string(), part.looked_at_max()))
    });
    let like = |(from, to, tail, looked_at_max)| IdsLike { from, to, tail, producer: None, looked_at_max };
    exact.into_iter().chain(parts).map(like).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_job_id_is_a_range_and_an_end() {
        let found = searches("019a8c5e-07398f");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].from.to_string(), "019a8c5e-0000-0000-0000-000000000000");
        assert_eq!(found[0].to.to_string(), "019a8c5e-ffff-ffff-ffff-ffffffffffff");
        assert_eq!(found[0].tail, "07398f");
        assert_eq!(searches("019a8c5e-7b1a").len(), 2, "a beginning, or a beginning and an end");
        assert!(searches("WEB-17").is_empty() && searches("the-footer…phones").is_empty());
    }
}

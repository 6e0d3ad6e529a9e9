//! What there is to judge: executed workorders that a gate has claimed, with everything that their gates need.

use super::claims::{self, Claimer, HeldClaim};
use super::reading::{self, WorkorderView};
use super::{Sql, Statement, azollas};
use crate::error::{StoreError, StoreResult};
use fernery_core::artifact::{AzollaId, ContextSnapshot, OutputBundle, ResourceType, WorkorderId};
use fernery_core::blueprint::{Blueprint, Gate};
use fernery_core::inbox::StandIn;
use fernery_core::pipeline::evidence::{Evidence, plain_evidence_of_all};
use std::sync::Arc;

/// Takes up to `limit` executed workorders that nobody holds, oldest first.
pub fn take_executed(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    by: &Claimer,
    limit: i64,
) -> StoreResult<Vec<(WorkorderId, HeldClaim)>> {
    let now = sql.now();
    let free = sql.query(
        include_str!("sql/workorders_to_judge.sql"),
        &[azolla_id.as_str().into(), now.into(), limit.into()],
    )?;
    let ids: Vec<WorkorderId> = free.iter().map(|row| row.word(0)).collect::<StoreResult<_>>()?;
    let seen = ids.iter().zip(&free).map(|(id, row)| Ok((id.as_str(), row.int(1)?)));
    let held = claims::take(sql, ResourceType::Workorder, &seen.collect::<StoreResult<Vec<_>>>()?, by)?;
    Ok(ids.into_iter().zip(held).filter_map(|(id, held)| Some((id, held?))).collect())
}

/// Everything that the gates of a workorder need.
#[derive(Clone, Debug)]
pub struct GateInput {
    pub workorder: WorkorderView,
    /// What was handed in.
    pub bundle: OutputBundle,
    /// The blueprint that the workorder was made under, adjusted as the gates apply it.
    pub blueprint: Arc<Blueprint>,
    /// The snapshot, if a gate needs it.
    pub snapshot: Option<ContextSnapshot>,
}

/// Reads what there is to judge; `None` where nothing was handed in.
pub fn gate_input(sql: &mut dyn Sql, id: &WorkorderId) -> StoreResult<Option<GateInput>> {
    Ok(gate_inputs(sql, std::slice::from_ref(id))?.pop().flatten())
}

/// As [`gate_input`], for each of these.
pub fn gate_inputs(sql: &mut dyn Sql, ids: &[WorkorderId]) -> StoreResult<Vec<Option<GateInput>>> {
    let mut asked: Vec<Statement<'_>> = Vec::with_capacity(ids.len() * 2);
    for id in ids {
        asked.push((include_str!("sql/workorder_by_id.sql"), vec![id.as_str().into()]));
        asked.push((include_str!("sql/bundle_of_workorder.sql"), vec![id.as_str().into()]));
    }
    let mut answers = sql.query_all(&asked)?.into_iter();
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let (work, bundle) = (answers.next().unwrap_or_default(), answers.next().unwrap_or_default());
        let (Some(work), Some(bundle)) = (work.first(), bundle.first()) else {
            found.push(None);
            continue;
        };
        let (workorder, bundle) = (reading::workorder(work)?, bundle.json(0)?);
        let Some(registered) = azollas::by_digest(sql, &workorder.blueprint)? else {
            return Err(StoreError::Corrupt(format!("the blueprint of workorder {id} is gone")));
        };
        let mut blueprint = registered.blueprint;
        let snapshot = match blueprint.standing.is_some() || blueprint.gates.contains(&Gate::Answers) {
            true => reading::snapshot(sql, &workorder.workorder.context_snapshot_id)?,
            false => None,
        };
        // A workorder that has a verdict keeps the gates that gave it.
        if let Some(now) = blueprint.judging_patches().filter(|_| !workorder.judged) {
            blueprint = Arc::new(now);
        }
        if snapshot.as_ref().and_then(StandIn::of).is_some() {
            blueprint = Arc::new(blueprint.of_stand_ins());
        }
        found.push(Some(GateInput { workorder, bundle, blueprint, snapshot }));
    }
    Ok(found)
}

/// A workorder with the evidence of its gates.
#[derive(Clone, Debug)]
pub struct Evaluated {
    pub held: HeldClaim,
    pub gate_input: GateInput,
    /// What the gates found, up to the first that did not pass.
    pub evidence: Vec<Evidence>,
}

impl Evaluated {
    /// The evidence of gates that need only the bundle; `None`: a gate must run a program.
    pub fn plainly(held: &HeldClaim, gate_input: GateInput) -> Option<Self> {
        let gates = &gate_input.blueprint.gates;
        let evidence = plain_evidence_of_all(gates, &gate_input.bundle, gate_input.snapshot.as_ref())?;
        Some(Self { held: held.clone(), gate_input, evidence })
    }
}

//! Questions of one azolla to others, of this instance or another. They are read-only, declared in the asker's blueprint, and
//! judged by the one who is asked. Whoever cannot be reached is named as that, and keeps nobody else from answering.

use crate::config::registry::RemoteAzolla;
use crate::pipeline::Context;
use fernery_client::client::Reply;
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{
    AzollaId, Metadata, QueryId, QueryStatus, ResponseId, SubstrateQuery, SubstrateQueryResponse,
};
use fernery_core::blueprint::{ReadableArtifact, Reads};
use fernery_engine::substrate::manifests::Answered;
use fernery_engine::substrate::{azollas, querying};
use fernery_engine::{StoreError, door};
use serde_json::{Value, json};
use std::time::Duration;
use tracing::warn;

/// How long another instance may take to answer, and never more than a third of a lease: whoever asks holds one.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Who may be asked.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// What it is called here.
    pub(crate) azolla_id: AzollaId,
    remote: Option<RemoteAzolla>,
}

impl Target {
    /// Where it is, if it is not here.
    pub(crate) fn server(&self) -> Option<&str> {
        self.remote.as_ref().map(|remote| remote.url.as_str())
    }
}

/// All whom an azolla has declared to read, in the order of their names.
pub(crate) async fn targets(context: &Context, by: &AzollaId) -> Result<Vec<Target>, StoreError> {
    let Some(blueprint) = context.blueprints.iter().find(|blueprint| blueprint.azolla_id == *by) else {
        return Ok(Vec::new());
    };
    let reads: Reads = blueprint.reads.clone();
    let mut here = context.engine.substrate().read(azollas::ids).await?;
    // One that was hosted here once, and is elsewhere now.
    here.retain(|id| !context.registry.contains_key(id));
    let mut all: Vec<Target> = context
        .registry
        .values()
        .map(|remote| Target { azolla_id: remote.name.clone(), remote: Some(remote.clone()) })
        .collect();
    all.extend(here.into_iter().map(|azolla_id| Target { azolla_id, remote: None }));
    all.retain(|target| {
        target.azolla_id != *by && ReadableArtifact::ALL.iter().any(|of| reads.allows(&target.azolla_id, *of))
    });
    all.sort_by(|a, b| a.azolla_id.cmp(&b.azolla_id));
    Ok(all)
}

/// Whether its blueprint declares this read.
pub(crate) fn declared(context: &Context, by: &AzollaId, target: &Target, of: ReadableArtifact) -> bool {
    let mut own = context.blueprints.iter().filter(|own| own.azolla_id == *by);
    own.any(|own| own.reads.allows(&target.azolla_id, of))
}

/// Asks one of them. Only this instance's own database is trouble; everything else is an answer.
pub(crate) async fn ask(
    context: &Context,
    by: &AzollaId,
    target: &Target,
    artifact_type: ReadableArtifact,
    filter: Metadata,
) -> Result<Answered, StoreError> {
    let query = SubstrateQuery {
        query_id: QueryId::stored(&door::artifact_id()),
        source_azolla_id: by.clone(),
        target_azolla_id: target.azolla_id.clone(),
        artifact_type,
        filter,
        created_at: door::wall_clock(),
    };
    let asked = query.clone();
    let response = match &target.remote {
        None => context.engine.substrate().read(move |sql| querying::answer(sql, &asked, None)).await?,
        Some(remote) => {
            let within = ANSWER_WITHIN.min(context.lease_ttl / 3);
            match declared(context, by, target, artifact_type) {
                true => elsewhere(remote, asked, within).await,
                false => without(&query, QueryStatus::Denied),
            }
        }
    };
    Ok(Answered { query, response, server: target.server().map(str::to_string) })
}

fn without(query: &SubstrateQuery, status: QueryStatus) -> SubstrateQueryResponse {
    SubstrateQueryResponse {
        response_id: ResponseId::stored(&door::artifact_id()),
        query_id: query.query_id.clone(),
        target_azolla_id: query.target_azolla_id.clone(),
        status,
        results: Vec::new(),
        created_at: door::wall_clock(),
    }
}

async fn elsewhere(remote: &RemoteAzolla, query: SubstrateQuery, within: Duration) -> SubstrateQueryResponse {
    let there = SubstrateQuery { target_azolla_id: remote.azolla_id.clone(), ..query.clone() };
    let asked = async {
        let unavailable = |why: String| (QueryStatus::TargetUnavailable, why);
        let token = remote.token.as_ref().map(|token| token.read()).transpose().map_err(unavailable)?;
        let client = Client::new(&remote.url, token.as_deref(), None)
            .map_err(|error| unavailable(error.to_string()))?;
        let path = format!("/v1/azollas/{}/query", remote.azolla_id);
        let reply: Reply<SubstrateQueryResponse> =
            client.post(&path, &there, Duration::ZERO).await.map_err(|error| match &error {
                // It is there, and does not take our token.
                ClientError::Refused { problem, .. } if matches!(problem.status, 401 | 403) => {
                    (QueryStatus::Denied, error.to_string())
                }
                _ => unavailable(error.to_string()),
            })?;
        let answer = reply.read().map_err(|error| unavailable(error.to_string()))?;
        match answer.query_id == there.query_id {
            true => Ok(answer),
            false => Err(unavailable("it answered another question".into())),
        }
    };
    let late = || (QueryStatus::TargetUnavailable, format!("no answer within {} ms", within.as_millis()));
    match tokio::time::timeout(within, asked).await.unwrap_or_else(|_| Err(late())) {
        Ok(answer) => named(answer, remote),
        Err((status, why)) => {
            warn!(azolla = %remote.name, url = %remote.url, %status, %why, "an azolla elsewhere did not answer");
            without(&query, status)
        }
    }
}

/// What came back, under the name that its azolla has here.
fn named(answer: SubstrateQueryResponse, remote: &RemoteAzolla) -> SubstrateQueryResponse {
    let mut results = answer.results;
    results.truncate(querying::RESULTS_MAX as usize);
    for result in &mut results {
        if let Value::Object(fields) = result
            && fields.contains_key("azolla_id")
        {
            fields.insert("azolla_id".into(), json!(remote.name));
        }
    }
    SubstrateQueryResponse { target_azolla_id: remote.name.clone(), results, ..answer }
}

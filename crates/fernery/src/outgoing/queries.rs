//! Queries of one azolla to others, on this server or another. They are read-only and declared in the blueprint of the asking
//! azolla; the asked azolla decides whether to answer. An azolla that cannot be reached is reported as unavailable and does
//! not hold up the others.

use crate::config::Registry;
use crate::config::registry::RemoteAzolla;
use fernery_client::client::Reply;
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{
    AzollaId, Metadata, QueryId, QueryStatus, ResponseId, SubstrateQuery, SubstrateQueryResponse,
};
use fernery_core::blueprint::{ReadableArtifact, Reads};
use fernery_engine::pipeline::azollas;
use fernery_engine::pipeline::inbox::answers::Answered;
use fernery_engine::pipeline::inbox::queries;
use fernery_engine::{Engine, StoreError, door};
use serde_json::{Value, json};
use std::task::Poll;
use std::time::Duration;
use tracing::warn;

/// How long another server may take to answer; at most a third of a lease, because the asker holds one.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Maximum bytes of an answer of another server.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// An azolla that may be asked.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Its name on this server.
    pub(crate) azolla_id: AzollaId,
    remote: Option<RemoteAzolla>,
}

impl Target {
    /// The URL of its server; `None`: it is on this server.
    pub(crate) fn server(&self) -> Option<&str> {
        self.remote.as_ref().map(|remote| remote.url.as_str())
    }
}

/// An azolla that asks, with what it needs from its process.
#[derive(Clone)]
pub(crate) struct Asker<'a> {
    pub(crate) azolla_id: &'a AzollaId,
    /// The reads that its blueprint declares.
    pub(crate) reads: Option<Reads>,
    pub(crate) engine: &'a Engine,
    /// Azollas of other servers that may be asked.
    pub(crate) registry: &'a Registry,
    /// How long the lease of the asker lasts.
    pub(crate) lease_ttl: Duration,
}

impl Asker<'_> {
    /// All azollas that it declares to read, ordered by name.
    pub(crate) async fn targets(&self) -> Result<Vec<Target>, StoreError> {
        let Some(reads) = &self.reads else { return Ok(Vec::new()) };
        let mut here = self.engine.substrate().read(azollas::ids).await?;
        // Leave out azollas that were hosted here once and are on another server now.
        here.retain(|id| !self.registry.contains_key(id));
        let mut all: Vec<Target> = self
            .registry
            .values()
            .map(|remote| Target { azolla_id: remote.name.clone(), remote: Some(remote.clone()) })
            .collect();
        all.extend(here.into_iter().map(|azolla_id| Target { azolla_id, remote: None }));
        all.retain(|target| {
            target.azolla_id != *self.azolla_id
                && ReadableArtifact::ALL.iter().any(|of| reads.allows(&target.azolla_id, *of))
        });
        all.sort_by(|a, b| a.azolla_id.cmp(&b.azolla_id));
        Ok(all)
    }

    /// Whether its blueprint declares this read.
    pub(crate) fn declares(&self, target: &Target, of: ReadableArtifact) -> bool {
        self.reads.as_ref().is_some_and(|reads| reads.allows(&target.azolla_id, of))
    }

    /// Asks one azolla. Only a failure of this server's own database is an error; everything else is an answer.
    pub(crate) async fn ask(
        &self,
        target: &Target,
        artifact_type: ReadableArtifact,
        filter: Metadata,
    ) -> Result<Answered, StoreError> {
        let query = self.question(target, artifact_type, filter);
        let asked = query.clone();
        let response = match &target.remote {
            None => self.engine.substrate().read(move |sql| queries::answer(sql, &asked, None)).await?,
            Some(remote) if self.declares(target, artifact_type) => {
                elsewhere(remote, asked, ANSWER_WITHIN.min(self.lease_ttl / 3)).await
            }
            Some(_) => without(&query, QueryStatus::Denied),
        };
        Ok(Answered { query, response, server: target.server().map(str::to_string) })
    }

    /// The record of a query that was not answered in time.
    pub(crate) fn unanswered(&self, target: &Target, artifact_type: ReadableArtifact) -> Answered {
        let query = self.question(target, artifact_type, Metadata::new());
        let response = without(&query, QueryStatus::TargetUnavailable);
        Answered { query, response, server: target.server().map(str::to_string) }
    }

    fn question(&self, target: &Target, artifact_type: ReadableArtifact, filter: Metadata) -> SubstrateQuery {
        SubstrateQuery {
            query_id: QueryId::stored(&door::artifact_id()),
            source_azolla_id: self.azolla_id.clone(),
            target_azolla_id: target.azolla_id.clone(),
            artifact_type,
            filter,
            created_at: door::wall_clock(),
        }
    }
}

/// How many azollas are asked at the same time.
pub(crate) const AT_ONCE: usize = 16;

/// Runs all of these, at most `AT_ONCE` concurrently; returns the results in order.
pub(crate) async fn at_once<F: Future>(all: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut all: Vec<_> = all.into_iter().map(|doing| (Box::pin(doing), None)).collect();
    std::future::poll_fn(|wakes| {
        let mut under_way = 0;
        for (doing, done) in all.iter_mut().filter(|(_, done)| done.is_none()) {
            if under_way == AT_ONCE {
                break;
            }
            match doing.as_mut().poll(wakes) {
                Poll::Ready(came) => *done = Some(came),
                Poll::Pending => under_way += 1,
            }
        }
        if under_way == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    all.into_iter().filter_map(|(_, done)| done).collect()
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
            .map_err(|error| unavailable(error.to_string()))?
            .with_answers_up_to(ANSWER_BYTES_MAX);
        let path = format!("/v1/azollas/{}/query", remote.azolla_id);
        let reply: Reply<SubstrateQueryResponse> =
            client.post(&path, &there, Duration::ZERO).await.map_err(|error| match &error {
                // The server answers, but refuses our token.
                ClientError::Refused { problem, .. } if matches!(problem.status, 401 | 403) => {
                    (QueryStatus::Denied, error.to_string())
                }
                _ => unavailable(error.to_string()),
            })?;
        // Parsing even a bounded answer may take long, so not on a thread that serves connections.
        let read = tokio::task::spawn_blocking(move || reply.read()).await;
        let read = read.map_err(|error| unavailable(error.to_string()))?;
        let answer = read.map_err(|error| unavailable(error.to_string()))?;
        match answer.query_id == there.query_id {
            true => Ok(answer),
            false => Err(unavailable("the answer belongs to another query".into())),
        }
    };
    let late = || (QueryStatus::TargetUnavailable, format!("no answer within {} ms", within.as_millis()));
    match tokio::time::timeout(within, asked).await.unwrap_or_else(|_| Err(late())) {
        Ok(answer) => named(answer, remote),
        Err((status, why)) => {
            warn!(
                azolla = %remote.name, url = %remote.url, %status, %why,
                "an azolla on another server did not answer"
            );
            without(&query, status)
        }
    }
}

/// An answer as it is stored here: under the azolla's name on this server, with an id of this server, not dated later than now,
/// and with results only if the query succeeded.
fn named(answer: SubstrateQueryResponse, remote: &RemoteAzolla) -> SubstrateQueryResponse {
    let mut results = if answer.status == QueryStatus::Ok { answer.results } else { Vec::new() };
    results.truncate(queries::RESULTS_MAX as usize);
    for result in &mut results {
        if let Value::Object(fields) = result
            && fields.contains_key("azolla_id")
        {
            fields.insert("azolla_id".into(), json!(remote.name));
        }
    }
    SubstrateQueryResponse {
        response_id: ResponseId::stored(&door::artifact_id()),
        target_azolla_id: remote.name.clone(),
        results,
        created_at: answer.created_at.min(door::wall_clock()),
        ..answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[test]
    fn an_answer_from_elsewhere_is_kept_so_that_it_can_be_exported() {
        let azolla_id = AzollaId::stored("far");
        let remote = RemoteAzolla {
            name: azolla_id.clone(),
            url: String::new(),
            azolla_id: azolla_id.clone(),
            token: None,
        };
        let day = Duration::from_secs(86_400);
        for (status, kept) in [(QueryStatus::Ok, 1), (QueryStatus::Denied, 0)] {
            let told = SubstrateQueryResponse {
                response_id: ResponseId::stored("theirs"),
                query_id: QueryId::stored("q"),
                target_azolla_id: azolla_id.clone(),
                status,
                results: vec![json!({})],
                created_at: door::wall_clock().after(day),
            };
            let ours = named(told.clone(), &remote);
            assert_ne!(ours.response_id, told.response_id);
            assert!(ours.created_at <= door::wall_clock(), "not from tomorrow");
            assert_eq!(ours.results.len(), kept);
            let earlier = door::wall_clock().before(day);
            assert_eq!(
                named(SubstrateQueryResponse { created_at: earlier, ..told }, &remote).created_at,
                earlier
            );
        }
    }

    /// An azolla elsewhere that never stops answering is unavailable; little of what it says is taken.
    #[tokio::test]
    async fn an_answer_without_end_is_given_up_at_its_bound() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let sending = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a call");
            let _ = stream.read(&mut [0; 4096]).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"results\":[";
            let mut sent = stream.write(head.as_bytes()).await.unwrap_or(0);
            let part = "[],".repeat(16 << 10);
            while sent < 250 << 20
                && let Ok(n) = stream.write(part.as_bytes()).await
            {
                sent += n;
            }
            sent
        });
        let azolla_id = AzollaId::stored("far");
        let remote = RemoteAzolla { name: azolla_id.clone(), url, azolla_id: azolla_id.clone(), token: None };
        let query = SubstrateQuery {
            query_id: QueryId::stored("q"),
            source_azolla_id: AzollaId::stored("near"),
            target_azolla_id: azolla_id,
            artifact_type: ReadableArtifact::Objective,
            filter: Metadata::new(),
            created_at: door::wall_clock(),
        };
        let answer = elsewhere(&remote, query, Duration::from_secs(60)).await;
        assert_eq!((answer.status, answer.results.len()), (QueryStatus::TargetUnavailable, 0));
        let sent = sending.await.expect("it ends");
        assert!(sent < 64 << 20, "{sent} bytes were taken");
    }
}

//! A client of Fernery's HTTP interface: connections are reused, every call is bounded in time and size, and an error
//! contains the server's message.
//!
//! The server is authoritative. A call is sent once. Only the caller knows whether the call carries an id that makes a
//! repetition harmless, so the caller decides whether to send it again.

mod error;
mod tls;

pub use error::ClientError;

use crate::wire::{
    BatchResponse, BulkCount, BulkPage, BulkRequest, BulkView, CancelRequest, CancelResponse,
    ClaimManyRequest, ClaimManyResponse, DeadLetterPage, DeadLetterRequest, DeadLetterResponse,
    EnqueueManyResponse, EnqueueRequest, EnqueuedJob, ExplainResponse, Health, ItemAnswer, JobDetail,
    JobPage, NewTokenRequest, NewTokenResponse, Problem, ProcessList, RetryResponse, StreamDetail,
    StreamList, StreamSettings, TokenInfo, TokenList, WhoAmI,
};
use bytes::Bytes;
use fernery_core::{JobId, StreamName, limits, percent};
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::time::Duration;

/// How long to wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long to wait for an answer, in addition to the wait that the call asks the server for.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long a connection is kept for the next call; the server closes it after 75 s.
const IDLE_FOR: Duration = Duration::from_secs(30);
/// Maximum bytes of an answer if the caller sets no other limit: several times the size of a page or of a claim of many jobs.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A client of one server. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    base: String,
    bearer: Option<HeaderValue>,
    answer_bytes_max: usize,
    http: hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

/// The answer to one call.
#[derive(Clone, Debug)]
pub struct Reply<T> {
    /// The HTTP status.
    pub status: u16,
    /// The body as it came, byte by byte.
    pub body: Bytes,
    /// The value of the `Server` header.
    pub server: Option<String>,
    meaning: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Reply<T> {
    /// Reads the body.
    pub fn read(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body).map_err(|error| ClientError::Unexpected {
            status: self.status,
            why: error.to_string(),
            server: self.server.clone(),
        })
    }
}

impl Reply<BatchResponse> {
    /// The answers, one for each of `jobs`, in order; an error if they do not match `jobs`.
    pub fn items_for(
        &self,
        jobs: impl ExactSizeIterator<Item = JobId>,
    ) -> Result<Vec<ItemAnswer>, ClientError> {
        let items = self.read()?.items;
        let fits = items.len() == jobs.len() && jobs.zip(&items).all(|(job_id, item)| item.job_id == job_id);
        if fits {
            return Ok(items);
        }
        let why = "the answers do not match the items".to_string();
        Err(ClientError::Unexpected { status: self.status, why, server: self.server.clone() })
    }
}

/// The query parameters of a list.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(&'static str, String)>);

impl Query {
    /// No parameters: everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a parameter, if it has a value.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Option<impl fmt::Display>) -> Self {
        self.0.extend(value.map(|v| (name, v.to_string())));
        self
    }

    fn write_to(&self, path: &mut String) {
        for (i, (name, value)) in self.0.iter().enumerate() {
            path.push(if i == 0 { '?' } else { '&' });
            path.push_str(name);
            path.push('=');
            path.push_str(&percent::encode(value));
        }
    }
}

impl Client {
    /// A client of the server at `url`. Over HTTPS it trusts the certificates in `ca` (PEM), or those of the system.
    pub fn new(url: &str, token: Option<&str>, ca: Option<&Path>) -> Result<Self, ClientError> {
        let refused = |why: &str| Err(ClientError::BadUrl(why.to_string()));
        let base = url.trim_end_matches('/').to_string();
        let Ok(uri) = base.parse::<Uri>() else { return refused("it is not a URL") };
        let secure = match (uri.scheme_str(), uri.authority()) {
            (Some("https"), Some(_)) => true,
            (Some("http"), Some(_)) => false,
            _ => return refused("expected a URL like http://127.0.0.1:8080"),
        };
        if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
            return refused("the URL must not contain a user or a password");
        }
        if uri.path() != "/" && !uri.path().is_empty() || uri.query().is_some() {
            return refused("nothing may follow host and port");
        }
        let bearer = match token {
            None => None,
            Some(token) => {
                let Ok(mut value) = HeaderValue::try_from(format!("Bearer {token}")) else {
                    return Err(ClientError::BadToken);
                };
                value.set_sensitive(true);
                Some(value)
            }
        };
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT_WITHIN));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls::config(secure, ca)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_FOR)
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .build(connector);
        Ok(Self { base, bearer, answer_bytes_max: ANSWER_BYTES_MAX, http })
    }

    /// The same client with another limit on answers. A longer answer is refused while it is read.
    #[must_use]
    pub fn with_answers_up_to(self, bytes: usize) -> Self {
        Self { answer_bytes_max: bytes, ..self }
    }

    /// The server's URL.
    pub fn url(&self) -> &str {
        &self.base
    }

    /// Sends one call and returns its answer; `wait` is how long the call asks the server to wait.
    async fn call<T>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        wait: Duration,
    ) -> Result<Reply<T>, ClientError> {
        let mut request = Request::builder()
            .method(&method)
            .uri(format!("{}{path}", self.base))
            .header(header::ACCEPT, "application/json, application/problem+json")
            .header(header::USER_AGENT, concat!("fernery/", env!("CARGO_PKG_VERSION")));
        if matches!(method, Method::POST | Method::PATCH | Method::PUT) {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(bearer) = &self.bearer {
            request = request.header(header::AUTHORIZATION, bearer);
        }
        let request = request.body(Full::new(body)).map_err(|e| ClientError::BadUrl(e.to_string()))?;
        let within = ANSWER_WITHIN + wait;
        match tokio::time::timeout(within, self.exchange(request)).await {
            Ok(reply) => reply,
            Err(_) => Err(ClientError::TimedOut { url: self.base.clone(), after: within }),
        }
    }

    async fn exchange<T>(&self, request: Request<Full<Bytes>>) -> Result<Reply<T>, ClientError> {
        let broken = |error: &dyn std::error::Error, sent: bool| {
            let why = error::innermost(error);
            let url = self.base.clone();
            if sent { ClientError::Broken { url, why } } else { ClientError::Unreachable { url, why } }
        };
        let response = self.http.request(request).await.map_err(|e| broken(&e, !e.is_connect()))?;
        let status = response.status().as_u16();
        let header_text = |name| {
            response.headers().get(name).and_then(|v: &HeaderValue| v.to_str().ok()).map(str::to_string)
        };
        let server = header_text(header::SERVER);
        let retry_after =
            header_text(header::RETRY_AFTER).and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let is_problem = header_text(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.starts_with("application/problem+json"));
        let max = self.answer_bytes_max;
        let body = match Limited::new(response.into_body(), max).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let why = format!("it is longer than {max} bytes");
                return Err(ClientError::Unexpected { status, why, server });
            }
            Err(error) => return Err(broken(&*error, true)),
        };
        if (200..300).contains(&status) {
            return Ok(Reply { status, body, server, meaning: PhantomData });
        }
        let why = match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) if is_problem => {
                return Err(ClientError::Refused { problem: Box::new(problem), body, retry_after });
            }
            _ => "the answer does not come from a Fernery server".to_string(),
        };
        Err(ClientError::Unexpected { status, why, server })
    }

    /// Reads a path of the interface.
    pub async fn get<T>(&self, path: &str, query: &Query, wait: Duration) -> Result<Reply<T>, ClientError> {
        let mut path = path.to_string();
        query.write_to(&mut path);
        self.call(Method::GET, &path, Bytes::new(), wait).await
    }

    /// Posts to a path of the interface.
    pub async fn post<T>(
        &self,
        path: &str,
        body: &impl Serialize,
        wait: Duration,
    ) -> Result<Reply<T>, ClientError> {
        let body = serde_json::to_vec(body).map_err(|e| ClientError::BadRequest(e.to_string()))?;
        self.call(Method::POST, path, body.into(), wait).await
    }

    /// Sends a PATCH to a path of the interface.
    pub async fn patch<T>(&self, path: &str, body: &impl Serialize) -> Result<Reply<T>, ClientError> {
        let body = serde_json::to_vec(body).map_err(|e| ClientError::BadRequest(e.to_string()))?;
        self.call(Method::PATCH, path, body.into(), Duration::ZERO).await
    }

    /// Sends a PUT to a path of the interface.
    pub async fn put<T>(&self, path: &str, body: &impl Serialize) -> Result<Reply<T>, ClientError> {
        let body = serde_json::to_vec(body).map_err(|e| ClientError::BadRequest(e.to_string()))?;
        self.call(Method::PUT, path, body.into(), Duration::ZERO).await
    }

    async fn act<T>(&self, path: String) -> Result<Reply<T>, ClientError> {
        self.call(Method::POST, &path, Bytes::from_static(b"{}"), Duration::ZERO).await
    }

    /// Who the caller is, according to the token.
    pub async fn whoami(&self) -> Result<Reply<WhoAmI>, ClientError> {
        self.get("/v1/whoami", &Query::new(), Duration::ZERO).await
    }

    /// Whether the process is up, and its version.
    pub async fn health(&self) -> Result<Reply<Health>, ClientError> {
        self.get("/healthz", &Query::new(), Duration::ZERO).await
    }

    /// Stores one job. Unlike [`Client::enqueue`], the call is not repeated.
    pub async fn post_job(&self, job: &EnqueueRequest) -> Result<Reply<EnqueuedJob>, ClientError> {
        self.post("/v1/jobs", job, Duration::ZERO).await
    }

    /// Stores jobs; `jobs` is any array of them. Unlike [`Client::enqueue_all`], the array is not split and the call is not
    /// repeated.
    pub async fn post_jobs(&self, jobs: &impl Serialize) -> Result<Reply<EnqueueManyResponse>, ClientError> {
        self.post("/v1/jobs", jobs, Duration::ZERO).await
    }

    /// One job, after waiting up to `wait` for its end.
    pub async fn job(&self, id: JobId, wait: Duration) -> Result<Reply<JobDetail>, ClientError> {
        let wait_ms = (!wait.is_zero()).then_some(wait.as_millis());
        self.get(&format!("/v1/jobs/{id}"), &Query::new().with("wait_ms", wait_ms), wait).await
    }

    /// A page of jobs.
    pub async fn jobs(&self, query: &Query) -> Result<Reply<JobPage>, ClientError> {
        self.get("/v1/jobs", query, Duration::ZERO).await
    }

    /// Why a job does not run.
    pub async fn explain(&self, id: JobId) -> Result<Reply<ExplainResponse>, ClientError> {
        self.get(&format!("/v1/jobs/{id}/explain"), &Query::new(), Duration::ZERO).await
    }

    /// Ends a job.
    pub async fn cancel(&self, id: JobId, force: bool) -> Result<Reply<CancelResponse>, ClientError> {
        self.post(&format!("/v1/jobs/{id}/cancel"), &CancelRequest { force }, Duration::ZERO).await
    }

    /// Starts a DEAD or CANCELLED job over.
    pub async fn retry(&self, id: JobId) -> Result<Reply<RetryResponse>, ClientError> {
        self.act(format!("/v1/jobs/{id}/retry")).await
    }

    /// Asks for up to `max` jobs.
    pub async fn claim(&self, claim: &ClaimManyRequest) -> Result<Reply<ClaimManyResponse>, ClientError> {
        let wait = claim.max_wait_ms.map_or(limits::CLAIM_WAIT_DEFAULT, Duration::from_millis);
        self.post("/v1/worker/claim", claim, wait).await
    }

    /// Keeps leases; `batch` is a [`WorkerBatch`](crate::wire::WorkerBatch) of
    /// [`HeartbeatItem`](crate::wire::HeartbeatItem)s or what is written the same.
    pub async fn heartbeat(&self, batch: &impl Serialize) -> Result<Reply<BatchResponse>, ClientError> {
        self.post("/v1/worker/heartbeat", batch, Duration::ZERO).await
    }

    /// Reports successes; `batch` is a [`WorkerBatch`](crate::wire::WorkerBatch) of
    /// [`CompleteItem`](crate::wire::CompleteItem)s or what is written the same.
    pub async fn complete(&self, batch: &impl Serialize) -> Result<Reply<BatchResponse>, ClientError> {
        self.post("/v1/worker/complete", batch, Duration::ZERO).await
    }

    /// Reports failures; `batch` is a [`WorkerBatch`](crate::wire::WorkerBatch) of
    /// [`FailItem`](crate::wire::FailItem)s or what is written the same.
    pub async fn fail(&self, batch: &impl Serialize) -> Result<Reply<BatchResponse>, ClientError> {
        self.post("/v1/worker/fail", batch, Duration::ZERO).await
    }

    /// Hands jobs back; `batch` is a [`WorkerBatch`](crate::wire::WorkerBatch) of
    /// [`ReleaseItem`](crate::wire::ReleaseItem)s or what is written the same.
    pub async fn release(&self, batch: &impl Serialize) -> Result<Reply<BatchResponse>, ClientError> {
        self.post("/v1/worker/release", batch, Duration::ZERO).await
    }

    /// A page of dead letters.
    pub async fn dead_letters(&self, query: &Query) -> Result<Reply<DeadLetterPage>, ClientError> {
        self.get("/v1/dlq", query, Duration::ZERO).await
    }

    /// Starts dead jobs over.
    pub async fn redrive(&self, which: &DeadLetterRequest) -> Result<Reply<DeadLetterResponse>, ClientError> {
        self.post("/v1/dlq/redrive", which, ANSWER_WITHIN).await
    }

    /// Deletes dead jobs.
    pub async fn purge(&self, which: &DeadLetterRequest) -> Result<Reply<DeadLetterResponse>, ClientError> {
        self.post("/v1/dlq/purge", which, ANSWER_WITHIN).await
    }

    /// Counts the jobs that an act on all that match would reach.
    pub async fn count_bulk(&self, asked: &BulkRequest) -> Result<Reply<BulkCount>, ClientError> {
        self.post("/v1/bulk", &BulkRequest { dry_run: true, ..asked.clone() }, Duration::ZERO).await
    }

    /// Asks for an act on all jobs that match.
    pub async fn start_bulk(&self, asked: &BulkRequest) -> Result<Reply<BulkView>, ClientError> {
        self.post("/v1/bulk", &BulkRequest { dry_run: false, ..asked.clone() }, Duration::ZERO).await
    }

    /// A page of bulk acts.
    pub async fn bulk_acts(&self, query: &Query) -> Result<Reply<BulkPage>, ClientError> {
        self.get("/v1/bulk", query, Duration::ZERO).await
    }

    /// One bulk act.
    pub async fn bulk_act(&self, id: &str) -> Result<Reply<BulkView>, ClientError> {
        self.get(&format!("/v1/bulk/{}", percent::encode(id)), &Query::new(), Duration::ZERO).await
    }

    /// Stops a bulk act.
    pub async fn stop_bulk(&self, id: &str) -> Result<Reply<BulkView>, ClientError> {
        self.act(format!("/v1/bulk/{}/stop", percent::encode(id))).await
    }

    /// The streams, in one answer, up to the number that the server allows. A server may have more from a time before this
    /// limit; [`Client::streams_page`] lists all of them.
    pub async fn streams(&self) -> Result<Reply<StreamList>, ClientError> {
        self.streams_page(&Query::new()).await
    }

    /// A page of streams.
    pub async fn streams_page(&self, query: &Query) -> Result<Reply<StreamList>, ClientError> {
        self.get("/v1/streams", query, Duration::ZERO).await
    }

    /// The processes that serve the server's database and are alive.
    pub async fn processes(&self) -> Result<Reply<ProcessList>, ClientError> {
        self.get("/v1/processes", &Query::new(), Duration::ZERO).await
    }

    /// Stops or allows claims from a stream.
    pub async fn set_paused(
        &self,
        stream: &StreamName,
        paused: bool,
    ) -> Result<Reply<StreamDetail>, ClientError> {
        let act = if paused { "pause" } else { "resume" };
        self.act(format!("/v1/streams/{}/{act}", percent::encode(stream.as_str()))).await
    }

    /// Sets a stream; what is `None` stays as it is.
    pub async fn set_stream(
        &self,
        stream: &StreamName,
        settings: &StreamSettings,
    ) -> Result<Reply<StreamDetail>, ClientError> {
        self.put(&format!("/v1/streams/{}", percent::encode(stream.as_str())), settings).await
    }

    /// Makes a token.
    pub async fn new_token(&self, token: &NewTokenRequest) -> Result<Reply<NewTokenResponse>, ClientError> {
        self.post("/v1/tokens", token, Duration::ZERO).await
    }

    /// All tokens.
    pub async fn tokens(&self) -> Result<Reply<TokenList>, ClientError> {
        self.get("/v1/tokens", &Query::new(), Duration::ZERO).await
    }

    /// Takes a token back.
    pub async fn revoke_token(&self, token_id: &str) -> Result<Reply<TokenInfo>, ClientError> {
        let path = format!("/v1/tokens/{}", percent::encode(token_id));
        self.call(Method::DELETE, &path, Bytes::new(), Duration::ZERO).await
    }
}

#[cfg(test)]
mod tests;

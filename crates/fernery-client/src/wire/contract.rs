//! The four calls of the worker contract, one job at a time.

use super::schema;
use fernery_core::{AttemptId, JobId, LeaseToken, Progress, StreamName, Timestamp, WorkerId};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Asks for a job.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClaimRequest {
    /// The worker's name. It is recorded; it proves nothing.
    #[schemars(with = "schema::Worker")]
    pub worker_id: WorkerId,
    /// The streams to claim from, in this order.
    #[schemars(with = "schema::Streams")]
    pub streams: Vec<StreamName>,
    /// How long to wait for a job: 0 to 30000, 5000 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 30_000))]
    pub max_wait_ms: Option<u64>,
}

/// A job under a fresh lease.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LeasedJob {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// This attempt.
    #[schemars(with = "schema::Id")]
    pub attempt_id: AttemptId,
    /// Proves that the caller holds the lease. It is returned only here.
    #[schemars(with = "schema::Id")]
    pub lease_token: LeaseToken,
    /// The stream of the job.
    #[schemars(with = "schema::Stream")]
    pub stream: StreamName,
    /// The id of its message: `<ms>-<n>`.
    pub message_id: String,
    /// The payload, as the producer wrote it.
    #[schemars(with = "schema::Object")]
    pub payload: Box<RawValue>,
    /// How long the lease lasts without a heartbeat.
    pub lease_ttl_seconds: u64,
    /// How often to send a heartbeat.
    pub heartbeat_interval_seconds: u64,
    /// The same in milliseconds, for short leases.
    #[serde(default)]
    pub heartbeat_interval_ms: u64,
    /// Counts every claim of the job.
    pub attempt_no: u32,
    /// How often the job may fail.
    pub max_attempts: u32,
    /// The server's current time.
    #[schemars(with = "schema::Instant")]
    pub server_time: Timestamp,
    /// The end of the lease.
    #[schemars(with = "schema::Instant")]
    pub lease_expires_at: Timestamp,
    /// When the attempt is ended despite heartbeats, if the job has a timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub timeout_at: Option<Timestamp>,
}

/// The answer to a claim: `{"claimed": false}`, or `"claimed": true` with the fields of [`LeasedJob`].
#[derive(Clone, Debug)]
pub enum ClaimResponse {
    /// No job came in time.
    Nothing,
    /// A job.
    Claimed(Box<LeasedJob>),
}

impl Serialize for ClaimResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Out<'a> {
            claimed: bool,
            #[serde(flatten)]
            job: Option<&'a LeasedJob>,
        }
        let job = match self {
            Self::Nothing => None,
            Self::Claimed(job) => Some(&**job),
        };
        Out { claimed: job.is_some(), job }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ClaimResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Neither an untagged enum nor a flattened struct can hold a RawValue, so both forms are read as one.
        #[derive(Deserialize)]
        struct In {
            claimed: bool,
            job_id: Option<JobId>,
            attempt_id: Option<AttemptId>,
            lease_token: Option<LeaseToken>,
            stream: Option<StreamName>,
            message_id: Option<String>,
            payload: Option<Box<RawValue>>,
            lease_ttl_seconds: Option<u64>,
            heartbeat_interval_seconds: Option<u64>,
            heartbeat_interval_ms: Option<u64>,
            #[serde(default)]
            attempt_no: u32,
            #[serde(default)]
            max_attempts: u32,
            #[serde(default)]
            server_time: Timestamp,
            #[serde(default)]
            lease_expires_at: Timestamp,
            #[serde(default)]
            timeout_at: Option<Timestamp>,
        }
        let missing = serde::de::Error::missing_field;
        let it = In::deserialize(deserializer)?;
        if !it.claimed {
            return Ok(Self::Nothing);
        }
        let heartbeat_interval_seconds =
            it.heartbeat_interval_seconds.ok_or_else(|| missing("heartbeat_interval_seconds"))?;
        Ok(Self::Claimed(Box::new(LeasedJob {
            job_id: it.job_id.ok_or_else(|| missing("job_id"))?,
            attempt_id: it.attempt_id.ok_or_else(|| missing("attempt_id"))?,
            lease_token: it.lease_token.ok_or_else(|| missing("lease_token"))?,
            stream: it.stream.ok_or_else(|| missing("stream"))?,
            message_id: it.message_id.ok_or_else(|| missing("message_id"))?,
            payload: it.payload.ok_or_else(|| missing("payload"))?,
            lease_ttl_seconds: it.lease_ttl_seconds.ok_or_else(|| missing("lease_ttl_seconds"))?,
            heartbeat_interval_seconds,
            heartbeat_interval_ms: it.heartbeat_interval_ms.unwrap_or(heartbeat_interval_seconds * 1_000),
            attempt_no: it.attempt_no,
            max_attempts: it.max_attempts,
            server_time: it.server_time,
            lease_expires_at: it.lease_expires_at,
            timeout_at: it.timeout_at,
        })))
    }
}

impl JsonSchema for ClaimResponse {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ClaimResponse".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let job = generator.subschema_for::<LeasedJob>();
        schemars::json_schema!({
            "type": "object",
            "required": ["claimed"],
            "properties": { "claimed": { "type": "boolean" } },
            "oneOf": [
                { "properties": { "claimed": { "const": false } } },
                { "properties": { "claimed": { "const": true } }, "allOf": [job] }
            ]
        })
    }
}

/// A heartbeat.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatRequest {
    /// The worker's name.
    #[schemars(with = "schema::Worker")]
    pub worker_id: WorkerId,
    /// The job it holds.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The secret from the claim; it proves that the caller holds the lease.
    #[schemars(with = "schema::Id")]
    pub lease_token: LeaseToken,
    /// The progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Progress>")]
    pub progress: Option<Progress>,
}

/// The lease was extended.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatResponse {
    /// Always `true`; an error is returned as a problem document.
    pub ok: bool,
    /// The new end of the lease.
    #[schemars(with = "schema::Instant")]
    pub lease_expires_at: Timestamp,
    /// The job is to be cancelled: stop and report a failure, or finish if it is almost done.
    #[serde(default)]
    pub cancel_requested: bool,
    /// The server's current time.
    #[serde(default)]
    #[schemars(with = "schema::Instant")]
    pub server_time: Timestamp,
}

/// Reports success.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CompleteRequest {
    /// The worker's name.
    #[schemars(with = "schema::Worker")]
    pub worker_id: WorkerId,
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The attempt.
    #[schemars(with = "schema::Id")]
    pub attempt_id: AttemptId,
    /// The secret from the claim; it proves that the caller holds the lease.
    #[schemars(with = "schema::Id")]
    pub lease_token: LeaseToken,
    /// As in the claim's answer. The server uses the value that it recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// As in the claim's answer. The server uses the value that it recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The output.
    #[schemars(with = "schema::Anything")]
    pub result: Box<RawValue>,
}

/// The success is stored.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CompleteResponse {
    /// Always `true`; an error is returned as a problem document.
    pub ok: bool,
    /// The attempt is closed in the database; its message may be acknowledged.
    pub ack: bool,
}

/// Reports failure.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FailRequest {
    /// The worker's name.
    #[schemars(with = "schema::Worker")]
    pub worker_id: WorkerId,
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The attempt.
    #[schemars(with = "schema::Id")]
    pub attempt_id: AttemptId,
    /// The secret from the claim; it proves that the caller holds the lease.
    #[schemars(with = "schema::Id")]
    pub lease_token: LeaseToken,
    /// As in the claim's answer. The server uses the value that it recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// As in the claim's answer. The server uses the value that it recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The error.
    pub error: ErrorReport,
}

/// An error. Unknown fields are ignored here, so that a failure can always be reported.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ErrorReport {
    /// A short code to filter by.
    pub code: String,
    /// A sentence for people; truncated if it is too long.
    pub message: String,
    /// A stack trace; truncated if it is too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Whether a retry may help.
    #[serde(default = "yes")]
    pub retryable: bool,
}

const fn yes() -> bool {
    true
}

/// The failure is stored.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FailResponse {
    /// Always `true`; an error is returned as a problem document.
    pub ok: bool,
    /// The attempt is closed in the database; its message may be acknowledged.
    pub ack: bool,
    /// The job is queued for another attempt.
    pub requeued: bool,
    /// The job is in the dead-letter queue.
    pub dlq: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIMED: &str = r#"{"claimed":true,"job_id":"019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f","attempt_id":"019a8c5e-7b1a-7cc3-98c4-dc0c0c073990","lease_token":"6f1c2b1e-0c37-4f0e-9f0e-6f2f6f0f6f0f","stream":"s","message_id":"1-2","payload":{"n":1.50e400},"lease_ttl_seconds":60,"heartbeat_interval_seconds":20,"heartbeat_interval_ms":20000,"attempt_no":1,"max_attempts":5,"server_time":"2026-11-15T09:30:00.000Z","lease_expires_at":"2026-11-15T09:31:00.000Z"}"#;

    #[test]
    fn a_claimed_job_survives_the_wire_to_the_byte() {
        let read: ClaimResponse = serde_json::from_str(CLAIMED).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), CLAIMED);
    }

    #[test]
    fn no_job_is_one_field() {
        let read: ClaimResponse = serde_json::from_str(r#"{"claimed":false}"#).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), r#"{"claimed":false}"#);
        assert!(serde_json::from_str::<ClaimResponse>(r#"{"claimed":true}"#).is_err());
    }

    #[test]
    fn an_error_may_be_tried_again_unless_it_says_otherwise() {
        for (said, retryable) in [
            ("", true),
            (r#","more":1"#, true),
            (r#","retryable":true"#, true),
            (r#","retryable":false"#, false),
        ] {
            let text = format!(r#"{{"code":"E","message":"m"{said}}}"#);
            let read: ErrorReport = serde_json::from_str(&text).unwrap();
            assert_eq!(read.retryable, retryable, "{text}");
            let sent: ErrorReport = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
            assert_eq!(sent.retryable, retryable, "sent on: {text}");
        }
    }
}

//! The time of a ticket's attempts that nobody has written down yet: it is charged to the envelope once they are judged.

use fernery_client::Client;
use fernery_client::wire::ObjectiveDetail;
use fernery_core::{JobId, Timestamp};
use fernery_engine::door;
use serde_json::Value;
use std::time::Duration;

/// The attempt that runs now.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// The state of the workorder that was asked for, and when its open attempt began. It is asked for once.
    known: Option<(String, Timestamp)>,
}

impl UnderWay {
    /// The time that is to be added to what is spent.
    pub(super) async fn time(&mut self, detail: &ObjectiveDetail, client: &Client) -> Duration {
        let Some(work) = detail.workorders.last().filter(|work| work["judged"] != true) else {
            return Duration::ZERO;
        };
        let before = Duration::from_millis(work["spent_ms"].as_u64().unwrap_or(0));
        if !work["executed_at"].is_null() {
            return before;
        }
        match self.began(work, client).await {
            Some(at) => before + door::wall_clock().since(at),
            None => before,
        }
    }

    async fn began(&mut self, work: &Value, client: &Client) -> Option<Timestamp> {
        let id = work["work_order_id"].as_str()?;
        let state = format!("{id} {} {}", work["claim_version"], work["spent_ms"]);
        if let Some((_, at)) = self.known.as_ref().filter(|(known, _)| *known == state) {
            return Some(*at);
        }
        let job_id: JobId = id.parse().ok()?;
        // Who may not read jobs sees the time once it is written down.
        let job = client.job(job_id, Duration::ZERO).await.ok()?.read().ok()?;
        let open = job.attempts.last().filter(|attempt| attempt.finished_at.is_none());
        let at = open.map(|attempt| attempt.started_at)?;
        self.known = Some((state, at));
        Some(at)
    }
}

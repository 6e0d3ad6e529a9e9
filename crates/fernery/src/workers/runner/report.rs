//! Reports the end of a workorder's job: its output, a failure, or that it is given back.

use super::Slot;
use fernery_core::job::report::Answer;
use fernery_core::names::showable;
use fernery_core::pipeline::membrane::{self, Outcome};
use fernery_engine::StoreError;
use fernery_engine::store::{Cause, Claimed, Completion, Failure, Proof};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tracing::info;

impl Slot {
    fn proof(job: &Claimed) -> Proof {
        Proof { job_id: job.job_id, attempt_id: job.attempt_id, token_hash: job.lease_token.hash() }
    }

    /// Hands in the output. If it is not an output bundle, that fact is handed in; answers whether the output was
    /// accepted, or why not.
    pub(super) async fn hand_in(
        &self,
        job: &Claimed,
        parts: Value,
    ) -> Result<Result<(), String>, StoreError> {
        let result = raw(&parts);
        let item = Completion { proof: Self::proof(job), result };
        let answers = self.context.engine.store().complete(vec![item]).await?;
        match answers.first() {
            Some(Answer::Unfit) => {
                let said = membrane::parts(&parts).err().unwrap_or_default();
                let said: Vec<String> = said.iter().take(20).map(ToString::to_string).collect();
                let said: String = showable(&said.join("\n")).chars().take(4_000).collect();
                let instead = json!({
                    "title": "The output is no output bundle",
                    "content": "",
                    "notes": said,
                    "metadata": {"outcome": Outcome::Protocol.as_str()},
                });
                let item = Completion { proof: Self::proof(job), result: raw(&instead) };
                self.context.engine.store().complete(vec![item]).await?;
                Ok(Err("what it handed in is no output bundle".into()))
            }
            Some(Answer::Accepted { .. } | Answer::Duplicate { .. }) => Ok(Ok(())),
            other => {
                info!(?other, work_order_id = %job.job_id, "the output of a run was not accepted");
                Ok(Err("its output came too late".into()))
            }
        }
    }

    pub(super) async fn fail(&self, job: &Claimed, code: &str, message: &str) -> Result<(), StoreError> {
        let cause =
            Cause { code: code.to_string(), message: message.to_string(), stack: None, retryable: true };
        self.context.engine.store().fail(vec![Failure::new(Self::proof(job), cause)]).await?;
        Ok(())
    }

    pub(super) async fn release(&self, job: &Claimed) -> Result<(), StoreError> {
        self.context.engine.store().release(vec![Self::proof(job)]).await?;
        Ok(())
    }
}

pub(in crate::workers) fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

//! What an operator and the workers of an azolla do, each step by hand; from one process of several.

use fernery_core::artifact::{
    AzollaId, EventType, ObjectiveId, ObjectiveStatus, RecordId, RunId, SnapshotId,
};
use fernery_core::blueprint::Blueprint;
use fernery_core::canonical::Digest;
use fernery_core::job::report::Answer;
use fernery_core::names::WorkerId;
use fernery_core::pipeline::draft::Draft;
use fernery_core::pipeline::evidence::{Evidence, plain_evidence};
use fernery_core::{StreamName, TokenHash};
use fernery_engine::pipeline::acts::{self, Actor, Refusal};
use fernery_engine::pipeline::claims::{self, Claimer, HeldClaim};
use fernery_engine::pipeline::decisions::{self, Deciding};
use fernery_engine::pipeline::gate_input::{self, Evaluated};
use fernery_engine::pipeline::judging::{self, Judged};
use fernery_engine::pipeline::objectives::{self, NewObjective, ObjectiveRow};
use fernery_engine::pipeline::reading::{self, Chain, Decision, chain};
use fernery_engine::pipeline::scheduling::{self, Ids, Scheduled};
use fernery_engine::pipeline::{Cell, Sql, Substrate, azollas, blockers, readiness};
use fernery_engine::store::{Ask, Claimed, Completion, Failure, Proof, Store};
use fernery_engine::{StoreError, door};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const LEASE: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct Hands {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) substrate: Substrate,
    pub(crate) azolla: AzollaId,
}

/// Of an azolla whose executors write text: what its workorders come to needs no repository.
pub(crate) fn blueprint(more: &str) -> Blueprint {
    let of = if more.contains("diazotroph_type") { "" } else { "diazotroph_type = \"TEXT_DIAZOTROPH\"\n" };
    let executor = "[executors.TEXT_DIAZOTROPH]\nkind = \"remote\"\n";
    parsed(&format!("{of}{more}\n{executor}"))
}

/// Of an azolla whose executors make patches.
pub(crate) fn patching(more: &str) -> Blueprint {
    parsed(more)
}

fn parsed(more: &str) -> Blueprint {
    let mec = include_str!("../../../../azollas/mec.toml").to_string();
    let text = format!("extends = \"mec\"\nazolla_id = \"a\"\n{more}");
    Blueprint::parse(&text, &|name| (name == "mec").then(|| mec.clone())).expect("a blueprint")
}

pub(crate) fn draft(title: &str) -> Draft {
    serde_json::from_value(json!({"title": title, "acceptance_criteria": "it works"})).expect("a draft")
}

pub(crate) fn id(text: &str) -> ObjectiveId {
    ObjectiveId::new(text).expect("an id")
}

fn operator() -> Actor {
    Actor("operator".into())
}

pub(crate) fn deciding(digest: Option<Digest>, note: Option<&str>) -> Deciding {
    Deciding {
        record_id: record(),
        digest,
        note: note.map(str::to_string),
        premises: None,
        from_scratch: false,
    }
}

/// The id of an act that nobody has carried out yet.
pub(crate) fn record() -> RecordId {
    RecordId::stored(&door::artifact_id())
}

impl Hands {
    pub(crate) async fn put_in_force(&self, blueprint: Blueprint) -> Digest {
        self.substrate.transact(move |sql| azollas::register(sql, &blueprint)).await.expect("registered")
    }

    pub(crate) async fn create(&self, name: &str) -> ObjectiveId {
        let (objective_id, azolla) = (id(name), self.azolla.clone());
        let new = NewObjective::new(&objective_id, &azolla, draft("Do it"));
        let made = self.substrate.transact(move |sql| objectives::create(sql, &operator(), &new)).await;
        made.expect("stored").expect("created");
        objective_id
    }

    pub(crate) async fn row(&self, of: &ObjectiveId) -> ObjectiveRow {
        let of = of.clone();
        let found = self.substrate.read(move |sql| objectives::load(sql, &of)).await;
        found.expect("read").expect("an objective")
    }

    pub(crate) async fn status(&self, of: &ObjectiveId) -> ObjectiveStatus {
        self.row(of).await.objective.status
    }

    pub(crate) async fn approve(&self, of: &ObjectiveId) -> Result<Decision, Refusal> {
        let (of, deciding) = (of.clone(), deciding(None, None));
        self.insist(move |sql| decisions::approve(sql, &operator(), &of, &deciding)).await
    }

    /// Asks again, as a client does, while others hold what the verb needs.
    async fn insist<T: Send + 'static>(
        &self,
        verb: impl FnMut(&mut dyn Sql) -> Result<T, StoreError> + Send + 'static,
    ) -> T {
        let verb = Arc::new(Mutex::new(verb));
        loop {
            let again = verb.clone();
            let answer = self.substrate.transact(move |sql| (again.lock().expect("no panic"))(sql)).await;
            if !matches!(answer, Err(StoreError::Busy(_))) {
                return answer.expect("stored");
            }
        }
    }

    pub(crate) async fn act<T: Send + 'static>(
        &self,
        mut act: impl FnMut(&mut dyn fernery_engine::pipeline::Sql, &Actor) -> acts::Answer<T> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.insist(move |sql| act(sql, &operator())).await
    }

    pub(crate) async fn emit(&self) -> usize {
        let azolla = self.azolla.clone();
        self.substrate.transact(move |sql| readiness::emit(sql, &azolla, 100)).await.expect("emitted")
    }

    pub(crate) async fn take_events(&self, owner: &str) -> Vec<(fernery_core::artifact::Event, HeldClaim)> {
        let (azolla, by) = (self.azolla.clone(), Claimer { owner_id: owner.into(), ttl: LEASE });
        self.substrate
            .transact(move |sql| claims::take_events(sql, &azolla, EventType::TicketReady, &by, 100))
            .await
            .expect("claims")
    }

    pub(crate) async fn schedule(&self, event: fernery_core::artifact::Event, held: HeldClaim) -> Scheduled {
        let chance = door::Chance::default();
        let ids = Ids { job_id: chance.job_id(), snapshot_id: SnapshotId::stored(&door::artifact_id()) };
        self.insist(move |sql| scheduling::schedule(sql, &event, &held, &ids)).await
    }

    /// As [`Self::schedule`], of all of these in one transaction.
    pub(crate) async fn schedule_all(
        &self,
        taken: Vec<(fernery_core::artifact::Event, HeldClaim)>,
    ) -> Vec<Scheduled> {
        let chance = door::Chance::default();
        let ids = || Ids { job_id: chance.job_id(), snapshot_id: SnapshotId::stored(&door::artifact_id()) };
        let claimed: Vec<scheduling::ClaimedEvent> = taken
            .into_iter()
            .map(|(event, held)| scheduling::ClaimedEvent { event, held, ids: ids(), ground: None })
            .collect();
        let azolla = self.azolla.clone();
        self.insist(move |sql| scheduling::schedule_all(sql, &azolla, &claimed)).await
    }

    /// A pass of readiness and one of the scheduler.
    pub(crate) async fn pass(&self) -> Vec<Scheduled> {
        self.emit().await;
        let mut done = Vec::new();
        for (event, held) in self.take_events("scheduler").await {
            done.push(self.schedule(event, held).await);
        }
        done
    }

    pub(crate) async fn claim(&self) -> Option<Claimed> {
        let ask = Ask {
            worker_id: WorkerId::stored("executor"),
            streams: ["diazotroph:TEXT_DIAZOTROPH", "diazotroph:OTHER_DIAZOTROPH"]
                .map(StreamName::stored)
                .to_vec()
                .into(),
            max: 1,
        };
        self.store.claim(ask).await.expect("a claim").pop()
    }

    pub(crate) async fn hand_in(&self, job: &Claimed, result: Value) -> Answer {
        let result = RawValue::from_string(result.to_string()).expect("JSON");
        let item = Completion { proof: proof(job), result };
        self.store.complete(vec![item]).await.expect("an answer").remove(0)
    }

    pub(crate) async fn fail(&self, job: &Claimed) -> Answer {
        let error =
            RawValue::from_string(json!({"code": "X", "message": "broken"}).to_string()).expect("JSON");
        let item = Failure { proof: proof(job), code: "X".into(), retryable: true, error };
        self.store.fail(vec![item]).await.expect("an answer").remove(0)
    }

    pub(crate) async fn take_executed(&self, owner: &str) -> Vec<HeldClaim> {
        let (azolla, by) = (self.azolla.clone(), Claimer { owner_id: owner.into(), ttl: LEASE });
        let taken = self
            .substrate
            .transact(move |sql| gate_input::take_executed(sql, &azolla, &by, 100))
            .await
            .expect("claims");
        taken.into_iter().map(|(_, held)| held).collect()
    }

    /// A pass of the gate, with gates that need no program.
    pub(crate) async fn judge(&self) -> Vec<Judged> {
        let mut done = Vec::new();
        for held in self.take_executed("gate").await {
            done.push(self.judge_one(held).await);
        }
        done
    }

    pub(crate) async fn judge_one(&self, held: HeldClaim) -> Judged {
        let id = fernery_core::artifact::WorkorderId::stored(&held.resource_id);
        let gate_input =
            self.substrate.read(move |sql| gate_input::gate_input(sql, &id)).await.expect("read");
        let gate_input = gate_input.expect("a gate_input");
        let mut evidence: Vec<Evidence> = Vec::new();
        for gate in &gate_input.blueprint.gates {
            let found = plain_evidence(gate, &gate_input.bundle, gate_input.snapshot.as_ref())
                .expect("a gate without a program");
            let stop = found.result != Some(fernery_core::artifact::GateResult::Pass);
            evidence.push(found);
            if stop {
                break;
            }
        }
        self.insist(move |sql| judging::conclude(sql, &held, &evidence)).await
    }

    /// As [`Self::judge_one`], where somebody may have been faster.
    pub(crate) async fn judge_if_there(&self, held: HeldClaim) -> Option<Judged> {
        let id = fernery_core::artifact::WorkorderId::stored(&held.resource_id);
        let gate_input =
            self.substrate.read(move |sql| gate_input::gate_input(sql, &id)).await.expect("read");
        match gate_input {
            Some(_) => Some(self.judge_one(held).await),
            None => None,
        }
    }

    /// As [`Self::judge_one`], of all of these in one transaction.
    pub(crate) async fn judge_all(&self, held: Vec<HeldClaim>) -> Vec<Judged> {
        let ids: Vec<_> =
            held.iter().map(|held| fernery_core::artifact::WorkorderId::stored(&held.resource_id)).collect();
        let gate_inputs =
            self.substrate.read(move |sql| gate_input::gate_inputs(sql, &ids)).await.expect("read");
        let evaluated: Vec<Evaluated> = held
            .iter()
            .zip(gate_inputs)
            .map(|(held, gate_input)| {
                Evaluated::plainly(held, gate_input.expect("a gate_input")).expect("plain gates")
            })
            .collect();
        self.insist(move |sql| judging::conclude_all(sql, &evaluated)).await
    }

    /// As [`Self::judge_one`], by a gate that cannot run.
    pub(crate) async fn judge_in_trouble(&self, held: HeldClaim) -> Judged {
        let found = Evidence {
            gate: "schema".into(),
            ms: 1,
            log_tail: "no room on the disk".into(),
            trouble: Some("no room on the disk".into()),
            ..Evidence::default()
        };
        let judged =
            self.substrate.transact(move |sql| judging::conclude(sql, &held, std::slice::from_ref(&found)));
        judged.await.expect("judged")
    }

    pub(crate) async fn chain(&self, of: &ObjectiveId) -> Chain {
        let of = of.clone();
        self.substrate.read(move |sql| chain(sql, &of)).await.expect("read")
    }

    /// As the canceller does. Answers how many it told.
    pub(crate) async fn cancel_jobs(&self) -> usize {
        let found = self.substrate.read(move |sql| reading::to_cancel(sql, "", 100)).await.expect("read");
        for id in &found {
            self.store.cancel(id.job_id().expect("a job"), false).await.expect("cancelled");
        }
        found.len()
    }

    pub(crate) async fn cancel(&self, of: &ObjectiveId) -> Result<ObjectiveRow, Refusal> {
        let (of, record) = (of.clone(), record());
        self.act(move |sql, who| blockers::cancel(sql, who, (&of, &record), None)).await
    }

    pub(crate) async fn unblock(&self, of: &ObjectiveId) -> Result<ObjectiveRow, Refusal> {
        self.unblock_from(of, blockers::Resolved::All).await
    }

    pub(crate) async fn unblock_from(
        &self,
        of: &ObjectiveId,
        these: blockers::Resolved,
    ) -> Result<ObjectiveRow, Refusal> {
        let (of, record) = (of.clone(), record());
        self.act(move |sql, who| blockers::unblock(sql, who, (&of, &record), &these)).await
    }

    /// The last run, by its id; one that is not there if there is none.
    pub(crate) async fn last_run(&self, of: &ObjectiveId) -> RunId {
        let of = of.clone();
        let last = self.substrate.read(move |sql| reading::last_run(sql, &of)).await.expect("read");
        last.map_or_else(|| RunId::stored("none"), |run| run.record.run_id)
    }

    /// Confirms the last run.
    pub(crate) async fn confirm(&self, of: &ObjectiveId) -> Result<Decision, Refusal> {
        let (of, run, plain) = (of.clone(), self.last_run(of).await, deciding(None, None));
        self.act(move |sql, who| decisions::confirm(sql, who, (&of, &run), &plain)).await
    }

    /// Statements of the test's own, as another program would run them.
    pub(crate) async fn sql(&self, statement: &'static str, with: &'static [&'static str]) -> usize {
        let cells: Vec<Cell<'static>> = with.iter().map(|text| Cell::Text(text)).collect();
        self.substrate.transact(move |sql| Ok(sql.query(statement, &cells)?.len())).await.expect("written")
    }
}

pub(crate) fn proof(job: &Claimed) -> Proof {
    let token_hash: TokenHash = job.lease_token.hash();
    Proof { job_id: job.job_id, attempt_id: job.attempt_id, token_hash }
}

pub(crate) fn good() -> Value {
    json!({"title": "done", "content": "the output", "notes": "", "metadata": {"outcome": "OUTPUT"}})
}

pub(crate) fn bad() -> Value {
    json!({"title": "not done", "content": "", "notes": "", "metadata": {"outcome": "FAILED"}})
}

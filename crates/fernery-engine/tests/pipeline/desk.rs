//! What a person and the workers of an azolla with an inbox do, each step by hand; from one process of several.

use crate::pipeline::hands::{Hands, LEASE};
use crate::pipeline::world::World;
use crate::support::backend::Backend;
use fernery_core::artifact::{
    AzollaId, CaptureId, CaptureStatus, DiazotrophType, Event, EventType, Metadata, Objective, QueryId,
    SnapshotId, SubstrateQuery,
};
use fernery_core::blueprint::{Blueprint, MANIFEST_BUILDER, ReadableArtifact, TRIAGE};
use fernery_core::inbox::Question;
use fernery_core::names::WorkerId;
use fernery_core::{StreamName, Timestamp};
use fernery_engine::door;
use fernery_engine::pipeline::acts::Refusal;
use fernery_engine::pipeline::claims::{self, Claimer, HeldClaim};
use fernery_engine::pipeline::inbox::answers::Answered;
use fernery_engine::pipeline::inbox::candidates::{self, CandidateView};
use fernery_engine::pipeline::inbox::captures::{self, CaptureView, NewCapture, Stored};
use fernery_engine::pipeline::inbox::manifests::{self, RequestState};
use fernery_engine::pipeline::inbox::{capture_readiness, deadlines, queries, tracks};
use fernery_engine::pipeline::judging::Judged;
use fernery_engine::pipeline::reading::Below;
use fernery_engine::pipeline::scheduling::{ClaimedEvent, Ids, Scheduled};
use fernery_engine::store::{Ask, Claimed as Job};
use serde_json::{Value, json};

pub(crate) const DUTY: &str = "operator-continuity";

/// The blueprint of an azolla with an inbox, `a`.
pub(crate) fn tasks(more: &str) -> Blueprint {
    let text = format!("extends = \"task_management\"\nazolla_id = \"a\"\n{more}");
    Blueprint::parse(&text, &|_| None).unwrap_or_else(|flaws| panic!("{flaws:#?}"))
}

/// A world whose azolla `a` has an inbox, beside `mec`, which has tickets.
pub(crate) async fn office<B: Backend>(more: &str) -> World<B> {
    let world = World::<B>::empty().await;
    world.put_in_force(tasks(more)).await;
    world.put_in_force(Blueprint::mec()).await;
    world
}

pub(crate) fn capture_id(n: impl std::fmt::Display) -> CaptureId {
    CaptureId::stored(&format!("c-{n:0>6}"))
}

pub(crate) fn line(n: impl std::fmt::Display, raw: &[u8]) -> NewCapture {
    NewCapture {
        capture_id: capture_id(n),
        raw: raw.to_vec(),
        source_label: "test".into(),
        captured_at: None,
    }
}

fn ids() -> Ids {
    let chance = door::Chance::default();
    Ids { job_id: chance.job_id(), snapshot_id: SnapshotId::stored(&door::artifact_id()) }
}

impl Hands {
    pub(crate) async fn capture(&self, new: Vec<NewCapture>) -> Result<Vec<Stored>, Refusal> {
        let azolla = self.azolla.clone();
        self.act(move |sql, _| captures::capture(sql, Some(&azolla), &new)).await
    }

    /// So many captures, `c-0` and so on.
    pub(crate) async fn capture_many(&self, count: usize) {
        for chunk in (0..count).collect::<Vec<_>>().chunks(1_000) {
            let new = chunk.iter().map(|n| line(n, format!("do thing {n}").as_bytes())).collect();
            self.capture(new).await.expect("captured");
        }
    }

    pub(crate) async fn announce(&self, limit: i64) -> usize {
        let azolla = self.azolla.clone();
        self.substrate
            .transact(move |sql| capture_readiness::emit(sql, &azolla, limit))
            .await
            .expect("announced")
    }

    pub(crate) async fn take(&self, of: EventType, owner: &str, limit: i64) -> Vec<(Event, HeldClaim)> {
        let (azolla, by) = (self.azolla.clone(), Claimer { owner_id: owner.into(), ttl: LEASE });
        self.substrate
            .transact(move |sql| claims::take_events(sql, &azolla, of, &by, limit))
            .await
            .expect("claims")
    }

    pub(crate) async fn schedule_triage(&self, taken: Vec<(Event, HeldClaim)>) -> Vec<Scheduled> {
        let claimed: Vec<ClaimedEvent> = taken
            .into_iter()
            .map(|(event, held)| ClaimedEvent { event, held, ids: ids(), ground: None })
            .collect();
        let azolla = self.azolla.clone();
        let done = self.substrate.transact(move |sql| tracks::schedule_triage(sql, &azolla, &claimed));
        done.await.expect("scheduled")
    }

    /// As the manifest scheduler does: asks all azollas of this instance.
    pub(crate) async fn ask_all(&self) -> Vec<Answered> {
        let mut answered = Vec::new();
        for of in [ReadableArtifact::Objective, ReadableArtifact::PauseState] {
            let query = query(&self.azolla, "mec", of);
            let asked = query.clone();
            let response = self.substrate.read(move |sql| queries::answer(sql, &asked, None)).await;
            answered.push(Answered { query, response: response.expect("answered"), server: None });
        }
        answered
    }

    pub(crate) async fn schedule_manifest(&self, event: Event, held: HeldClaim) -> Scheduled {
        let answered = self.ask_all().await;
        self.schedule_asked(event, held, answered).await
    }

    pub(crate) async fn schedule_asked(
        &self,
        event: Event,
        held: HeldClaim,
        answered: Vec<Answered>,
    ) -> Scheduled {
        let claimed = ClaimedEvent { event, held, ids: ids(), ground: None };
        let done =
            self.substrate.transact(move |sql| tracks::schedule_manifest(sql, &claimed, &answered, &[]));
        done.await.expect("scheduled")
    }

    pub(crate) async fn request(&self, name: &str) -> RequestState {
        let (azolla, name) = (self.azolla.clone(), name.to_string());
        self.substrate.transact(move |sql| manifests::request(sql, &azolla, &name)).await.expect("requested")
    }

    /// Claims the workorder of either track.
    pub(crate) async fn claim_question(&self) -> Option<(Job, Question)> {
        let streams = [TRIAGE, MANIFEST_BUILDER].map(|of| StreamName::stored(&format!("diazotroph:{of}")));
        let instead = [TRIAGE, MANIFEST_BUILDER].map(DiazotrophType::stored);
        let streams = [streams, instead.map(|of| Blueprint::stand_in_stream(&of))].concat();
        let ask = Ask { worker_id: WorkerId::stored("executor"), streams: streams.into(), max: 1 };
        let job = self.store.claim(ask).await.expect("a claim").pop()?;
        let payload: Value = serde_json::from_str(job.payload.get()).expect("JSON");
        let snapshot = serde_json::from_value(payload["context_snapshot"].clone()).expect("a snapshot");
        let question = Question::of(&snapshot).expect("it asks something");
        Some((job, question))
    }

    /// A pass of every worker, with the built-in executor. Answers how many verdicts there were.
    pub(crate) async fn round(&self) -> usize {
        self.announce(200).await;
        let events = self.take(EventType::CaptureReady, "scheduler", 1).await;
        if !events.is_empty() {
            self.schedule_triage(events).await;
        }
        for (event, held) in self.take(EventType::ManifestRequested, "manifests", 1).await {
            self.schedule_manifest(event, held).await;
        }
        if let Some((job, question)) = self.claim_question().await {
            self.hand_in(&job, answer(&question.builtin_answer())).await;
        }
        self.judge().await.iter().filter(|judged| matches!(judged, Judged::Recorded(_))).count()
    }

    pub(crate) async fn captures(&self) -> Vec<CaptureView> {
        let all = self.substrate.read(|sql| captures::page(sql, &Below::newest(), 100_000)).await;
        all.expect("read")
    }

    pub(crate) async fn candidates(&self) -> Vec<CandidateView> {
        let all = self.substrate.read(|sql| candidates::page(sql, &Below::newest(), 100_000)).await;
        all.expect("read")
    }

    pub(crate) async fn pending(&self) -> usize {
        let pending = |view: &&CaptureView| view.capture.status == CaptureStatus::Pending;
        self.captures().await.iter().filter(pending).count()
    }

    pub(crate) async fn watch(&self, objectives: Vec<Objective>) {
        let (by, of) = (self.azolla.clone(), AzollaId::stored("mec"));
        let watched =
            self.substrate.transact(move |sql| deadlines::watch(sql, &by, (&of, None), &objectives));
        watched.await.expect("watched");
    }

    pub(crate) async fn tell_overdue(&self) -> usize {
        let by = self.azolla.clone();
        self.substrate.transact(move |sql| deadlines::tell(sql, &by, 100)).await.expect("told")
    }
}

pub(crate) fn query(source: &AzollaId, target: &str, of: ReadableArtifact) -> SubstrateQuery {
    SubstrateQuery {
        query_id: QueryId::stored(&door::artifact_id()),
        source_azolla_id: source.clone(),
        target_azolla_id: AzollaId::stored(target),
        artifact_type: of,
        filter: Metadata::new(),
        created_at: Timestamp::from_millis(1_800_000_000_000),
    }
}

/// What an executor hands in.
pub(crate) fn answer(content: &str) -> Value {
    json!({"title": "answered", "content": content, "notes": "", "metadata": {"outcome": "OUTPUT"}})
}

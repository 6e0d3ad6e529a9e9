//! A database with an azolla in it, and the hands of one process on it.

pub(crate) use crate::pipeline::hands::{Hands, LEASE, bad, blueprint, deciding, draft, good, record};
use crate::support::backend::{Backend, settings};
use fernery_core::artifact::AzollaId;
use fernery_engine::pipeline::Substrate;
use std::ops::Deref;
use std::time::Duration;

pub(crate) struct World<B> {
    pub(crate) backend: B,
    hands: Hands,
}

impl<B> Deref for World<B> {
    type Target = Hands;

    fn deref(&self) -> &Hands {
        &self.hands
    }
}

fn hands_on<B: Backend>(backend: &B) -> Hands {
    let (store, azolla) = (backend.store(), AzollaId::stored("a"));
    Hands { substrate: Substrate::new(store.clone(), backend.signals()), store, azolla }
}

impl<B: Backend> World<B> {
    pub(crate) async fn new(more: &str) -> Self {
        let world = Self::empty().await;
        world.put_in_force(blueprint(more)).await;
        world
    }

    /// With no azolla in force yet.
    pub(crate) async fn empty() -> Self {
        let backend = B::open(settings()).await;
        let hands = hands_on(&backend);
        Self { backend, hands }
    }

    /// With one ticket, `t`, that is approved.
    pub(crate) async fn with_ticket(more: &str) -> (Self, fernery_core::artifact::ObjectiveId) {
        let world = Self::new(more).await;
        let ticket = world.create("t").await;
        world.approve(&ticket).await.expect("approved");
        (world, ticket)
    }

    /// The hands of another process, where there can be one.
    pub(crate) async fn elsewhere(&self) -> Hands {
        let store = self.backend.of_another_process().await;
        let substrate = Substrate::new(store.clone(), self.backend.signals());
        Hands { store, substrate, azolla: self.azolla.clone() }
    }

    pub(crate) async fn crash(&mut self) {
        self.backend.crash().await;
        self.hands = hands_on(&self.backend);
    }

    pub(crate) async fn advance(&self, seconds: u64) {
        self.backend.advance(Duration::from_secs(seconds)).await;
    }

    pub(crate) async fn set_back(&self, seconds: u64) {
        self.backend.set_back(Duration::from_secs(seconds)).await;
    }

    /// Every row of every table of the pipeline and the job engine.
    pub(crate) async fn dump(&self) -> String {
        let all = TABLES.map(|table| format!("SELECT '{table}', t.* FROM {table} t ORDER BY 2, 3"));
        self.backend.rows(&all.each_ref().map(String::as_str)).await.join("\n")
    }
}

const TABLES: [&str; 29] = [
    "azollas",
    "blueprints",
    "objectives",
    "blockers",
    "decisions",
    "events",
    "snapshots",
    "workorders",
    "bundles",
    "runs",
    "pauses",
    "claims",
    "journal",
    "seals",
    "dead_letters",
    "jobs",
    "ready",
    "scheduled",
    "leases",
    "attempts",
    "captures",
    "candidates",
    "candidate_captures",
    "manifests",
    "queries",
    "fires",
    "deadlines",
    "recurrences",
    "snoozes",
];

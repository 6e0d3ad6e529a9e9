//! The pipeline's workers by hand, on the engine under a test's server.

use crate::server::TestServer;
use fernery_core::artifact::{AzollaId, EventType, SnapshotId, WorkorderId};
use fernery_core::blueprint::Blueprint;
use fernery_core::pipeline::evidence::{Evidence, plain_evidence};
use fernery_engine::door;
use fernery_engine::pipeline::claims::{self, Claimer};
use fernery_engine::pipeline::scheduling::{self, Ids};
use fernery_engine::pipeline::{azollas, gate_input, journal, judging, readiness};
use serde_json::{Value, json};
use std::time::Duration;

fn mec() -> AzollaId {
    AzollaId::stored("mec")
}

fn claimer(owner: &str) -> Claimer {
    Claimer { owner_id: owner.into(), ttl: Duration::from_secs(60) }
}

/// Where the workorders of [`register`] are claimed.
pub(crate) const STREAM: &str = "diazotroph:TEXT_DIAZOTROPH";

/// An azolla under the name of the default one, whose executors write text: they need no repository.
pub(crate) const TEXT: &str = "extends = \"mec\"\nazolla_id = \"mec\"\ndiazotroph_type = \"TEXT_DIAZOTROPH\"\n\
                        [executors.TEXT_DIAZOTROPH]\n";

pub(crate) async fn register(server: &TestServer) {
    put_in_force(server, &format!("{TEXT}kind = \"remote\"\n")).await;
}

/// Puts a blueprint in force that extends `mec`.
pub(crate) async fn put_in_force(server: &TestServer, text: &str) {
    let others = |name: &str| (name == "mec").then(|| fernery_core::blueprint::MEC_TOML.to_string());
    let blueprint = Blueprint::parse(text, &others).expect("a blueprint");
    let done = server.engine.substrate().transact(move |sql| azollas::register(sql, &blueprint)).await;
    done.expect("registered");
}

/// A pass of readiness and one of the scheduler.
pub(crate) async fn schedule(server: &TestServer) {
    let substrate = server.engine.substrate();
    substrate.transact(|sql| readiness::emit(sql, &mec(), 100)).await.expect("emitted");
    let taken = substrate
        .transact(|sql| claims::take_events(sql, &mec(), EventType::TicketReady, &claimer("scheduler"), 100))
        .await;
    for (event, held) in taken.expect("claims") {
        let chance = door::Chance::default();
        let ids = Ids { job_id: chance.job_id(), snapshot_id: SnapshotId::stored(&door::artifact_id()) };
        let done = substrate.transact(move |sql| scheduling::schedule(sql, &event, &held, &ids)).await;
        done.expect("scheduled");
    }
}

/// A pass of the gate and one of the sealer.
pub(crate) async fn judge(server: &TestServer) {
    let substrate = server.engine.substrate();
    let taken = substrate.transact(|sql| gate_input::take_executed(sql, &mec(), &claimer("gate"), 100)).await;
    for (id, held) in taken.expect("claims") {
        let id: WorkorderId = id;
        let gate_input = substrate
            .read(move |sql| gate_input::gate_input(sql, &id))
            .await
            .expect("read")
            .expect("a gate_input");
        let evidence: Vec<Evidence> = gate_input
            .blueprint
            .gates
            .iter()
            .map_while(|gate| plain_evidence(gate, &gate_input.bundle, None))
            .collect();
        let done = substrate.transact(move |sql| judging::conclude(sql, &held, &evidence)).await;
        done.expect("judged");
    }
    seal(server).await;
}

/// A pass of the sealer.
pub(crate) async fn seal(server: &TestServer) {
    server.engine.substrate().transact(|sql| journal::seal(sql, 1_000)).await.expect("sealed");
}

/// A result that the membrane lets through.
pub(crate) fn good() -> Value {
    json!({ "title": "done", "content": "the output", "notes": "", "metadata": { "outcome": "OUTPUT" } })
}

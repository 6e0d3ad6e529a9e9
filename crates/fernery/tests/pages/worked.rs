//! Tickets that have been worked on: the pipeline's workers by hand, from an approval to a judged patch.

use crate::pipeline::{put_in_force, seal};
use crate::server::TestServer;
use fernery_core::artifact::{AzollaId, EventType, GateResult, ObjectiveId, SnapshotId, WorkorderId};
use fernery_core::pipeline::evidence::Evidence;
use fernery_core::pipeline::ground::Ground;
use fernery_core::pipeline::landing::Fit;
use fernery_engine::door;
use fernery_engine::pipeline::claims::{self, Claimer};
use fernery_engine::pipeline::landing;
use fernery_engine::pipeline::scheduling::{self, ClaimedEvent, Ids};
use fernery_engine::pipeline::{gate_input, judging, readiness};
use serde_json::{Value, json};
use std::time::Duration;

const STREAM: &str = "diazotroph:PATCH_DIAZOTROPH:app";
pub(crate) const COMMIT: &str = "1111111111111111111111111111111111111111";

fn mec() -> AzollaId {
    AzollaId::stored("mec")
}

fn claimer(owner: &str) -> Claimer {
    Claimer { owner_id: owner.into(), ttl: Duration::from_secs(60) }
}

/// What comes of an attempt.
pub(crate) struct Made<'a> {
    pub(crate) patch: &'a str,
    /// What the last gate says.
    pub(crate) log: &'a str,
    pub(crate) passes: bool,
}

/// An azolla that makes patches, however many wait for a person.
const WITHOUT_LIMIT: &str = "extends = \"mec\"\nazolla_id = \"mec\"\n[limits]\nreview_limit = 0\n";

/// An approved ticket of an azolla that makes patches.
pub(crate) async fn approved(server: &TestServer, id: &str, title: &str) {
    approved_under(server, WITHOUT_LIMIT, id, title).await;
}

/// The same under another blueprint.
pub(crate) async fn approved_under(server: &TestServer, blueprint: &str, id: &str, title: &str) {
    put_in_force(server, blueprint).await;
    let ticket = json!({ "objective_id": id, "azolla_id": "mec", "title": title,
        "acceptance_criteria": "- it says hello", "metadata": { "repo_ref": "app" } });
    let made = server.post("/v1/objectives", &ticket).await;
    assert_eq!(made.status, 201, "{made:?}");
    let digest = server.get(&format!("/v1/objectives/{id}")).await.json()["approval"]["digest"].clone();
    let done = server.post(&format!("/v1/objectives/{id}/approve"), &json!({ "digest": digest })).await;
    assert_eq!(done.status, 200, "{done:?}");
}

/// The workorder of the ticket that waits.
pub(crate) async fn scheduled(server: &TestServer) {
    let substrate = server.engine.substrate();
    substrate.transact(|sql| readiness::emit(sql, &mec(), 100)).await.expect("emitted");
    let by = claimer("scheduler");
    let taken = substrate
        .transact(move |sql| claims::take_events(sql, &mec(), EventType::TicketReady, &by, 100))
        .await;
    let (event, held) = taken.expect("claims").pop().expect("an event");
    let ids = Ids {
        job_id: door::Chance::default().job_id(),
        snapshot_id: SnapshotId::stored(&door::artifact_id()),
    };
    let base = Ok(("main".to_string(), COMMIT.to_string()));
    let ground = Some(Ground { repo_ref: Some("app".into()), base });
    let claimed = [ClaimedEvent { event, held, ids, ground }];
    substrate.transact(move |sql| scheduling::schedule_all(sql, &mec(), &claimed)).await.expect("scheduled");
}

/// Claims a workorder as its executor.
pub(crate) async fn begun(server: &TestServer) -> Value {
    server.claim(STREAM).await
}

/// One attempt at the ticket that waits, up to its verdict: the id of its run.
pub(crate) async fn attempt(server: &TestServer, id: &str, made: Made<'_>) -> String {
    scheduled(server).await;
    let job = begun(server).await;
    handed_in(server, id, &job, made.patch).await;
    judged(server, made).await;
    let ticket = server.get(&format!("/v1/objectives/{id}")).await.json();
    let run = ticket["runs"].as_array().and_then(|runs| runs.last()).expect("a run");
    run["run_id"].as_str().expect("an id").to_string()
}

/// What an executor hands in.
pub(crate) async fn handed_in(server: &TestServer, id: &str, job: &Value, patch: &str) {
    let metadata = json!({ "outcome": "PATCH", "branch_name": format!("azolla/{id}"),
        "pr_description_draft": "Says hello to the world." });
    let result = json!({ "title": "done", "content": patch, "notes": "", "metadata": metadata });
    let report = json!({ "worker_id": "w", "job_id": job["job_id"], "attempt_id": job["attempt_id"],
        "lease_token": job["lease_token"], "result": result });
    let answer = server.work("complete", &report).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// The verdict over what was handed in.
pub(crate) async fn judged(server: &TestServer, made: Made<'_>) {
    let substrate = server.engine.substrate();
    let by = claimer("gate");
    let taken = substrate.transact(move |sql| gate_input::take_executed(sql, &mec(), &by, 100)).await;
    let (of, held) = taken.expect("claims").pop().expect("executed");
    let of: WorkorderId = of;
    let input =
        substrate.read(move |sql| gate_input::gate_input(sql, &of)).await.expect("read").expect("one");
    let last = input.blueprint.gates.len() - 1;
    let found = |(nth, gate): (usize, &fernery_core::blueprint::Gate)| Evidence {
        gate: gate.name().to_string(),
        result: Some(if nth == last && !made.passes { GateResult::Fail } else { GateResult::Pass }),
        log_tail: if nth == last { made.log.to_string() } else { String::new() },
        ..Evidence::default()
    };
    let evidence: Vec<Evidence> = input.blueprint.gates.iter().enumerate().map(found).collect();
    let done = substrate.transact(move |sql| judging::conclude(sql, &held, &evidence)).await;
    done.expect("judged");
    seal(server).await;
}

/// The landing worker has tried the patch on the tip of its base branch.
pub(crate) async fn tried(server: &TestServer, id: &str, fit: Fit, why: Option<&'static str>) {
    let id = ObjectiveId::new(id).expect("an id");
    let substrate = server.engine.substrate();
    let done = substrate.transact(move |sql| {
        let landing = landing::of(sql, &id)?.expect("a landing");
        let files: Vec<String> = why.iter().map(|_| "greet.sh".to_string()).collect();
        let found = landing::Tried { fit: Some(fit), why: why.map(str::to_string), files, moved: false };
        landing::tried(sql, &landing, COMMIT, &found)
    });
    assert!(done.await.expect("written"));
}

/// A patch that changes a script.
pub(crate) const PATCH: &str = "\
diff --git a/greet.sh b/greet.sh
index ce013625030ba8dba906f756967f9e9ca394464a..cc628ccd10742baea8241c5924df992b5c019f71 100644
--- a/greet.sh
+++ b/greet.sh
@@ -1,3 +1,3 @@ main() {
 #!/bin/sh
-echo \"Hello, $1!\"
+echo \"Hello, ${1:-world}!\"
 # end
diff --git a/tests/greet.sh b/tests/greet.sh
deleted file mode 100644
index ce013625030ba8dba906f756967f9e9ca394464a..0000000000000000000000000000000000000000
--- a/tests/greet.sh
+++ /dev/null
@@ -1 +0,0 @@
-sh greet.sh
";

/// A patch that makes a file with these lines.
pub(crate) fn new_file<S: std::fmt::Display>(path: &str, lines: impl ExactSizeIterator<Item = S>) -> String {
    let mut text = format!(
        "diff --git a/{path} b/{path}\nnew file mode 100644\nindex {}..{}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{} @@\n",
        "0".repeat(40),
        "c".repeat(40),
        lines.len()
    );
    lines.for_each(|line| text.push_str(&format!("+{line}\n")));
    text
}

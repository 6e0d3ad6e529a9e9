//! The server killed at every step of rework and of an answer: the same acts again come to the same patch and the same branch
//! as ones that nobody disturbed, on both databases.

use crate::fresh_database::{FreshDatabase, fresh_database};
use crate::program::at_once::at_once;
use crate::program::{Answer, Server, run_in};
use crate::rework::is_done;
use crate::yard::{FLAGS, GATES, blueprint, branches, eventually, git, lay_out};
use serde_json::{Value, json};
use std::path::Path;

/// In their order. What comes before the rework is killed elsewhere.
const STEPS: [&str; 17] = [
    // The answer, before it is durable and before it is told.
    "act-written@2",
    "act-durable@2",
    "event-scheduled@2",
    "candidate-applied@2",
    "agent-cloned@2",
    "agent-captured@2",
    "workorder-handed-in@2",
    "gate-branched",
    // The reopening.
    "act-written@3",
    "act-durable@3",
    "event-scheduled@3",
    "candidate-applied@3",
    "agent-captured@3",
    "gate-passed@2",
    "gate-branched@2",
    "gate-evidence@2",
    "gate-judged@3",
];

fn ticket(dir: &Path) -> Option<Value> {
    let shown = run_in(dir, ["ticket", "show", "t", "--json"]);
    (shown.code == Some(0)).then(|| shown.json())
}

/// Waits until the ticket is so; `None`: the server is dead.
fn comes_to(dir: &Path, is_so: impl Fn(&Value) -> bool) -> Option<Value> {
    let mut seen = None;
    let so = eventually(|| {
        seen = ticket(dir);
        seen.as_ref().is_none_or(&is_so)
    });
    assert!(so, "it never came to it: {seen:?}");
    seen
}

fn runs(seen: &Value) -> usize {
    seen["runs"].as_array().map_or(0, Vec::len)
}

fn went_well(answer: Answer) -> Option<()> {
    (answer.code == Some(0)).then_some(())
}

/// From a ticket to a question, an answer, a patch, a reopening and a second commit. What was done before is not done again.
fn played(dir: &Path) -> Option<Value> {
    let script = "mock: first write one.txt 1\nmock: first ask Which?\nmock: again append two.txt 2";
    let of =
        ["--id", "t", "--azolla", "yard", "--meta", "repo_ref=app", "--title", "Do it", "--criteria", script];
    went_well(run_in(dir, [&["ticket", "new"][..], &of].concat()))?;
    let digest = ticket(dir)?["approval"]["digest"].as_str()?.to_string();
    let act = |act: &str, mut body: Value| -> Option<()> {
        body["record_id"] = json!(format!("the-{act}"));
        body["digest"] = json!(digest);
        let url = std::fs::read_to_string(dir.join(".fernery/url")).ok()?;
        let token = std::fs::read_to_string(dir.join(".fernery/operator.token")).ok()?;
        let path = format!("{}/v1/objectives/t/{act}", url.trim());
        let answer = std::process::Command::new("curl")
            .args(["--silent", "--show-error", "--fail-with-body", "-H", "content-type: application/json"])
            .args([
                "-H",
                &format!("authorization: Bearer {}", token.trim()),
                "--data",
                &body.to_string(),
                &path,
            ])
            .output()
            .expect("curl is installed");
        answer.status.success().then_some(())
    };
    act("approve", json!({}))?;
    let asked = comes_to(dir, |seen| runs(seen) >= 1)?;
    act("answer", json!({"run_id": asked["runs"][0]["run_id"], "answer": "this"}))?;
    comes_to(dir, |seen| runs(seen) >= 2)?;
    act("reopen", json!({"note": "once more"}))?;
    comes_to(dir, |seen| is_done(seen, 3))
}

fn killed_at_every_step(database: &(dyn Fn() -> Option<FreshDatabase> + Sync)) {
    at_once(&STEPS, |step| {
        let dir = lay_out(&blueprint(GATES));
        let database = database();
        let url = database.as_ref().map(FreshDatabase::url);
        let more: Vec<&str> = url.iter().flat_map(|url| ["--database", url]).collect();
        let flags = [&FLAGS[..], &more].concat();
        let server = Server::start_told(dir, &flags, ("FERNERY_FAILPOINT", step));
        played(server.dir.path());
        let (status, dir) = server.ended();
        assert!(!status.success(), "it never came to {step}");
        let server = Server::start_in(dir, &flags);
        let done = played(server.dir.path()).unwrap_or_else(|| panic!("killed at {step}, it does not go on"));
        let repo = server.dir.path().join("repo");
        let outcomes: Vec<&Value> =
            done["output_bundles"].as_array().unwrap().iter().map(|of| &of["metadata"]["outcome"]).collect();
        assert_eq!(outcomes, ["BLOCKED", "PATCH", "PATCH"], "killed at {step}: {done:#}");
        assert_eq!(done["decisions"].as_array().map(Vec::len), Some(3), "killed at {step}");
        assert_eq!(branches(&repo), ["refs/heads/azolla/t"], "killed at {step}");
        assert_eq!(git(&repo, &["show", "azolla/t:two.txt"]), "2\n2", "killed at {step}");
        assert_eq!(git(&repo, &["show", "azolla/t^:two.txt"]), "2", "killed at {step}");
        assert_eq!(git(&repo, &["show", "azolla/t:one.txt"]), "1", "killed at {step}");
        let commits = git(&repo, &["rev-list", "--count", "main..azolla/t"]);
        assert_eq!(commits, "2", "killed at {step}: two attempts passed");
        assert_eq!(server.read("/v1/journal/verify").1["fault"], Value::Null, "killed at {step}");
    });
}

#[test]
fn campaign_killed_at_every_step_of_rework_it_comes_to_the_same_on_sqlite() {
    killed_at_every_step(&|| None);
}

#[test]
fn campaign_killed_at_every_step_of_rework_it_comes_to_the_same_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    killed_at_every_step(&|| Some(runtime.block_on(fresh_database())));
}

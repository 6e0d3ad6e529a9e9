//! Each way in which an agent may behave ends in the right outcome, verdict and pause, and leaves nothing behind.

use crate::yard::{GATES, Yard, blueprint, eventually, git, lay_out, marked};
use serde_json::{Value, json};
use std::fs;

/// What came of a ticket, in short.
fn short(objective: &Value) -> Value {
    let last =
        |list: &str| objective[list].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    json!([
        last("output_bundles")["metadata"]["outcome"],
        last("runs")["gate_result"],
        objective["objective"]["status"],
        last("pauses")["reason"],
    ])
}

#[test]
fn every_behaviour_ends_in_the_right_outcome_verdict_and_pause() {
    let dir = lay_out(&blueprint(GATES));
    // An operator's own profile of the same name wins over the built-in one.
    fs::create_dir(dir.path().join("profiles")).unwrap();
    let profile = include_str!("../../../../profiles/mock.toml")
        .replace("[limits]\n", "[limits]\noutput_bytes = 2_000_000\n");
    fs::write(dir.path().join("profiles/mock.toml"), profile).unwrap();
    let yard = Yard::open_in(dir);
    let before =
        (git(&yard.repo(), &["rev-parse", "HEAD^{tree}"]), git(&yard.repo(), &["status", "--porcelain"]));
    let done = json!(["PATCH", "PASS", "DONE", "RUN_COMPLETE"]);
    let failed = |outcome: &str| json!([outcome, "FAIL", "BLOCKED", "GATE_FAILED"]);
    let spent = json!(["BUDGET", "FAIL", "BLOCKED", "BUDGET_EXHAUSTED"]);
    let ways = [
        ("ok", "yard", "mock: ok", done.clone()),
        ("empty", "yard", "mock: empty", failed("NO_CHANGE")),
        ("no-change", "yard", "mock: no-change it is so already", failed("NO_CHANGE")),
        ("flood", "yard", "mock: flood 16\nmock: hang", failed("PROTOCOL")),
        ("daemon", "yard", "mock: write d.txt d\nmock: daemon", done.clone()),
        ("symlink", "yard", "mock: symlink out /etc/passwd", failed("PATCH")),
        ("huge", "yard", "mock: sparse big.bin 100", failed("PROTOCOL")),
        ("binary", "yard", "mock: binary b.bin", done.clone()),
        ("commits", "yard", "mock: write c.txt c\nmock: commit mine", done.clone()),
        ("no-git", "yard", "mock: write g.txt g\nmock: delete-git", done),
        ("partial", "yard", "mock: write p.txt p\nmock: partial", failed("PROTOCOL")),
        ("crash", "yard", "mock: write x.txt x\nmock: crash", failed("FAILED")),
        ("fails", "yard", "mock: fail it is too hard", failed("FAILED")),
        ("asks", "yard", "mock: ask which one?", failed("BLOCKED")),
        ("hangs", "quick", "mock: write h.txt h\nmock: hang", spent.clone()),
        ("deaf", "quick", "mock: write h.txt h\nmock: deaf", spent),
    ];
    for (id, azolla, script, _) in &ways {
        yard.ticket(azolla, id, script);
    }
    for (id, _, script, wanted) in &ways {
        let objective = yard.judged(id);
        assert_eq!(short(&objective), *wanted, "{id}: {objective:#}");
        let bundle = &objective["output_bundles"][0];
        let said = &bundle["metadata"];
        assert!(
            ["bubblewrap", "landlock"].contains(&said["sandbox"].as_str().unwrap_or("")),
            "{id}: {bundle}"
        );
        // What was changed before it ended badly is not lost.
        if script.contains("write ") {
            assert!(bundle["content"].as_str().unwrap().starts_with("diff --git"), "{id}: {bundle}");
        }
        let actions = objective["pauses"][0]["prioritized_actions"].as_array().unwrap().len();
        assert!((1..=3).contains(&actions), "{id}");
    }
    for id in ["hangs", "deaf"] {
        let bundle = yard.objective(id)["output_bundles"][0].clone();
        let notes = bundle["notes"].as_str().unwrap();
        assert!(
            notes.starts_with("Its budget was spent after ") && notes.contains("Captured: "),
            "{id}: {notes}"
        );
        let ms = bundle["metadata"]["wall_ms"].as_u64().unwrap();
        assert!(ms < 5_000 + 7_000, "{id}: nothing outlives its budget and seven seconds: {ms} ms");
    }
    let said = yard.objective("ok")["output_bundles"][0]["metadata"].clone();
    assert!(
        said["tokens"].as_u64().is_some_and(|tokens| tokens > 0) && said["cost_usd_micros"].is_u64(),
        "{said}"
    );
    let unsaid = yard.objective("crash")["output_bundles"][0]["metadata"].clone();
    assert!(unsaid["tokens"].is_null() && unsaid["cost_usd_micros"].is_null(), "never 0: {unsaid}");
    let huge = yard.objective("huge")["output_bundles"][0].clone();
    let kept = huge["metadata"]["quarantine"].as_str().expect("where it is kept");
    assert_eq!(fs::metadata(format!("{kept}/tree/big.bin")).unwrap().len(), 100 << 20);
    assert!(huge["notes"].as_str().unwrap().contains(kept), "{huge}");
    let trash = yard.server.run(["trash", "list", "--json"]).exits(0).json();
    assert!(trash.to_string().contains("could not be taken"), "{trash}");

    let mut branches = yard.branches();
    branches.sort();
    let passed = ["binary", "commits", "daemon", "no-git", "ok"];
    assert_eq!(branches, passed.map(|id| format!("refs/heads/azolla/{id}")));
    let after =
        (git(&yard.repo(), &["rev-parse", "HEAD^{tree}"]), git(&yard.repo(), &["status", "--porcelain"]));
    assert_eq!(after, before, "the operator's files are as they were");
    git(&yard.repo(), &["fsck", "--strict"]);
    assert_eq!(git(&yard.repo(), &["show", "azolla/commits:c.txt"]), "c");
    let data = yard.server.data().display().to_string();
    assert!(eventually(|| marked(&format!("HOME={data}")).is_empty()), "nothing outlives its run");
    for (id, _, _, _) in &ways {
        let run = yard.objective(id)["runs"][0]["run_id"].as_str().unwrap().to_string();
        yard.server.run(["run", "replay", &run]).exits(0);
    }
}

#[test]
fn a_failed_gate_is_told_to_the_next_attempt_which_passes() {
    let gates = "gates = [{ kind = \"outcome\" }, { kind = \"patch\" }, { kind = \"applies\" }, \
                 { kind = \"command\", name = \"check\", argv = [\"sh\", \"check.sh\"], timeout = \"20s\" }]\n";
    let yard = Yard::open(&blueprint(gates).replace("gate_failures = 0", "gate_failures = 1"));
    yard.ticket("yard", "t", "mock: first write other.txt x\nmock: again write greeting.txt Goodbye");
    let done = yard.until("t", "done", |objective| objective["objective"]["status"] == "DONE");
    let verdicts: Vec<&Value> =
        done["runs"].as_array().unwrap().iter().map(|run| &run["gate_result"]).collect();
    assert_eq!(verdicts, ["FAIL", "PASS"]);
    assert_eq!(git(&yard.repo(), &["show", "azolla/t:greeting.txt"]), "Goodbye");
    assert_eq!(yard.branches(), ["refs/heads/azolla/t"]);
    // Done again after a person had a look: the same branch, one commit further.
    let first = git(&yard.repo(), &["rev-parse", "azolla/t"]);
    yard.server.run(["ticket", "reopen", "t", "--note", "mock: append greeting.txt Again"]).exits(0);
    yard.until("t", "done again", |objective| {
        objective["runs"].as_array().unwrap().len() == 3 && objective["objective"]["status"] == "DONE"
    });
    assert_eq!(git(&yard.repo(), &["rev-parse", "azolla/t^"]), first);
    assert_eq!(yard.branches(), ["refs/heads/azolla/t"]);
}

#[test]
fn preflight_failures_block_a_ticket_before_anything_is_spent() {
    let yard = Yard::open(&blueprint(GATES));
    let mut ticket = crate::yard::new_ticket("yard", "unknown", "mock: ok");
    ticket["metadata"] = json!({"repo_ref": "../repo"});
    let (status, refused) = yard.server.post("operator.token", "/v1/objectives", &ticket);
    assert_eq!((status, &refused["errors"][0]["pointer"]), (422, &json!("/metadata/repo_ref")), "{refused}");
    let (id, why) = ("nowhere", "nowhere names none. This server has: app");
    let mut ticket = crate::yard::new_ticket("yard", id, "mock: ok");
    ticket["metadata"] = json!({});
    yard.post("/v1/objectives", ticket);
    let read = yard.objective(id);
    assert!(read["approval"]["refused"].as_str().unwrap().contains(why), "{read:#}");
    let digest = json!({"digest": read["approval"]["digest"]});
    let (status, refused) = yard.server.post("operator.token", "/v1/objectives/nowhere/approve", &digest);
    assert_eq!((status, &refused["code"]), (409, &json!("no_repository")), "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains(why), "{refused}");
    assert_eq!(yard.objective(id)["objective"]["status"], "NEW");
    yard.server.run(["ticket", "edit", id, "--meta", "repo_ref=app"]).exits(0);
    assert_eq!(yard.objective(id)["approval"].get("refused"), None, "what it says leads on");
    git(&yard.repo(), &["checkout", "-q", "-b", "other"]);
    git(&yard.repo(), &["branch", "-D", "main"]);
    yard.ticket("yard", "no-base", "mock: ok");
    let blocked = yard.until("no-base", "blocked", |objective| objective["objective"]["status"] == "BLOCKED");
    assert!(
        blocked["objective"]["blocked_reason"].as_str().unwrap().contains("no branch main"),
        "{blocked:#}"
    );
    git(&yard.repo(), &["branch", "main", "other"]);
    yard.server.run(["ticket", "unblock", "no-base", "--all"]).exits(0);
    yard.until("no-base", "done", |objective| objective["objective"]["status"] == "DONE");
}

#[test]
fn an_agent_that_cannot_begin_costs_no_attempt() {
    let once = format!("{}[envelope]\nattempts = 1\n", blueprint(GATES).replace("\"mock\"", "\"goose\""));
    let yard = Yard::open(&once);
    yard.ticket("yard", "t", "It is done");
    for n in 1..=2 {
        let blocked = yard.until("t", "blocked", |objective| {
            objective["runs"].as_array().is_some_and(|runs| runs.len() == n)
                && objective["objective"]["status"] == "BLOCKED"
        });
        let said = &blocked["output_bundles"][n - 1]["metadata"];
        assert_eq!(said["outcome"], "INFRA", "{blocked:#}");
        // It is not installed, or was never logged in.
        assert!(["program", "login"].contains(&said["preflight"].as_str().unwrap()), "{said}");
        assert_eq!(blocked["spent"]["attempts"], 0, "{blocked:#}");
        let said = blocked["output_bundles"][n - 1]["notes"].as_str().unwrap();
        let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
        assert!(shown.contains(&format!("could not be executed: {said}\n")), "{shown}");
        yard.server.run(["ticket", "unblock", "t", "--all"]).exits(0);
    }
}

#[test]
fn an_agent_whose_patch_is_judged_after_a_command_is_refused_at_the_start() {
    let gates = "gates = [{ kind = \"patch\" }, { kind = \"command\", name = \"c\", argv = [\"true\"] }, { kind = \"applies\" }]\n";
    let dir = lay_out(&blueprint(gates));
    let mut command = crate::program::fernery();
    command.current_dir(dir.path()).args(["up", "--listen", "127.0.0.1:0", "--azolla", "yard.toml"]);
    let answer = command.output().unwrap();
    let said = String::from_utf8_lossy(&answer.stderr);
    assert!(!answer.status.success() && said.contains("put the gate `patch` first"), "{said}");
}

//! A patch that rewrites its own judge: the version of the base decides, and both verdicts are told.

use crate::kills::{is_stopped, kill};
use crate::program::Server;
use crate::yard::{Yard, blueprint, eventually, git, lay_out, marks, new_ticket};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

const BEFORE: &str =
    "gates = [{ kind = \"patch\" }, { kind = \"applies\" }, { kind = \"command\", timeout = \"20s\", ";

/// The evidence of the command over the last run.
fn found(objective: &Value) -> Value {
    objective["runs"].as_array().unwrap().last().unwrap()["evidence"][2].clone()
}

fn ticket(yard: &Yard, azolla: &str, id: &str, script: &str, allow: Value) {
    let mut new = new_ticket(azolla, id, script);
    if !allow.is_null() {
        new["metadata"]["allow"] = allow;
    }
    yard.post("/v1/objectives", new);
    yard.approve(id);
}

#[test]
fn a_patch_cannot_rewrite_the_program_of_its_gate() {
    // The script is in the command itself.
    let named = "name = \"check\", argv = [\"sh\", \"./check.sh\"], protects = [\"tests/\"] }]\n";
    let dir = lay_out(&blueprint(&format!("{BEFORE}{named}")));
    let makes = format!(
        "extends = \"yard\"\nazolla_id = \"makes\"\n{BEFORE}name = \"tests\", argv = [\"make\", \"test\"] }}]\n"
    );
    fs::write(dir.path().join("makes.toml"), makes).unwrap();
    let repo = dir.path().join("repo");
    fs::write(repo.join("Makefile"), "test:\n\tsh check.sh\n").unwrap();
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "make"]);
    let yard = Yard::open_in_with(dir, &["--azolla", "makes.toml"]);
    let right = "mock: replace greeting.txt Hello => Goodbye\n";
    let (cheat, none) = ("mock: write check.sh exit 0\\n", Value::Null);
    // Each with: verdict, whose version decided, and the verdict of the patch's own version.
    let ways = [
        ("cheat", "yard", cheat.to_string(), none.clone(), ["FAIL", "base", "PASS"]),
        ("deletes", "yard", "mock: delete check.sh".into(), none.clone(), ["FAIL", "base", "FAIL"]),
        ("allowed", "yard", cheat.to_string(), json!(["check.sh"]), ["PASS", "patch", ""]),
        ("honest", "yard", format!("{right}{cheat}"), none.clone(), ["PASS", "base", "PASS"]),
        (
            "worse",
            "yard",
            format!("{right}mock: write check.sh exit 3\\n"),
            none.clone(),
            ["PASS", "base", "FAIL"],
        ),
        ("plain", "yard", right.into(), none.clone(), ["PASS", "", ""]),
        (
            "make",
            "makes",
            "mock: write Makefile test:\\n\\ttrue\\n".into(),
            none.clone(),
            ["FAIL", "base", "PASS"],
        ),
        (
            "gnu",
            "makes",
            "mock: write GNUmakefile test:\\n\\ttrue\\n".into(),
            none.clone(),
            ["FAIL", "base", "PASS"],
        ),
        (
            "folder",
            "makes",
            "mock: delete Makefile\nmock: write Makefile/x x".into(),
            none,
            ["FAIL", "base", "FAIL"],
        ),
    ];
    for (id, azolla, script, allow, _) in &ways {
        ticket(&yard, azolla, id, script, allow.clone());
    }
    for (id, _, _, _, [verdict, decided_by, patched]) in &ways {
        let objective = yard.judged(id);
        let run = &objective["runs"][0];
        let found = found(&objective);
        let word = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let protected = &found["protected"];
        let seen = [
            word(&run["gate_result"]),
            word(&protected["decided_by"]),
            word(&protected["patched"]["result"]),
        ];
        assert_eq!(seen, [*verdict, *decided_by, *patched], "{id}: {objective:#}");
        assert_eq!(found["result"], *verdict, "{id}");
        let reason = run["gate_reason"].as_str().unwrap();
        let says_so = reason.contains("with the base's");
        assert_eq!(says_so, (*verdict, *decided_by) == ("FAIL", "base"), "{id}: {reason}");
        yard.server.run(["run", "replay", run["run_id"].as_str().unwrap()]).exits(0);
    }
    let cheat = found(&yard.objective("cheat"));
    assert_eq!((&cheat["exit"], &cheat["protected"]["patched"]["exit"]), (&json!(1), &json!(0)));
    assert_eq!(cheat["protected"]["kept"], json!(["check.sh"]));
    assert_eq!(cheat["protected"]["allowed"], json!([]));
    let shown = yard.server.run(["run", "show", "cheat"]).exits(0).stdout;
    for line in [
        "the patch changes protected files of this gate: check.sh",
        "the gate used the base's version",
        "for information, the result with the patch's version: PASS exit 0",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let shown = yard.server.run(["ticket", "show", "allowed"]).exits(0).stdout;
    assert!(
        shown.contains("the ticket allows these files, so the patch's version counts: check.sh"),
        "{shown}"
    );
    assert_eq!(git(&yard.repo(), &["show", "azolla/honest:check.sh"]), "exit 0", "the patch is whole");
    ends_elsewhere(&yard);
}

/// What was exported is taken elsewhere, and its verdicts are the same there.
fn ends_elsewhere(yard: &Yard) {
    yard.server.run(["export", "out"]).exits(0);
    let elsewhere = tempfile::tempdir().unwrap();
    for file in ["yard.toml", "makes.toml"] {
        fs::copy(yard.server.dir.path().join(file), elsewhere.path().join(file)).unwrap();
    }
    let flags = ["--azolla", "yard.toml", "--azolla", "makes.toml", "--repos"];
    let repo = format!("app={}#main", yard.repo().display());
    let other = Server::start_in(elsewhere, &[&flags[..], &[repo.as_str()]].concat());
    let out = yard.server.dir.path().join("out");
    other.run(["import", out.to_str().unwrap()]).exits(0);
    other.run(["run", "replay", "--all"]).exits(0);
    let shown = other.run(["run", "show", "cheat"]).exits(0).stdout;
    assert!(shown.contains("for information, the result with the patch's version: PASS"), "{shown}");
}

#[test]
fn a_server_that_dies_in_the_second_run_judges_again_and_has_both_verdicts() {
    let named = "name = \"check\", argv = [\"sh\", \"check.sh\"], protects = [\"check.sh\"] }]\n";
    // The programs: of the agent, of the run that decides, of the run that informs. That one takes long enough to be found.
    let yard = Yard::open_to_hold(&blueprint(&format!("{BEFORE}{named}")), "program-started@3");
    yard.ticket(
        "yard",
        "t",
        "mock: replace greeting.txt Hello => Goodbye\nmock: write check.sh sleep 3; exit 3\\n",
    );
    let (server, data) = (yard.server.pid(), yard.server.data());
    assert!(eventually(|| is_stopped(server)), "it never came there");
    // The server is stopped as soon as the guard has its order; the program comes a moment later.
    assert!(eventually(|| !marks(&data).is_empty()), "the second run never began");
    let alive = marks(&data);
    kill(server as i32, Signal::KILL);
    let yard = Yard::open_in(yard.server.ended().1);
    assert!(!marks(&data).iter().any(|mark| alive.contains(mark)), "nothing of it lives on");
    let done = yard.until("t", "done", |objective| objective["objective"]["status"] == "DONE");
    assert_eq!(done["runs"].as_array().unwrap().len(), 1);
    let found = found(&done);
    assert_eq!(
        (&found["result"], &found["protected"]["patched"]["exit"]),
        (&json!("PASS"), &json!(3)),
        "{found:#}"
    );
}

#[test]
fn the_approval_names_what_the_gates_rely_on_and_what_the_ticket_allows() {
    let named = "name = \"check\", argv = [\"sh\", \"check.sh\"], protects = [\"check.sh\", \"ci/\"] }]\n";
    let yard = Yard::open(&blueprint(&format!("{BEFORE}{named}")));
    let new = |id: &str, allow: &str| {
        let args =
            ["ticket", "new", "--azolla", "yard", "--id", id, "--title", "Do it", "--meta", "repo_ref=app"];
        yard.server.run(args.iter().copied().chain(["--meta", allow]))
    };
    new("t", "allow=ci/").exits(0);
    let shown = yard.server.run(["ticket", "approve", "t", "--yes"]).exits(0).stdout;
    for line in [
        "protected   check: check.sh, ci/\n",
        "the gate uses the base's version",
        "except what this ticket allows: ci/\n",
        "check: sh check.sh (20 s, protects check.sh ci/)\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let refused = new("u", "allow:=[\"/etc\"]").exits(2).stderr;
    assert!(refused.contains("metadata.allow: `/etc` is no pattern"), "{refused}");
}

#[test]
fn the_next_attempt_is_told_that_the_version_of_the_base_decided() {
    let named = "name = \"check\", argv = [\"sh\", \"check.sh\"], protects = [\"check.sh\"] }]\n";
    let blueprint = blueprint(&format!("{BEFORE}{named}")).replace("gate_failures = 0", "gate_failures = 9");
    let yard = Yard::open(&blueprint);
    yard.ticket("yard", "t", "mock: write check.sh exit 0\\n");
    // The same patch again: the ticket stops, although eight retries are left.
    let stopped = yard.until("t", "stopped", |objective| objective["objective"]["status"] == "BLOCKED");
    assert_eq!(stopped["runs"].as_array().unwrap().len(), 2, "{stopped:#}");
    let prompt = stopped["context_snapshots"][1]["full_prompt_text"].as_str().unwrap();
    assert!(prompt.contains("judged with the base's check.sh"), "{prompt}");
    let blocker = stopped["objective"]["blocked_on"][0]["description"].as_str().unwrap();
    assert!(blocker.contains("the same patch as the one before"), "{blocker}");
    let last = stopped["pauses"].as_array().unwrap().last().unwrap();
    assert_eq!(last["reason"], "GATE_FAILED");
    assert_eq!(last["prioritized_actions"].as_array().unwrap().len(), 1, "{last:#}");
}

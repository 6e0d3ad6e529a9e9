//! Every way that a run can take, with programs as executors and gates.

use crate::program::Server;
use crate::shop::{Shop, blueprint, eventually};
use fernery_engine::door::stop_watch;
use serde_json::{Value, json};
use std::time::Duration;

const HELLO: &str = "cat >in.json; echo hello";

/// The blueprint's lists are replaced whole: these are all gates.
fn gates(argv: &str) -> String {
    format!(
        "gates = [{{ kind = \"outcome\" }}, {{ kind = \"command\", name = \"check\", argv = {argv}, timeout = \"10s\", sandbox = \"none\" }}]\n"
    )
}

fn last<'a>(objective: &'a Value, list: &str) -> &'a Value {
    objective[list].as_array().and_then(|list| list.last()).unwrap_or(&Value::Null)
}

#[test]
fn a_program_executes_and_a_program_judges() {
    let shop = Shop::open(&blueprint(HELLO, &gates("[\"/bin/grep\", \"-q\", \"hello\", \"content\"]")), &[]);
    shop.ticket("t");
    let done = shop.until_status("t", "DONE");
    assert_eq!(last(&done, "output_bundles")["content"], "hello\n");
    let run = last(&done, "runs");
    assert_eq!(run["gate_result"], "PASS");
    assert_eq!(run["evidence"][1]["exit"], 0);
    assert_eq!(run["evidence"][1]["command"][0], "/bin/grep");
    assert_eq!(last(&done, "pauses")["reason"], "RUN_COMPLETE");
    let id = run["run_id"].as_str().unwrap();
    assert_eq!(shop.get(&format!("/v1/runs/{id}/replay"))["same"], true);
    assert_eq!(shop.get("/v1/journal/verify")["fault"], Value::Null);
}

#[test]
fn a_program_that_writes_a_bundle_hands_that_in() {
    let script = r#"printf '{"title":"A title","content":"c","metadata":{"tokens":7}}'"#;
    let shop = Shop::open(&blueprint(script, ""), &[]);
    shop.ticket("t");
    let done = shop.until_status("t", "DONE");
    let bundle = last(&done, "output_bundles");
    assert_eq!((&bundle["title"], &bundle["metadata"]["tokens"]), (&json!("A title"), &json!(7)));
    assert_eq!(done["spent"]["tokens"], 7);
}

#[test]
fn a_failed_gate_is_told_to_the_next_attempt_and_then_to_a_person() {
    let script = "cat >/dev/null; echo no";
    let more = format!(
        "{}[retry]\ngate_failures = 1\n",
        gates("[\"/bin/sh\", \"-c\", \"echo it is wrong; exit 3\"]")
    );
    let shop = Shop::open(&blueprint(script, &more), &[]);
    shop.ticket("t");
    let blocked = shop.until_status("t", "BLOCKED");
    assert_eq!(blocked["runs"].as_array().unwrap().len(), 2);
    let prompt = last(&blocked, "context_snapshots")["full_prompt_text"].as_str().unwrap();
    assert!(prompt.contains("it is wrong"), "{prompt}");
    assert_eq!(last(&blocked, "runs")["evidence"][1]["exit"], 3);
    assert_eq!(last(&blocked, "pauses")["reason"], "GATE_FAILED");
    assert_eq!(blocked["objective"]["blocked_on"][0]["resolved"], false);
}

#[test]
fn a_gate_that_cannot_run_blocks_in_its_own_words_and_judges_nothing() {
    let more = format!("{}[retry]\ninfrastructure = 2\n", gates("[\"/no/such/program\"]"));
    let shop = Shop::open(&blueprint(HELLO, &more), &[]);
    shop.ticket("t");
    let blocked = shop.until_status("t", "BLOCKED");
    let run = last(&blocked, "runs");
    assert!(run["gate_reason"].as_str().unwrap().starts_with("not judged"), "{run}");
    assert_eq!(run["evidence"][1]["result"], Value::Null);
    assert_eq!(blocked["objective"]["blocked_on"][0]["kind"], "ENVIRONMENT_ACCESS");
}

#[test]
fn a_budget_ends_the_program_and_its_children_and_keeps_what_there_is() {
    let script = "echo so far; sleep 600 & echo $! >&2; sleep 600";
    let shop = Shop::open(&blueprint(script, "[budget]\nworkorder = \"2s\"\n"), &[]);
    shop.ticket("t");
    let blocked = shop.until_status("t", "BLOCKED");
    let bundle = last(&blocked, "output_bundles");
    assert_eq!(bundle["metadata"]["outcome"], "BUDGET");
    assert_eq!(bundle["content"], "so far\n");
    assert_eq!(last(&blocked, "pauses")["reason"], "BUDGET_EXHAUSTED");
    let notes = bundle["notes"].as_str().unwrap();
    assert!(notes.starts_with("Its budget was spent after "), "{notes}");
    assert!(notes.contains("Captured: 7 bytes that it had written"), "{notes}");
    let child: i32 = notes.lines().last().unwrap().parse().unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{child}")).exists(), "a child outlived the budget");
}

#[test]
fn a_cancelled_run_ends_soon_and_leaves_its_bundle_and_its_pause() {
    // With a lease as long as it is by default.
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let flag = folder.path().join("has-said-it");
    let script = format!("echo working; touch {}; sleep 600", flag.display());
    crate::shop::write(dir.path(), &blueprint(&script, ""));
    let shop = Shop { server: Server::start_in(dir, &["--azolla", "shop.toml"]) };
    shop.ticket("t");
    assert!(eventually(|| flag.exists()), "it never started");
    let since = stop_watch();
    let (status, body) = shop.post("/v1/objectives/t/cancel", json!({}));
    assert_eq!(status, 200, "{body}");
    let ended =
        shop.until("t", "its run record", |objective| !objective["runs"].as_array().unwrap().is_empty());
    // A heartbeat of the default lease comes after 20 s: whoever waited for it would not be here yet.
    assert!(since.elapsed() < Duration::from_secs(18), "{:?}", since.elapsed());
    assert_eq!(ended["objective"]["status"], "BLOCKED");
    assert_eq!(ended["objective"]["blocked_reason"], "cancelled");
    assert_eq!(last(&ended, "output_bundles")["metadata"]["outcome"], "CANCELLED");
    assert_eq!(last(&ended, "output_bundles")["content"], "working\n");
}

#[test]
fn a_server_that_ends_in_order_hands_its_run_back() {
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("second");
    // The first time it waits, the second time it is done.
    let script = format!("if [ -e {0} ]; then echo done; else touch {0}; sleep 600; fi", flag.display());
    let shop = Shop::open(&blueprint(&script, ""), &[]);
    shop.ticket("t");
    assert!(eventually(|| flag.exists()), "it never started");
    shop.server.signal(rustix::process::Signal::TERM);
    let (status, dir) = shop.server.ended();
    assert_eq!(status.code(), Some(0));
    let shop = Shop::open_in(dir, &blueprint(&script, ""), &[]);
    let done = shop.until_status("t", "DONE");
    assert_eq!(done["workorders"].as_array().unwrap().len(), 1, "the same workorder, not a second one");
    let id = done["workorders"][0]["work_order_id"].as_str().unwrap();
    let outcomes: Vec<_> = shop.get(&format!("/v1/jobs/{id}"))["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| attempt["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["RELEASED", "SUCCEEDED"]);
}

#[test]
fn a_worker_elsewhere_takes_the_same_road() {
    let shop = Shop::open(crate::shop::REMOTE, &[]);
    shop.ticket("t");
    let claim = json!({"worker_id": "w", "streams": ["diazotroph:TEXT_DIAZOTROPH"], "max_wait_ms": 20_000});
    let (status, held) = shop.server.post("worker.token", "/internal/worker/claim", &claim);
    assert_eq!((status, &held["claimed"]), (200, &json!(true)), "{held}");
    assert_eq!(held["payload"]["workorder"]["objective_id"], "t");
    let claims = shop.get("/v1/claims");
    assert_eq!(claims["claims"][0]["resource_type"], "WORKORDER");
    let mut report = json!({"worker_id": "w", "result": {"title": "no content"}});
    for field in ["job_id", "attempt_id", "lease_token", "stream", "message_id"] {
        report[field] = held[field].clone();
    }
    let (status, refused) = shop.server.post("worker.token", "/internal/worker/complete", &report);
    assert_eq!(
        (status, &refused["code"], &refused["ack"]),
        (422, &json!("unfit_output"), &json!(false)),
        "{refused}"
    );
    report["result"] = json!({"title": "t", "content": "c", "notes": "", "metadata": {"outcome": "OUTPUT"}});
    let (status, accepted) = shop.server.post("worker.token", "/internal/worker/complete", &report);
    assert_eq!(status, 200, "{accepted}");
    shop.until_status("t", "DONE");
}

#[test]
fn a_blueprint_that_does_not_fit_is_told_before_anything_is_served() {
    let dir = tempfile::tempdir().unwrap();
    for (blueprint, said) in [
        ("azolla_id = 1", "azolla_id"),
        ("extends = \"mec\"\nazolla_id = \"shop\"\n[limits]\nconurrency = 1\n", "concurrency"),
        (&blueprint(HELLO, "").replace("sandbox = \"none\"\n", "sandbox = \"docker\"\n"), "sandbox"),
    ] {
        crate::shop::write(dir.path(), blueprint);
        let answer =
            crate::program::run_in(dir.path(), ["up", "--listen", "127.0.0.1:0", "--azolla", "shop.toml"]);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains(said), "{answer:?}");
    }
}

#[test]
fn a_patch_passes_where_it_may_go_and_says_what_it_may_not_touch() {
    let script = "cat >/dev/null; mkdir t; cd t; git init -q .; mkdir -p .github; echo x >a; echo x >.github/w; git add $WHAT; \
                  git diff --cached --binary --full-index --no-renames";
    let more = "gates = [{ kind = \"outcome\" }, { kind = \"patch\" }]\n[retry]\ngate_failures = 0\n";
    for (what, status, reason) in [("a", "DONE", "every gate passed"), ("-A", "BLOCKED", "is protected")] {
        let shop = Shop::open(&blueprint(&format!("WHAT={what}; {script}"), more), &[]);
        shop.ticket("t");
        let ended = shop.until_status("t", status);
        let run = last(&ended, "runs");
        assert!(run["gate_reason"].as_str().unwrap().contains(reason), "{run}");
        let id = run["run_id"].as_str().unwrap();
        assert_eq!(shop.get(&format!("/v1/runs/{id}/replay"))["same"], true);
    }
}

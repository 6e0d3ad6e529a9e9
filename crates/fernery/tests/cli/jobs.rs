//! Jobs from the command line, from enqueue to their end, against a real server.

use crate::program::Server;
use serde_json::json;

fn enqueue(server: &Server, args: &[&str]) -> String {
    let answer = server.run(["job", "enqueue"].iter().chain(args)).exits(0);
    answer.stdout.trim().to_string()
}

#[test]
fn a_job_is_followed_from_enqueue_to_its_end() {
    let server = Server::start(&[]);
    let id = enqueue(&server, &["--stream", "build", "--payload", r#"{"n":10000000000000000000000.10}"#]);
    assert_eq!(server.run(["job", "show", &id, "--json"]).exits(0).json()["status"], "QUEUED");
    let shown = server.run(["job", "show", &id, "--json"]).exits(0).stdout;
    assert!(shown.contains(r#"{"n":10000000000000000000000.10}"#), "no digit is lost: {shown}");
    let why = server.run(["job", "explain", &id]).exits(0).stdout;
    assert!(why.contains("no worker polls stream build"), "{why}");

    let claimed = server.claim("build").expect("it can be claimed");
    assert_eq!(claimed["job_id"], id.as_str());
    let why = server.run(["job", "explain", &id]).exits(0).stdout;
    assert!(why.contains("worker w1 holds it"), "{why}");
    let requested = server.run(["job", "cancel", &id]).exits(0).stdout;
    assert!(requested.contains("next heartbeat"), "{requested}");
    assert_eq!(server.run(["job", "retry", &id]).exits(4).stdout, "");
    let body = json!({
        "worker_id": "w1", "job_id": id, "attempt_id": claimed["attempt_id"],
        "lease_token": claimed["lease_token"], "stream": "build", "message_id": claimed["message_id"],
        "result": {"ok": true},
    });
    assert_eq!(server.post("worker.token", "/internal/worker/complete", &body).0, 200);

    let table = server.run(["job", "show", &id]).exits(0).stdout;
    assert!(
        table.contains("SUCCEEDED") && table.contains(r#"{"ok":true}"#) && table.contains("w1"),
        "{table}"
    );
    assert!(!table.contains('\u{1b}'), "no colour where nobody looks");
    let list = server.run(["job", "list", "--status", "succeeded"]).exits(0).stdout;
    assert!(list.contains(&id), "{list}");
    let conflict = server.run(["job", "cancel", &id, "--json"]).exits(4);
    assert_eq!(conflict.json()["status"], 409);
    assert_eq!(conflict.stderr, "");
}

#[test]
fn all_jobs_that_match_are_counted_asked_for_and_followed() {
    let server = Server::start(&[]);
    for stream in ["s", "s", "s", "t"] {
        enqueue(&server, &["--stream", stream]);
    }
    let cancel = ["job", "bulk", "cancel", "--status", "queued", "--stream", "s"];
    let with = |flag| cancel.into_iter().chain([flag]);
    assert_eq!(server.run(with("--dry-run")).exits(0).stdout, "3 jobs would be cancelled\n");
    let unasked = server.run(cancel).exits(2);
    assert!(unasked.stderr.contains("3 jobs") && unasked.stderr.contains("pass --yes"), "{unasked:?}");
    assert_eq!(server.run(with("--dry-run").chain(["--json"])).exits(0).json()["matching"], 3);
    let done = server.run(with("--yes")).exits(0);
    assert_eq!(done.stdout, "3 jobs cancelled\n");
    assert!(done.stderr.contains("to stop it: fernery job bulk stop "), "{done:?}");
    let acts = server.run(["job", "bulk", "list", "--json"]).exits(0).json();
    assert_eq!((acts["acts"].as_array().unwrap().len(), &acts["acts"][0]["done"]), (1, &json!(3)));
    let id = acts["acts"][0]["act_id"].as_str().unwrap().to_string();
    let shown = server.run(["job", "bulk", "show", &id]).exits(0).stdout;
    assert!(shown.contains("DONE") && shown.contains("cancel all QUEUED jobs of the stream s"), "{shown}");
    let stopped = server.run(["job", "bulk", "stop", &id]).exits(0).stdout;
    assert!(stopped.contains("it had ended before"), "{stopped}");
    let retry = ["job", "bulk", "retry", "--status", "CANCELLED", "--yes", "--json"];
    assert_eq!(server.run(retry).exits(0).json()["done"], 3);
    server.run(["job", "bulk", "show", "nobody"]).exits(3);
    let wrong = server.run(["job", "bulk", "cancel", "--status", "DEAD", "--yes"]);
    assert!(wrong.code != Some(0) && wrong.stderr.contains("not DEAD"), "{wrong:?}");
}

#[test]
fn missing_jobs_exit_with_three() {
    let server = Server::start(&[]);
    let id = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";
    for args in [
        &["job", "show", id][..],
        &["job", "explain", id],
        &["job", "cancel", id],
        &["job", "retry", id],
        &["stream", "pause", "nowhere"],
        &["token", "revoke", "nobody"],
    ] {
        let answer = server.run(args).exits(3);
        assert_eq!((answer.stdout.as_str(), answer.stderr.lines().count()), ("", 1), "{answer:?}");
        let answer = server.run(args.iter().chain(&["--json"])).exits(3);
        assert_eq!(answer.json()["status"], 404, "{answer:?}");
    }
}

#[test]
fn payloads_come_from_flags_files_and_pipes() {
    let server = Server::start(&[]);
    std::fs::write(server.dir.path().join("p.json"), "\u{feff}{\"from\":\"file\"}\n").unwrap();
    let by_file = enqueue(&server, &["--stream", "s", "--payload-file", "p.json"]);
    let piped = server.run_with_stdin(&["job", "enqueue", "--stream", "s"], "{\"from\":\"pipe\"}").exits(0);
    let dashed = server
        .run_with_stdin(&["job", "enqueue", "--stream", "s", "--payload-file", "-"], "{\"from\":\"dash\"}");
    let nothing = enqueue(&server, &["--stream", "s"]);
    for (id, payload) in [
        (by_file.as_str(), json!({"from": "file"})),
        (piped.stdout.trim(), json!({"from": "pipe"})),
        (dashed.exits(0).stdout.trim(), json!({"from": "dash"})),
        (nothing.as_str(), json!({})),
    ] {
        assert_eq!(server.run(["job", "show", id, "--json"]).exits(0).json()["payload"], payload);
    }
}

#[test]
fn a_job_is_shaped_by_its_flags() {
    let server = Server::start(&[]);
    let own = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";
    let args = [
        "--priority",
        "high",
        "--id",
        own,
        "--unique-key",
        "k",
        "--max-attempts",
        "2",
        "--timeout",
        "2m",
        "--delay",
        "1h",
    ];
    assert_eq!(enqueue(&server, &args), own);
    let job = server.run(["job", "show", own, "--json"]).exits(0).json();
    assert_eq!(job["stream"], "jobs:stream:high");
    assert_eq!(
        (&job["max_attempts"], &job["timeout_seconds"], &job["unique_key"]),
        (&json!(2), &json!(120), &json!("k"))
    );
    assert!(job["run_at"].as_str() > job["created_at"].as_str());
    let why = server.run(["job", "explain", own]).exits(0).stdout;
    assert!(why.contains("scheduled for"), "{why}");

    let again = server.run(["job", "enqueue", "--stream", "s", "--unique-key", "k"]).exits(0);
    assert_eq!((again.stdout.trim(), again.stderr.trim()), (own, "it already existed"));
    let other = server.run(["job", "enqueue", "--stream", "s", "--id", own]).exits(4);
    assert!(other.stderr.starts_with("error: "), "{other:?}");
    server.run(["job", "enqueue", "--stream", "diazotroph:PATCH"]).exits(2);
    server.run(["job", "cancel", own]).exits(0);
    server.run(["job", "retry", own]).exits(0);
}

#[test]
fn waiting_tells_how_it_ended() {
    let server = Server::start(&[]);
    let late = server.run(["job", "enqueue", "--stream", "s", "--wait", "50ms"]).exits(1);
    assert!(late.stderr.contains("has not ended") && late.stderr.contains("fernery job explain"), "{late:?}");
    let late = server.run(["job", "enqueue", "--stream", "s", "--wait", "50ms", "--json"]).exits(1);
    assert_eq!(late.json()["status"], "QUEUED");

    let waiting = std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| server.run(["job", "enqueue", "--stream", "w", "--wait", "60s", "--json"]));
        let body = json!({"worker_id": "w1", "streams": ["w"], "max_wait_ms": 30000});
        let (_, claimed) = server.post("worker.token", "/internal/worker/claim", &body);
        server.bury(&claimed, "E_NO");
        waiting.join().unwrap()
    });
    let dead = waiting.exits(1).json();
    assert_eq!((&dead["status"], &dead["error"]["code"]), (&json!("DEAD"), &json!("E_NO")));
}

#[test]
fn many_jobs_come_from_lines_and_lists_go_on_over_pages() {
    let server = Server::start(&[]);
    let mut lines = String::new();
    for i in 0..2_500 {
        lines.push_str(&format!("{{\"payload\":{{\"i\":{i}}},\"unique_key\":\"k{i}\"}}\n"));
        if i % 1_000 == 0 {
            lines.push('\n');
        }
    }
    std::fs::write(server.dir.path().join("jobs.jsonl"), &lines).unwrap();
    let sent =
        server.run(["job", "enqueue", "--stream", "bulk", "--jsonl", "jobs.jsonl", "--json"]).exits(0).json();
    assert_eq!((&sent["created"], &sent["there_before"]), (&json!(2500), &json!(0)));
    let again =
        server.run_with_stdin(&["job", "enqueue", "--stream", "bulk", "--jsonl", "-"], &lines).exits(0);
    assert_eq!(again.stdout, "0 created, 2500 already existed\n");

    let all = server.run(["job", "list", "--stream", "bulk", "--all", "--json"]).exits(0).json();
    assert_eq!((all["jobs"].as_array().unwrap().len(), &all["next_cursor"]), (2500, &json!(null)));
    let some = server
        .run(["job", "list", "--stream", "bulk", "--status", "QUEUED", "--limit", "700", "--json"])
        .exits(0)
        .json();
    assert_eq!(some["jobs"].as_array().unwrap().len(), 700);
    let next = some["next_cursor"].as_str().unwrap();
    let rest = server
        .run(["job", "list", "--stream", "bulk", "--status", "QUEUED", "--all", "--cursor", next, "--json"]);
    assert_eq!(rest.exits(0).json()["jobs"].as_array().unwrap().len(), 1800);
    let table = server.run(["job", "list", "--stream", "bulk"]).exits(0);
    assert_eq!((table.stdout.lines().count(), table.stderr.trim()), (51, "there are more; --all lists all"));
    let empty = server.run(["job", "list", "--stream", "empty", "--json"]).exits(0).json();
    assert_eq!(empty["jobs"], json!([]));

    let id = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";
    let clash = format!(
        "{{\"payload\":{{\"a\":1}},\"job_id\":\"{id}\"}}\n{{\"payload\":{{\"a\":2}},\"job_id\":\"{id}\"}}\n"
    );
    let clash = server.run_with_stdin(&["job", "enqueue", "--stream", "c", "--jsonl", "-"], &clash).exits(4);
    assert!(
        clash.stdout.starts_with("1 created")
            && clash.stderr.contains("1 line not stored, because another job has the id or key: 2"),
        "{clash:?}"
    );
}

#[test]
fn dead_jobs_are_listed_redriven_and_purged() {
    let server = Server::start(&[]);
    for code in ["E_A", "E_A", "E_B"] {
        let id = enqueue(&server, &["--stream", "d"]);
        let claimed = server.claim("d").unwrap();
        assert_eq!(claimed["job_id"], id.as_str());
        server.bury(&claimed, code);
    }
    let list = server.run(["dlq", "list"]).exits(0).stdout;
    assert_eq!((list.lines().count(), list.contains("not_retryable")), (4, true), "{list}");
    let listed = server.run(["dlq", "list", "--code", "E_B", "--json"]).exits(0).json();
    assert_eq!(listed["dead_letters"].as_array().unwrap().len(), 1);
    let id = listed["dead_letters"][0]["job_id"].as_str().unwrap();
    let explained = server.run(["job", "explain", id]).exits(0).stdout;
    assert!(
        explained.contains("E_B: ") && explained.contains(&format!("fernery dlq redrive {id}\n")),
        "{explained}"
    );
    let counted = server.run(["dlq", "redrive", "--code", "E_A", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(counted["matched"], 2);
    assert_eq!(server.run(["dlq", "redrive", "--code", "E_A"]).exits(0).stdout, "2 dead jobs queued again\n");
    assert_eq!(server.run(["dlq", "redrive", id]).exits(0).stdout, "1 dead job queued again\n");
    server.bury(&server.claim("d").unwrap(), "E_C");
    assert_eq!(server.run(["dlq", "purge", "--dry-run"]).exits(0).stdout, "1 dead job would be deleted\n");
    assert_eq!(server.run(["dlq", "purge", "--yes"]).exits(0).stdout, "1 dead job deleted\n");
    assert_eq!(server.run(["dlq", "list", "--json"]).exits(0).json()["dead_letters"], json!([]));
}

#[test]
fn streams_are_paused_and_resumed() {
    let server = Server::start(&[]);
    let id = enqueue(&server, &["--stream", "a/b:c"]);
    server.run(["stream", "pause", "a/b:c"]).exits(0);
    assert_eq!(server.claim("a/b:c"), None);
    assert!(server.run(["job", "explain", &id]).exits(0).stdout.contains("is paused"));
    let list = server.run(["stream", "list"]).exits(0).stdout;
    assert!(list.lines().nth(1).is_some_and(|l| l.contains("a/b:c") && l.ends_with("paused")), "{list}");
    server.run(["stream", "resume", "a/b:c"]).exits(0);
    assert!(server.claim("a/b:c").is_some());
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let server = Server::start(&[]);
    let args = [
        "token",
        "new",
        "--role",
        "worker",
        "--name",
        "ci",
        "--streams",
        "build,deploy:*",
        "--expires",
        "30d",
        "--json",
    ];
    let made = server.run(args).exits(0).json();
    assert_eq!(made["info"]["streams"], json!(["build", "deploy:*"]));
    assert!(made["info"]["expires_at"].is_string());
    let secret = made["token"].as_str().unwrap();
    let id = made["info"]["token_id"].as_str().unwrap();
    let list = server.run(["token", "list"]).exits(0).stdout;
    assert!(list.contains(id) && list.contains("build,deploy:*") && !list.contains(secret), "{list}");
    server.run(["token", "revoke", id]).exits(0);
    let list = server.run(["token", "list", "--json"]).exits(0).json();
    let row = list["tokens"].as_array().unwrap().iter().find(|t| t["token_id"] == id).unwrap();
    assert!(row["revoked_at"].is_string());
    let refused = server.run(["token", "new", "--role", "viewer", "--streams", "a"]).exits(2);
    assert!(refused.stderr.contains("--streams"), "{refused:?}");
    // Only the secret goes to stdout.
    let plain = server.run(["token", "new", "--role", "producer"]).exits(0);
    assert_eq!(plain.stdout.lines().count(), 1);
    assert!(plain.stdout.starts_with("fern_"), "{plain:?}");
}

#[test]
fn the_list_of_streams_is_followed_to_its_end() {
    let server = Server::start(&[]);
    let jobs: Vec<_> = (0..600).map(|n| json!({ "stream": format!("s{n:03}"), "payload": {} })).collect();
    assert_eq!(server.post("operator.token", "/v1/jobs", &json!(jobs)).0, 201);
    let listed = server.run(["stream", "list", "--json"]).exits(0).json();
    assert_eq!(listed["streams"].as_array().map(Vec::len), Some(600));
    assert_eq!(listed["next_cursor"], serde_json::Value::Null);
    let table = server.run(["stream", "list"]).exits(0).stdout;
    assert_eq!(table.lines().count(), 601, "a head and a line each");
    assert!(table.starts_with("STREAM") && table.contains("\ns599 "), "{table}");
}

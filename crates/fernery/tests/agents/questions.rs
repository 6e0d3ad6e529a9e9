//! An agent asks, a person answers in one command, and the next attempt has both; on both databases.

use crate::fresh_database::fresh_database;
use crate::rework::is_done;
use crate::yard::{GATES, Yard, blueprint, lay_out};
use serde_json::{Value, json};

fn answered(more: &[&str]) {
    let yard = Yard::open_in_with(lay_out(&blueprint(GATES)), more);
    let script =
        "mock: first write half.txt 1\nmock: first ask Which colour?\nmock: again write colour.txt red";
    yard.ticket("yard", "t", script);
    yard.server.run(["ticket", "answer", "t", "red", "--yes"]).exits(4);
    let asked = yard.until("t", "asked", |objective| objective["objective"]["status"] == "BLOCKED");
    assert_eq!(asked["objective"]["blocked_on"][0]["description"], "Which colour?", "{asked:#}");
    let action = asked["pauses"][0]["prioritized_actions"][0].as_str().unwrap();
    assert!(action.contains("fernery ticket answer t"), "{action}");
    let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
    assert!(shown.contains("question:\n  │ Which colour?\n"), "{shown}");
    // Unblocked, the next agent would start without an answer: the question is shown, and nothing happens without a yes.
    for how in [&["ticket", "unblock", "t"][..], &["ticket", "unblock", "t", "--all"]] {
        let refused = yard.server.run(how.iter().copied()).exits(4).stderr;
        assert!(
            refused.contains("Which colour?") && refused.contains("fernery ticket answer t"),
            "{refused}"
        );
    }
    assert_eq!(yard.objective("t")["objective"]["status"], "BLOCKED");
    // Nobody can be asked here, and nothing is answered by nothing.
    yard.server.run(["ticket", "answer", "t", "red"]).exits(2);
    yard.server.run(["ticket", "answer", "t", " ", "--yes"]).exits(2);
    let said = yard.server.run(["ticket", "answer", "t", "red, as always", "--yes"]).exits(0).stdout;
    for part in
        ["title", "question:\n  │ Which colour?", "answer:\n  │ red, as always", "t is answered and TODO"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let done = yard.until("t", "done", |objective| is_done(objective, 2));
    let told = done["context_snapshots"][1]["full_prompt_text"].as_str().unwrap();
    assert!(
        told.contains(
            "one\n```text\nWhich colour?\n```\n\n## Answer of the operator\n```text\nred, as always\n```"
        ),
        "{told}"
    );
    assert!(!told.contains("failed") && told.contains("half.txt (new, +1 −0)"), "{told}");
    let patch = done["output_bundles"][1]["content"].as_str().unwrap();
    assert!(
        patch.contains("b/half.txt") && patch.contains("b/colour.txt"),
        "it went on from what was there: {patch}"
    );
    let decision = &done["decisions"][1];
    assert_eq!((&decision["kind"], &decision["note"]), (&json!("ANSWER"), &json!("red, as always")));
    assert_eq!(decision["shown"]["answered"]["question"], "Which colour?");
    assert_ne!(decision["digest"], done["decisions"][0]["digest"], "it covers the answer too");
    let again = yard.server.run(["ticket", "answer", "t", "blue", "--yes"]).exits(4);
    assert!(again.stderr.contains("t is DONE and has no open question"), "{again:?}");
    let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
    assert!(shown.contains("answered the question"), "{shown}");
}

#[test]
fn a_question_is_answered_in_one_command_on_sqlite() {
    answered(&[]);
}

#[test]
fn a_question_is_answered_in_one_command_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(fresh_database());
    answered(&["--database", &database.url()]);
}

#[test]
fn a_question_may_be_left_without_an_answer_by_who_says_so() {
    let yard = Yard::open(&blueprint(GATES));
    yard.ticket("yard", "t", "mock: first ask Which?\nmock: again ok");
    yard.until("t", "asked", |objective| objective["objective"]["status"] == "BLOCKED");
    yard.server.run(["ticket", "unblock", "t", "--yes"]).exits(0);
    yard.until("t", "done", |objective| is_done(objective, 2));
}

#[test]
fn an_answer_is_refused_where_it_answers_nothing() {
    let yard = Yard::open(&blueprint(GATES));
    let send = |id: &str, body: Value| {
        let (status, answer) =
            yard.server.post("operator.token", &format!("/v1/objectives/{id}/answer"), &body);
        (status, answer["code"].as_str().unwrap_or_default().to_string(), answer["detail"].to_string())
    };
    let digest = |id: &str| yard.objective(id)["approval"]["digest"].clone();
    yard.ticket("yard", "plain", "mock: ok");
    yard.until("plain", "done", |objective| is_done(objective, 1));
    let run = |id: &str| yard.objective(id)["runs"].as_array().unwrap().last().unwrap()["run_id"].clone();
    let body = json!({"digest": digest("plain"), "run_id": run("plain"), "answer": "yes"});
    let (status, code, detail) = send("plain", body.clone());
    assert_eq!((status, code.as_str()), (409, "conflict"));
    assert!(detail.contains("plain asks nothing: its last run"), "{detail}");
    assert_eq!(send("nobody", body).0, 404);
    yard.ticket("yard", "t", "mock: first ask Which?\nmock: again ok");
    yard.until("t", "asked", |objective| objective["objective"]["status"] == "BLOCKED");
    let asked = run("t");
    let body = |digest: &Value, answer: &str, record: &str| json!({"digest": digest, "run_id": asked, "answer": answer, "record_id": record});
    let now = digest("t");
    assert_eq!(send("t", body(&now, " \n", "r-1")).0, 422);
    assert_eq!(
        send("t", json!({"digest": now, "run_id": run("plain"), "answer": "a"})).0,
        409,
        "of another run"
    );
    // What was read is not what is there.
    yard.server.run(["ticket", "edit", "t", "--title", "Do it well"]).exits(0);
    let (status, code, _) = send("t", body(&now, "this", "r-1"));
    assert_eq!((status, code.as_str()), (409, "changed"));
    let now = digest("t");
    let (status, ..) = send("t", body(&now, "this", "r-1"));
    assert_eq!(status, 200);
    assert_eq!(send("t", body(&now, "this", "r-1")).0, 200, "the same again is the same record");
    assert_eq!(send("t", body(&now, "that", "r-1")).0, 409, "its id is taken");
    let (status, _, detail) = send("t", body(&now, "that", "r-2"));
    assert!(
        status == 409 && detail.contains("the question of t was answered already, by operator"),
        "{detail}"
    );
    let done = yard.until("t", "done", |objective| objective["objective"]["status"] == "DONE");
    assert_eq!(done["decisions"].as_array().map(Vec::len), Some(2), "{done:#}");
}

#[test]
fn an_agent_without_a_protocol_asks_by_a_line_of_its_output() {
    let script =
        "cat >/dev/null; echo I looked.; echo '**QUESTION:** which file?'; echo; echo Tokens: 3k sent";
    let of = blueprint(GATES).replace(
        "profile = \"mock\"",
        &format!("profile = \"command\"\nargs = [\"sh\", \"-c\", {}]", json!(script)),
    );
    let yard = Yard::open(&of);
    yard.ticket("yard", "t", "It is done");
    let asked = yard.until("t", "asked", |objective| objective["objective"]["status"] == "BLOCKED");
    assert_eq!(asked["objective"]["blocked_on"][0]["description"], "which file?", "{asked:#}");
    assert_eq!(asked["output_bundles"][0]["metadata"]["question"], "which file?");
}

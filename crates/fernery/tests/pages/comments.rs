//! Comments on a run's patch, files that were viewed and the last look: over the API and on the page.

use crate::browser::{signed_in, unescaped, words};
use crate::server::{Answer, TestServer};
use crate::worked::{Made, PATCH, approved, attempt, new_file};
use fernery_core::limits;
use serde_json::{Value, json};

crate::on_both_backends!(
    a_comment_is_made_edited_and_deleted_by_its_author_alone,
    a_request_that_comes_again_makes_one_comment_and_brings_none_back,
    what_cannot_be_a_comment_is_refused_in_words,
    comments_become_the_note_of_the_next_attempt_and_the_journal_says_so,
    a_comment_that_comes_while_a_ticket_is_reopened_is_never_lost,
    two_reviewers_at_once_never_pass_the_limit,
    a_file_is_viewed_until_an_attempt_changes_it_otherwise,
    a_reviewer_is_shown_what_changed_since_the_last_look,
    a_person_comments_views_and_reopens_without_script,
);

const MADE: Made<'static> = Made { patch: PATCH, log: "ok", passes: true };

async fn judged(server: &TestServer) -> String {
    approved(server, "WEB-1", "Greet the world").await;
    attempt(server, "WEB-1", MADE).await
}

async fn ask(server: &TestServer, token: &str, method: &str, path: &str, body: &Value) -> Answer {
    server.call(token, method, path, &body.to_string()).await
}

async fn comments(server: &TestServer, run: &str) -> Value {
    server.get(&format!("/v1/runs/{run}/comments")).await.json()
}

fn on_line_2(text: &str) -> Value {
    json!({ "file": "greet.sh", "first_line": 2, "text": text })
}

async fn reopening(server: &TestServer, note: &str, comments: &Value) -> Value {
    let digest = server.get("/v1/objectives/WEB-1").await.json()["approval"]["digest"].clone();
    json!({ "digest": digest, "note": note, "comments": comments })
}

async fn a_comment_is_made_edited_and_deleted_by_its_author_alone(server: TestServer) {
    let run = judged(&server).await;
    let path = format!("/v1/runs/{run}/comments");
    let made = server
        .post(
            &path,
            &json!({ "file": "greet.sh", "side": "old", "first_line": 1, "last_line": 2,
        "text": "Keep <b>this</b>", "comment_id": "c-1" }),
        )
        .await;
    assert_eq!(made.status, 200, "{made:?}");
    let of = made.json();
    assert_eq!((&of["side"], &of["last_line"], &of["own"]), (&json!("old"), &json!(2), &json!(true)), "{of}");
    let (other, viewer) = (server.token("operator").await, server.token("viewer").await);
    let seen = ask(&server, &viewer, "GET", &path, &Value::Null).await.json();
    assert_eq!(
        (&seen["comments"][0]["text"], &seen["comments"][0]["own"]),
        (&json!("Keep <b>this</b>"), &json!(false))
    );
    for (method, body) in [("PATCH", json!({ "text": "mine" })), ("DELETE", Value::Null)] {
        let refused = ask(&server, &other, method, "/v1/comments/c-1", &body).await;
        assert_eq!((refused.status, refused.code().as_str()), (409, "conflict"), "{refused:?}");
        assert!(refused.body.contains("only its author can"), "{refused:?}");
        assert_eq!(ask(&server, &viewer, method, "/v1/comments/c-1", &body).await.status, 403);
        assert_eq!(ask(&server, &other, method, "/v1/comments/none", &body).await.status, 404);
    }
    let before = seen["digest"].clone();
    let edited =
        ask(&server, &server.operator, "PATCH", "/v1/comments/c-1", &json!({ "text": "Keep it" })).await;
    assert_eq!((edited.status, &edited.json()["text"]), (200, &json!("Keep it")));
    assert_ne!(comments(&server, &run).await["digest"], before);
    // Deleting it twice is deleting it once.
    for _ in 0..2 {
        assert_eq!(
            ask(&server, &server.operator, "DELETE", "/v1/comments/c-1", &Value::Null).await.status,
            200
        );
    }
    assert_eq!(comments(&server, &run).await["comments"], json!([]));
    server.stop().await;
}

async fn a_request_that_comes_again_makes_one_comment_and_brings_none_back(server: TestServer) {
    let run = judged(&server).await;
    let (path, mut body) = (format!("/v1/runs/{run}/comments"), on_line_2("Why?"));
    body["comment_id"] = json!("c-1");
    let first = server.post(&path, &body).await;
    // As if the answer had been lost.
    for _ in 0..2 {
        let repeated = ask(&server, &server.operator, "POST", &path, &body).await;
        assert_eq!((repeated.status, repeated.json()), (200, first.json()), "{repeated:?}");
    }
    assert_eq!(comments(&server, &run).await["comments"].as_array().map(Vec::len), Some(1));
    let mut else_ = on_line_2("Something else");
    else_["comment_id"] = json!("c-1");
    assert_eq!(server.post(&path, &else_).await.code(), "conflict");
    let edit = json!({ "text": "Why so?", "record_id": "e-1" });
    for _ in 0..2 {
        let edited = ask(&server, &server.operator, "PATCH", "/v1/comments/c-1", &edit).await;
        assert_eq!(edited.json()["text"], "Why so?", "{edited:?}");
    }
    assert_eq!(server.post(&path, &body).await.json()["text"], "Why so?", "what is there now");
    ask(&server, &server.operator, "DELETE", "/v1/comments/c-1", &Value::Null).await;
    let late = server.post(&path, &body).await;
    assert_eq!(late.status, 409, "{late:?}");
    assert!(late.body.contains("comment c-1 was deleted"), "{late:?}");
    assert_eq!(comments(&server, &run).await["comments"], json!([]));
    let entries = server.get("/v1/journal?limit=100").await.json()["entries"].clone();
    let mut acts: Vec<&str> = entries
        .as_array()
        .expect("entries")
        .iter()
        .filter(|entry| entry["subject"] == json!(run))
        .filter_map(|entry| entry["act"].as_str())
        .collect();
    // Entries of one millisecond stand in any order.
    acts.sort_unstable();
    assert_eq!(acts, ["comment", "deleted_comment", "edited_comment"], "each once");
    server.stop().await;
}

async fn what_cannot_be_a_comment_is_refused_in_words(server: TestServer) {
    let run = judged(&server).await;
    let path = format!("/v1/runs/{run}/comments");
    let long = "x".repeat(limits::COMMENT_BYTES_MAX + 1);
    for (body, said) in [
        (json!({ "file": "none", "first_line": 1, "text": "x" }), "the patch does not change `none`"),
        (json!({ "file": "greet.sh", "first_line": 9, "text": "x" }), "it shows 1 to 3"),
        (json!({ "file": "greet.sh", "first_line": 0, "text": "x" }), "it shows 1 to 3"),
        (json!({ "file": "greet.sh", "first_line": 3, "last_line": 2, "text": "x" }), "is before the first"),
        (
            json!({ "file": "greet.sh", "first_line": 1, "last_line": u64::MAX, "text": "x" }),
            "at most 1000 lines",
        ),
        (json!({ "file": "tests/greet.sh", "first_line": 1, "text": "x" }), "shows no lines"),
        (json!({ "file": "greet.sh", "side": "left", "first_line": 1, "text": "x" }), "side"),
        (on_line_2(" "), "a comment needs a text"),
        (on_line_2("a\0b"), "no NUL"),
        (on_line_2(&long), "at most 4096 bytes"),
    ] {
        let refused = server.post(&path, &body).await;
        assert!((400..500).contains(&refused.status) && refused.body.contains(said), "{said}: {refused:?}");
    }
    assert_eq!(server.post("/v1/runs/none/comments", &on_line_2("x")).await.status, 404);
    assert_eq!(server.get("/v1/runs/none/review").await.status, 404);
    let viewed =
        server.post(&format!("/v1/runs/{run}/viewed"), &json!({ "file": "none", "viewed": true })).await;
    assert!(viewed.body.contains("the patch does not change `none`"), "{viewed:?}");
    assert_eq!(comments(&server, &run).await["comments"], json!([]), "nothing was written");
    server.stop().await;
}

async fn comments_become_the_note_of_the_next_attempt_and_the_journal_says_so(server: TestServer) {
    let run = judged(&server).await;
    server.post(&format!("/v1/runs/{run}/comments"), &on_line_2("Say \"world\" in upper case.")).await;
    let list = comments(&server, &run).await;
    assert_eq!(
        list["note"],
        "Comments on the last patch:\n\ngreet.sh, line 2:\n> echo \"Hello, ${1:-world}!\"\nSay \"world\" in upper case.\n"
    );
    let read = json!({ "run_id": run, "digest": list["digest"] });
    let mut body = reopening(&server, list["note"].as_str().unwrap(), &read).await;
    body["record_id"] = json!("r-1");
    for _ in 0..2 {
        let done = server.post("/v1/objectives/WEB-1/reopen", &body).await;
        assert_eq!((done.status, &done.json()["decision"]["note"]), (200, &list["note"]), "{done:?}");
    }
    let entries = server.get("/v1/journal?limit=100").await.json()["entries"].clone();
    let reopened: Vec<&Value> =
        entries.as_array().unwrap().iter().filter(|entry| entry["act"] == "reopen").collect();
    assert_eq!(reopened.len(), 1);
    assert_eq!((&reopened[0]["why"]["comments"], &reopened[0]["why"]["comments_told"]), (&read, &json!(1)));
    server.stop().await;
}

async fn a_comment_that_comes_while_a_ticket_is_reopened_is_never_lost(server: TestServer) {
    let run = judged(&server).await;
    let path = format!("/v1/runs/{run}/comments");
    server.post(&path, &on_line_2("First.")).await;
    let list = comments(&server, &run).await;
    let read = json!({ "run_id": run, "digest": list["digest"] });
    let reopen = reopening(&server, list["note"].as_str().unwrap(), &read).await;
    // Many at once: either the comment was there and the reopening is refused, or it comes too late and is refused itself.
    let other = server.token("operator").await;
    let late = on_line_2("Second.");
    let (reopened, commented) = tokio::join!(
        server.post("/v1/objectives/WEB-1/reopen", &reopen),
        ask(&server, &other, "POST", &path, &late),
    );
    match (reopened.status, commented.status) {
        (200, 409) => assert!(commented.body.contains("has been told already"), "{commented:?}"),
        (409, 200) => assert!(reopened.body.contains("changed after they were read"), "{reopened:?}"),
        both => panic!("{both:?}: {reopened:?} {commented:?}"),
    }
    // In both orders, one after the other.
    if reopened.status == 409 {
        let list = comments(&server, &run).await;
        let read = json!({ "run_id": run, "digest": list["digest"] });
        let note = list["note"].as_str().unwrap();
        assert!(note.contains("First.") && note.contains("Second."), "{note}");
        let again = reopening(&server, note, &read).await;
        assert_eq!(server.post("/v1/objectives/WEB-1/reopen", &again).await.status, 200);
    }
    let late = server.post(&path, &on_line_2("Third.")).await;
    assert!(late.status == 409 && late.body.contains("has been told already"), "{late:?}");
    let of = comments(&server, &run).await["comments"][0]["comment_id"].as_str().unwrap().to_string();
    let frozen = ask(&server, &server.operator, "DELETE", &format!("/v1/comments/{of}"), &Value::Null).await;
    assert_eq!(frozen.status, 409, "what was told stays as it was told: {frozen:?}");
    let next = attempt(&server, "WEB-1", MADE).await;
    let old = server.post(&path, &on_line_2("Fourth.")).await;
    assert!(old.body.contains(&format!("comment on run {next}")), "{old:?}");
    // A note of comments on another ticket's run is none.
    let stray = json!({ "run_id": "none", "digest": list["digest"] });
    let stray = server.post("/v1/objectives/WEB-1/reopen", &reopening(&server, "x", &stray).await).await;
    assert_eq!(stray.status, 409, "{stray:?}");
    server.stop().await;
}

async fn two_reviewers_at_once_never_pass_the_limit(server: TestServer) {
    let run = judged(&server).await;
    let path = format!("/v1/runs/{run}/comments");
    let most = usize::try_from(limits::COMMENTS_MAX).unwrap();
    for _ in 0..most - 1 {
        assert_eq!(server.post(&path, &on_line_2("x")).await.status, 200);
    }
    let other = server.token("operator").await;
    let body = on_line_2("the last");
    let (a, b) = tokio::join!(server.post(&path, &body), ask(&server, &other, "POST", &path, &body));
    let mut statuses = [a.status, b.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{a:?} {b:?}");
    assert!(a.body.contains("500 comments, which is the most") || b.body.contains("which is the most"));
    assert_eq!(comments(&server, &run).await["comments"].as_array().map(Vec::len), Some(most));
    server.stop().await;
}

async fn review(server: &TestServer, token: &str, run: &str) -> Value {
    ask(server, token, "GET", &format!("/v1/runs/{run}/review"), &Value::Null).await.json()
}

async fn reopen(server: &TestServer) {
    let mut body = reopening(server, "once more", &Value::Null).await;
    body.as_object_mut().unwrap().remove("comments");
    let done = server.post("/v1/objectives/WEB-1/reopen", &body).await;
    assert_eq!(done.status, 200, "{done:?}");
}

async fn a_file_is_viewed_until_an_attempt_changes_it_otherwise(server: TestServer) {
    let run = judged(&server).await;
    let other = server.token("operator").await;
    let say = async |run: &str, file: &str, viewed: bool| {
        let done =
            server.post(&format!("/v1/runs/{run}/viewed"), &json!({ "file": file, "viewed": viewed })).await;
        assert_eq!(done.status, 200, "{done:?}");
    };
    for _ in 0..2 {
        say(&run, "greet.sh", true).await;
    }
    say(&run, "tests/greet.sh", true).await;
    let seen = review(&server, &server.operator, &run).await;
    assert_eq!((&seen["viewed"], &seen["files"]), (&json!(["greet.sh", "tests/greet.sh"]), &json!(2)));
    assert_eq!(review(&server, &other, &run).await["viewed"], json!([]), "each reviewer for themselves");
    reopen(&server).await;
    // The object ids stay as they were: the executor writes them, and they prove nothing.
    let changed = PATCH.replace("${1:-world}", "${1:-moon}");
    let second = attempt(&server, "WEB-1", Made { patch: &changed, ..MADE }).await;
    let seen = review(&server, &server.operator, &second).await;
    assert_eq!(seen["viewed"], json!(["tests/greet.sh"]), "{seen}");
    say(&second, "tests/greet.sh", false).await;
    assert_eq!(review(&server, &server.operator, &second).await["viewed"], json!([]));
    server.stop().await;
}

async fn a_reviewer_is_shown_what_changed_since_the_last_look(server: TestServer) {
    let first = judged(&server).await;
    let other = server.token("operator").await;
    let look = async |token: &str, run: &str| {
        ask(&server, token, "POST", &format!("/v1/runs/{run}/looked"), &json!({})).await.json()
    };
    assert_eq!(review(&server, &server.operator, &first).await["looked"], false);
    assert_eq!(look(&server.operator, &first).await["looked"], true);
    reopen(&server).await;
    let second = attempt(&server, "WEB-1", MADE).await;
    reopen(&server).await;
    let third = attempt(&server, "WEB-1", MADE).await;
    let of_first = server.get(&format!("/v1/runs/{first}")).await.json()["work_order_id"].clone();
    assert_eq!(review(&server, &server.operator, &third).await["since"], of_first, "before the look");
    for _ in 0..2 {
        let looked = look(&server.operator, &third).await;
        assert_eq!((&looked["looked"], &looked["since"]), (&json!(true), &of_first), "and after it");
    }
    // Going back changes nothing; another reviewer has not looked at all.
    look(&server.operator, &second).await;
    assert_eq!(review(&server, &server.operator, &third).await["since"], of_first);
    let others = review(&server, &other, &third).await;
    assert_eq!((&others["looked"], &others["since"]), (&json!(false), &Value::Null));
    server.stop().await;
}

async fn a_person_comments_views_and_reopens_without_script(server: TestServer) {
    let run = judged(&server).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let path = format!("/review/{run}");
    let page = browser.get(&site, &path).await;
    assert!(words(&page.body).contains("0 of 2 viewed"), "{}", words(&page.body));
    assert_eq!(review(&server, &server.operator, &run).await["looked"], true, "who sees the page has looked");
    // The script stands second: what deletes a test comes first.
    assert!(
        page.body.contains(&format!("href=\"{path}?file=1&#38;comment=yes#comment-form\"")),
        "{}",
        page.body
    );
    let with_form = browser.get(&site, &format!("{path}?file=1&comment=yes")).await;
    let action = format!("{path}/comment?file=1");
    let hostile = "<script>alert(1)</script>\u{202e}";
    let wrong = browser.submit(&site, &with_form, &action, &[("first_line", "70"), ("text", hostile)]).await;
    assert!(wrong.status == 400 || wrong.status == 422, "{wrong:?}");
    assert!(
        words(&wrong.body).contains("it shows 1 to 3") && wrong.body.contains("&#60;script&#62;"),
        "{}",
        wrong.body
    );
    for _ in 0..2 {
        let typed = [("first_line", "1"), ("last_line", "2"), ("text", hostile)];
        let done = browser.submit(&site, &with_form, &action, &typed).await;
        assert_eq!(done.status, 303, "{done:?}");
        assert!(done.headers["location"].starts_with(&format!("{path}#comment-")), "{done:?}");
    }
    let list = comments(&server, &run).await;
    assert_eq!(list["comments"].as_array().map(Vec::len), Some(1), "a form that is sent twice acts once");
    let id = list["comments"][0]["comment_id"].as_str().unwrap();
    let view = format!("{path}/viewed?file=0");
    for view_of in ["", "?view=split"] {
        let page = browser.get(&site, &format!("{path}{view_of}")).await;
        assert!(
            page.body.contains(&format!("id=\"comment-{id}\"")) && page.body.contains("lines 1 to 2"),
            "{}",
            page.body
        );
        assert!(!page.body.contains("<script>") && !page.body.contains('\u{202e}'), "{}", page.body);
    }
    let page = browser.get(&site, &path).await;
    assert_eq!(browser.submit(&site, &page, &view, &[]).await.headers["location"], format!("{path}#file-0"));
    let page = browser.get(&site, &path).await;
    assert!(words(&page.body).contains("1 of 2 viewed"), "{}", words(&page.body));
    assert!(
        page.body.contains("id=\"file-0\" data-row>") && page.body.contains("id=\"file-1\" data-row open>")
    );
    let editing = browser.get(&site, &format!("{path}?edit={id}")).await;
    let edited =
        browser.submit(&site, &editing, &format!("{path}/comment-edit"), &[("text", "Shout.")]).await;
    assert_eq!(edited.status, 303, "{edited:?}");

    // The note is there before it is sent. Somebody else comments meanwhile: it is refused, and says what the comments say now.
    let page = browser.get(&site, &path).await;
    let note = unescaped(
        page.body
            .split("<textarea id=\"reopen-note\"")
            .nth(1)
            .unwrap()
            .split_once('>')
            .unwrap()
            .1
            .split("</textarea>")
            .next()
            .unwrap(),
    );
    assert!(note.contains("greet.sh, lines 1 to 2:\n> #!/bin/sh\n") && note.contains("Shout."), "{note}");
    let other = server.token("operator").await;
    ask(&server, &other, "POST", &format!("/v1/runs/{run}/comments"), &on_line_2("And quietly.")).await;
    let reopen = format!("{path}/reopen");
    let refused = browser.submit(&site, &page, &reopen, &[("note", &note)]).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("What the comments say now") && refused.body.contains("And quietly."));
    let done = browser.submit(&site, &refused, &reopen, &[("note", &note)]).await;
    assert_eq!((done.status, done.headers["location"].as_str()), (303, "/ticket/WEB-1"), "{done:?}");
    let after = browser.get(&site, &path).await;
    assert!(
        words(&after.body).contains("This run cannot be commented on any more"),
        "{}",
        words(&after.body)
    );
    // The next attempt is compared with what this person saw.
    let second = attempt(&server, "WEB-1", MADE).await;
    let page = words(&browser.get(&site, &format!("/review/{second}")).await.body);
    assert!(page.contains("You looked at attempt 1 before."), "{page}");
    server.stop().await;
}

#[tokio::test]
async fn twenty_two_thousand_rows_with_five_hundred_comments_are_bounded() {
    let server = TestServer::start().await;
    approved(&server, "WEB-1", "Rewrite it").await;
    let line = |n: usize| format!("    let value_{n} = call({n}, \"{}\");", n * 7);
    let patch: String = (0..11)
        .map(|file| new_file(&format!("src/f{file}.rs"), (0..2_000).map(|n| line(file * n))))
        .collect();
    let run = attempt(&server, "WEB-1", Made { patch: &patch, ..MADE }).await;
    for n in 0..500 {
        let body = json!({ "file": format!("src/f{}.rs", n % 11), "first_line": n + 1, "text": "Why is this here?" });
        assert_eq!(server.post(&format!("/v1/runs/{run}/comments"), &body).await.status, 200);
    }
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    for view in ["", "?view=split"] {
        let page = browser.get(&site, &format!("/review/{run}{view}")).await;
        assert_eq!(
            page.body.matches("call(").count(),
            22_000 + 500,
            "every row, and the line that each comment of the note quotes"
        );
        assert_eq!(page.body.matches("<tr class=c id=").count(), 500);
        assert!(page.body.len() < 4 << 20, "{}", page.body.len());
    }
    server.stop().await;
}

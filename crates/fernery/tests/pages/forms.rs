//! Every form of the pages: what is refused, or fails, says why and keeps what was typed; and every button shows the same from
//! elsewhere. A new form has its line in [`FORMS`].

use crate::browser::{Browser, Site, form, holds, signed_in, unescaped, words};
use crate::inbox::{triaged, workers};
use crate::server::{Answer, TestServer};
use crate::worked::{Made, PATCH, approved, attempt};
use fernery::http::pages::{PAGES, Page, Sees};
use http::Method;
use serde_json::{Value, json};
use std::num::NonZeroU32;

crate::on_both_backends!(
    a_form_that_is_refused_says_why_and_keeps_what_was_typed,
    a_form_for_what_is_not_there_keeps_what_was_typed,
    a_form_that_meets_a_stopped_store_keeps_what_was_typed_and_is_sent_again,
    what_was_ticked_and_typed_comes_back_as_it_was,
    a_comment_that_is_refused_is_not_lost,
);

/// What a form is, and how it is refused.
enum Kind {
    /// Somebody types into these fields. It is sent after these calls of the API, which make it impossible, or has what is refused.
    Typed {
        fields: &'static [(&'static str, &'static str)],
        meanwhile: &'static [(&'static str, &'static str)],
    },
    /// Nothing is typed.
    Button,
    /// Another test looks at it.
    Apart,
}

const CANCEL: &[(&str, &str)] = &[("/v1/objectives/{id}/cancel", "{}")];
const DONE: &[(&str, &str)] = &[("/v1/objectives/{id}/done", "{}")];
const DISCARD: &[(&str, &str)] = &[("/v1/candidates/{id}/discard", "{}")];
/// A text that is found again, and does nothing.
const TEXT: &str = "kept <b>\"words\" & 'more'";
const LINES: &str = "the first line\n\n  <i>the third</i>";

const fn typed(fields: &'static [(&'static str, &'static str)]) -> Kind {
    Kind::Typed { fields, meanwhile: &[] }
}

const fn after(
    meanwhile: &'static [(&'static str, &'static str)],
    fields: &'static [(&'static str, &'static str)],
) -> Kind {
    Kind::Typed { fields, meanwhile }
}

/// Every page that takes a form.
const FORMS: &[(&str, Kind)] = &[
    ("/sign-in", Kind::Apart),
    ("/open/{link}", Kind::Apart),
    ("/again", Kind::Apart),
    ("/sign-out", Kind::Button),
    ("/orient", Kind::Button),
    ("/capture", typed(&[("raw_content", LINES), ("act_id", "no id")])),
    (
        "/new-ticket",
        typed(&[
            ("title", TEXT),
            ("acceptance_criteria", LINES),
            ("azolla_id", "gone"),
            ("importance", "4"),
            ("urgency", "2"),
        ]),
    ),
    (
        "/ticket/{id}/edit",
        after(DONE, &[("title", TEXT), ("acceptance_criteria", LINES), ("importance", "3")]),
    ),
    ("/ticket/{id}/block", after(DONE, &[("kind", "USER_INPUT"), ("description", LINES)])),
    ("/ticket/{id}/unblock", Kind::Button),
    ("/ticket/{id}/snooze", typed(&[("until", TEXT)])),
    ("/ticket/{id}/cancel", after(DONE, &[("note", TEXT)])),
    ("/ticket/{id}/done", after(CANCEL, &[("note", TEXT)])),
    ("/ticket/{id}/answer", typed(&[("answer", LINES)])),
    ("/ticket/{id}/keep", typed(&[("note", TEXT)])),
    ("/ticket/{id}/reopen", typed(&[("note", LINES)])),
    ("/approve/{id}", after(CANCEL, &[("note", TEXT)])),
    ("/review/{id}/comment", typed(&[("file", "greet.sh"), ("first_line", "2"), ("text", LINES)])),
    ("/review/{id}/comment-edit", typed(&[("comment_id", "c-1"), ("text", LINES)])),
    ("/review/{id}/comment-delete", Kind::Button),
    ("/review/{id}/viewed", Kind::Button),
    ("/review/{id}/confirm", typed(&[("note", TEXT)])),
    ("/review/{id}/merge", typed(&[("note", TEXT)])),
    ("/review/{id}/reopen", typed(&[("note", LINES), ("digest", "old")])),
    ("/stream/{name}/pause", Kind::Button),
    ("/stream/{name}/resume", Kind::Button),
    ("/jobs", Kind::Apart),
    ("/job/{id}/cancel", Kind::Button),
    ("/job/{id}/retry", Kind::Button),
    ("/job/{id}/again", typed(&[("stream", "mail"), ("payload", "{ \"a\": <b>"), ("run_at", TEXT)])),
    ("/dead/redrive", Kind::Button),
    ("/bulk", Kind::Button),
    ("/bulk/{id}/stop", Kind::Button),
    ("/candidate/{id}/promote", Kind::Button),
    ("/candidate/{id}/edit", after(DISCARD, &[("title", TEXT), ("acceptance_criteria", LINES)])),
    ("/candidate/{id}/merge", Kind::Button),
    ("/candidate/{id}/discard", Kind::Button),
    ("/candidate/{id}/restore", Kind::Button),
    ("/candidate/{id}/snooze", after(DISCARD, &[("until", TEXT)])),
    ("/candidate/{id}/wake", Kind::Button),
    ("/azollas/reload", Kind::Button),
    ("/tokens", typed(&[("name", TEXT), ("role", "worker"), ("days", "soon"), ("streams", "mail")])),
    ("/token/{id}/revoke", Kind::Button),
    ("/session/{id}/end", Kind::Button),
];

/// The forms of the table of pages.
fn forms() -> Vec<(&'static Page, &'static Kind)> {
    let posted = PAGES.iter().filter(|page| page.method == Method::POST);
    let of = |page: &'static Page| {
        let line = FORMS.iter().find(|(path, _)| *path == page.path);
        let kind = line.unwrap_or_else(|| panic!("{} has no line here: what is typed there?", page.path));
        (page, &kind.1)
    };
    posted.map(of).collect()
}

fn path(page: &Page, id: &str) -> String {
    page.path.replace("{id}", id).replace("{name}", id).replace("{link}", id)
}

/// The proof that a form is one of this session.
async fn key(browser: &mut Browser, site: &Site) -> String {
    let page = browser.get(site, "/keys").await;
    form(&page.body, "/sign-out").into_iter().find(|(name, _)| name == "form_key").expect("a key").1
}

async fn send(browser: &mut Browser, site: &Site, path: &str, key: &str, fields: &[(&str, &str)]) -> Answer {
    browser.post(site, path, &[&[("form_key", key)], fields].concat()).await
}

/// Whether a page shows all that was typed; the form's own fields are its own.
#[track_caller]
fn shows(answer: &Answer, path: &str, fields: &[(&str, &str)]) {
    for (name, value) in
        fields.iter().filter(|(name, _)| !matches!(*name, "act_id" | "comment_id" | "digest"))
    {
        assert!(holds(&answer.body, name, value), "{path} lost {name}: {}", words(&answer.body));
    }
    for hostile in ["<b>", "<i>"] {
        assert!(!answer.body.contains(hostile), "{path}: {}", answer.body);
    }
}

/// What a form is about: something of its kind that is there.
async fn subject(server: &TestServer, page: &Page, candidates: &mut Vec<String>, run: &str) -> String {
    match page.path.split('/').nth(1) {
        Some("ticket" | "approve") => {
            let id = format!("T-{}", page.path.rsplit('/').next().expect("a word").replace(['{', '}'], ""));
            let ticket = json!({ "objective_id": id, "azolla_id": "tasks", "title": "The work" });
            assert_eq!(server.post("/v1/objectives", &ticket).await.status, 201);
            id
        }
        Some("candidate") => candidates.pop().expect("a candidate"),
        Some("review") => run.to_string(),
        Some("job") => server.enqueue("mail").await,
        _ => String::new(),
    }
}

/// A run that was reopened after somebody had read it: what is said about it then comes too late.
async fn reopened(server: &TestServer) -> String {
    approved(server, "WEB-1", "Greet the world").await;
    let run = attempt(server, "WEB-1", Made { patch: PATCH, log: "ok", passes: true }).await;
    let comment = json!({ "file": "greet.sh", "first_line": 2, "text": "before", "comment_id": "c-1" });
    assert_eq!(server.post(&format!("/v1/runs/{run}/comments"), &comment).await.status, 200);
    let digest = server.get("/v1/objectives/WEB-1").await.json()["approval"]["digest"].clone();
    let reopen = json!({ "digest": digest, "note": "once more" });
    assert_eq!(server.post("/v1/objectives/WEB-1/reopen", &reopen).await.status, 200);
    run
}

async fn a_form_that_is_refused_says_why_and_keeps_what_was_typed(server: TestServer) {
    let pipeline = workers(&server).await;
    let found = triaged(&server, &["buy milk", "read a book"]).await;
    pipeline.stop().await;
    let id = |of: &Value| of["candidate_id"].as_str().expect("an id").to_string();
    let mut candidates: Vec<String> = found.iter().map(id).collect();
    crate::now::with_azollas(&server).await;
    let run = reopened(&server).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let key = key(&mut browser, &site).await;
    for (page, kind) in forms() {
        let Kind::Typed { fields, meanwhile } = kind else { continue };
        let id = subject(&server, page, &mut candidates, &run).await;
        for (call, body) in *meanwhile {
            let done = server.call(&server.operator, "POST", &call.replace("{id}", &id), body).await;
            assert_eq!(done.status, 200, "{}: {done:?}", page.path);
        }
        let path = path(page, &id);
        let mut sent = fields.to_vec();
        if page.path.starts_with("/review/") {
            sent.push(("objective_id", "WEB-1"));
        }
        let refused = send(&mut browser, &site, &path, &key, &sent).await;
        assert!((400..500).contains(&refused.status), "{path}: {} {}", refused.status, words(&refused.body));
        assert!(refused.body.contains("role=\"alert\""), "{path} does not say why: {}", words(&refused.body));
        shows(&refused, &path, fields);
    }
    server.stop().await;
}

async fn a_form_for_what_is_not_there_keeps_what_was_typed(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let key = key(&mut browser, &site).await;
    for (page, kind) in forms().into_iter().filter(|(page, _)| page.path.contains("{id}")) {
        let Kind::Typed { fields, .. } = kind else { continue };
        let path = path(page, "nothing");
        let refused = send(&mut browser, &site, &path, &key, fields).await;
        assert!((400..500).contains(&refused.status), "{path}: {}", refused.status);
        shows(&refused, &path, fields);
    }
    server.stop().await;
}

/// The page of a failure: it says why, keeps what was typed, and sends it once more.
#[track_caller]
fn can_be_sent_again(answer: &Answer, path: &str, fields: &[(&str, &str)]) {
    shows(answer, path, fields);
    let again = form(&answer.body, path);
    for (name, value) in fields {
        assert!(again.contains(&(name.to_string(), value.to_string())), "{path}: {again:?}");
    }
    assert!(
        answer.body.contains("Send it again") && answer.headers.contains_key("retry-after"),
        "{answer:?}"
    );
}

async fn a_form_that_meets_a_stopped_store_keeps_what_was_typed_and_is_sent_again(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let key = key(&mut browser, &site).await;
    server.engine.store().close().await;
    for (page, kind) in forms().into_iter().filter(|(page, _)| page.sees != Sees::Anybody) {
        let path = path(page, "x");
        let fields = if let Kind::Typed { fields, .. } = kind { fields } else { &[("sure", "yes")][..] };
        let failed = send(&mut browser, &site, &path, &key, fields).await;
        assert_eq!(failed.status, 503, "{path}: {}", words(&failed.body));
        can_be_sent_again(&failed, &path, fields);
    }
    // Whoever was signing in meanwhile loses neither; the token is never shown.
    let carried = format!("note={}", fernery_core::percent::encode(TEXT));
    let fields = [("token", server.operator.as_str()), ("next", "/approve/T-1"), ("carried", &carried)];
    let failed = browser.post(&site, "/sign-in", &fields).await;
    assert_eq!(failed.status, 503, "{failed:?}");
    can_be_sent_again(&failed, "/approve/T-1", &[("note", TEXT)]);
    assert!(!failed.body.contains(&server.operator));
    // Without such a form there is nothing to send again: the token is typed anew, and leads on to the same page.
    let failed = browser.post(&site, "/sign-in", &[fields[0], ("next", "/board"), ("carried", "")]).await;
    assert_eq!(failed.status, 503, "{failed:?}");
    assert!(!failed.body.contains("Send it again") && !failed.body.contains(&server.operator), "{failed:?}");
    assert!(failed.body.contains("href=\"/sign-in?next="), "{}", failed.body);
    server.stop().await;
}

#[tokio::test]
async fn a_form_that_comes_too_often_or_is_too_large_says_so_and_is_not_lost() {
    let rate = NonZeroU32::new(1);
    let server = TestServer::start_with(|settings| settings.requests_per_second = rate).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let key = key(&mut browser, &site).await;
    let fields = [("title", TEXT), ("acceptance_criteria", LINES)];
    let mut refused = send(&mut browser, &site, "/new-ticket", &key, &fields).await;
    // One in a second is let through.
    for _ in 0..100 {
        if refused.status == 429 {
            break;
        }
        refused = send(&mut browser, &site, "/new-ticket", &key, &fields).await;
    }
    assert_eq!(refused.status, 429, "{}", words(&refused.body));
    can_be_sent_again(&refused, "/new-ticket", &fields);
    // Its size alone says that it is too large.
    let head = browser.head(&site, "POST", "/capture");
    let sent =
        "content-type: application/x-www-form-urlencoded\r\ncontent-length: 5000000\r\n\r\nraw_content=x";
    let refused = browser.send(&site, &(head + sent)).await;
    assert_eq!(refused.status, 413, "{}", words(&refused.body));
    assert!(words(&refused.body).contains("was not read"), "{}", words(&refused.body));
    server.stop().await;
}

async fn what_was_ticked_and_typed_comes_back_as_it_was(server: TestServer) {
    crate::now::with_azollas(&server).await;
    let ticket = json!({ "objective_id": "T-1", "azolla_id": "tasks", "title": "x",
        "metadata": { "labels": ["web"], "due_at": "2026-12-01" } });
    assert_eq!(server.post("/v1/objectives", &ticket).await.status, 201);
    for description in ["which one?", "and when?"] {
        let block = json!({ "kind": "USER_INPUT", "description": description });
        assert_eq!(server.post("/v1/objectives/T-1/block", &block).await.status, 200);
    }
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/ticket/T-1").await;
    assert_eq!(page.body.matches("\" checked> <code>").count(), 2, "{}", page.body);
    let unblock = browser.submit(&site, &page, "/ticket/T-1/unblock", &[("blocker", "none")]).await;
    assert!((400..500).contains(&unblock.status), "{unblock:?}");
    assert_eq!(
        unblock.body.matches("\" checked> <code>").count(),
        0,
        "as they were ticked: {}",
        unblock.body
    );

    // Labels and the due date are edited as words; what is wrong is said at its field, and all of it comes back.
    let edit = "/ticket/T-1/edit";
    assert!(page.body.contains("name=\"labels\" autocomplete=\"off\" value=\"web\""), "{}", page.body);
    let fields = |due: &'static str, labels: &'static str| {
        [("title", "y"), ("importance", "4"), ("urgency", "0"), ("due", due), ("labels", labels)]
    };
    let refused = browser.submit(&site, &page, edit, &fields("some day", "web 1st")).await;
    assert_eq!(refused.status, 422, "{}", words(&refused.body));
    let act = refused.body.split("<details id=\"act-edit\" open>").nth(1).expect("it is open");
    let act = act.split("</details>").next().expect("an end");
    for wanted in ["value=\"y\"", "value=\"4\"", "value=\"0\"", "value=\"some day\"", "value=\"web 1st\""] {
        assert!(act.contains(wanted), "{wanted}: {act}");
    }
    let wrong: Vec<&str> = act.split("<p class=\"field-problem\">").skip(1).collect();
    assert_eq!(wrong.len(), 2, "each at its field: {act}");
    assert!(wrong[0].starts_with("expected a date") && wrong[1].starts_with("1st: a label"), "{wrong:?}");
    let saved = browser.submit(&site, &refused, edit, &fields("2026-12-24T17:00:00Z", "Web garden")).await;
    assert_eq!(saved.status, 303, "{}", words(&saved.body));
    let after = server.get("/v1/objectives/T-1").await.json()["objective"].clone();
    assert_eq!((&after["title"], &after["importance"]), (&json!("y"), &json!(4)));
    let facts = json!({ "labels": ["web", "garden"], "due_at": "2026-12-24T17:00:00Z" });
    assert_eq!(after["metadata"], facts, "{after}");
    let page = browser.get(&site, "/ticket/T-1").await;
    assert_eq!(browser.submit(&site, &page, edit, &fields("", "")).await.status, 303);
    assert_eq!(server.get("/v1/objectives/T-1").await.json()["objective"]["metadata"], json!({}));
    server.stop().await;
}

async fn a_comment_that_is_refused_is_not_lost(server: TestServer) {
    approved(&server, "WEB-1", "Greet the world").await;
    let run = attempt(&server, "WEB-1", Made { patch: PATCH, log: "ok", passes: true }).await;
    let comment =
        json!({ "file": "greet.sh", "first_line": 2, "text": "as it is kept", "comment_id": "c-1" });
    assert_eq!(server.post(&format!("/v1/runs/{run}/comments"), &comment).await.status, 200);
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let path = format!("/review/{run}");
    let editing = browser.get(&site, &format!("{path}?edit=c-1")).await;
    assert!(editing.body.contains("as it is kept</textarea>"), "{}", editing.body);
    let long = format!("changed {}", "x".repeat(100_000));
    let refused = browser.submit(&site, &editing, &format!("{path}/comment-edit"), &[("text", &long)]).await;
    assert!((400..500).contains(&refused.status), "{}", refused.status);
    let form = refused.body.split("id=\"edit-comment\"").nth(1).expect("the form").split("</form>").next();
    let form = form.expect("an end");
    assert!(
        form.contains("role=\"alert\"") && form.contains(&format!("{long}</textarea>")),
        "{}",
        words(form)
    );
    // On a line that is not in the patch.
    let new = [("file", "greet.sh"), ("first_line", "9000"), ("text", "about <nothing>")];
    let page = browser.get(&site, &format!("{path}?file=1&comment=yes")).await;
    let refused = browser.submit(&site, &page, &format!("{path}/comment?file=1"), &new).await;
    assert!((400..500).contains(&refused.status), "{}", refused.status);
    let form = refused.body.split("id=\"comment-form\"").nth(1).expect("the form").split("</form>").next();
    let form = form.expect("an end");
    assert!(
        form.contains("role=\"alert\"") && unescaped(form).contains("about <nothing>"),
        "{}",
        words(form)
    );
    server.stop().await;
}

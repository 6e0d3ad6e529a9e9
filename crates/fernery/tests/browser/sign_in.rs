//! Coming in, what each role gets, and forms that are not ours.

use crate::chromium::{Chromium, site};
use crate::names::nosy;
use crate::program::{Server, started_by};
use crate::server::TestServer;
use rustix::process::Signal;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

crate::on_both_backends!(
    a_link_signs_in_once_and_a_session_ends,
    a_viewer_looks_and_a_worker_gets_nothing,
    forms_that_are_not_ours_do_nothing,
);

async fn ticket(server: &TestServer, id: &str) {
    crate::pipeline::register(server).await;
    let ticket = json!({ "objective_id": id, "azolla_id": "mec", "title": "Greet", "acceptance_criteria": "it greets" });
    assert_eq!(server.post("/v1/objectives", &ticket).await.status, 201);
}

async fn status(server: &TestServer, id: &str) -> String {
    let ticket = server.get(&format!("/v1/objectives/{id}")).await.json();
    ticket["objective"]["status"].as_str().expect("a status").to_string()
}

async fn a_link_signs_in_once_and_a_session_ends(server: TestServer) {
    ticket(&server, "T-1").await;
    let made = server.post("/v1/sign-in-links", &json!({})).await.json();
    let link = format!("{}{}", site(&server), made["path"].as_str().expect("a path"));
    let browser = Chromium::start().await;
    browser.open(&link).await;
    browser.reads("main", "It works once.").await;
    assert!(!browser.has("body[data-signed-in]").await, "looking does not spend it");
    browser.press("Sign in").await;
    browser.reads("h1", "Now").await;
    browser.open(&link).await;
    browser.press("Sign in").await;
    browser.reads("#problem", "works once").await;

    // An approval wants a sign-in younger than 15 minutes. What was typed is still there after it.
    browser.open(&format!("{}/approve/T-1", site(&server))).await;
    browser.fill("#note", "my own words").await;
    server.advance(Duration::from_secs(16 * 60)).await;
    browser.press("Approve exactly this").await;
    browser.reads("main", "younger than 15 minutes").await;
    assert_eq!(status(&server, "T-1").await, "NEW");
    browser.fill("#token", &server.operator).await;
    browser.press("Sign in").await;
    browser.reads("main", "my own words").await;
    browser.press("Send it").await;
    browser.reads("#history", "my own words").await;
    assert_ne!(status(&server, "T-1").await, "NEW");

    // After twelve hours it is over, and a page that is open says so by itself.
    server.advance(Duration::from_secs(16 * 60 + 12 * 3_600)).await;
    browser.press("Board").await;
    browser.reads("h1", "Sign in").await;
    assert!(!browser.has("nav a").await);
    browser.close().await;
    server.stop().await;
}

async fn a_viewer_looks_and_a_worker_gets_nothing(server: TestServer) {
    ticket(&server, "T-1").await;
    let (job, viewer) = (server.enqueue("mail").await, server.token("viewer").await);
    let browser = Chromium::start().await;
    let own = site(&server);
    browser.open(&format!("{own}/sign-in")).await;
    browser.fill("#token", &server.worker).await;
    browser.press("Sign in").await;
    browser.reads("#problem", "a worker token gets no pages").await;
    assert!(browser.client.get_all_cookies().await.expect("cookies").is_empty());
    browser.fill("#token", &viewer).await;
    browser.press("Sign in").await;
    browser.reads(".person", "viewer").await;
    let of_job = format!("/job/{job}");
    for path in ["/", "/board", "/ticket/T-1", "/approve/T-1", "/streams", "/jobs", &of_job, "/dead"] {
        browser.open(&format!("{own}{path}")).await;
        browser.see("main").await;
        let acts = browser.script("return document.querySelectorAll('main form[method=post]').length").await;
        assert_eq!(acts, 0, "{path}");
    }
    browser.open(&format!("{own}/new-ticket")).await;
    browser.reads("main", "signed in as a viewer").await;
    browser.click(".person summary").await;
    browser.press("Sign out").await;
    browser.reads("h1", "Sign in").await;
    browser.close().await;
    server.stop().await;
}

async fn forms_that_are_not_ours_do_nothing(server: TestServer) {
    let browser = Chromium::start().await;
    let own = browser.sign_in(&server, &server.operator).await;
    server.enqueue("mail").await;
    let paused = async || server.get("/v1/streams/mail").await.json()["paused"] == true;
    let key = browser.script("return document.querySelector('[name=form_key]').value").await;
    let key = key.as_str().expect("a key");
    // Even with the right key: a page of another server sends no session, and says where it comes from.
    let form = format!(
        "<!doctype html><title>x</title><form method=post action='{own}/stream/mail/pause'>\
         <input type=hidden name=form_key value='{key}'><button>Win a prize</button></form>"
    );
    let (port, _noted) = nosy(form).await;
    for host in ["localhost", "somebody.localhost"] {
        browser.open(&format!("http://{host}:{port}/")).await;
        browser.press("Win a prize").await;
        browser.see("main").await;
        assert!(!browser.words("main").await.contains("Win a prize"));
        assert!(!paused().await, "from {host}");
    }
    // A form of ours with another key is shown, and sent only when a person says so.
    browser.open(&format!("{own}/streams")).await;
    browser.click("#live").await;
    browser.script("document.querySelector('main [name=form_key]').value = '0'.repeat(64)").await;
    browser.press("Pause").await;
    browser.reads("main", "Nothing was sent yet").await;
    assert!(!paused().await);
    browser.press("Send it").await;
    browser.reads("#streams", "paused").await;
    assert!(paused().await);
    browser.close().await;
    server.stop().await;
}

#[tokio::test]
async fn what_signs_in_is_never_logged() {
    let server = Server::start(&["--log-level", "trace"]);
    let browser = Chromium::start().await;
    let link = server.run(["open", "--print"]).exits(0).stdout.trim().to_string();
    let token = std::fs::read_to_string(server.data().join("operator.token")).expect("a token");
    let mut secrets =
        vec![token.trim().to_string(), link[link.rfind('/').expect("a link") + 1..].to_string()];
    for _ in 0..2 {
        // The second time it is spent.
        browser.open(&link).await;
        browser.press("Sign in").await;
        browser.see("main").await;
        let cookies = browser.client.get_all_cookies().await.expect("cookies");
        secrets.extend(cookies.iter().map(|cookie| cookie.value().to_string()));
    }
    let site = link[..link.find("/open/").expect("a link")].to_string();
    browser.open(&format!("{site}/sign-in")).await;
    for typed in [format!("{}0", token.trim()), token] {
        secrets.push(typed.trim().to_string());
        browser.fill("#token", typed.trim()).await;
        browser.press("Sign in").await;
        browser.see("main").await;
    }
    browser.see("body[data-signed-in]").await;
    let key = browser.script("return document.querySelector('[name=form_key]').value").await;
    secrets.push(key.as_str().expect("a key").to_string());
    let cookies = browser.client.get_all_cookies().await.expect("cookies");
    secrets.extend(cookies.iter().map(|cookie| cookie.value().to_string()));
    browser.close().await;
    server.signal(Signal::TERM);
    let (_, log) = server.ended_with_log();
    assert!(log.contains("signed in") && log.contains("DEBUG"), "that is not all of the log: {log}");
    assert!(secrets.len() >= 7 && secrets.iter().all(|secret| secret.len() > 20), "{}", secrets.len());
    for secret in secrets {
        // Beside the prefix a secret has an id, which is public.
        let part = &secret[secret.len() - 32..];
        assert!(!log.contains(part), "the log has {part}");
    }
}

#[test]
fn a_terminal_is_shown_a_link_and_a_pipe_is_not() {
    let dir = tempfile::tempdir().expect("a folder");
    let up = format!("exec {} up --listen 127.0.0.1:0", env!("CARGO_BIN_EXE_fernery"));
    // A terminal of its own, in which the server runs.
    let mut terminal = started_by("script");
    terminal.current_dir(dir.path()).args(["-q", "-e", "-c", &up, "/dev/null"]);
    let mut shown =
        terminal.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("script is installed");
    let lines = BufReader::new(shown.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let link = lines.into_iter().find(|line| line.starts_with("pages: "));
    assert!(link.is_some_and(|link| link.contains("/open/")), "a person is shown a link");
    crate::program::run_in(dir.path(), ["down"]).exits(0);
    shown.wait().expect("ended");
    let server = Server::start_in(dir, &[]);
    // Its first line is out; whatever came after it would have come by the time that it has answered and ended.
    server.run(["open", "--print"]).exits(0);
    server.signal(Signal::TERM);
    let (status, _) = server.ended();
    assert_eq!(status.code(), Some(0));
}

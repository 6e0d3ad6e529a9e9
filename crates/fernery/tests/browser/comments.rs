//! A review with comments: lines are drawn with the mouse, and what a person has typed survives what others do.

use crate::chromium::Chromium;
use crate::pipeline::seal;
use crate::server::TestServer;
use crate::worked::{Made, PATCH, approved, attempt};
use fantoccini::Locator;
use fantoccini::actions::{InputSource, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use serde_json::json;

crate::on_both_backends!(a_reviewer_comments_views_and_sends_back_with_the_comments);

const MADE: Made<'static> = Made { patch: PATCH, log: "ok", passes: true };

/// The row of the patch that says this.
fn row(text: &str) -> String {
    format!("//table[contains(@class, 'diff')]//tr[contains(., '{text}')]/td[2]")
}

impl Chromium {
    /// Draws from the number of one line to that of another.
    pub(crate) async fn draws(&self, from: &str, to: &str) {
        let mut mouse = MouseActions::new("mouse".into());
        for (place, then) in [
            (from, PointerAction::Down { button: MOUSE_BUTTON_LEFT }),
            (to, PointerAction::Up { button: MOUSE_BUTTON_LEFT }),
        ] {
            let row = row(place);
            let element =
                self.client.find(Locator::XPath(&row)).await.unwrap_or_else(|e| panic!("{row}: {e}"));
            self.center(&element).await.expect("in sight");
            mouse = mouse
                .then(PointerAction::MoveToElement { element, duration: None, x: 0.0, y: 0.0 })
                .then(then);
        }
        self.client.perform_actions(mouse).await.expect("drawn");
    }
}

async fn a_reviewer_comments_views_and_sends_back_with_the_comments(server: TestServer) {
    approved(&server, "WEB-1", "Greet the world").await;
    let run = attempt(&server, "WEB-1", MADE).await;
    let browser = Chromium::start().await;
    let site = browser.sign_in(&server, &server.operator).await;
    browser.open(&format!("{site}/review/{run}")).await;

    browser.draws("#!/bin/sh", "# end").await;
    browser.reads("form.comment", "Comment on lines 1 to 3").await;
    browser.fill("form.comment textarea", "Say why in a comment").await;
    browser.press("Leave it").await;
    assert!(!browser.has("form.comment").await);
    browser.draws("#!/bin/sh", "#!/bin/sh").await;
    browser.reads("form.comment", "Comment on line 1").await;
    browser.fill("form.comment textarea", "Which shell?").await;
    browser.click("form.comment button.main").await;
    browser.reads("#comments", "Which shell?").await;
    browser.reads("#comments", "greet.sh, line 1").await;

    // While it is edited another reviewer writes: what was typed stays, and the news waits for a press.
    let comment = server.get(&format!("/v1/runs/{run}/comments")).await.json()["comments"][0].clone();
    browser.press_at("//section[@id='comments']//a[normalize-space()='Edit']").await;
    browser.fill("#comments textarea", "Which shell, and why?").await;
    browser.click("h1").await;
    browser.script("window.stayed = true").await;
    let path = format!("/v1/runs/{run}/comments");
    let other = json!({ "file": "greet.sh", "first_line": 3, "text": "An end of what?" });
    assert_eq!(server.post(&path, &other).await.status, 200);
    seal(&server).await;
    browser.reads("#comments", "This has changed since you began to type").await;
    assert!(!browser.words("#comments").await.contains("An end of what?"));
    let typed = async || browser.see("#comments textarea").await.prop("value").await.expect("a value");
    assert_eq!(typed().await.as_deref(), Some("Which shell, and why?"));
    browser.press("Show what is new").await;
    browser.reads("#comments", "An end of what?").await;
    assert_eq!(typed().await.as_deref(), Some("Which shell, and why?"), "it is taken along");
    // Even the same comment, or its end.
    let at = format!("/v1/comments/{}", comment["comment_id"].as_str().expect("an id"));
    let theirs = json!({ "text": "Theirs" }).to_string();
    assert_eq!(server.call(&server.operator, "PATCH", &at, &theirs).await.status, 200);
    seal(&server).await;
    browser.press("Show what is new").await;
    browser.reads("#comments", "Somebody else wrote").await;
    browser.reads("#comments pre", "Theirs").await;
    assert_eq!(typed().await.as_deref(), Some("Which shell, and why?"));
    assert_eq!(browser.script("return window.stayed").await, true, "it was not loaded again");
    browser.press("Save").await;
    browser.reads("#comments", "Which shell, and why?").await;
    its_end_loses_nothing(&server, &browser, &run).await;
    browser
        .press_at(
            "//section[@id='comments']//li[contains(., 'An end of what?')]//a[normalize-space()='Edit']",
        )
        .await;
    browser.press("Delete").await;
    browser.until("return !document.querySelector('#comments').innerText.includes('An end of what?')").await;

    // The job's drawing is of a class of its own: the names of files stand in their line.
    let inline = "return getComputedStyle(document.querySelector('.file .path')).display";
    assert_eq!(browser.script(inline).await, "inline");
    let command = "return document.querySelector('[data-viewed] .ways').textContent";
    assert!(browser.script(command).await.as_str().expect("text").contains("\"viewed\":true"));
    browser.press("Viewed").await;
    browser.reads("#viewed-count", "1 of 2 viewed").await;
    let says = browser.script(command).await;
    assert!(says.as_str().expect("text").contains("\"viewed\":false"), "its command is that of now: {says}");
    // Comments are a note already.
    let note = browser.see("#reopen-note").await.prop("value").await.expect("a value").expect("a note");
    assert!(note.contains("Which shell, and why?") && note.contains("greet.sh"), "{note}");
    browser.press("Reopen and approve another attempt").await;
    browser.reads("#history", "Which shell, and why?").await;

    let second = PATCH.replace("-world}", "-everybody}");
    let run = attempt(&server, "WEB-1", Made { patch: &second, ..MADE }).await;
    browser.open(&format!("{site}/review/{run}")).await;
    browser.reads(".changes", "You looked at attempt 1 before").await;
    browser.close().await;
    server.stop().await;
}

/// A comment that is deleted while its author edits it: the text stays in sight, whatever changes after that.
async fn its_end_loses_nothing(server: &TestServer, browser: &Chromium, run: &str) {
    let path = format!("/v1/runs/{run}/comments");
    let add = async |id: &str| {
        let comment =
            json!({ "comment_id": id, "file": "greet.sh", "first_line": 1, "text": format!("Text of {id}") });
        assert_eq!(server.post(&path, &comment).await.status, 200);
        seal(server).await;
    };
    add("short").await;
    browser
        .press_at("//section[@id='comments']//li[contains(., 'Text of short')]//a[normalize-space()='Edit']")
        .await;
    browser.fill("#comments textarea", "A long thought").await;
    browser.click("h1").await;
    assert_eq!(server.call(&server.operator, "DELETE", "/v1/comments/short", "{}").await.status, 200);
    seal(server).await;
    browser.press("Show what is new").await;
    browser.reads(".carried", "its form is gone").await;
    browser.reads(".carried pre", "A long thought").await;
    add("later").await;
    browser.reads("#comments", "Text of later").await;
    browser.reads(".carried pre", "A long thought").await;
    assert_eq!(server.call(&server.operator, "DELETE", "/v1/comments/later", "{}").await.status, 200);
    seal(server).await;
    browser.until("return !document.querySelector('#comments').innerText.includes('Text of later')").await;
}

//! Scripts blocked: everything can be read, and every form works.

use crate::chromium::Chromium;
use crate::stage::{Stage, Words};
use fernery::http::pages::PAGES;
use serde_json::json;

/// A person at a browser without script, in front of a server that has something on every page.
struct Person {
    stage: Stage,
    browser: Chromium,
    site: String,
}

#[tokio::test]
async fn every_page_can_be_read_and_every_form_works() {
    let (stage, browser) = (Stage::set(Words::plain()), Chromium::without_script().await);
    let site = stage.sign_in(&browser).await;
    let person = Person { stage, browser, site };
    person.reads_every_page().await;
    // Its agent works while the person does other things.
    person.approved("WEB-8", "mock: first write new.txt new\nmock: again no-change it is so already");
    person.goes_through_the_inbox().await;
    person.writes_tickets().await;
    person.answers_and_reviews().await;
    person.sends_back_and_keeps().await;
    person.works_on_the_queue().await;
    person.changes_the_blueprint().await;
    person.makes_and_revokes_a_token().await;
    person.signs_in_under_way().await;

    let posts = PAGES.iter().filter(|page| page.method == http::Method::POST).map(|page| page.path);
    let metrics = person.stage.server().read_raw("/metrics").1;
    let left: Vec<&str> = posts.filter(|path| !worked(&metrics, path)).collect();
    assert!(left.is_empty(), "forms that nobody has sent here, or that were refused: {left:?}");
    person.browser.close().await;
}

/// Whether a form that went to this row of the table was taken.
fn worked(metrics: &str, row: &str) -> bool {
    let of_row = format!("route=\"{row}\",status=\"");
    let taken = metrics.lines().filter(|line| line.contains("method=\"POST\"")).filter_map(|line| {
        let (status, count) = line.split_once(&of_row)?.1.split_once("\"} ")?;
        Some((status.parse::<u16>().ok()?, count != "0"))
    });
    taken.into_iter().any(|(status, counted)| status < 400 && counted)
}

impl Person {
    async fn go(&self, path: &str) {
        self.browser.open(&format!("{}{path}", self.site)).await;
    }

    /// Presses the button of the form that goes there.
    async fn send(&self, action: &str) {
        self.browser.click(&format!("form[action^='{action}'] button:not([type=button])")).await;
    }

    fn approved(&self, id: &str, criteria: &str) {
        let ticket = json!({ "objective_id": id, "azolla_id": "yard", "title": "Count the visitors",
            "acceptance_criteria": criteria, "metadata": { "repo_ref": "app" } });
        self.stage.yard.post("/v1/objectives", ticket);
        self.stage.yard.approve(id);
    }

    async fn reads_every_page(&self) {
        for place in self.stage.places(&self.browser, &self.site).await {
            self.go(&place.path).await;
            assert_eq!(self.browser.words("noscript").await, "", "nobody is told to switch scripts on");
            let words = self.browser.words("main").await;
            assert!(words.len() > 40, "{}: {words}", place.row);
            // Nothing is left for a script to show, and no form needs one to be sent.
            let left = self
                .browser
                .script(
                    "return [...document.querySelectorAll('form')].filter((form) => !form.matches('.find') && !form.querySelector('button:not([type=button])'))
                         .concat([...document.querySelectorAll('main [hidden], main a:not([href]), main button[type=button]')]).map((e) => e.outerHTML)",
                )
                .await;
            assert_eq!(left, json!([]), "{}", place.row);
            assert!(!self.browser.has("#live:not([hidden]), .copy").await, "{}: a script ran", place.row);
        }
    }

    async fn goes_through_the_inbox(&self) {
        let browser = &self.browser;
        self.go("/triage").await;
        browser.press("Edit e").await;
        browser.fill("#title", "Buy a hundred stamps").await;
        browser.press("Save").await;
        browser.reads("#candidate", "Buy a hundred stamps").await;
        browser.press("Merge m").await;
        browser.click("input[name=other]").await;
        browser.press("Merge …").await;
        browser.press("Merge y").await;
        browser.reads("#last", "Merged").await;
        browser.reads("#waiting", "2 waiting").await;
        browser.press("Discard d").await;
        browser.press("Undo u").await;
        browser.reads("#waiting", "2 waiting").await;
        browser.press("Snooze z").await;
        browser.press("Snooze").await;
        browser.press("Undo u").await;
        browser.reads("#waiting", "2 waiting").await;
        browser.press("Promote p").await;
        browser.reads("#last", "Promoted").await;
        self.go("/").await;
        browser.fill("#capture", "buy milk").await;
        browser.press("Put it into the inbox").await;
        browser.reads("#capture", "").await;
        browser.press("Look now").await;
        browser.reads("h1", "Now").await;
    }

    async fn writes_tickets(&self) {
        let browser = &self.browser;
        self.new_task("T-1", "Call the printer").await;
        browser.press("Block").await;
        browser.fill("#description", "which printer?").await;
        self.send("/ticket/T-1/block").await;
        browser.reads("#standing", "which printer?").await;
        browser.press("Unblock").await;
        self.send("/ticket/T-1/unblock").await;
        browser.reads("#standing", "NEW").await;
        browser.press("Edit").await;
        browser.fill("#title", "Call both printers").await;
        browser.press("Save").await;
        browser.reads("h1", "Call both printers").await;
        browser.press("Snooze").await;
        self.send("/ticket/T-1/snooze").await;
        browser.reads("#standing", "snoozed").await;
        browser.press("Show it again now").await;
        browser.press("Read and approve").await;
        browser.press("Approve exactly this").await;
        browser.press("Done: I have done it").await;
        browser.fill("#done-note", "I did").await;
        browser.press("Done").await;
        browser.reads("#standing", "DONE").await;
        self.new_task("T-2", "Call nobody").await;
        browser.press("Cancel").await;
        browser.press("Cancel the ticket").await;
        browser.reads("#standing", "CANCELLED").await;
    }

    async fn new_task(&self, id: &str, title: &str) {
        self.go("/new-ticket").await;
        self.browser.fill("#title", title).await;
        self.browser.see("#azolla_id").await.select_by_value("tasks").await.expect("chosen");
        self.browser.fill("#objective_id", id).await;
        self.browser.press("Create").await;
        self.browser.reads("h1", title).await;
    }

    async fn answers_and_reviews(&self) {
        let browser = &self.browser;
        self.go("/ticket/WEB-3").await;
        browser.fill("#answer", "In French.").await;
        self.send("/ticket/WEB-3/answer").await;
        browser.reads("#history", "In French.").await;

        self.go("/review/WEB-1").await;
        browser.press("Comment").await;
        browser.fill("form[action*='/comment'] [name=first_line]", "1").await;
        browser.fill("form[action*='/comment'] [name=text]", "Why this line?").await;
        browser.click("form[action*='/comment'] button").await;
        browser.reads("#comments", "Why this line?").await;
        browser.press("Edit").await;
        browser.fill("form[action*='/comment-edit'] [name=text]", "Why only this line?").await;
        browser.press("Save").await;
        browser.reads("#comments", "Why only this line?").await;
        browser.press("Edit").await;
        browser.press("Delete").await;
        browser.reads("#comments", "None yet").await;
        browser.press("Viewed").await;
        browser.reads(".changes", "1 of ").await;
        browser.press("Confirm this run").await;
        browser.reads("#standing", "DONE").await;
        self.go("/review/WEB-1").await;
        browser.click("form[action$='/merge'] button").await;
        self.stage.yard.until("WEB-1", "landed", |of| of["landing"]["state"] == "LANDED");
    }

    /// Reopened from its review in vain, a ticket keeps the run that passed before; then it is reopened from its own page.
    async fn sends_back_and_keeps(&self) {
        let (browser, yard) = (&self.browser, &self.stage.yard);
        yard.until("WEB-8", "done", |of| of["objective"]["status"] == "DONE");
        self.go("/review/WEB-8").await;
        browser.press("Reopen: something is missing").await;
        browser.fill("#reopen-note", "look once more").await;
        browser.press("Reopen and approve another attempt").await;
        browser.reads("#history", "look once more").await;
        yard.until("WEB-8", "blocked", |of| of["objective"]["status"] == "BLOCKED");
        self.go("/ticket/WEB-8").await;
        browser.press("Keep the run that passed before").await;
        browser.fill("#keep-note", "the first was right").await;
        browser.press("Keep and confirm that run").await;
        browser.reads("#history", "the first was right").await;
        self.go("/ticket/WEB-8").await;
        browser.press("Reopen: something is missing").await;
        browser.fill("#reopen-note", "one more time").await;
        browser.press("Reopen and approve another attempt").await;
        browser.reads("#history", "one more time").await;
    }

    async fn works_on_the_queue(&self) {
        let browser = &self.browser;
        self.go("/dead").await;
        browser.press("Redrive one").await;
        browser.reads("#standing", "QUEUED").await;
        self.go("/dead").await;
        let group = "//article[contains(., 'TIMEOUT')]";
        browser.press_at(&format!("{group}//summary[normalize-space()='Purge …']")).await;
        browser.press_at(&format!("{group}//input[@name='sure']")).await;
        browser.press_at(&format!("{group}//button[normalize-space()='Purge']")).await;
        browser.reads("h1", "Purge all DEAD jobs").await;

        self.go("/streams").await;
        for (act, next) in [("Pause", "Resume"), ("Resume", "Pause"), ("Pause", "Resume")] {
            browser.click(&format!("button[aria-label='{act} mail']")).await;
            browser.see(&format!("button[aria-label='{next} mail']")).await;
        }
        let job = self.stage.yard.post("/v1/jobs", json!({ "stream": "mail", "payload": {} }));
        self.go(&format!("/job/{}", job["job_id"].as_str().expect("an id"))).await;
        browser.press("Cancel").await;
        browser.reads("#standing", "CANCELLED").await;
        browser.press("Retry").await;
        browser.reads("#standing", "QUEUED").await;
        browser.press("Enqueue again").await;
        browser.press("Enqueue").await;
        browser.reads("#standing", "QUEUED").await;
        self.go("/jobs?stream=mail&status=QUEUED").await;
        browser.click("input[name=job]").await;
        browser.press("Cancel them").await;
        browser.see("#jobs").await;

        // So many that the act still runs when its page is there.
        let many = json!(vec![json!({ "stream": "many", "payload": {} }); 10_000]);
        self.stage.yard.post("/v1/jobs", many.clone());
        self.stage.yard.post("/v1/jobs", many);
        self.go("/bulk-ask?verb=cancel&status=QUEUED&stream=many").await;
        browser.press("Do it y").await;
        browser.press("Stop").await;
        browser.reads("#act", "STOPPED").await;
    }

    async fn changes_the_blueprint(&self) {
        let file = self.stage.server().dir.path().join("yard.toml");
        let text = std::fs::read_to_string(&file).expect("the blueprint");
        std::fs::write(&file, text.replace("workorder = \"60s\"", "workorder = \"61s\"")).expect("written");
        self.go("/azollas").await;
        self.browser.press("Reload").await;
        self.browser.reads("main", "Applied").await;
    }

    async fn makes_and_revokes_a_token(&self) {
        let browser = &self.browser;
        self.go("/tokens").await;
        browser.fill("#name", "printing-press").await;
        browser.press("Make").await;
        browser.reads("main", "It is shown this once").await;
        browser.press_at("//tr[contains(., 'printing-press')]//summary[contains(., 'Revoke')]").await;
        browser.press("Revoke printing-press").await;
        browser.reads("main", "Revoked or expired: 1").await;
        // The only session is this one.
        self.send("/session/").await;
        browser.reads("h1", "Sign in").await;
    }

    /// What was typed in a browser that was signed out meanwhile is not lost.
    async fn signs_in_under_way(&self) {
        let browser = &self.browser;
        self.signs_in().await;
        self.go("/").await;
        browser.fill("#capture", "a thought under way").await;
        browser.client.delete_all_cookies().await.expect("signed out");
        browser.press("Put it into the inbox").await;
        browser.reads("h1", "Sign in").await;
        let here = browser.client.window().await.expect("a tab");
        let other = browser.client.new_window(true).await.expect("a tab");
        browser.client.switch_to_window(other.handle).await.expect("shown");
        self.signs_in().await;
        browser.client.switch_to_window(here).await.expect("shown");
        browser.press("I have signed in: go on with what I typed").await;
        browser.reads("main", "a thought under way").await;
        browser.press("Send it").await;
        browser.reads("h1", "Now").await;
        browser.click(".person summary").await;
        browser.press("Sign out").await;
        browser.reads("h1", "Sign in").await;
    }

    async fn signs_in(&self) {
        let token = std::fs::read_to_string(self.stage.server().data().join("operator.token"));
        self.go("/sign-in").await;
        self.browser.fill("#token", token.expect("a token").trim()).await;
        self.browser.press("Sign in").await;
        self.browser.see("body[data-signed-in]").await;
    }
}

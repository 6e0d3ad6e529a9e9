//! A server with something on every page: tickets in every state that a person meets, with a scripted agent behind them, thoughts in
//! the inbox, and a queue with work that waits, runs and died.

use crate::chromium::Chromium;
use crate::program::Server;
use crate::yard::{FLAGS, GATES, Yard, blueprint, lay_out};
use fernery::http::pages::PAGES;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(crate) struct Stage {
    pub(crate) yard: Yard,
}

/// A page that can be opened: its row in the table of pages, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) row: &'static str,
    pub(crate) path: String,
}

/// What people and agents make of each text that they write.
pub(crate) struct Words {
    /// A name, a title, a key: one line of printable characters.
    pub(crate) line: fn(&str) -> String,
    /// A text of a person or an agent.
    pub(crate) prose: fn(&str) -> String,
    /// What a program says: any character.
    pub(crate) raw: fn(&str) -> String,
}

impl Words {
    /// The texts as they are.
    pub(crate) fn plain() -> Self {
        Self { line: str::to_string, prose: str::to_string, raw: str::to_string }
    }
}

impl Stage {
    /// Fills a server.
    pub(crate) fn set(words: Words) -> Self {
        // A lease that lasts: nobody beats for the jobs that run here.
        let flags = [&FLAGS[..FLAGS.len() - 2], &["--lease-ttl", "10m"]].concat();
        let of = blueprint(GATES).replace("gate_failures = 0", "gate_failures = 1");
        let stage = Self { yard: Yard { server: Server::start_in(lay_out(&of), &flags) } };
        stage.tickets(&words);
        stage.inbox(&words);
        stage.queue(&words);
        stage
    }

    pub(crate) fn server(&self) -> &Server {
        &self.yard.server
    }

    /// A link that signs in a browser with the operator's token.
    pub(crate) fn link(&self) -> String {
        self.server().run(["open", "--print"]).exits(0).stdout.trim().to_string()
    }

    /// Signs in, and answers with where the pages are.
    pub(crate) async fn sign_in(&self, browser: &Chromium) -> String {
        let link = self.link();
        browser.open(&link).await;
        browser.press("Sign in").await;
        browser.see("body[data-signed-in]").await;
        let end = link.find("/open/").expect("a link");
        link[..end].to_string()
    }

    fn ticket(&self, id: &str, title: &str, criteria: &str, more: Value) {
        let mut ticket = json!({ "objective_id": id, "azolla_id": "yard", "title": title,
            "acceptance_criteria": criteria, "metadata": { "repo_ref": "app" } });
        let more = more.as_object().expect("an object").clone();
        ticket.as_object_mut().expect("an object").extend(more);
        self.yard.post("/v1/objectives", ticket);
    }

    fn tickets(&self, &Words { line, prose, .. }: &Words) {
        let script = "mock: write greet.sh #!/bin/sh\\nname=${1:-world}\\necho \"Hello, $name!\"\nmock: first replace check.sh Goodbye => Hello";
        let criteria =
            prose("- `sh greet.sh` says hello to the world\n- `sh greet.sh Ada` says hello to Ada");
        let said = format!("mock: say {}", prose("The check looked for the wrong word."));
        let made = [&criteria, script, &said].map(String::from).join("\n");
        self.ticket(
            "WEB-1",
            &line("Greet the world when nobody is named"),
            &made,
            json!({ "importance": 1 }),
        );
        let merged = [&prose("the greeting is short"), "mock: write greeting.txt Hi"].map(String::from);
        self.ticket("WEB-2", &line("Shorten the greeting"), &merged.join("\n"), json!({}));
        let asks = format!("mock: ask {}", prose("Which languages should it greet in?"));
        self.ticket("WEB-3", &line("Greet in more languages"), &asks, json!({}));
        self.ticket("WEB-4", &line("Greet by the time of day"), "mock: wait 10m", json!({}));
        let fails = format!("mock: fail {}", prose("the tests of the colours do not pass"));
        self.ticket("WEB-5", &line("Print the greeting in colour"), &fails, json!({}));
        for id in ["WEB-1", "WEB-2", "WEB-3", "WEB-4", "WEB-5"] {
            self.yard.approve(id);
        }
        let more = json!({ "importance": 0, "urgency": 1 });
        self.ticket("WEB-6", &line("Say goodbye too"), &prose("- `sh greet.sh --bye` says goodbye"), more);
        self.ticket("WEB-7", &line("Publish the script"), &prose("- it can be downloaded"), json!({}));
        let block = json!({ "kind": "USER_INPUT", "description": prose("Under which licence?") });
        self.yard.post("/v1/objectives/WEB-7/block", block);
        let task =
            json!({ "objective_id": "HOME-1", "azolla_id": "tasks", "title": line("Call the printer") });
        self.yard.post("/v1/objectives", task);
        self.judged("WEB-2");
        self.yard.until("WEB-2", "fits", |of| of["landing"]["fit"] == "MERGES");
        self.server().run(["ticket", "merge", "WEB-2", "--yes"]).exits(0);
        self.yard.until("WEB-2", "landed", |of| of["landing"]["state"] == "LANDED");
        self.judged("WEB-1");
        for id in ["WEB-3", "WEB-5"] {
            self.yard.until(id, "blocked", |of| of["objective"]["status"] == "BLOCKED");
        }
        let note = prose("Keep a list of names too.");
        self.server()
            .run(["ticket", "reopen", "WEB-1", "--note", &format!("{note}\nmock: write names.txt Ada")])
            .exits(0);
        self.yard.until("WEB-1", "done again", |of| {
            of["objective"]["status"] == "DONE" && of["runs"].as_array().is_some_and(|runs| runs.len() == 2)
        });
        self.yard.until("WEB-1", "fits", |of| of["landing"]["fit"] == "MERGES");
        self.yard.until("WEB-4", "runs", |of| of["objective"]["status"] == "IN_PROGRESS");
    }

    fn judged(&self, id: &str) {
        self.yard.until(id, "done", |of| of["objective"]["status"] == "DONE");
    }

    fn inbox(&self, &Words { prose, .. }: &Words) {
        for thought in ["buy stamps tomorrow", "ask Ada about the logo", "fix the link in the footer"] {
            self.yard.post("/v1/captures", json!({ "raw_content": prose(thought) }));
        }
        let waiting = || {
            let page = self.server().run(["triage", "--json"]).exits(0).json();
            page["candidates"].as_array().is_some_and(|all| all.len() == 3)
        };
        assert!(crate::yard::eventually(waiting), "the thoughts never became candidates");
        self.server().run(["orient"]).exits(0);
    }

    fn queue(&self, &Words { line, raw, .. }: &Words) {
        self.yard.post("/v1/bulk", json!({ "verb": "retry", "status": "DEAD", "act_id": "retry-all" }));
        for n in 0..4 {
            self.dies("mail", &raw("SMTP_550"), &raw("mailbox unavailable"), n);
        }
        for n in 0..2 {
            self.dies("reports", &raw("TIMEOUT"), &raw("the database did not answer within 30 s"), n);
        }
        let jobs: Vec<Value> =
            (0..12).map(|n| json!({ "stream": "mail", "payload": { "to": raw("ada"), "n": n } })).collect();
        self.yard.post("/v1/jobs", json!(jobs));
        let later = json!({ "stream": "reports", "payload": { "month": raw("11") }, "delay_ms": 3_600_000 });
        self.yard.post("/v1/jobs", later);
        self.yard
            .post("/v1/jobs", json!({ "stream": "reports", "payload": {}, "unique_key": line("monthly") }));
        let held = self.held("mail", &line("mailer-1"));
        let beat = json!({ "worker_id": line("mailer-1"), "job_id": held["job_id"], "lease_token": held["lease_token"],
            "progress": { "percent": 40, "note": line("4 of 10 sent") } });
        assert_eq!(self.server().post("worker.token", "/internal/worker/heartbeat", &beat).0, 200);
        let held = self.held("mail", &line("mailer-2"));
        let done = json!({ "worker_id": line("mailer-2"), "job_id": held["job_id"], "attempt_id": held["attempt_id"],
            "lease_token": held["lease_token"], "result": { "said": raw("250 OK") } });
        assert_eq!(self.server().post("worker.token", "/internal/worker/complete", &done).0, 200);
    }

    fn held(&self, stream: &str, worker: &str) -> Value {
        let asked = json!({ "worker_id": worker, "streams": [stream], "max_wait_ms": 0 });
        let (status, held) = self.server().post("worker.token", "/internal/worker/claim", &asked);
        assert!(status == 200 && held["claimed"] == true, "{status} {held}");
        held
    }

    fn dies(&self, stream: &str, code: &str, message: &str, n: usize) {
        self.yard.post("/v1/jobs", json!({ "stream": stream, "payload": { "n": n }, "max_attempts": 1 }));
        let held = self.held(stream, "w");
        let body = json!({ "worker_id": "w", "job_id": held["job_id"], "attempt_id": held["attempt_id"],
            "lease_token": held["lease_token"], "error": { "code": code, "message": message } });
        let (status, answer) = self.server().post("worker.token", "/internal/worker/fail", &body);
        assert_eq!(status, 200, "{answer}");
    }

    /// Every page of the table, each once: those with a variable part where another page leads to one.
    pub(crate) async fn places(&self, browser: &Chromium, site: &str) -> Vec<Place> {
        let shown = PAGES.iter().filter(|page| page.method == http::Method::GET);
        let rows: Vec<&'static str> =
            shown.map(|page| page.path).filter(|row| !NO_PAGES.contains(row)).collect();
        let mut found = BTreeMap::from([("/open/{link}", self.link()[site.len()..].to_string())]);
        let plain = rows.iter().filter(|row| !row.contains('{'));
        let mut to_visit: VecDeque<String> = plain.map(|row| asked(row)).collect();
        // The page of the inbox shows a candidate itself and has no link to it.
        let inbox = self.server().run(["triage", "--json"]).exits(0).json();
        let candidate = |n: usize| inbox["candidates"][n]["candidate_id"].as_str().expect("a candidate");
        to_visit.push_back(format!("/candidate/{}", candidate(0)));
        to_visit.push_back(format!("/candidate/{}/merge?other={}", candidate(0), candidate(1)));
        let mut visited = BTreeSet::new();
        while let Some(path) = to_visit.pop_front() {
            let Some(row) = rows.iter().find(|row| is_of(row, &path)) else { continue };
            // Of each kind of page a few are enough to find the others.
            let seen = visited.iter().filter(|other: &&String| is_of(row, other)).count();
            if found.len() == rows.len() || seen >= 8 || !visited.insert(path.clone()) {
                continue;
            }
            browser.open(&format!("{site}{path}")).await;
            found.entry(row).or_insert(path);
            let links = "return [...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href').split('#')[0])";
            let links = browser.script(links).await;
            let links = links.as_array().expect("a list").iter().filter_map(Value::as_str);
            to_visit.extend(links.filter(|link| link.starts_with('/')).map(str::to_string));
        }
        let places = rows.iter().map(|row| Place {
            row,
            path: found
                .get(row)
                .unwrap_or_else(|| panic!("no page leads to {row}: give the stage something that it shows"))
                .clone(),
        });
        places.collect()
    }
}

/// Rows of the table that are nothing to look at.
const NO_PAGES: [&str; 3] = ["/assets/{name}", "/events", "/job/{id}/download"];

/// The address of a page that is always the same.
fn asked(row: &str) -> String {
    // It asks about an act, so its address says which.
    if row == "/bulk-ask" { format!("{row}?verb=cancel&status=QUEUED") } else { row.to_string() }
}

/// Whether a path is one of a row of the table.
fn is_of(row: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    match row.split_once('{') {
        None => row == path,
        Some((before, rest)) => {
            let after = rest.split_once('}').map_or("", |(_, after)| after);
            let middle = path.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            middle.is_some_and(|middle| !middle.is_empty() && !middle.contains('/'))
        }
    }
}

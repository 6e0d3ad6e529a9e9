//! A client that goes through every way of a job and writes down what it was told.

use super::traced::PATIENCE;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// Calls a server; an answer that was cut off is none.
pub(crate) struct Client {
    address: String,
    operator: String,
    worker: String,
}

impl Client {
    pub(crate) fn new(url: &str, data: &Path) -> Self {
        let token = |name: &str| std::fs::read_to_string(data.join(name)).unwrap().trim().to_string();
        let address = url.strip_prefix("http://").unwrap().to_string();
        Self { address, operator: token("operator.token"), worker: token("worker.token") }
    }

    pub(crate) fn get(&self, path: &str) -> Option<(u16, Value)> {
        self.exchange("GET", path, "")
    }

    fn post(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        self.exchange("POST", path, &body.to_string())
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
        let token = if path.starts_with("/internal") { &self.worker } else { &self.operator };
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .ok()?;
        let mut answer = String::new();
        if let Err(error) = stream.read_to_string(&mut answer) {
            assert_ne!(error.kind(), ErrorKind::WouldBlock, "no answer and no end: {method} {path}");
            return None;
        }
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).ok()?))
    }
}

/// Where a job is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    Queued,
    /// Held by this attempt.
    Running(String),
    Succeeded(Value),
    /// Given up with this code.
    Dead(String),
    Cancelled,
}

/// What the world outside knows of a job.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) stream: String,
    /// As the last acknowledged call left it; `None` as long as none was.
    pub(crate) acknowledged: Option<Place>,
    /// Where calls without an acknowledgement may have taken it.
    pub(crate) possible: Vec<Place>,
    /// Whether a claim may have taken it whose answer never came.
    pub(crate) may_be_taken: bool,
}

/// A call that may be repeated, and where it takes jobs.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) path: String,
    body: Value,
    leads_to: Vec<(String, Place)>,
    pub(crate) answer: Option<Value>,
}

/// Calls in the script where nothing fails.
pub(crate) const CALLS: usize = 13;

/// One run through the script.
pub(crate) struct Script<'c> {
    client: &'c Client,
    /// Tells the jobs and streams of one run from those of another.
    round: usize,
    pub(crate) jobs: BTreeMap<String, Known>,
    pub(crate) calls: Vec<Call>,
    pub(crate) acknowledged: usize,
    /// Calls refused for a reason that may pass.
    pub(crate) refused: usize,
    /// Acknowledged after something was refused for want of space.
    pub(crate) acknowledged_when_full: usize,
    no_space: usize,
    /// The server said that its database failed, or said nothing.
    pub(crate) failed: bool,
}

impl<'c> Script<'c> {
    pub(crate) fn new(client: &'c Client, round: usize) -> Self {
        let (jobs, calls) = (BTreeMap::new(), Vec::new());
        Self {
            client,
            round,
            jobs,
            calls,
            acknowledged: 0,
            refused: 0,
            acknowledged_when_full: 0,
            no_space: 0,
            failed: false,
        }
    }

    /// The whole script. What could not be done is skipped, with what builds on it.
    pub(crate) fn run(&mut self) {
        self.enqueue(&[1], "s", 10);
        self.enqueue(&[2, 3, 4, 5], "s", 100);
        // Longer than a page, so that it takes several.
        self.enqueue(&[6], "t", 9_000);
        if let Some(held) = self.claim("s") {
            self.heartbeat(&held);
            self.report(&held, "complete");
        }
        for end in ["fail_for_good", "fail"] {
            if let Some(held) = self.claim("s") {
                self.report(&held, end);
            }
        }
        // Held until its lease runs out.
        self.claim("s");
        self.cancel(5);
        if self.jobs[&self.id(6)].acknowledged.is_some() {
            self.pause("t");
        }
    }

    fn id(&self, number: usize) -> String {
        format!("00000000-0000-4000-8000-{:08}{number:04}", self.round)
    }

    pub(crate) fn stream(&self, name: &str) -> String {
        format!("{name}{}", self.round)
    }

    fn enqueue(&mut self, numbers: &[usize], stream: &str, bytes: usize) {
        let stream = self.stream(stream);
        let job = |id: &String| json!({"job_id": id, "stream": stream, "payload": {"is": "x".repeat(bytes)}});
        let ids: Vec<String> = numbers.iter().map(|n| self.id(*n)).collect();
        let body = if let [id] = &ids[..] { job(id) } else { ids.iter().map(job).collect() };
        for id in &ids {
            self.jobs.insert(id.clone(), Known { stream: stream.clone(), ..Known::default() });
        }
        let leads_to = ids.into_iter().map(|id| (id, Place::Queued)).collect();
        self.call("/v1/jobs".into(), body, leads_to);
    }

    fn claim(&mut self, stream: &str) -> Option<Value> {
        let stream = self.stream(stream);
        let body = json!({"worker_id": "w", "streams": [stream], "max_wait_ms": 0});
        let Some(held) = self.ask("/internal/worker/claim", &body) else {
            self.jobs.values_mut().filter(|job| job.stream == stream).for_each(|job| job.may_be_taken = true);
            return None;
        };
        if held["claimed"] == false {
            return None;
        }
        let attempt = held["attempt_id"].as_str().unwrap().to_string();
        let job = self.jobs.get_mut(held["job_id"].as_str().unwrap()).expect("a job of this round");
        job.acknowledged = Some(Place::Running(attempt));
        Some(held)
    }

    fn heartbeat(&mut self, held: &Value) {
        let body = json!({"worker_id": "w", "job_id": held["job_id"], "lease_token": held["lease_token"]});
        self.ask("/internal/worker/heartbeat", &body);
    }

    fn report(&mut self, held: &Value, end: &str) {
        let mut body = json!({"worker_id": "w"});
        for field in ["job_id", "attempt_id", "lease_token", "stream", "message_id"] {
            body[field] = held[field].clone();
        }
        let result = json!({"of": held["attempt_id"], "text": "y".repeat(5_000)});
        let (verb, place) = match end {
            "complete" => {
                body["result"] = result.clone();
                ("complete", Place::Succeeded(result))
            }
            "fail" => {
                body["error"] = json!({"code": "AGAIN", "message": "m", "retryable": true});
                ("fail", Place::Queued)
            }
            _ => {
                body["error"] = json!({"code": "ENOUGH", "message": "m", "retryable": false});
                ("fail", Place::Dead("ENOUGH".into()))
            }
        };
        let job_id = held["job_id"].as_str().unwrap().to_string();
        self.call(format!("/internal/worker/{verb}"), body, vec![(job_id, place)]);
    }

    fn cancel(&mut self, number: usize) {
        let id = self.id(number);
        // One that a lost claim may have taken is asked to end, and goes on.
        let job = &self.jobs[&id];
        if job.acknowledged == Some(Place::Queued) && !job.may_be_taken {
            self.call(format!("/v1/jobs/{id}/cancel"), json!({}), vec![(id, Place::Cancelled)]);
        }
    }

    fn pause(&mut self, stream: &str) {
        self.call(format!("/v1/streams/{}/pause", self.stream(stream)), json!({}), Vec::new());
    }

    fn call(&mut self, path: String, body: Value, leads_to: Vec<(String, Place)>) {
        let answer = self.ask(&path, &body);
        for (id, place) in leads_to.iter().cloned() {
            let job = self.jobs.get_mut(&id).unwrap();
            match answer {
                Some(_) => job.acknowledged = Some(place),
                None => job.possible.push(place),
            }
        }
        self.calls.push(Call { path, body, leads_to, answer });
    }

    /// The answer, if it is an acknowledgement; nothing else than a named reason may stand in its place.
    fn ask(&mut self, path: &str, body: &Value) -> Option<Value> {
        match self.client.post(path, body) {
            Some((200 | 201, answer)) => {
                // "Nothing to do" promises nothing.
                let promises = answer["claimed"] != false;
                assert!(
                    !promises || !self.failed,
                    "acknowledged after the database had failed: {path} {answer}"
                );
                self.acknowledged += 1;
                self.acknowledged_when_full += usize::from(promises && self.no_space > 0);
                return Some(answer);
            }
            Some((507, problem)) => {
                assert_eq!(problem["code"], "no_space", "{path} {problem}");
                self.refused += 1;
                self.no_space += 1;
            }
            Some((503, problem)) if problem["code"] == "store_broken" => self.failed = true,
            Some((503, _)) => self.refused += 1,
            Some((status, answer)) => panic!("{path}: {status} {answer}"),
            None => self.failed = true,
        }
        None
    }

    /// Makes every call again, on `client`: each is acknowledged now, and what was acknowledged before gets the answer it
    /// got before.
    pub(crate) fn repeat(&mut self, client: &'c Client) {
        self.client = client;
        for call in &mut self.calls {
            let (status, answer) =
                client.post(&call.path, &call.body).expect("a server without faults answers");
            assert!(matches!(status, 200 | 201), "{} again: {status} {answer}; before: {call:?}", call.path);
            match &call.answer {
                Some(before) if call.path.starts_with("/internal") => {
                    assert_eq!(*before, answer, "{}", call.path)
                }
                Some(_) if call.path == "/v1/jobs" => {
                    let items = answer["jobs"].as_array().cloned().unwrap_or_else(|| vec![answer.clone()]);
                    assert!(items.iter().all(|item| item["duplicate"] == true), "{answer}");
                }
                Some(_) => {}
                None => {
                    for (id, place) in &call.leads_to {
                        let job = self.jobs.get_mut(id).unwrap();
                        job.acknowledged = Some(place.clone());
                        job.possible.clear();
                    }
                }
            }
            call.answer = Some(answer);
        }
    }
}

//! The pages as browsers ask for them: how long the server takes for each with a long history, what open tabs cost it, and whether
//! jobs are done as fast while people look.

use super::server::Server;
use super::tabs::{Browser, Tab};
use super::wire::Wire;
use super::{Bench, load, quantile};
use crate::http::pages::{PAGES, Sees};
use anyhow::{Context, Result, ensure};
use fernery_engine::door::stop_watch;
use http::Method;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often each page is asked for; the first few times are not counted.
const SAMPLES: usize = 40;
const WARM: usize = 3;
/// What a page may take, in milliseconds.
const PAGE_MS_MAX: f64 = 50.0;
/// What all open streams may cost together.
const STREAMS_CORES_MAX: f64 = 0.3;
const STREAMS_MIB_MAX: f64 = 100.0;
/// Tabs that follow while throughput is measured.
const TABS: usize = 50;
/// Tickets that were carried out, and jobs that were given up: so that every page has something to show.
const RUNS: usize = 100;
const DEAD: usize = 200;
/// How long the cost of streams is watched in each run; jobs come all the time, so that there is something to tell.
const WATCHED: Duration = Duration::from_secs(4);
/// Addresses beside the bare ones: what people filter by.
const FILTERED: [&str; 9] = [
    "/jobs?status=SUCCEEDED",
    "/jobs?status=QUEUED",
    "/jobs?status=DEAD",
    "/jobs?status=CANCELLED",
    "/jobs?stream=history",
    "/jobs?stream=dead",
    "/streams?range=7d",
    "/dead?stream=dead&code=bench",
    "/find?q=nothing",
];

impl Bench {
    pub(super) async fn pages(&mut self) -> Result<()> {
        let (history, objectives) = (self.args.history, self.args.objectives);
        self.progress.step(&format!("{}: {objectives} objectives", self.name("pages")));
        let azolla = self.azolla("pages").await?;
        azolla.tickets("page", RUNS).await?;
        azolla.fill(objectives).await?;
        azolla.end().await;
        let server = self.server("pages").await?;
        self.progress.step(&format!("{}: {history} jobs into history", self.name("pages")));
        load::enqueue(&server, "history", history, 1_000).await?;
        load::drain_array(&server, "history", 8, 1_000).await?;
        give_up(&server, DEAD).await?;
        load::enqueue(&server, "waiting", 1_000, 1_000).await?;
        let mut operator = Wire::connect(server.address, &server.operator).await?;
        let act = br#"{"verb":"retry","status":"CANCELLED","act_id":"bench"}"#;
        let (status, body) = operator.post("/v1/bulk", act).await?;
        ensure!(status < 300, "a bulk act answered {status}: {}", String::from_utf8_lossy(body));
        self.value(self.name("pages_history"), history as f64, "jobs")?;
        self.value(self.name("pages_objectives"), objectives as f64, "objectives")?;
        self.page_times(&server).await?;
        self.open_streams(&server).await?;
        self.throughput_while_looked_at(&server).await?;
        server.stop().await
    }

    /// How long each page takes.
    async fn page_times(&mut self, server: &Server) -> Result<()> {
        self.progress.step(&self.name("page times"));
        let browser = Browser::sign_in(server, &server.operator).await?;
        let mut tab = browser.tab().await?;
        for (name, address) in addresses(&mut tab).await? {
            let mut taken = Vec::with_capacity(SAMPLES);
            for n in 0..SAMPLES + WARM {
                let since = stop_watch();
                let (status, body) = tab.get(&address).await?;
                ensure!(status == 200, "{address} answered {status}: {}", String::from_utf8_lossy(body));
                if n >= WARM {
                    taken.push(since.elapsed().as_secs_f64() * 1e3);
                }
            }
            self.at_most(&format!("page {name} p95"), quantile(&mut taken, 0.95), "ms", PAGE_MS_MAX)?;
        }
        Ok(())
    }

    /// What open streams cost, while there is something to tell every second.
    async fn open_streams(&mut self, server: &Server) -> Result<()> {
        let count = usize::from(self.args.event_streams);
        self.progress.step(&format!("{}: {count} event streams", self.name("pages")));
        let watched = WATCHED * u32::try_from(self.args.runs).unwrap_or(1);
        let without = cores(server, watched).await?;
        let before = server.resident_bytes()?;
        let tabs = Tab::listening(server, count, false).await?;
        let with = cores(server, watched).await?;
        let grown = server.resident_bytes()?.saturating_sub(before) as f64 / f64::from(1 << 20);
        drop(tabs);
        self.value(self.name("event_streams"), count as f64, "streams")?;
        self.at_most("event_streams_cores", (with - without).max(0.0), "cores", STREAMS_CORES_MAX)?;
        self.at_most("event_streams_memory", grown, "MiB", STREAMS_MIB_MAX)
    }

    /// Jobs per second with tabs that follow, against none. Both are taken in turns.
    async fn throughput_while_looked_at(&mut self, server: &Server) -> Result<()> {
        let (lanes, jobs) = (self.lanes(), self.args.jobs);
        let (mut rates, mut ratios) = (Vec::new(), Vec::new());
        for round in 0..self.args.runs {
            self.step("tabs_50", round, self.args.runs);
            load::enqueue(server, "looked-at", jobs, 1_000).await?;
            let alone = load::drain_array(server, "looked-at", lanes, 100).await?;
            load::enqueue(server, "looked-at", jobs, 1_000).await?;
            let tabs = Tab::listening(server, TABS, true).await?;
            let looked_at = load::drain_array(server, "looked-at", lanes, 100).await?;
            drop(tabs);
            rates.push(looked_at);
            ratios.push(looked_at / alone);
        }
        let (rate, ratio) = (quantile(&mut rates, 0.5), quantile(&mut ratios, 0.5));
        self.at_least("tabs_50", rate, ("array_100", ratio), 0.95)
    }
}

/// Every page for people who are signed in, by name: those with a fixed address, and of the others the first that a page leads to.
async fn addresses(tab: &mut Wire) -> Result<BTreeMap<String, String>> {
    let for_people = |page: &&crate::http::pages::Page| {
        page.method == Method::GET
            && matches!(page.sees, Sees::Readers | Sees::Operators)
            && page.path != "/events"
    };
    let pages: Vec<&'static str> = PAGES.iter().filter(for_people).map(|page| page.path).collect();
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for path in pages.iter().copied().filter(|path| !path.contains('{')).chain(FILTERED) {
        // It asks about an act, so its address says which.
        let act = if path == "/bulk-ask" { "?verb=cancel&status=QUEUED" } else { "" };
        found.insert(path.to_string(), format!("{path}{act}"));
    }
    // What a page leads to may itself lead further: from a list to a ticket, from there to its approval.
    for _ in 0..3 {
        let open: Vec<_> = pages.iter().copied().filter(|path| !found.contains_key(*path)).collect();
        if open.is_empty() {
            break;
        }
        let mut links: Vec<String> = Vec::new();
        for address in found.values() {
            let (_, body) = tab.get(address).await?;
            let text = String::from_utf8_lossy(body);
            let hrefs = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
            links.extend(hrefs.map(|href| href.replace("&amp;", "&")));
        }
        for path in open {
            let Some((before, rest)) = path.split_once('{') else { continue };
            let after = rest.split_once('}').map_or("", |(_, after)| after);
            let leads = |link: &&String| {
                let bare = link.split('?').next().unwrap_or_default();
                let middle = bare.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                middle.is_some_and(|middle| !middle.is_empty() && !middle.contains('/'))
            };
            if let Some(link) = links.iter().find(leads) {
                found.insert(path.to_string(), link.clone());
            }
        }
    }
    for path in pages.iter().filter(|path| !found.contains_key(**path)) {
        eprintln!("not measured: no page leads to {path}");
    }
    Ok(found)
}

/// Jobs of one attempt that fail.
async fn give_up(server: &Server, jobs: usize) -> Result<()> {
    let mut producer = Wire::connect(server.address, &server.operator).await?;
    let mut worker = Wire::connect(server.address, &server.worker).await?;
    let one = r#"{"stream":"dead","payload":{},"max_attempts":1}"#;
    let (status, _) =
        producer.post("/v1/jobs", format!("[{}]", vec![one; jobs].join(",")).as_bytes()).await?;
    ensure!(status == 201, "enqueue answered {status}");
    loop {
        let claim = br#"{"worker_id":"bench","streams":["dead"],"max":100,"max_wait_ms":0}"#;
        let (status, body) = worker.post("/v1/worker/claim", claim).await?;
        ensure!(status == 200, "claim answered {status}");
        let claimed: serde_json::Value = serde_json::from_slice(body)?;
        let held = claimed["jobs"].as_array().context("no jobs in a claim")?;
        if held.is_empty() {
            return Ok(());
        }
        let items: Vec<_> = held
            .iter()
            .map(|job| {
                serde_json::json!({
                    "job_id": job["job_id"], "attempt_id": job["attempt_id"], "lease_token": job["lease_token"],
                    "error": { "code": "bench", "message": "it was given up" },
                })
            })
            .collect();
        let report = serde_json::to_vec(&serde_json::json!({ "worker_id": "bench", "items": items }))?;
        let (status, body) = worker.post("/v1/worker/fail", &report).await?;
        ensure!(status == 200, "fail answered {status}: {}", String::from_utf8_lossy(body));
    }
}

/// Cores that the server uses while a few jobs come and go every moment.
async fn cores(server: &Server, watched: Duration) -> Result<f64> {
    let (spent, since) = (server.cpu_time()?, stop_watch());
    while since.elapsed() < watched {
        load::enqueue(server, "trickle", 10, 10).await?;
        load::drain_array(server, "trickle", 1, 10).await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok((server.cpu_time()? - spent).as_secs_f64() / since.elapsed().as_secs_f64())
}

//! Figures for Prometheus. Labels come from the route table and from stream names, never from what a caller sends.

use super::Server;
use super::routes::ROUTES;
use fernery_core::Timestamp;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// Every status that the server answers with.
const STATUSES: &[u16] =
    &[200, 201, 207, 400, 401, 403, 404, 405, 408, 409, 413, 414, 415, 421, 422, 429, 431, 500, 503, 507];

/// What is counted.
#[derive(Debug)]
pub struct Metrics {
    /// By route and status; the last row is for requests that fit no route.
    answers: Vec<[AtomicU64; STATUSES.len()]>,
    connected: AtomicU64,
    turned_away: AtomicU64,
    started_at: Timestamp,
}

impl Metrics {
    /// Everything at zero.
    pub fn new(started_at: Timestamp) -> Self {
        let answers = (0..=ROUTES.len()).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect();
        Self { answers, connected: AtomicU64::new(0), turned_away: AtomicU64::new(0), started_at }
    }

    /// A request was answered.
    pub fn answered(&self, route: Option<usize>, status: u16) {
        let row = &self.answers[route.unwrap_or(ROUTES.len())];
        if let Some(n) = STATUSES.iter().position(|known| *known == status) {
            row[n].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A connection was accepted.
    pub fn connected(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection beyond the cap was refused.
    pub fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// The text that Prometheus reads.
    pub async fn render(&self, server: &Server) -> String {
        let mut text = String::with_capacity(16 << 10);
        let one = |text: &mut String, kind: &str, name: &str, help: &str, value: i128| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        };
        let _ = writeln!(
            text,
            "# HELP fernery_info The version and the backend.\n# TYPE fernery_info gauge\n\
             fernery_info{{version=\"{}\",backend=\"{}\"}} 1",
            env!("CARGO_PKG_VERSION"),
            server.engine().store().backend()
        );
        let _ = writeln!(text, "# HELP fernery_http_requests_total Requests by route and status.");
        let _ = writeln!(text, "# TYPE fernery_http_requests_total counter");
        for (n, row) in self.answers.iter().enumerate() {
            let (method, path) =
                ROUTES.get(n).map_or(("", "unknown"), |route| (route.method.as_str(), route.path));
            for (status, count) in STATUSES.iter().zip(row) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let _ = writeln!(
                        text,
                        "fernery_http_requests_total{{method=\"{method}\",route=\"{path}\",status=\"{status}\"}} {count}"
                    );
                }
            }
        }
        let load = |counter: &AtomicU64| i128::from(counter.load(Ordering::Relaxed));
        let open = server.open_connections() as i128;
        one(&mut text, "gauge", "fernery_connections", "Connections that are open.", open);
        one(
            &mut text,
            "counter",
            "fernery_connections_total",
            "Connections that were accepted.",
            load(&self.connected),
        );
        let help = "Connections that were refused because of the cap.";
        one(&mut text, "counter", "fernery_connections_refused_total", help, load(&self.turned_away));
        let waiting = server.waiting.load(Ordering::Relaxed) as i128;
        one(&mut text, "gauge", "fernery_claims_waiting", "Claims that wait for a job.", waiting);
        if let Some(transport) = &server.engine().settings().store.transport {
            let _ = writeln!(
                text,
                "# HELP fernery_messages_total What happened to messages in Redis.\n# TYPE fernery_messages_total counter"
            );
            for (what, count) in transport.counts() {
                let _ = writeln!(text, "fernery_messages_total{{what=\"{what}\"}} {count}");
            }
            let up = i128::from(transport.trouble().is_none());
            let help = "Whether Redis answers, takes messages and gives them.";
            one(&mut text, "gauge", "fernery_transport_up", help, up);
        }
        self.streams(server, &mut text).await;
        let started = i128::from(self.started_at.as_millis() / 1_000);
        one(&mut text, "gauge", "process_start_time_seconds", "When the process started.", started);
        if let Some(bytes) = resident_bytes() {
            let help = "Memory that the process holds.";
            one(&mut text, "gauge", "process_resident_memory_bytes", help, bytes.into());
        }
        text
    }

    async fn streams(&self, server: &Server, text: &mut String) {
        let store = server.engine().store();
        let up = match (store.streams().await, store.now().await) {
            (Ok(streams), Ok(now)) => {
                let _ = writeln!(
                    text,
                    "# HELP fernery_jobs Jobs by stream and state.\n# TYPE fernery_jobs gauge"
                );
                for stream in &streams {
                    let counts = &stream.counts;
                    for (state, count) in [
                        ("ready", counts.ready),
                        ("scheduled", counts.scheduled),
                        ("running", counts.running),
                        ("succeeded", counts.succeeded),
                        ("dead", counts.dead),
                        ("cancelled", counts.cancelled),
                    ] {
                        let _ = writeln!(
                            text,
                            "fernery_jobs{{stream=\"{}\",state=\"{state}\"}} {count}",
                            stream.name
                        );
                    }
                }
                let _ = writeln!(
                    text,
                    "# HELP fernery_oldest_ready_seconds How long the oldest claimable job has waited.\n\
                     # TYPE fernery_oldest_ready_seconds gauge"
                );
                for stream in &streams {
                    if let Some(since) = stream.oldest_ready_at {
                        let age = now.since(since).as_secs_f64();
                        let _ = writeln!(
                            text,
                            "fernery_oldest_ready_seconds{{stream=\"{}\"}} {age}",
                            stream.name
                        );
                    }
                }
                1
            }
            _ => 0,
        };
        let _ = writeln!(
            text,
            "# HELP fernery_store_up Whether the database answered.\n# TYPE fernery_store_up gauge\nfernery_store_up {up}"
        );
    }
}

fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

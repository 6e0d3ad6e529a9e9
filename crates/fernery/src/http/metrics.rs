//! Metrics for Prometheus. Labels come from the route table and from stream names, never from what a caller sends.

use super::Server;
use super::pages::PAGES;
use super::routes::ROUTES;
use fernery_core::{Timestamp, limits};
use fernery_engine::StoreError;
use fernery_engine::store::{Store, StreamCounts, StreamView};
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

/// Every HTTP status, so that every answer is counted, even one that the route table does not list.
const STATUSES: RangeInclusive<u16> = 100..=599;

/// The name of the sum over streams without lines of their own.
const OTHER: &str = "other";

#[derive(Debug)]
pub struct Metrics {
    /// By route or page and status; the last row counts requests that match none.
    answers: Vec<Vec<AtomicU64>>,
    connected: AtomicU64,
    turned_away: AtomicU64,
    started_at: Timestamp,
}

impl Metrics {
    /// Everything at zero.
    pub fn new(started_at: Timestamp) -> Self {
        let none = || STATUSES.map(|_| AtomicU64::new(0)).collect();
        let answers = (0..=ROUTES.len() + PAGES.len()).map(|_| none()).collect();
        Self { answers, connected: AtomicU64::new(0), turned_away: AtomicU64::new(0), started_at }
    }

    /// A page was answered, by its place in the table of pages.
    pub fn showed(&self, page: Option<usize>, status: u16) {
        self.answered(page.map(|page| ROUTES.len() + page), status);
    }

    pub fn answered(&self, route: Option<usize>, status: u16) {
        let row = &self.answers[route.unwrap_or(ROUTES.len() + PAGES.len())];
        let place = usize::from(status).checked_sub(usize::from(*STATUSES.start()));
        if let Some(count) = place.and_then(|place| row.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

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
            let route = ROUTES.get(n).map(|route| (&route.method, route.path));
            let page = || PAGES.get(n.checked_sub(ROUTES.len())?).map(|page| (&page.method, page.path));
            let named = route.or_else(page);
            let (method, path) = named.map_or(("", "unknown"), |(method, path)| (method.as_str(), path));
            for (status, count) in STATUSES.zip(row) {
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
        one(&mut text, "gauge", "fernery_connections", "Open connections.", open);
        one(
            &mut text,
            "counter",
            "fernery_connections_total",
            "Accepted connections.",
            load(&self.connected),
        );
        let help = "Connections that were refused because of the connection limit.";
        one(&mut text, "counter", "fernery_connections_refused_total", help, load(&self.turned_away));
        let help = "Request heads that were refused because too many were incomplete.";
        one(&mut text, "counter", "fernery_heads_refused_total", help, server.heads.refused().into());
        let claiming = server.claiming.load(Ordering::Relaxed) as i128;
        one(&mut text, "gauge", "fernery_claims_waiting", "Claims that are waiting for a job.", claiming);
        if let Some(transport) = &server.engine().settings().store.transport {
            let _ = writeln!(
                text,
                "# HELP fernery_messages_total What happened to messages in Redis.\n# TYPE fernery_messages_total counter"
            );
            for (what, count) in transport.counts() {
                let _ = writeln!(text, "fernery_messages_total{{what=\"{what}\"}} {count}");
            }
            let up = i128::from(transport.trouble().is_none());
            let help = "Whether Redis answers, accepts messages and delivers them.";
            one(&mut text, "gauge", "fernery_transport_up", help, up);
        }
        super::calls::ready::loops_text(server.engine(), &mut text);
        self.streams(server, &mut text).await;
        let started = i128::from(self.started_at.as_millis() / 1_000);
        one(&mut text, "gauge", "process_start_time_seconds", "Start time of the process.", started);
        if let Some(bytes) = resident_bytes() {
            let help = "Resident memory of the process.";
            one(&mut text, "gauge", "process_resident_memory_bytes", help, bytes.into());
        }
        text
    }

    /// The streams. The first ones by name have lines of their own; the others are summed as `other`.
    async fn streams(&self, server: &Server, text: &mut String) {
        let seen = StreamsSeen::look(server.engine().store()).await;
        let up = i32::from(seen.is_ok());
        if let Ok(seen) = seen {
            seen.render(text);
        }
        let _ = writeln!(
            text,
            "# HELP fernery_store_up Whether the database answered.\n# TYPE fernery_store_up gauge\nfernery_store_up {up}"
        );
    }
}

/// The streams in the metrics.
struct StreamsSeen {
    shown: Vec<StreamView>,
    /// The number and the sums of the others.
    others: Option<(u64, StreamCounts)>,
    now: Timestamp,
}

impl StreamsSeen {
    async fn look(store: &dyn Store) -> Result<Self, StoreError> {
        let mut shown = store.streams(None, limits::METRICS_STREAMS_MAX + 1).await?;
        let mut others = None;
        if shown.len() > limits::METRICS_STREAMS_MAX {
            shown.truncate(limits::METRICS_STREAMS_MAX);
            let (mut beyond, mut sums) =
                store.streams_beyond(shown.last().map(|last| last.name.clone())).await?;
            // A stream that is called `other` itself is counted among the others: no series may appear twice.
            if let Some(n) = shown.iter().position(|stream| stream.name.as_str() == OTHER) {
                sums.add(&shown.remove(n).counts);
                beyond += 1;
            }
            others = Some((beyond, sums));
        }
        Ok(Self { shown, others, now: store.now().await? })
    }

    fn render(&self, text: &mut String) {
        let beyond = self.others.as_ref().map_or(0, |(beyond, _)| *beyond);
        let _ = writeln!(
            text,
            "# HELP fernery_streams Number of streams.\n# TYPE fernery_streams gauge\nfernery_streams {}",
            self.shown.len() as u64 + beyond
        );
        let _ = writeln!(
            text,
            "# HELP fernery_jobs Jobs by stream and state; streams beyond the first {} by name are summed as {OTHER}.\n\
             # TYPE fernery_jobs gauge",
            limits::METRICS_STREAMS_MAX
        );
        let shown = self.shown.iter().map(|stream| (stream.name.as_str(), &stream.counts));
        for (name, counts) in shown.chain(self.others.iter().map(|(_, sums)| (OTHER, sums))) {
            for (state, count) in [
                ("ready", counts.ready),
                ("scheduled", counts.scheduled),
                ("running", counts.running),
                ("succeeded", counts.succeeded),
                ("dead", counts.dead),
                ("cancelled", counts.cancelled),
            ] {
                let _ = writeln!(text, "fernery_jobs{{stream=\"{name}\",state=\"{state}\"}} {count}");
            }
        }
        let _ = writeln!(
            text,
            "# HELP fernery_oldest_ready_seconds How long the oldest claimable job has waited.\n\
             # TYPE fernery_oldest_ready_seconds gauge"
        );
        for stream in &self.shown {
            if let Some(since) = stream.oldest_ready_at {
                let age = self.now.since(since).as_secs_f64();
                let _ = writeln!(text, "fernery_oldest_ready_seconds{{stream=\"{}\"}} {age}", stream.name);
            }
        }
    }
}

fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::problem::Code;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_status_of_every_route_and_code_is_counted_as_itself() {
        let answers = ROUTES.iter().flat_map(|route| route.answers.iter().map(|(status, _)| *status));
        let all: BTreeSet<u16> = answers.chain(Code::ALL.iter().map(|code| code.status())).collect();
        for status in all {
            let metrics = Metrics::new(Timestamp::from_millis(0));
            metrics.answered(Some(0), status);
            let row = metrics.answers[0].iter().map(|count| count.load(Ordering::Relaxed));
            let counted: Vec<u16> =
                STATUSES.zip(row).filter(|(_, n)| *n > 0).map(|(status, _)| status).collect();
            assert_eq!(counted, [status]);
        }
    }
}

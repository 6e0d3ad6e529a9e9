//! Compares Redis Streams as transport with the same PostgreSQL without Redis, and three servers with one.

use super::server::Server;
use super::{Bench, ROUNDS, load, quantile, wire};
use anyhow::{Context, Result, bail, ensure};
use std::time::Duration;

impl Bench {
    pub(super) async fn transport(&mut self) -> Result<()> {
        let database = self.args.database.clone().context("--database is needed")?;
        let redis = self.args.redis.clone().context("--redis is needed")?;
        let jobs = self.args.jobs / 2_000 * 1_000;
        let mut servers = Vec::new();
        for n in 0..3 {
            let data = self.folder.join(format!("with-redis-{n}"));
            std::fs::create_dir_all(&data)?;
            servers.push(Server::up(&data, &database, Some(&redis)).await?);
        }
        let with = servers.iter().collect::<Vec<_>>();
        let plain = self.server("without-redis").await?;
        let lanes = self.lanes();
        let (mut drain, mut through, mut three) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            self.step("transport", round, ROUNDS);
            let stream = |what: &str| format!("{what}-{round}");
            load::enqueue(&plain, &stream("plain"), jobs, 1_000).await?;
            let drained = load::drain_array(&plain, &stream("plain"), lanes, 100).await?;
            let through_plain = run_through(&plain, &stream("plain"), jobs, lanes).await?;
            fill(&with, &stream("one"), jobs).await?;
            let one = load::drain_array(with[0], &stream("one"), lanes, 100).await?;
            let through_redis = run_through(with[0], &stream("through"), jobs, lanes).await?;
            fill(&with, &stream("three"), jobs).await?;
            let all = load::drain_from(&with, &stream("three"), lanes, 100, None).await?;
            drain.push((one, one / drained));
            through.push((through_redis, through_redis / through_plain));
            three.push((all, all / one));
        }
        for server in servers {
            server.stop().await?;
        }
        plain.stop().await?;
        let median = |of: &[(f64, f64)]| {
            let middle =
                |pick: fn(&(f64, f64)) -> f64| quantile(&mut of.iter().map(pick).collect::<Vec<_>>(), 0.5);
            (middle(|figure| figure.0), middle(|figure| figure.1))
        };
        for (what, figures, against, target) in [
            ("redis_drain_100", &drain, "without Redis", 0.7),
            ("redis_through_100", &through, "without Redis", 0.5),
            ("redis_three_servers", &three, "one server", 0.7),
        ] {
            let (value, ratio) = median(figures);
            self.at_least(what, value, (against, ratio), target)?;
        }
        Ok(())
    }
}

/// Fills a stream and waits until every job has its message, whichever server sends it.
async fn fill(servers: &[&Server], stream: &str, jobs: usize) -> Result<()> {
    let before = sent(servers).await?;
    load::enqueue(servers[0], stream, jobs, 1_000).await?;
    for _ in 0..1_000 {
        if sent(servers).await? >= before + jobs as f64 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("the messages of {stream} were not sent in time")
}

/// Enqueue and drain at the same time; jobs per second.
async fn run_through(server: &Server, stream: &str, jobs: usize, lanes: usize) -> Result<f64> {
    let enqueue = load::enqueue(server, stream, jobs, 1_000);
    let servers = [server];
    let drain = load::drain_from(&servers, stream, lanes, 100, Some(jobs));
    let (enqueued, drained) = tokio::join!(enqueue, drain);
    enqueued?;
    drained
}

/// Messages that the servers have sent.
async fn sent(servers: &[&Server]) -> Result<f64> {
    let mut sum = 0.0;
    for server in servers {
        let mut probe = wire::Wire::connect(server.address, &server.operator).await?;
        let (status, body) = probe.request("GET", "/metrics", b"").await?;
        ensure!(status == 200, "metrics answered {status}");
        let text = String::from_utf8_lossy(body);
        let count = text.lines().find_map(|line| line.strip_prefix("fernery_messages_total{what=\"sent\"} "));
        sum += count.and_then(|n| n.trim().parse::<f64>().ok()).context("no count of messages")?;
    }
    Ok(sum)
}

//! What the databases can do without an engine: one table, claim by UPDATE, complete by UPDATE, and the row is kept. This is
//! the other side of every ratio, measured in the same run.

use anyhow::{Context, Result};
use fernery_engine::door::stop_watch;
use rusqlite::Connection;
use std::path::Path;

pub(super) const PAYLOAD: &str = r#"{"to":"someone@example.org","subject":"hello","body":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"#;

/// Jobs per second of a raw table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    /// Claimed and completed, in batches of a hundred.
    pub(super) cycle: f64,
    /// Inserted, in batches of a thousand.
    pub(super) insert: f64,
}

pub(super) fn sqlite(folder: &Path, jobs: usize) -> Result<Raw> {
    let db = Connection::open(folder.join("raw.db"))?;
    db.execute_batch(
        "DROP TABLE IF EXISTS job; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
         CREATE TABLE job (id INTEGER PRIMARY KEY, stream TEXT NOT NULL, state INTEGER NOT NULL, payload TEXT NOT NULL);
         CREATE INDEX job_ready ON job (stream, id) WHERE state = 0;",
    )?;
    let started = stop_watch();
    let rows = vec!["(?1, 0, ?2)"; 50].join(", ");
    let mut insert = db.prepare(&format!("INSERT INTO job (stream, state, payload) VALUES {rows}"))?;
    for _ in 0..jobs / 1_000 {
        db.execute_batch("BEGIN IMMEDIATE")?;
        for _ in 0..1_000 / 50 {
            insert.execute(("bench", PAYLOAD))?;
        }
        db.execute_batch("COMMIT")?;
    }
    let inserted = jobs as f64 / started.elapsed().as_secs_f64();
    let mut claim = db.prepare(
        "UPDATE job SET state = 1 WHERE id IN (SELECT id FROM job WHERE stream = ?1 AND state = 0 ORDER BY id LIMIT 100)
         RETURNING id, payload",
    )?;
    let mut complete = db.prepare("UPDATE job SET state = 2 WHERE id = ?1 AND state = 1")?;
    let started = stop_watch();
    let mut done = 0;
    while done < jobs {
        db.execute_batch("BEGIN IMMEDIATE")?;
        let ids: Vec<i64> = claim
            .query_map(["bench"], |row| {
                row.get::<_, String>(1)?;
                row.get(0)
            })?
            .collect::<Result<_, _>>()?;
        db.execute_batch("COMMIT")?;
        db.execute_batch("BEGIN IMMEDIATE")?;
        for id in &ids {
            complete.execute([id])?;
        }
        db.execute_batch("COMMIT")?;
        anyhow::ensure!(!ids.is_empty(), "the raw table is empty");
        done += ids.len();
    }
    Ok(Raw { cycle: done as f64 / started.elapsed().as_secs_f64(), insert: inserted })
}

pub(super) async fn postgres(url: &str, jobs: usize) -> Result<Raw> {
    let connect = || async {
        let (client, connection) =
            tokio_postgres::connect(url, tokio_postgres::NoTls).await.context("connecting to PostgreSQL")?;
        tokio::spawn(connection);
        anyhow::Ok(client)
    };
    let setup = connect().await?;
    setup
        .batch_execute(
            "DROP TABLE IF EXISTS fernery_bench_raw;
             CREATE TABLE fernery_bench_raw
                 (id bigint PRIMARY KEY, stream text NOT NULL, rank smallint NOT NULL DEFAULT 0,
                  state smallint NOT NULL, payload json NOT NULL);
             CREATE INDEX fernery_bench_raw_ready ON fernery_bench_raw (stream, rank, id) WHERE state = 0;",
        )
        .await?;
    let inserted = {
        let insert = setup
            .prepare(
                "INSERT INTO fernery_bench_raw (id, stream, state, payload)
                 SELECT id, 'bench', 0, payload::json FROM unnest($1::bigint[], $2::text[]) AS t (id, payload)",
            )
            .await?;
        let payloads = vec![PAYLOAD; 1_000];
        let started = stop_watch();
        for batch in 0..jobs / 1_000 {
            let ids: Vec<i64> = (0..1_000).map(|n| (batch * 1_000 + n) as i64).collect();
            setup.execute(&insert, &[&ids, &payloads]).await?;
        }
        jobs as f64 / started.elapsed().as_secs_f64()
    };
    setup.batch_execute("ANALYZE fernery_bench_raw").await?;
    let mut lanes = Vec::new();
    let started = stop_watch();
    for _ in 0..4 {
        let client = connect().await?;
        lanes.push(tokio::spawn(async move {
            let claim = client
                .prepare(
                    "UPDATE fernery_bench_raw SET state = 1 WHERE id = ANY (ARRAY(
                         SELECT id FROM fernery_bench_raw WHERE stream = 'bench' AND state = 0
                         -- Not by id alone: the planner would walk the primary key past every finished row.
                         ORDER BY rank, id LIMIT 100 FOR UPDATE SKIP LOCKED))
                     RETURNING id, payload::text",
                )
                .await?;
            let complete = client
                .prepare("UPDATE fernery_bench_raw SET state = 2 WHERE id = ANY ($1::bigint[]) AND state = 1")
                .await?;
            let mut done = 0;
            loop {
                let rows = client.query(&claim, &[]).await?;
                if rows.is_empty() {
                    return anyhow::Ok(done);
                }
                let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
                client.execute(&complete, &[&ids]).await?;
                done += ids.len();
            }
        }));
    }
    let mut done = 0;
    for lane in lanes {
        done += lane.await??;
    }
    let cycle = done as f64 / started.elapsed().as_secs_f64();
    setup.batch_execute("DROP TABLE fernery_bench_raw").await?;
    Ok(Raw { cycle, insert: inserted })
}

//! A job queue inside a program: no server, one file.

use fernery_engine::{Engine, JobStatus, StoreError};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// The work itself.
async fn send(mail: &str) -> Result<Value, String> {
    let mail: Value = serde_json::from_str(mail).map_err(|error| error.to_string())?;
    let to = mail["to"].as_str().filter(|to| to.contains('@')).ok_or("no address")?;
    Ok(json!({ "sent_to": to }))
}

/// A worker: takes jobs until none has come for a while.
async fn work(engine: &Engine, patience: Duration) -> Result<(), StoreError> {
    while let Some(job) = engine.claim_one("mail", patience).await? {
        match engine.while_held(&job, send(job.payload.get())).await {
            Ok(Ok(sent)) => engine.complete(&job, &sent).await?,
            Ok(Err(why)) => engine.fail_for_good(&job, "not_sent", &why).await?,
            // If the lease is lost this changes nothing: another has the job.
            Err(stop) => engine.fail(&job, "stopped", &stop.to_string()).await?,
        };
    }
    Ok(())
}

/// Stores two jobs, works on them, and tells what became of each.
pub async fn run(database: &Path) -> Result<Vec<JobStatus>, StoreError> {
    let engine = Engine::sqlite(database).await?;
    let good = engine.enqueue("mail", &json!({ "to": "ada@example.org" })).await?;
    let bad = engine.enqueue("mail", &json!({ "to": "nobody" })).await?;

    work(&engine, Duration::from_millis(10)).await?;

    let mut ends = Vec::new();
    for job_id in [good, bad] {
        ends.extend(engine.job(job_id, Duration::ZERO).await?.map(|job| job.brief.status));
    }
    engine.close().await;
    Ok(ends)
}

#[tokio::main]
async fn main() -> Result<(), StoreError> {
    println!("{:?}", run(Path::new("jobs.db")).await?);
    Ok(())
}

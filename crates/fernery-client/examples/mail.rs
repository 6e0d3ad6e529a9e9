//! One producer, one worker, one mail.

use fernery_client::{Client, ClientError, Failure, Job, JobEnd, NewJob, Worker};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Mail {
    to: String,
    text: String,
}

/// A producer: stores one job and waits for what comes of it.
pub async fn send(client: &Client, to: &str) -> Result<JobEnd<usize>, ClientError> {
    let mail = Mail { to: to.into(), text: "good morning".into() };
    let job = NewJob::on("mail").payload(&mail).unique(format!("good morning, {to}")).max_attempts(3);
    client.enqueue(job).await?.wait(Duration::from_secs(30)).await
}

/// A handler: any error becomes a failure by `?`, and the attempt is made again later.
async fn deliver(job: Job) -> Result<usize, Failure> {
    let mail: Mail = job.payload()?;
    let (_, host) = mail.to.split_once('@').ok_or(Failure::new("no_host", mail.to.clone()).permanent())?;
    job.progress(50, Some(&format!("talking to {host}")));
    Ok(mail.text.len())
}

/// A worker: eight handlers at once, until it is told to stop. Finished work survives in the spool.
pub fn postman(client: Client) -> Worker {
    Worker::new(client).concurrency(8).spool("spool").handle("mail", deliver)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let token = |name| std::fs::read_to_string(format!(".fernery/{name}.token"));
    let client = |token: String| Client::new("http://127.0.0.1:8080", Some(token.trim()), None);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let working = tokio::spawn(postman(client(token("worker")?)?).run_until(stopped));
    match send(&client(token("operator")?)?, "ada@example.org").await? {
        JobEnd::Succeeded(bytes) => println!("sent {bytes} bytes"),
        other => println!("not sent: {other:?}"),
    }
    drop(stop);
    println!("{}", working.await??);
    Ok(())
}

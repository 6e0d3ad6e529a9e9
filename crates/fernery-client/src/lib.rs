//! The Rust client of Fernery: enqueues jobs, waits for them, and works on them.
//!
//! A producer describes a [`NewJob`] and hands it to [`Client::enqueue`]; the call repeats itself where an answer was
//! lost, and never makes two jobs of one. A [`Worker`] claims jobs, keeps their leases and reports their ends; its
//! handlers are plain async functions from a [`Job`] to a result or a [`Failure`].
//!
//! ```no_run
//! use fernery_client::{Client, JobEnd, NewJob, Worker};
//! use serde::{Deserialize, Serialize};
//! use std::time::Duration;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Mail {
//!     to: String,
//! }
//!
//! # async fn example(operator_token: &str, worker_token: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new("http://127.0.0.1:8080", Some(operator_token), None)?;
//! let mail = Mail { to: "ada@example.org".into() };
//! let job = client.enqueue(NewJob::on("mail").payload(&mail).unique("mail:ada").max_attempts(3)).await?;
//!
//! let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
//! let worker = Worker::new(Client::new("http://127.0.0.1:8080", Some(worker_token), None)?)
//!     .concurrency(8)
//!     .spool("/var/lib/mailer")
//!     .handle("mail", |job| async move {
//!         let mail: Mail = job.payload()?;
//!         job.progress(50, Some("talking to the mail server"));
//!         let sent_bytes: usize = mail.to.parse::<std::net::IpAddr>().map(|_| 0).or(Ok::<_, std::io::Error>(17))?;
//!         Ok(sent_bytes)
//!     });
//! let working = tokio::spawn(worker.run_until(stopped));
//!
//! if let JobEnd::Succeeded(bytes) = job.wait::<usize>(Duration::from_secs(30)).await? {
//!     println!("sent {bytes} bytes");
//! }
//! let _ = stop.send(());
//! println!("{}", working.await??);
//! # Ok(())
//! # }
//! ```
//!
//! [`wire`] has every request and response as the server writes and reads them; the calls of [`Client`] that take and
//! give those are sent once.

mod backoff;
pub mod client;
mod door;
pub mod producer;
pub mod wire;
pub mod worker;

pub use client::{Client, ClientError};
pub use fernery_core::{AttemptId, JobId};
pub use producer::{JobEnd, JobError, JobHandle, NewJob};
pub use worker::{Failure, Job, StopReason, Summary, Worker, WorkerError, WorkerEvent};

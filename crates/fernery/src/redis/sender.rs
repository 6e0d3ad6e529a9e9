//! Sends messages, pipelined, over a connection of its own that is never silently replaced.

use super::link::{self, Link};
use super::{Counters, STREAMS_AT_ONCE, reply};
use async_trait::async_trait;
use fernery_core::StreamName;
use fernery_engine::transport::{Away, DEAD_LETTERS, MessageId, Note, Sender};
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, Value, cmd};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::warn;

/// Messages sent by one call.
const SEND_BATCH: usize = 1_000;
/// Messages about dead jobs that are kept; nobody has to read them.
const DEAD_LETTERS_KEPT: usize = 100_000;

/// A key that no stream can have: stream names have no spaces.
const NOBODYS: &str = "fernery probe";

pub(super) struct RedisSender {
    connection: MultiplexedConnection,
    link: Arc<Link>,
    group: String,
    /// Streams that are known to have had their group.
    grouped: HashSet<StreamName>,
    counters: Arc<Counters>,
}

impl RedisSender {
    /// Fails if Redis would refuse messages.
    pub(super) async fn new(link: Arc<Link>, group: String, counters: Arc<Counters>) -> Result<Self, Away> {
        let connection = match link.connect().await {
            Ok(connection) => connection,
            Err(away) => return Err(failed(&link, &counters, away)),
        };
        let mut sender = Self { connection, link, group, grouped: HashSet::new(), counters };
        sender.probe().await?;
        sender.link.sends(None);
        Ok(sender)
    }

    async fn ask(&mut self, commands: &Pipeline) -> Result<Vec<Value>, Away> {
        let answers = link::ask(&mut self.connection, commands).await;
        answers.map_err(|away| failed(&self.link, &self.counters, away))
    }

    /// Tries to send to a stream that does not exist. This writes nothing, but is refused as any message would be if Redis is
    /// full or a replica.
    async fn probe(&mut self) -> Result<(), Away> {
        let mut commands = link::commands();
        let mut add = cmd("XADD");
        add.arg(NOBODYS).arg("NOMKSTREAM").arg("*").arg("job_id").arg("");
        commands.add_command(add);
        let answers = link::answers(&mut self.connection, &commands).await;
        let answers = answers.map_err(|away| failed(&self.link, &self.counters, away))?;
        match answers.first() {
            // The user may lack the right to this key but have it for others.
            Some(Value::ServerError(error))
                if error.code() != "NOPERM" && link::cannot_serve(error.code()) =>
            {
                Err(failed(&self.link, &self.counters, Away(error.to_string())))
            }
            _ => Ok(()),
        }
    }
}

/// Counts and reports that nothing can be sent.
fn failed(link: &Link, counters: &Counters, away: Away) -> Away {
    counters.failures.fetch_add(1, Ordering::Relaxed);
    link.sends(Some(away.0.clone()));
    away
}

#[async_trait]
impl Sender for RedisSender {
    async fn newest(&mut self, streams: &[StreamName]) -> Result<Vec<Option<MessageId>>, Away> {
        self.probe().await?;
        let mut newest = Vec::with_capacity(streams.len());
        for some in streams.chunks(STREAMS_AT_ONCE) {
            let mut commands = link::commands();
            for stream in some {
                commands.add_command(cmd("XINFO").arg("STREAM").arg(stream.as_str()).to_owned());
            }
            let answers = self.ask(&commands).await?;
            newest.extend(answers.into_iter().map(reply::newest));
        }
        Ok(newest)
    }

    /// Creates the group of a stream before its first message. So a stream without a group is one that Redis has lost.
    async fn prepare(&mut self, notes: &[Note]) -> Result<Vec<StreamName>, Away> {
        let unknown =
            |stream: &&StreamName| stream.as_str() != DEAD_LETTERS && !self.grouped.contains(*stream);
        let unknown: HashSet<&StreamName> = notes.iter().map(|note| &note.stream).filter(unknown).collect();
        if unknown.is_empty() {
            return Ok(Vec::new());
        }
        let mut commands = link::commands();
        for stream in &unknown {
            let mut create = cmd("XGROUP");
            create.arg("CREATE").arg(stream.as_str()).arg(&self.group).arg("0").arg("MKSTREAM");
            commands.add_command(create);
        }
        let answers = self.ask(&commands).await?;
        let made = |answer: &Value| matches!(answer, Value::Okay);
        let made: Vec<StreamName> = unknown
            .iter()
            .zip(&answers)
            .filter(|(_, answer)| made(answer))
            .map(|(s, _)| (*s).clone())
            .collect();
        self.grouped.extend(unknown.into_iter().cloned());
        Ok(made)
    }

    async fn send(&mut self, notes: &[Note]) -> Result<Vec<Option<MessageId>>, Away> {
        let mut ids = Vec::with_capacity(notes.len());
        let mut told = HashSet::new();
        for batch in notes.chunks(SEND_BATCH) {
            let mut commands = link::commands();
            for note in batch {
                let mut add = cmd("XADD");
                add.arg(note.stream.as_str());
                if note.stream.as_str() == DEAD_LETTERS {
                    add.arg("MAXLEN").arg("~").arg(DEAD_LETTERS_KEPT);
                } else {
                    // A stream created by its message would have no group, and its loss would go unnoticed.
                    add.arg("NOMKSTREAM");
                }
                add.arg("*").arg("job_id").arg(note.job_id.to_string());
                add.arg("enqueue_id").arg(note.enqueue_id());
                commands.add_command(add);
            }
            let answers = self.ask(&commands).await?;
            let mut sent = 0;
            for (note, answer) in batch.iter().zip(answers) {
                ids.push(match &answer {
                    Value::BulkString(text) => {
                        sent += 1;
                        let id = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                        Some(id.unwrap_or_default())
                    }
                    Value::Nil => {
                        self.grouped.remove(&note.stream);
                        None
                    }
                    // The key holds something else. The jobs of this stream are found in the database; the other streams must not wait.
                    refused => {
                        if told.insert(&note.stream) {
                            warn!(
                                stream = %note.stream, ?refused,
                                "Redis accepts no message for this stream; its jobs are claimed \
                                 from the database"
                            );
                        }
                        Some(MessageId::default())
                    }
                });
            }
            self.counters.sent.fetch_add(sent, Ordering::Relaxed);
        }
        Ok(ids)
    }
}

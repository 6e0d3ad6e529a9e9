//! Redis Streams as transport: the commands, the connections, and what is counted. What messages mean is the engine's
//! business (`fernery_engine::transport`).
//!
//! Only commands of Redis 7.0 are used. Reads happen on demand and never block. The sender of a message wakes the waiting
//! claim, so no connection is blocked and no message is read before a claim wants it.

pub(crate) mod health;
mod link;
mod reading;
mod reply;
mod sender;

use self::link::Link;
use self::reply::Entry;
use self::sender::RedisSender;
use crate::config::{AckBy, TransportSettings};
use async_trait::async_trait;
use fernery_core::StreamName;
use fernery_engine::supervise::Loops;
use fernery_engine::transport::{
    Abandoned, Away, Counts, Hint, Load, Mail, MessageId, Page, Reason, Sender, Transport,
};
use redis::{Value, cmd};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tracing::{debug, warn};

/// Messages removed by one call.
const REMOVE_BATCH: usize = 1_000;
/// Messages that may wait for removal; the sweep finds the others.
const REMOVE_QUEUE: usize = 1_000;

/// Streams asked about by one call.
const STREAMS_AT_ONCE: usize = 500;

/// Atomically deletes a stream if it is empty, has no pending messages, has had no message since the given time, and no other
/// group reads it.
const FORGET: &str = r"
local last = redis.pcall('XINFO', 'STREAM', KEYS[1])
if last.err then return redis.call('EXISTS', KEYS[1]) == 0 and 1 or 0 end
for i = 1, #last, 2 do
  if last[i] == 'last-generated-id' and tonumber(string.match(last[i + 1], '^%d+')) >= tonumber(ARGV[2]) then return 0 end
end
if redis.call('XLEN', KEYS[1]) > 0 then return 0 end
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  for i = 1, #group, 2 do
    if group[i] == 'name' and group[i + 1] ~= ARGV[1] then return 0 end
    if group[i] == 'pending' and group[i + 1] > 0 then return 0 end
  end
end
redis.call('DEL', KEYS[1])
return 1";

impl TransportSettings {
    /// The transport settings that all processes should share, without the password: `redis host:port/number group ack`.
    pub(crate) fn identity(&self) -> String {
        let place = Link::new(&self.url).map_or_else(|_| "nowhere".into(), |link| link.place());
        let ack = match self.ack {
            AckBy::ControlPlane => "control-plane",
            AckBy::Worker => "worker",
        };
        format!("redis {place} {} {ack}", self.group)
    }
}

#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    read: AtomicU64,
    settled: AtomicU64,
    stale: AtomicU64,
    unknown: AtomicU64,
    malformed: AtomicU64,
    set_up_anew: AtomicU64,
    failures: AtomicU64,
}

/// Redis, as the engine sees it.
#[derive(Debug)]
pub struct RedisTransport {
    link: Arc<Link>,
    group: String,
    consumer: String,
    ack: AckBy,
    counters: Arc<Counters>,
    removals: mpsc::Sender<Removal>,
}

type Removal = Vec<(StreamName, MessageId)>;

impl RedisTransport {
    /// Checks the address only. Whether Redis answers is found out at each use.
    pub fn open(settings: &TransportSettings, loops: &Arc<Loops>) -> Result<Arc<Self>, String> {
        let link = Arc::new(Link::new(&settings.url)?);
        let (removals, queue) = mpsc::channel(REMOVE_QUEUE);
        let transport = Arc::new(Self {
            link: link.clone(),
            group: settings.group.clone(),
            consumer: format!("fernery-{:016x}", u64::from_ne_bytes(fernery_engine::door::random_bytes())),
            ack: settings.ack,
            counters: Arc::default(),
            removals,
        });
        let (group, counters) = (settings.group.clone(), transport.counters.clone());
        let queue = Arc::new(Mutex::new(queue));
        loops.run("message_removal", move || {
            remove(link.clone(), group.clone(), counters.clone(), queue.clone())
        });
        Ok(transport)
    }

    /// The readable entries; the others are removed at once.
    fn hints(&self, stream: &StreamName, entries: Vec<Entry>) -> Vec<Hint> {
        let mut hints = Vec::with_capacity(entries.len());
        let mut malformed = Vec::new();
        for entry in entries {
            match entry.hint(stream) {
                Some(hint) => hints.push(hint),
                None => malformed.push(entry.id),
            }
        }
        if !malformed.is_empty() {
            warn!(%stream, messages = malformed.len(), "deleted malformed messages");
            let (link, group, key) = (self.link.clone(), self.group.clone(), stream.clone());
            let counters = self.counters.clone();
            tokio::spawn(async move {
                let ids: Vec<&str> = malformed.iter().map(String::as_str).collect();
                let mut commands = link::commands();
                removal(&mut commands, &group, key.as_str(), &ids);
                // Another process may have seen the same entries: each is counted by the process that deletes it.
                if let Ok([_, Value::Int(gone)]) = link.ask(&commands).await.as_deref() {
                    counters.malformed.fetch_add(gone.unsigned_abs(), Ordering::Relaxed);
                }
            });
        }
        hints
    }
}

/// Acknowledges and deletes messages.
fn removal(commands: &mut redis::Pipeline, group: &str, key: &str, ids: &[&str]) {
    commands.add_command(cmd("XACK").arg(key).arg(group).arg(ids).to_owned());
    commands.add_command(cmd("XDEL").arg(key).arg(ids).to_owned());
}

/// Removes messages that are done, many at once. The sweep finds those that are lost here.
async fn remove(
    link: Arc<Link>,
    group: String,
    counters: Arc<Counters>,
    queue: Arc<Mutex<mpsc::Receiver<Removal>>>,
) {
    let mut queue = queue.lock().await;
    while let Some(mut batch) = queue.recv().await {
        while batch.len() < REMOVE_BATCH
            && let Ok(more) = queue.try_recv()
        {
            batch.extend(more);
        }
        let mut by_stream: HashMap<StreamName, Vec<String>> = HashMap::new();
        for (stream, id) in batch {
            by_stream.entry(stream).or_default().push(id.to_string());
        }
        let mut commands = link::commands();
        for (stream, ids) in &by_stream {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            removal(&mut commands, &group, stream.as_str(), &ids);
        }
        if let Err(away) = link.ask(&commands).await {
            counters.failures.fetch_add(1, Ordering::Relaxed);
            debug!(%away, "could not delete used messages; the sweep will");
        }
    }
}

#[async_trait]
impl Transport for RedisTransport {
    fn place(&self) -> String {
        format!("redis {}", self.link.place())
    }

    async fn sender(&self) -> Result<Box<dyn Sender>, Away> {
        let sender = RedisSender::new(self.link.clone(), self.group.clone(), self.counters.clone());
        Ok(Box::new(sender.await?))
    }

    async fn read(&self, streams: &[StreamName], in_hand: &[usize], max: usize) -> Result<Mail, Away> {
        self.read_streams(streams, in_hand, max).await
    }

    fn finished(&self, messages: Vec<(StreamName, MessageId)>, why: Reason) {
        if messages.is_empty() {
            return;
        }
        let counter = match why {
            Reason::Settled => &self.counters.settled,
            Reason::Stale => &self.counters.stale,
            Reason::Unknown => &self.counters.unknown,
        };
        counter.fetch_add(messages.len() as u64, Ordering::Relaxed);
        if self.ack == AckBy::ControlPlane || why != Reason::Settled {
            // If the queue is full, the sweep finds them.
            let _ = self.removals.try_send(messages);
        }
    }

    async fn loads(&self, streams: &[StreamName]) -> Result<Vec<Load>, Away> {
        let mut loads = Vec::with_capacity(streams.len());
        for some in streams.chunks(STREAMS_AT_ONCE) {
            let mut commands = link::commands();
            for stream in some {
                commands.add_command(cmd("XLEN").arg(stream.as_str()).to_owned());
                commands.add_command(cmd("XPENDING").arg(stream.as_str()).arg(&self.group).to_owned());
            }
            let mut answers = self.link.ask(&commands).await?.into_iter();
            let mut without_group = Vec::new();
            for stream in some {
                let messages = if let Some(Value::Int(n)) = answers.next() { n.unsigned_abs() } else { 0 };
                let in_hand = answers.next().and_then(reply::pending);
                if messages > 0 && in_hand.is_none() {
                    without_group.push((loads.len(), stream));
                }
                loads.push(Load { messages, in_hand: in_hand.unwrap_or(0), set_up_anew: false });
            }
            let mut commands = link::commands();
            for (_, stream) in &without_group {
                let mut create = cmd("XGROUP");
                commands.add_command(
                    create.arg("CREATE").arg(stream.as_str()).arg(&self.group).arg("0").to_owned(),
                );
            }
            for ((n, _), made) in without_group.into_iter().zip(self.link.ask(&commands).await?) {
                if made == Value::Okay {
                    loads[n].set_up_anew = true;
                    self.counters.set_up_anew.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Ok(loads)
    }

    async fn look(&self, stream: &StreamName, after: MessageId, max: usize) -> Result<Page, Away> {
        let from = format!("({after}");
        let mut commands = link::commands();
        commands.add_command(
            cmd("XRANGE").arg(stream.as_str()).arg(from).arg("+").arg("COUNT").arg(max).to_owned(),
        );
        let answers = self.link.ask(&commands).await?;
        let entries = answers.into_iter().next().map(reply::entries).unwrap_or_default();
        let (read, last) = (entries.len(), entries.last().and_then(|entry| entry.id.parse().ok()));
        Ok(Page { hints: self.hints(stream, entries), read, last })
    }

    async fn abandoned(
        &self,
        stream: &StreamName,
        idle: Duration,
        from: MessageId,
        max: usize,
    ) -> Result<Abandoned, Away> {
        let mut commands = link::commands();
        commands.add_command(
            cmd("XAUTOCLAIM")
                .arg(stream.as_str())
                .arg(&self.group)
                .arg(&self.consumer)
                .arg(idle.as_millis() as u64)
                .arg(from.to_string())
                .arg("COUNT")
                .arg(max)
                .to_owned(),
        );
        let answers = self.link.ask(&commands).await?;
        // Without a group nothing can be abandoned. The next read creates the group, and starts at the first message.
        let Some((next, entries)) = answers.into_iter().next().and_then(reply::claimed) else {
            return Ok(Abandoned::default());
        };
        let hints = self.hints(stream, entries);
        Ok(Abandoned { hints, next: next.parse().ok().filter(|id| *id != MessageId::default()) })
    }

    async fn forget_readers(&self, stream: &StreamName, idle: Duration) -> Result<(), Away> {
        let mut commands = link::commands();
        commands.add_command(cmd("XINFO").arg("CONSUMERS").arg(stream.as_str()).arg(&self.group).to_owned());
        let answers = self.link.ask(&commands).await?;
        let readers = answers.into_iter().next().map(reply::consumers).unwrap_or_default();
        let mut commands = link::commands();
        for reader in readers {
            let gone = reader.pending == 0 && u128::from(reader.idle_ms) > idle.as_millis();
            if gone && reader.name != self.consumer {
                let delete = cmd("XGROUP")
                    .arg("DELCONSUMER")
                    .arg(stream.as_str())
                    .arg(&self.group)
                    .arg(reader.name)
                    .to_owned();
                commands.add_command(delete);
            }
        }
        if !commands.is_empty() {
            self.link.ask(&commands).await?;
        }
        Ok(())
    }

    async fn forget(&self, stream: &StreamName, idle_since_ms: i64) -> Result<bool, Away> {
        let mut commands = link::commands();
        let mut script = cmd("EVAL");
        script.arg(FORGET).arg(1).arg(stream.as_str()).arg(&self.group).arg(idle_since_ms);
        commands.add_command(script);
        Ok(matches!(self.link.ask(&commands).await?.first(), Some(Value::Int(1))))
    }

    fn trouble(&self) -> Option<String> {
        self.link.trouble()
    }

    fn counts(&self) -> Counts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let c = &self.counters;
        vec![
            ("sent", load(&c.sent)),
            ("read", load(&c.read)),
            ("settled", load(&c.settled)),
            ("stale", load(&c.stale)),
            ("unknown", load(&c.unknown)),
            ("malformed", load(&c.malformed)),
            ("set_up_anew", load(&c.set_up_anew)),
            ("failures", load(&c.failures)),
        ]
    }
}

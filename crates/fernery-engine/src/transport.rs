//! Messages about jobs, carried by somebody else: what the engine needs from Redis Streams, and no more.
//!
//! A message is a hint. It names a job and the place in which it was put in line; the database decides whether that is
//! still so. A message may be lost, doubled, late, forged or about nothing, and costs time at worst: jobs that no message
//! tells of are found in the database (see `store/postgres/messages/relay.rs`).

use async_trait::async_trait;
use fernery_core::{JobId, StreamName};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use fernery_core::names::DEAD_LETTER_STREAM as DEAD_LETTERS;

/// The id that the transport gave a message: `<ms>-<n>`, growing in each stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    /// When it was sent, by the transport's clock.
    pub ms: i64,
    /// Which one of that millisecond.
    pub n: i64,
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.n)
    }
}

/// A text is no message id, or one that no clock gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadMessageId;

impl FromStr for MessageId {
    type Err = BadMessageId;

    fn from_str(text: &str) -> Result<Self, BadMessageId> {
        let (ms, n) = text.split_once('-').ok_or(BadMessageId)?;
        let number = |text: &str| text.parse::<i64>().ok().filter(|n| *n >= 0).ok_or(BadMessageId);
        let id = Self { ms: number(ms)?, n: number(n)? };
        // The year 10000 or so: what lies beyond is no time, and would not fit a column.
        if id.ms >> 48 == 0 { Ok(id) } else { Err(BadMessageId) }
    }
}

/// A job that waits, as it is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where it waits.
    pub stream: StreamName,
    /// The job.
    pub job_id: JobId,
    /// Its place in line.
    pub place: i64,
    /// Its version there: with the place, the name of this one enqueue.
    pub version: i64,
}

impl Note {
    /// The name of this enqueue: a requeue has another.
    pub fn enqueue_id(&self) -> String {
        format!("{}-{}", self.place, self.version)
    }

    /// Reads what [`Note::enqueue_id`] wrote.
    pub fn read_enqueue_id(text: &str) -> Option<(i64, i64)> {
        let (place, version) = text.split_once('-')?;
        Some((place.parse().ok()?, version.parse().ok()?))
    }
}

/// A message that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Its id.
    pub message: MessageId,
    /// What it says.
    pub note: Note,
}

/// The transport cannot be reached, or does not do what it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Away(pub String);

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a read brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mail {
    /// Messages, in the order of the streams asked for.
    pub hints: Vec<Hint>,
    /// Streams that had lost track of who read what, and were set up anew: they may have lost more than that.
    pub set_up_anew: Vec<StreamName>,
}

/// What a stream holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Messages.
    pub messages: u64,
    /// Messages that somebody took and has not dealt with, also such as are not there any more.
    pub in_hand: u64,
    /// It had lost track of who read what, and was set up anew: it may have lost more than that.
    pub set_up_anew: bool,
}

/// Messages as they stand in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Those that can be read.
    pub hints: Vec<Hint>,
    /// How many there were.
    pub read: usize,
    /// The last of them.
    pub last: Option<MessageId>,
}

/// Messages that somebody took and never dealt with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abandoned {
    /// They are ours now.
    pub hints: Vec<Hint>,
    /// Where the next look goes on; `None` at the end.
    pub next: Option<MessageId>,
}

/// Why a message is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The attempt that it led to has ended, or given the job back: durably.
    Settled,
    /// Its job went on without it.
    Stale,
    /// There is no such job.
    Unknown,
}

/// How often each kind of thing happened.
pub type Counts = Vec<(&'static str, u64)>;

/// A carrier of messages.
#[async_trait]
pub trait Transport: Send + Sync + fmt::Debug {
    /// Where its messages are, in one word after its kind, without a secret: those of two with the same place are the same.
    fn place(&self) -> String;

    /// A way to send, made anew: whatever happened to the transport before this, happened before.
    async fn sender(&self) -> Result<Box<dyn Sender>, Away>;

    /// Messages that nobody has had, earlier streams first: as many as make `max` with those of each stream that the caller
    /// has in hand already. Never waits for one to come.
    async fn read(&self, streams: &[StreamName], in_hand: &[usize], max: usize) -> Result<Mail, Away>;

    /// These messages have done what they were for, or are good for nothing: they are taken away in a moment.
    fn finished(&self, messages: Vec<(StreamName, MessageId)>, why: Reason);

    /// What each stream holds.
    async fn loads(&self, streams: &[StreamName]) -> Result<Vec<Load>, Away>;

    /// Up to `max` messages of a stream after the given one, whoever has them; nothing changes.
    async fn look(&self, stream: &StreamName, after: MessageId, max: usize) -> Result<Page, Away>;

    /// Up to `max` messages that somebody took longer ago than `idle`, from `from` on.
    async fn abandoned(
        &self,
        stream: &StreamName,
        idle: Duration,
        from: MessageId,
        max: usize,
    ) -> Result<Abandoned, Away>;

    /// Forgets readers of this stream that have gone.
    async fn forget_readers(&self, stream: &StreamName, idle: Duration) -> Result<(), Away>;

    /// Forgets a stream that holds nothing and has had no message since `idle_since_ms`, unless somebody else reads it. False:
    /// it stays.
    async fn forget(&self, stream: &StreamName, idle_since_ms: i64) -> Result<bool, Away>;

    /// What is wrong with it now, if anything: it is not there, takes no messages, or gives none.
    fn trouble(&self) -> Option<String>;

    /// What has happened to messages since the start.
    fn counts(&self) -> Counts;
}

/// A way to send that has not been interrupted since it was made.
#[async_trait]
pub trait Sender: Send {
    /// The newest message that each stream has ever had, as the transport knows it. Fails while nothing could be sent.
    async fn newest(&mut self, streams: &[StreamName]) -> Result<Vec<Option<MessageId>>, Away>;

    /// Sees to it that messages can be sent to the streams of these notes. Answers those to which they could not: they are
    /// new, or were lost.
    async fn prepare(&mut self, notes: &[Note]) -> Result<Vec<StreamName>, Away>;

    /// Sends one message for each note; answers their ids. `None`: the stream is gone, although it was prepared.
    async fn send(&mut self, notes: &[Note]) -> Result<Vec<Option<MessageId>>, Away>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_id_is_two_numbers_that_a_clock_can_give() {
        let id: MessageId = "1700000000000-7".parse().unwrap();
        assert_eq!((id.ms, id.n, id.to_string().as_str()), (1_700_000_000_000, 7, "1700000000000-7"));
        for bad in ["", "1", "-1-1", "1--1", "1-", "x-1", "18446744073709551615-1", "281474976710656-0"] {
            assert_eq!(bad.parse::<MessageId>(), Err(BadMessageId), "{bad}");
        }
    }

    #[test]
    fn the_name_of_an_enqueue_is_read_as_it_was_written() {
        let stream = StreamName::stored("s");
        let note = Note { stream, job_id: JobId::from_uuid(uuid::Uuid::nil()), place: 12, version: 3 };
        assert_eq!(Note::read_enqueue_id(&note.enqueue_id()), Some((12, 3)));
        assert_eq!(Note::read_enqueue_id("12"), None);
        assert_eq!(Note::read_enqueue_id("a-b"), None);
    }
}

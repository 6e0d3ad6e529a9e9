//! Group commit above the database: calls of one kind that arrive while its statement is in flight share the next one.
//!
//! An idle system adds no wait: a call that finds nothing in flight starts at once. Under load calls queue, and the next
//! batch takes all that fit into one statement: the longer a commit takes, the more calls share the next one.

use crate::error::{StoreError, StoreResult};
use crate::supervise::{caught, lock};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tracing::error;

/// Batches of one kind in flight: one that commits and one that runs meanwhile.
const LANES: usize = 2;
/// A second batch starts beside the first only when this many items wait: two small batches cost more than they save.
const SECOND_LANE_ITEMS: usize = 100;
/// Items of one batch; a single call that is larger runs alone.
const BATCH_ITEMS_MAX: usize = 1_000;
/// The maximum number of waiting calls.
const QUEUE_CALLS_MAX: usize = 10_000;
/// The maximum number of waiting items.
const QUEUE_ITEMS_MAX: usize = 100_000;
/// How long the calls of a failed batch are run one by one.
const ONE_BY_ONE_MAX: Duration = Duration::from_secs(3);

/// A kind of call that can share a statement.
pub(super) trait Verb: Send + Sync + 'static {
    type Call: Send + Sync + 'static;
    type Reply: Send + 'static;

    /// Whether a call is not made if its caller has left before it starts.
    const FOR_ITS_CALLER_ONLY: bool = false;

    /// How much of a batch the call takes.
    fn items(call: &Self::Call) -> usize;

    /// Whether two calls can share a statement.
    fn together(_first: &Self::Call, _other: &Self::Call) -> bool {
        true
    }

    /// Runs a batch; one reply for each call, in order.
    fn run(&self, calls: &[Self::Call]) -> impl Future<Output = StoreResult<Vec<Self::Reply>>> + Send;
}

pub(super) struct Grouper<V: Verb> {
    inner: Arc<Inner<V>>,
}

struct Inner<V: Verb> {
    verb: V,
    queue: Mutex<Queue<V>>,
    /// Told when a lane has nothing left to do.
    rests: Notify,
}

/// A call, and where its answer goes.
type Asked<V> = (<V as Verb>::Call, oneshot::Sender<StoreResult<<V as Verb>::Reply>>);

struct Queue<V: Verb> {
    waiting: VecDeque<Asked<V>>,
    items: usize,
    lanes: usize,
}

impl<V: Verb> Grouper<V> {
    pub(super) fn new(verb: V) -> Self {
        let queue = Mutex::new(Queue { waiting: VecDeque::new(), items: 0, lanes: 0 });
        Self { inner: Arc::new(Inner { verb, queue, rests: Notify::new() }) }
    }

    /// Waits until nothing runs.
    pub(super) async fn rest(&self) {
        loop {
            let rests = self.inner.rests.notified();
            if lock(&self.inner.queue).lanes == 0 {
                return;
            }
            rests.await;
        }
    }

    /// Hands in a call and waits for its reply. If the future is dropped, the call still runs.
    pub(super) async fn call(&self, call: V::Call) -> StoreResult<V::Reply> {
        let (sender, reply) = oneshot::channel();
        {
            let mut queue = lock(&self.inner.queue);
            let items = V::items(&call);
            if queue.waiting.len() >= QUEUE_CALLS_MAX
                || (queue.items + items > QUEUE_ITEMS_MAX && !queue.waiting.is_empty())
            {
                return Err(StoreError::Busy("too many calls are waiting for the database".into()));
            }
            queue.items += items;
            queue.waiting.push_back((call, sender));
            if queue.lanes == 0 || (queue.lanes < LANES && queue.items >= SECOND_LANE_ITEMS) {
                queue.lanes += 1;
                tokio::spawn(Inner::lane(self.inner.clone()));
            }
        }
        reply.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the call was abandoned".into())))
    }
}

/// Gives the lane back however the task ends.
struct Lane<V: Verb> {
    inner: Arc<Inner<V>>,
    given_back: bool,
}

impl<V: Verb> Drop for Lane<V> {
    fn drop(&mut self) {
        if !self.given_back {
            lock(&self.inner.queue).lanes -= 1;
        }
        self.inner.rests.notify_waiters();
    }
}

impl<V: Verb> Lane<V> {
    /// The next batch. If nothing is left, the lane is given back under the same lock: otherwise a call could arrive in
    /// between and find no lane.
    fn next_batch(&mut self) -> Option<Batch<V>> {
        let mut queue = lock(&self.inner.queue);
        let batch = queue.take_batch();
        if batch.0.is_empty() {
            queue.lanes -= 1;
            drop(queue);
            self.given_back = true;
            return None;
        }
        Some(batch)
    }
}

impl<V: Verb> Inner<V> {
    async fn lane(inner: Arc<Self>) {
        let mut lane = Lane { inner, given_back: false };
        while let Some((calls, replies)) = lane.next_batch() {
            lane.inner.answer(&calls, replies).await;
        }
    }

    /// A panic is an error of these calls, and the lane goes on with the next.
    async fn run(&self, calls: &[V::Call]) -> StoreResult<Vec<V::Reply>> {
        caught(self.verb.run(calls)).await.unwrap_or_else(|panicked| {
            error!(%panicked, "a database call panicked; it was rolled back");
            Err(StoreError::Corrupt("the work panicked".into()))
        })
    }

    async fn answer(&self, calls: &[V::Call], replies: Vec<oneshot::Sender<StoreResult<V::Reply>>>) {
        match self.run(calls).await {
            Ok(answers) => {
                for (sender, answer) in replies.into_iter().zip(answers) {
                    // A reply that nobody waits for is dropped; what that means is the reply's own business.
                    let _ = sender.send(Ok(answer));
                }
            }
            Err(error) if calls.len() > 1 && error.is_of_one_call() => {
                let since = crate::door::stop_watch();
                for (call, sender) in calls.iter().zip(replies) {
                    let answer = if since.elapsed() > ONE_BY_ONE_MAX {
                        Err(StoreError::Unavailable(format!("no time was left to retry it alone: {error}")))
                    } else {
                        let alone = self.run(std::slice::from_ref(call)).await;
                        alone.and_then(|mut answers| {
                            answers.pop().ok_or_else(|| StoreError::Corrupt("a call got no answer".into()))
                        })
                    };
                    let _ = sender.send(answer);
                }
            }
            Err(error) => {
                for sender in replies {
                    let _ = sender.send(Err(error.clone()));
                }
            }
        }
    }
}

type Batch<V> = (Vec<<V as Verb>::Call>, Vec<oneshot::Sender<StoreResult<<V as Verb>::Reply>>>);

impl<V: Verb> Queue<V> {
    /// The first call and all that can go with it, in order.
    fn take_batch(&mut self) -> Batch<V> {
        let mut calls: Vec<V::Call> = Vec::new();
        let mut replies = Vec::new();
        let mut left = VecDeque::new();
        let mut items = 0;
        while let Some((call, sender)) = self.waiting.pop_front() {
            let size = V::items(&call);
            if V::FOR_ITS_CALLER_ONLY && sender.is_closed() {
                self.items -= size;
                continue;
            }
            match calls.first() {
                Some(_) if items + size > BATCH_ITEMS_MAX => {
                    self.waiting.push_front((call, sender));
                    break;
                }
                Some(first) if !V::together(first, &call) => {
                    left.push_back((call, sender));
                    continue;
                }
                _ => {}
            }
            items += size;
            calls.push(call);
            replies.push(sender);
        }
        while let Some(skipped) = left.pop_back() {
            self.waiting.push_front(skipped);
        }
        self.items -= items;
        (calls, replies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Semaphore;

    /// Answers each call with the size of its batch; refuses batches that hold a zero.
    struct Echo {
        gate: Arc<Semaphore>,
    }

    impl Verb for Echo {
        type Call = u32;
        type Reply = usize;

        fn items(_: &u32) -> usize {
            1
        }

        fn together(first: &u32, other: &u32) -> bool {
            first % 2 == other % 2
        }

        async fn run(&self, calls: &[u32]) -> StoreResult<Vec<usize>> {
            let _pass = self.gate.acquire().await;
            if calls.contains(&0) {
                return Err(StoreError::Refused("a zero".into()));
            }
            Ok(vec![calls.len(); calls.len()])
        }
    }

    async fn answers(calls: &[u32]) -> Vec<StoreResult<usize>> {
        let gate = Arc::new(Semaphore::new(0));
        let grouper = Arc::new(Grouper::new(Echo { gate: gate.clone() }));
        let mut tasks = Vec::new();
        for call in calls {
            let (grouper, call) = (grouper.clone(), *call);
            tasks.push(tokio::spawn(async move { grouper.call(call).await }));
            tokio::task::yield_now().await;
        }
        gate.add_permits(1);
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.unwrap());
        }
        answers
    }

    #[tokio::test]
    async fn calls_that_arrive_while_one_is_in_flight_share_the_next_batch() {
        assert_eq!(answers(&[1, 1, 1, 1]).await, [Ok(1), Ok(3), Ok(3), Ok(3)]);
    }

    #[tokio::test]
    async fn a_second_batch_goes_beside_the_first_once_enough_calls_wait() {
        let all = answers(&[1; SECOND_LANE_ITEMS + 1]).await;
        assert_eq!((all[0].clone(), all[1].clone()), (Ok(1), Ok(SECOND_LANE_ITEMS)));
    }

    #[tokio::test]
    async fn calls_that_do_not_go_together_run_apart() {
        assert_eq!(answers(&[1, 1, 2, 1, 2, 2]).await, [Ok(1), Ok(2), Ok(3), Ok(2), Ok(3), Ok(3)]);
    }

    #[tokio::test]
    async fn a_call_fails_alone() {
        let refused = Err(StoreError::Refused("a zero".into()));
        assert_eq!(answers(&[2, 2, 0, 2]).await, [Ok(1), Ok(1), refused, Ok(1)]);
    }

    #[tokio::test]
    async fn a_dropped_caller_takes_nobody_with_it() {
        let gate = Arc::new(Semaphore::new(0));
        let grouper = Grouper::new(Echo { gate: gate.clone() });
        drop(tokio::time::timeout(Duration::ZERO, grouper.call(1)).await);
        gate.add_permits(1);
        assert_eq!(grouper.call(1).await, Ok(1));
    }
}

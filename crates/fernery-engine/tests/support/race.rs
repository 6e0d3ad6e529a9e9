//! Two hands at one thing.

use std::future::Future;
use std::sync::Arc;
use tokio::sync::Barrier;

/// How often each race is run.
pub(crate) const ROUNDS: usize = 25;

/// Runs two calls against each other; `round` decides how.
pub(crate) async fn race<A, B>(round: usize, a: A, b: B) -> (A::Output, B::Output)
where
    A: Future<Output: Send> + Send + 'static,
    B: Future<Output: Send> + Send + 'static,
{
    match round % 5 {
        0 => {
            let a = a.await;
            (a, b.await)
        }
        1 => {
            let b = b.await;
            (a.await, b)
        }
        2 => tokio::join!(biased; a, b),
        3 => {
            let (b, a) = tokio::join!(biased; b, a);
            (a, b)
        }
        _ => {
            let barrier = Arc::new(Barrier::new(2));
            let other = barrier.clone();
            let a = tokio::spawn(async move {
                barrier.wait().await;
                a.await
            });
            let b = tokio::spawn(async move {
                other.wait().await;
                b.await
            });
            (a.await.expect("no panic"), b.await.expect("no panic"))
        }
    }
}

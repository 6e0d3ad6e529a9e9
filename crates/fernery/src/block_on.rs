//! Waits for a future in a program that is not asynchronous itself.

use std::pin::Pin;
use tokio::runtime::Runtime;

/// Runs a future to its end. It is boxed, because the runtime compiles every type of future four times: for each of its two
/// schedulers, and for small and large ones.
pub(crate) fn block_on<T>(runtime: &Runtime, future: impl Future<Output = T>) -> T {
    let boxed: Pin<Box<dyn Future<Output = T> + '_>> = Box::pin(future);
    runtime.block_on(boxed)
}

//! Long work, done beside the threads that serve connections.

use crate::http::problem::{Code, Refusal, Refused};

/// Bodies up to this size are read on the thread that serves the connection.
pub(in crate::http) const SMALL_BYTES: usize = 4 << 10;

/// How many larger bodies are read at the same time.
pub(in crate::http) fn readers() -> usize {
    std::thread::available_parallelism().map_or(1, |threads| threads.get().div_ceil(2))
}

/// Does long work on another thread.
pub(in crate::http) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refused> {
    let panicked = |_| Err(Refusal::new(Code::Internal, Code::Internal.title()));
    tokio::task::spawn_blocking(work).await.unwrap_or_else(panicked)
}

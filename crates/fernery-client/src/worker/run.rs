//! Runs one handler to its end: an answer, a panic, or the end of its grace.

use super::event::{JobEnding, WorkerEvent};
use super::failure::{Ending, Failure};
use super::job::{Job, StopReason};
use super::report::{End, Report};
use super::shared::Shared;
use serde_json::value::RawValue;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc::UnboundedSender;

/// What a handler's future gives.
pub(crate) type Answer = Result<Box<RawValue>, Failure>;
/// A handler at work.
pub(crate) type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;
/// A handler.
pub(crate) type Handler = Arc<dyn Fn(Job) -> Work + Send + Sync>;

/// Runs the handler and passes its report on.
pub(crate) async fn run(shared: Arc<Shared>, handler: Handler, job: Job, reports: UnboundedSender<Report>) {
    let started = tokio::time::Instant::now();
    let answer = answer(&shared, &handler, &job).await;
    let (ending, end) = match answer {
        // Its answer is not reported.
        _ if job.is_lost() => (JobEnding::Dropped(StopReason::LeaseLost), None),
        Ok(Ok(result)) => (JobEnding::Succeeded, Some(End::Completed(result))),
        Ok(Err(Failure { what: Ending::Failed(error) })) => {
            let ending = JobEnding::Failed { code: error.code.clone(), message: error.message.clone() };
            (ending, Some(End::Failed(error)))
        }
        // A released attempt would not count, and a job that is always too slow would never end.
        Ok(Err(Failure { what: Ending::Released })) | Err(_)
            if job.stop_reason() == Some(StopReason::TimedOut) =>
        {
            if shared.held().drop_job(job.attempt_id()) {
                shared.tally.lost.add(1);
            }
            (JobEnding::Dropped(StopReason::TimedOut), None)
        }
        Ok(Err(Failure { what: Ending::Released })) => (JobEnding::Released, Some(End::Released)),
        Err(reason) => (JobEnding::Dropped(reason), Some(End::Released)),
    };
    shared.tell(|| WorkerEvent::Finished { job: job.clone(), ending, took: started.elapsed() });
    if let Some(end) = end {
        // Cannot fail: the receiver ends only after all handlers.
        let _ = reports.send(Report::of(&job, end));
    }
}

/// The handler's answer, or the reason for which it was dropped.
async fn answer(shared: &Shared, handler: &Handler, job: &Job) -> Result<Answer, StopReason> {
    let mut work = match catch_unwind(AssertUnwindSafe(|| handler(job.clone()))) {
        Ok(work) => CatchPanic(Some(work)),
        Err(panic) => return Ok(Err(panicked(&*panic))),
    };
    tokio::select! {
        biased;
        answer = &mut work => Ok(answer),
        () = overdue(shared, job) => Err(job.stop_reason().unwrap_or(StopReason::ShuttingDown)),
    }
}

/// The grace after a reason that forces the end.
async fn overdue(shared: &Shared, job: &Job) {
    job.stopped_for(StopReason::ShuttingDown).await;
    tokio::time::sleep(shared.grace).await;
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new("panicked", text.unwrap_or("the handler panicked"))
}

/// Catches the panics of a handler, also while it is dropped, so that they end only this job.
struct CatchPanic(Option<Work>);

impl Future for CatchPanic {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Err(panicked(&*panic))),
        }
    }
}

impl Drop for CatchPanic {
    fn drop(&mut self) {
        let work = self.0.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
    }
}

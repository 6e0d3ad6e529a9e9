//! `fernery worker`: claims jobs and runs a command for each.
//!
//! The server decides about jobs, the client's loop about leases and reports, the guards about processes; this file
//! connects the three and handles signals.

mod diazotroph;
mod place;
mod show;

use super::Global;
use super::failure::{Failure, Outcome};
use super::input;
use super::screen::Screen;
use super::server::{Server, WORKER_TOKEN_FILE};
use crate::block_on::block_on;
use crate::command_worker::exit_codes::ExitCodes;
use crate::command_worker::handler::{Broken, Handler};
use crate::command_worker::outcome::{OutputForm, Rules};
use clap::Args;
use fernery_client::worker::{Failure as JobFailure, Job, Summary, Worker, WorkerError, WorkerEvent};
use fernery_core::artifact::DiazotrophType;
use fernery_core::blueprint::Sandbox;
use fernery_core::{StreamName, WorkerId, limits};
use fernery_exec::guard::Guards;
use fernery_exec::program;
use place::Place;
use rustix::process::{DumpableBehavior, getpid, set_child_subreaper, set_dumpable_behavior};
use serde_json::json;
use serde_json::value::RawValue;
use show::Show;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Jobs that one worker may run at once.
const CONCURRENCY_MAX: u32 = 1_000;
/// How often it looks for a server that does not run yet.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How much longer than the grace a guard may take to end a job.
const KILL_MARGIN: Duration = Duration::from_secs(12);

/// How long jobs that are ended at once may take to be released.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Claim jobs and run a command for each
///
/// The command gets the job's payload on stdin, and its stdout is the result: one JSON value is stored unchanged, other
/// text as {"text": …} (with "invalid_utf8": true if it is not UTF-8), no output as null. More than 1 MiB is the
/// failure output_too_large. Exit code N is the failure exit_N, with the last line of stderr as its message and the
/// last 16 KiB as its stack; a signal is signal_N.
///
/// The environment of the command has FERNERY_JOB_ID, FERNERY_JOB_ATTEMPT_ID, FERNERY_JOB_ATTEMPT_NO,
/// FERNERY_JOB_MAX_ATTEMPTS and FERNERY_JOB_STREAM, and no other variable that begins with FERNERY_.
///
/// No process of a job outlives it: when the command ends, when the job is cancelled, when its lease is lost and when
/// the worker dies, every process that the command started is ended too, also daemons.
///
/// SIGTERM, SIGINT or a closed terminal drains the worker: it claims no new jobs; running jobs may finish within
/// --drain, then they are ended and returned. A second signal ends them at once. If there is no server, the worker
/// waits for one; if its token is refused, it exits.
#[derive(Debug, Args)]
#[command(after_help = "\
Environment:
  FERNERY_TOKEN  token to use instead of worker.token in the data directory

Exit codes: 0 drained (unanswered reports stay in the spool, and the next worker sends them), 1 the server refused, or \
the command does not exist any more, or a result could be neither reported nor kept, 2 called wrongly.

Examples:
  fernery worker --stream mail -- ./send-mail
  fernery worker --stream urgent --stream build --concurrency 4 -- make all
  fernery worker --stream thumbs --no-retry-exit 2,64-78 -- \\
    sh -c 'jq -r .url | xargs curl -fsS | convert - thumb.jpg'
  fernery worker --diazotroph PATCH_DIAZOTROPH --profile claude
  FERNERY_URL=https://fernery.example:8443 FERNERY_TOKEN=… \\
    fernery worker --stream gpu -- python3 train.py")]
pub(super) struct WorkerArgs {
    /// Stream to claim from; repeatable, earlier streams have priority
    #[arg(
        long = "stream",
        value_name = "NAME",
        required_unless_present = "diazotroph",
        conflicts_with = "diazotroph"
    )]
    streams: Vec<StreamName>,
    /// Jobs to run at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=CONCURRENCY_MAX as i64))]
    concurrency: u32,
    /// The worker's name [default: the host name and the first free number]
    #[arg(long, value_name = "NAME")]
    id: Option<WorkerId>,
    /// How stdout is read
    #[arg(long, value_name = "FORM", value_enum, default_value_t = OutputForm::Auto, conflicts_with = "diazotroph")]
    output: OutputForm,
    /// Exit codes after which the job is not retried; `none` for no such code
    #[arg(long, value_name = "CODES", default_value = "64,65,77,78", conflicts_with = "diazotroph")]
    no_retry_exit: ExitCodes,
    /// How long a process may take to end after SIGTERM before it is killed
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5s",
        value_parser = duration_or_none,
        conflicts_with = "diazotroph"
    )]
    kill_grace: Duration,
    /// How long running jobs may take to finish after the worker was told to stop
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = duration_or_none)]
    drain: Duration,
    /// Directory for reports that the server has not acknowledged [default: spool in the data directory, or
    /// fernery/spool in XDG_STATE_HOME if the server is named by its URL]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Instead of a command: work as an executor of this type, with an agent, on the repositories in [repos] of this
    /// machine
    #[arg(long, value_name = "TYPE", requires = "profile")]
    diazotroph: Option<DiazotrophType>,
    /// The agent's profile; a file profiles/NAME.toml here replaces the built-in one
    #[arg(long, value_name = "NAME", requires = "diazotroph")]
    profile: Option<String>,
    /// An argument for the agent; repeatable
    #[arg(long = "agent-arg", value_name = "ARG", requires = "diazotroph", allow_hyphen_values = true)]
    agent_args: Vec<String>,
    /// Sandbox of the agent [default: the best that works on this machine]
    #[arg(long, value_name = "TIER", requires = "diazotroph")]
    sandbox: Option<Sandbox>,
    /// The command and its arguments, after --
    #[arg(
        last = true,
        required_unless_present = "diazotroph",
        conflicts_with = "diazotroph",
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

/// The process that is the parent of a worker's jobs; started by the worker itself.
#[derive(Debug, Args)]
pub(super) struct WorkerGuard {
    #[arg(last = true, required = true)]
    pub(super) command: Vec<OsString>,
}

/// A duration on the command line that may be zero.
fn duration_or_none(text: &str) -> Result<Duration, String> {
    if matches!(text, "0" | "0s" | "0ms") { Ok(Duration::ZERO) } else { input::duration(text) }
}

pub(super) fn run(args: WorkerArgs, global: &Global, screen: Screen) -> Outcome {
    if args.streams.len() > limits::CLAIM_STREAMS_MAX {
        return Err(Failure::usage(format!("--stream: at most {} streams", limits::CLAIM_STREAMS_MAX)));
    }
    if let Some(twice) = args.streams.iter().enumerate().find(|(i, name)| args.streams[..*i].contains(name)) {
        return Err(Failure::usage(format!("--stream {} is given twice", twice.1)));
    }
    if let Some(base) = &args.spool {
        place::make_base(base)?;
    }
    if let Some(program) = args.command.first() {
        let path = std::env::var_os("PATH");
        program::find(program, path.as_deref()).map_err(Failure::usage)?;
    }
    // A job of the same user must not read the token out of this process.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // This process becomes the parent of a dead guard's orphans, to end them.
    set_child_subreaper(Some(getpid())).map_err(std::io::Error::from)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let show = Arc::new(Show::new(screen));
    let outcome = match args.diazotroph.clone() {
        Some(of) => block_on(&runtime, diazotroph::work(args, of, global, show.clone())),
        None => block_on(&runtime, work(args, global, show.clone())),
    };
    runtime.shutdown_background();
    show.close();
    outcome
}

struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
    /// The terminal was closed; `None` where `nohup` says that this is no reason.
    hangup: Option<Signal>,
}

impl EndSignals {
    fn new() -> std::io::Result<Self> {
        let hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { terminate, interrupt, hangup })
    }

    async fn next(&mut self) {
        let hung_up = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = hung_up => {}
        }
    }
}

fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Signal 1 is the lowest bit.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

async fn work(args: WorkerArgs, global: &Global, show: Arc<Show>) -> Outcome {
    let mut signals = EndSignals::new()?;
    let server = tokio::select! {
        server = find_server(global, &show) => server?,
        () = signals.next() => return Ok(()),
    };
    let place = place(&args, &server, &show)?;
    let (end_at_once, at_once) = watch::channel(false);
    let broken = Broken::default();
    let handler = Arc::new(handler(&args, at_once, broken.clone(), show.clone()));
    handler.guards.prepare().await.map_err(|error| {
        Failure::failed("guard", format!("cannot start the guard process of the jobs: {error}"))
    })?;

    let url = server.client.url();
    let names: Vec<&str> = args.streams.iter().map(StreamName::as_str).collect();
    show.start(
        format!("worker {} at {url}: {} ({} at once)", place.id, names.join(", "), args.concurrency),
        json!({"event": "started", "worker_id": place.id, "url": url, "streams": names,
               "concurrency": args.concurrency, "spool": place.spool.display().to_string()}),
    );
    let (drained, mut draining) = watch::channel(false);
    let (by, told) = (handler.clone(), show.clone());
    let run = move |job| {
        let handler = by.clone();
        async move { handler.run(job).await }
    };
    let worker = worker(&args, (&server, &place), &args.streams, run, move |event| told.event(event));
    let run = worker.run_until(async move {
        let _ = draining.wait_for(|draining| *draining).await;
    });
    let until_nobody_waits = async {
        tokio::select! {
            () = signals.next() => {}
            () = broken.wait() => {}
        }
        let _ = drained.send(true);
        // A second signal means: do not wait.
        signals.next().await;
        let _ = end_at_once.send(true);
        tokio::time::sleep(LAST_WORDS).await;
    };
    let outcome = tokio::select! {
        outcome = run => Some(outcome),
        () = until_nobody_waits => None,
    };
    // No process of a job outlives the worker, however little time is left.
    handler.guards.close().await;
    match outcome {
        Some(outcome) => summed_up(outcome, handler.broken.get(), &server, &show),
        None => Err(Failure::failed("ended_at_once", "ended at once; unsent reports are in the spool")),
    }
}

/// The loop over these streams with one handler for all.
fn worker<Run, Work>(
    args: &WorkerArgs,
    (server, place): (&Server, &Place),
    streams: &[StreamName],
    run: Run,
    observer: impl Fn(WorkerEvent) + Send + Sync + 'static,
) -> Worker
where
    Run: Fn(Job) -> Work + Clone + Send + Sync + 'static,
    Work: Future<Output = Result<Box<RawValue>, JobFailure>> + Send + 'static,
{
    let worker = Worker::new(server.client.clone())
        .id(place.id.as_str())
        .concurrency(args.concurrency as usize)
        .spool(&place.spool)
        .drain(args.drain)
        .grace(args.kill_grace + KILL_MARGIN)
        .on_event(observer);
    streams.iter().fold(worker, |worker, stream| worker.handle(stream.as_str(), run.clone()))
}

fn handler(args: &WorkerArgs, at_once: watch::Receiver<bool>, broken: Broken, show: Arc<Show>) -> Handler {
    // A path would lead to a program that replaced this one; this leads to itself.
    let program = PathBuf::from("/proc/self/exe");
    Handler {
        guards: Guards::new(program, args.command.clone(), args.kill_grace),
        rules: Rules { output: args.output, no_retry_exit: args.no_retry_exit.clone() },
        kill_grace: args.kill_grace,
        at_once,
        broken,
        remarks: Box::new(move |job, remark| show.remark(job, remark)),
    }
}

/// Finds the server; waits if none has ever run on the data directory.
async fn find_server(global: &Global, show: &Show) -> Outcome<Server> {
    let mut told = false;
    loop {
        match global.now().server_with(WORKER_TOKEN_FILE) {
            Err(failure) if failure.is_unreachable() => {
                if !told {
                    show.trouble(failure.message());
                    told = true;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            other => return other,
        }
    }
}

fn place(args: &WorkerArgs, server: &Server, show: &Show) -> Outcome<Place> {
    let base = match &args.spool {
        Some(dir) => dir.clone(),
        None => place::spool_base(server.found_in.as_deref(), server.client.url())?,
    };
    if let Some(id) = &args.id {
        place::make_base(&base)?;
        return Ok(Place::named(id.clone(), &base));
    }
    let place = Place::unnamed(&base)?;
    for (spool, gathered) in place.gather(&base) {
        show.gathered(&spool, &gathered);
    }
    Ok(place)
}

fn summed_up(
    outcome: Result<Summary, WorkerError>,
    broken: Option<&str>,
    server: &Server,
    show: &Show,
) -> Outcome {
    match outcome {
        Ok(summary) => {
            show.end(summary);
            verdict(&summary, broken)
        }
        Err(WorkerError::Refused { error, summary }) => {
            show.end(*summary);
            Err(server.explain_refusal(Failure::from(error)))
        }
        Err(error @ WorkerError::Setup(_)) => Err(Failure::usage(error.to_string())),
        Err(error) => Err(Failure::failed("spool", error.to_string())),
    }
}

/// The exit code of an orderly end.
fn verdict(summary: &Summary, broken: Option<&str>) -> Outcome {
    match (summary.unkept, broken) {
        (0, None) => Ok(()),
        (0, Some(why)) => Err(Failure::failed("no_command", why)),
        (n, _) => {
            let results = super::screen::counted(n, "result");
            let why = format!("{results} could be neither reported nor kept; those jobs will run again");
            Err(Failure::failed("not_kept", why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_0_unless_results_were_lost() {
        let mut summary = Summary::default();
        summary.unreported = 3;
        assert!(verdict(&summary, None).is_ok(), "the spool has them");
        assert!(verdict(&summary, Some("gone")).unwrap_err().message().contains("gone"));
        summary.unkept = 1;
        assert!(verdict(&summary, None).unwrap_err().message().contains("neither reported nor kept"));
    }
}

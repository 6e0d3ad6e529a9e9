//! Sends a notice to a program of the operator: the JSON on its stdin.
//!
//! The program runs under a guard, so that it and everything that it starts certainly end. It runs with the operator's rights,
//! but does not see the secrets in this process's environment.

use super::NotSent;
use fernery_core::names::showable;
use fernery_exec::guard::{Exit, Guards, Input, NotRun, Ran};
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;

/// The variables that the program sees.
const ENVIRONMENT: [&str; 3] = ["PATH", "HOME", "LANG"];
/// How long it may take to end on TERM.
const GRACE: Duration = Duration::from_secs(1);
/// If this process hangs for so long, the program is killed.
const HANG_MAX: Duration = Duration::from_secs(60);
/// Bytes from the end of its output that an error shows.
const SHOWN_BYTES_MAX: usize = 1_000;

/// Runs a program with a notice on its stdin. After `timeout` it is ended, with everything that it started.
pub async fn run_hook(argv: &[String], notice: &[u8], timeout: Duration) -> Result<(), NotSent> {
    let fernery = std::env::current_exe()
        .map_err(|error| NotSent::Later(format!("this program cannot tell where it is: {error}")))?;
    run_hook_under(&fernery, argv, notice, timeout).await
}

/// The same, for a process that is not `fernery` itself: `fernery` is the path of that program.
pub async fn run_hook_under(
    fernery: &Path,
    argv: &[String],
    notice: &[u8],
    timeout: Duration,
) -> Result<(), NotSent> {
    let Some(program) = argv.first().filter(|program| !program.is_empty()) else {
        return Err(NotSent::Refused("the hook names no program".into()));
    };
    let guards = Guards::new(fernery.to_owned(), argv.iter().map(Into::into).collect(), GRACE)
        .within(Path::new("."), &ENVIRONMENT.map(String::from));
    let (stop, stops) = mpsc::unbounded_channel();
    let input =
        Input { env: Vec::new(), stdin: notice, ends_when_full: false, listener: None, hang_max: HANG_MAX };
    let run = guards.run(input, stops);
    tokio::pin!(run);
    let (ran, timed_out) = match tokio::time::timeout(timeout, &mut run).await {
        Ok(ran) => (ran, false),
        Err(_) => {
            let _ = stop.send(GRACE);
            (run.await, true)
        }
    };
    let told = match ran {
        Ok(ran) => judge(program, &ran, timed_out.then_some(timeout)),
        Err(NotRun::NoCommand(why)) => {
            Err(NotSent::Refused(format!("cannot start the hook {program}: {why}")))
        }
        Err(NotRun::NotStarted(why) | NotRun::NoGuard(why)) => {
            Err(NotSent::Later(format!("the hook {program} was not run: {why}")))
        }
    };
    guards.close().await;
    told
}

fn judge(program: &str, ran: &Ran, timed_out: Option<Duration>) -> Result<(), NotSent> {
    let end = match (&ran.seen.exit, timed_out) {
        // A program that ended by itself while its time ran out was not stopped: it ended in time.
        (_, Some(after)) if ran.stopped.is_some() => format!("was ended after {after:?}"),
        _ if ran.stopped.is_some() => "was ended".to_string(),
        (Exit::Code(0), _) => return Ok(()),
        (Exit::Code(code), _) => format!("exited with {code}"),
        (Exit::Signal(signal), _) => format!("died of signal {signal}"),
    };
    let complaints = ran.seen.stderr.text();
    let said = if complaints.trim().is_empty() { ran.seen.stdout_end.text() } else { complaints };
    let said = match said.trim() {
        "" => String::new(),
        said => format!(": {}", last_of(&showable(said))),
    };
    Err(NotSent::Later(format!("the hook {program} {end}{said}")))
}

fn last_of(text: &str) -> &str {
    let mut from = text.len().saturating_sub(SHOWN_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

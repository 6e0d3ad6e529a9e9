//! Runs the program of a gate. It gets the bundle as files; for a patch it runs in a fresh tree with the patch applied.

use super::trial::{PatchedTree, Trial, trouble};
use fernery_core::artifact::GateResult;
use fernery_core::pipeline::evidence::Evidence;
use fernery_engine::pipeline::gate_input::GateInput;
use fernery_exec::agent::occupy;
use fernery_exec::command::{Command, GRACE, cell};
use fernery_exec::guard::{ATTEMPT_VARIABLE, Input, NotRun, OutputStream, Ran};
use fernery_exec::sandbox::Tier;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::mpsc;

/// The end of a gate's output that is kept as evidence.
const LOG_TAIL_BYTES: usize = 12 << 10;
/// Bytes of the log of one gate.
const LOG_BYTES_MAX: u64 = 8 << 20;

/// What a gate runs.
pub(super) struct Program<'a> {
    pub(super) argv: &'a [String],
    pub(super) env: &'a [String],
    pub(super) tier: Tier,
    pub(super) timeout: Duration,
    /// Files that stay as in the base commit, whatever the patch does to them.
    pub(super) kept: &'a [String],
    /// Where its whole output goes, if it is kept.
    pub(super) log: Option<PathBuf>,
}

/// The whole output of a gate, as it is written. If the file cannot be written, the gate runs all the same.
struct GateLog(Mutex<(Option<File>, u64)>);

impl GateLog {
    fn create(path: Option<PathBuf>) -> Self {
        let create = |path: PathBuf| {
            path.parent().map(std::fs::create_dir_all)?.ok()?;
            File::create(path).ok()
        };
        Self(Mutex::new((path.and_then(create), 0)))
    }

    fn take(&self, bytes: &[u8]) {
        let mut state = self.0.lock().expect("not poisoned");
        let (Some(file), logged) = &mut *state else { return };
        let room = LOG_BYTES_MAX.saturating_sub(*logged).min(bytes.len() as u64) as usize;
        let cut = *logged < LOG_BYTES_MAX && room < bytes.len();
        *logged += bytes.len() as u64;
        let _ = file.write_all(&bytes[..room]);
        if cut {
            let _ = file.write_all(b"\n[the rest of the output is not kept]\n");
        }
    }
}

/// A gate's program, ready to run.
struct Prepared {
    command: Command,
    /// Its environment variables.
    env: Vec<(String, String)>,
}

pub(super) async fn run_gate(
    place: &Path,
    gate_input: &GateInput,
    trial: Option<&Trial>,
    program: Program<'_>,
    stops: &mut mpsc::UnboundedReceiver<Duration>,
) -> Evidence {
    let _occupied = match occupy(place) {
        Ok(occupied) => occupied,
        Err(error) => return trouble("", &format!("no folder for it: {error}")),
    };
    let (timeout, log) = (program.timeout, program.log.clone());
    let Prepared { command, env } = match prepare(place, gate_input, trial, program).await {
        Ok(prepared) => prepared,
        Err(why) => return trouble("", &why),
    };
    let (stop, orders) = mpsc::unbounded_channel();
    let log = GateLog::create(log);
    let hear = |_: OutputStream, bytes: &[u8]| log.take(bytes);
    let hang_max = Duration::from_secs(60);
    let input = Input { env, stdin: b"", ends_when_full: false, listener: Some(&hear), hang_max };
    let run = command.run(input, orders);
    tokio::pin!(run);
    let deadline = tokio::time::sleep(timeout);
    tokio::pin!(deadline);
    let mut timed_out = false;
    let ran = loop {
        tokio::select! {
            ran = &mut run => break ran,
            Some(grace) = stops.recv() => drop(stop.send(grace)),
            () = &mut deadline, if !timed_out => {
                timed_out = true;
                let _ = stop.send(GRACE);
            }
        }
    };
    let evidence = match ran {
        Ok(ran) => evidence_of(&ran, timed_out.then_some(timeout)),
        Err(NotRun::NoCommand(why) | NotRun::NotStarted(why) | NotRun::NoGuard(why)) => trouble("", &why),
    };
    command.close().await;
    evidence
}

/// Puts everything where the program expects it: the bundle as files, and for a patch the tree with the patch applied.
async fn prepare(
    place: &Path,
    gate_input: &GateInput,
    trial: Option<&Trial>,
    Program { argv, env, tier, kept, .. }: Program<'_>,
) -> Result<Prepared, String> {
    let mut cell = cell(place, &mark_of(place));
    let (mut beside, mut ours) = (cell.folder.clone(), Vec::new());
    // A patch is judged in a fresh tree, with the files of the bundle outside it.
    if let Some(trial) = trial
        && let Some(tree) = trial.tree(place, kept).await
    {
        let PatchedTree { tree, borrowed, brought } = tree?;
        beside = place.join("bundle");
        cell.folder = tree;
        cell.read.extend(borrowed.into_iter().chain([brought, beside.clone()]));
        ours = cell.read[cell.read.len() - 2..].to_vec();
    }
    let (bundle, content) = (beside.join("output_bundle.json"), beside.join("content"));
    let written = std::fs::create_dir_all(&beside)
        .and_then(|()| std::fs::write(&bundle, serde_json::to_vec_pretty(&gate_input.bundle)?))
        .and_then(|()| std::fs::write(&content, &gate_input.bundle.content));
    written
        .and_then(|()| if tier == Tier::Unconfined { Ok(()) } else { cell.hand_over(&ours) })
        .map_err(|error| format!("the bundle could not be written down: {error}"))?;
    let command =
        Command::new(argv, env, &cell, tier).map_err(|error| format!("no folder for it: {error}"))?;
    let env = vec![
        (ATTEMPT_VARIABLE.to_string(), mark_of(place)),
        ("FERNERY_OUTPUT_BUNDLE".to_string(), bundle.display().to_string()),
        ("FERNERY_OUTPUT_CONTENT".to_string(), content.display().to_string()),
        ("FERNERY_OBJECTIVE_ID".to_string(), gate_input.bundle.objective_id.to_string()),
        ("FERNERY_WORK_ORDER_ID".to_string(), gate_input.workorder.workorder.work_order_id.to_string()),
    ];
    Ok(Prepared { command, env })
}

/// The finding of a program that ran. One that was stopped before its time-out gives none.
fn evidence_of(ran: &Ran, timed_out_after: Option<Duration>) -> Evidence {
    let exit = ran.seen.exit.code();
    let mut log = tail(&ran.seen.stdout_end.text(), LOG_TAIL_BYTES / 2);
    log.push_str(&tail(&ran.seen.stderr.text(), LOG_TAIL_BYTES / 2));
    if let Some(timeout) = timed_out_after {
        log.push_str(&format!("\nended after {timeout:?}: its time-out"));
    }
    let passed = exit == Some(0) && ran.stopped.is_none();
    let result = Some(if passed { GateResult::Pass } else { GateResult::Fail });
    let ended_by_others = ran.stopped.is_some() && timed_out_after.is_none();
    Evidence {
        exit,
        log_tail: log,
        result: if ended_by_others { None } else { result },
        trouble: ended_by_others.then(|| "it was stopped".to_string()),
        ..Evidence::default()
    }
}

/// The mark by which processes of a gate are found if this process dies.
fn mark_of(place: &Path) -> String {
    place.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The end of a log, as text that can be shown.
fn tail(log: &str, bytes: usize) -> String {
    let shown = fernery_core::names::showable(log);
    let mut from = shown.len().saturating_sub(bytes);
    while !shown.is_char_boundary(from) {
        from += 1;
    }
    shown[from..].to_string()
}

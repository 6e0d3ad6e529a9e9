//! Runs the program of a gate: over the bundle as a file, and of a patch in a fresh tree that has it.

use super::command::{Command, GRACE, cell, exit_code};
use super::trial::{PatchedTree, Trial, trouble};
use crate::diazotroph::occupy;
use crate::sandbox::Tier;
use crate::worker::process::{ATTEMPT_VARIABLE, NotRun};
use fernery_core::artifact::GateResult;
use fernery_core::pipeline::judging::Evidence;
use fernery_engine::substrate::judging::Docket;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;

/// The end of a gate's output that is kept as evidence.
const LOG_TAIL_BYTES: usize = 4 << 10;

/// What a gate runs.
pub(super) struct Program<'a> {
    pub(super) argv: &'a [String],
    pub(super) env: &'a [String],
    pub(super) tier: Tier,
    pub(super) timeout: Duration,
}

pub(super) async fn run_gate(
    place: &Path,
    docket: &Docket,
    trial: Option<&Trial>,
    Program { argv, env, tier, timeout }: Program<'_>,
    mut stops: mpsc::UnboundedReceiver<Duration>,
) -> Evidence {
    let mut cell = cell(place, &mark_of(place));
    let _occupied = match occupy(place) {
        Ok(occupied) => occupied,
        Err(error) => return trouble("", &format!("no folder for it: {error}")),
    };
    let (mut beside, mut ours) = (cell.folder.clone(), Vec::new());
    // What a patch makes is judged where it is: in a fresh tree, with the bundle out of its way.
    match trial {
        None => {}
        Some(trial) => match trial.tree(place).await {
            None => {}
            Some(Err(why)) => return trouble("", &why),
            Some(Ok(PatchedTree { tree, borrowed, brought })) => {
                beside = place.join("bundle");
                cell.folder = tree;
                cell.read.extend(borrowed.into_iter().chain([brought, beside.clone()]));
                ours = cell.read[cell.read.len() - 2..].to_vec();
            }
        },
    }
    let (bundle, content) = (beside.join("output_bundle.json"), beside.join("content"));
    let written = std::fs::create_dir_all(&beside)
        .and_then(|()| std::fs::write(&bundle, serde_json::to_vec_pretty(&docket.bundle)?))
        .and_then(|()| std::fs::write(&content, &docket.bundle.content));
    let written =
        written.and_then(|()| if tier == Tier::Unconfined { Ok(()) } else { cell.hand_over(&ours) });
    if let Err(error) = written {
        return trouble("", &format!("the bundle could not be written down: {error}"));
    }
    let command = match Command::new(argv, env, &cell, tier) {
        Ok(command) => command,
        Err(error) => return trouble("", &format!("no folder for it: {error}")),
    };
    let told = vec![
        (ATTEMPT_VARIABLE.to_string(), mark_of(place)),
        ("FERNERY_OUTPUT_BUNDLE".to_string(), bundle.display().to_string()),
        ("FERNERY_OUTPUT_CONTENT".to_string(), content.display().to_string()),
        ("FERNERY_OBJECTIVE_ID".to_string(), docket.bundle.objective_id.to_string()),
        ("FERNERY_WORK_ORDER_ID".to_string(), docket.workorder.workorder.work_order_id.to_string()),
    ];
    let (stop, orders) = mpsc::unbounded_channel();
    let run = command.run(b"", told, false, Duration::from_secs(60), orders);
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
        Ok(ran) => {
            let exit = exit_code(&ran.seen.exit);
            let mut log = tail(&ran.seen.stdout_end.text(), LOG_TAIL_BYTES / 2);
            log.push_str(&tail(&ran.seen.stderr.text(), LOG_TAIL_BYTES / 2));
            if timed_out {
                log.push_str(&format!("\nended after {timeout:?}: its time-out"));
            }
            let passed = exit == Some(0) && ran.stopped.is_none();
            let result = Some(if passed { GateResult::Pass } else { GateResult::Fail });
            let ended_by_others = ran.stopped.is_some() && !timed_out;
            Evidence {
                gate: String::new(),
                command: None,
                sandbox: None,
                exit,
                ms: 0,
                log_tail: log,
                result: if ended_by_others { None } else { result },
                trouble: ended_by_others.then(|| "it was stopped".to_string()),
            }
        }
        Err(NotRun::NoCommand(why) | NotRun::NotStarted(why) | NotRun::NoGuard(why)) => trouble("", &why),
    };
    command.close().await;
    evidence
}

/// What processes of a gate are found by if this one dies.
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

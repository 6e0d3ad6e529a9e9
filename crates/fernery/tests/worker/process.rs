//! One process per job, and nothing of it left: the guards alone, without a server.

use crate::processes;
use crate::processes::{Mark, peak_bytes};
use fernery::command_worker::outcome::{OutputForm, Rules, judge};
use fernery_exec::guard::{ATTEMPT_VARIABLE, Exit, Guards, Input, NotRun, Ran};
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout};

const GRACE: Duration = Duration::from_millis(300);
/// Nothing here takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

fn guards(script: &str) -> Guards {
    let command = ["sh", "-c", script].map(Into::into).to_vec();
    Guards::new(env!("CARGO_BIN_EXE_fernery").into(), command, GRACE)
}

/// Runs one job; whoever wants to stop it gets the door to do so.
async fn run_with(
    guards: &Guards,
    mark: &Mark,
    stdin: &[u8],
    stops: impl AsyncFnOnce(UnboundedSender<Duration>),
) -> Result<Ran, NotRun> {
    let (sender, receiver) = unbounded_channel();
    let env = vec![(ATTEMPT_VARIABLE.to_string(), mark.value().to_string())];
    let both = async {
        tokio::join!(
            guards.run(
                Input { env, stdin, ends_when_full: true, listener: None, hang_max: PATIENCE },
                receiver
            ),
            stops(sender)
        )
        .0
    };
    timeout(PATIENCE, both).await.expect("it ends")
}

async fn run(script: &str, stdin: &[u8]) -> Ran {
    let mark = Mark::new(ATTEMPT_VARIABLE);
    let guards = guards(script);
    let ran = run_with(&guards, &mark, stdin, async |_| {}).await.expect("it ran");
    mark.assert_gone_now();
    guards.close().await;
    ran
}

fn result(ran: Ran) -> Result<String, String> {
    let rules = Rules { output: OutputForm::Auto, no_retry_exit: "64,65".parse().unwrap() };
    judge(ran.seen, &rules).map(|value| value.get().to_string()).map_err(|failed| failed.code)
}

#[tokio::test]
async fn a_payload_of_a_megabyte_goes_through_to_the_byte() {
    let payload = format!("\"{}\"", "aé\\n€ ".repeat(120_000));
    assert!(payload.len() > 1_000_000);
    let kept = &payload[..1_000_000 - 1];
    let text = format!("{kept}\"");
    assert_eq!(result(run("cat", text.as_bytes()).await), Ok(text));
}

#[tokio::test]
async fn a_command_that_ignores_its_payload_still_returns_its_result() {
    let payload = vec![b' '; 1 << 20];
    for script in ["echo 1", "exec <&-; sleep 0.05; echo 1", "head -c 10 >/dev/null; echo 1"] {
        assert_eq!(result(run(script, &payload).await), Ok("1".into()), "{script}");
    }
}

#[tokio::test]
async fn an_exit_code_and_a_signal_are_told_apart() {
    assert_eq!(run("exit 7", b"").await.seen.exit, Exit::Code(7));
    assert_eq!(run("kill -SEGV $$", b"").await.seen.exit, Exit::Signal(11));
    assert_eq!(result(run("echo no >&2; exit 3", b"").await), Err("exit_3".into()));
}

#[tokio::test]
async fn a_flood_is_stopped_and_costs_no_memory() {
    let before = peak_bytes(std::process::id());
    assert_eq!(result(run("yes", b"").await), Err("output_too_large".into()));
    assert_eq!(result(run("head -c 100000000 /dev/zero", b"").await), Err("output_too_large".into()));
    assert_eq!(
        result(run("trap '' TERM; while :; do echo flood; done", b"").await),
        Err("output_too_large".into())
    );
    let stderr = run("head -c 100000000 /dev/zero >&2; exit 1", b"").await;
    assert_eq!(stderr.seen.stderr.text().len(), 16 << 10);
    let grown = peak_bytes(std::process::id()) - before;
    assert!(grown < 32 << 20, "{grown} bytes");
}

#[tokio::test]
async fn a_command_that_ignores_term_is_killed_after_the_grace() {
    let (mark, guards) =
        (Mark::new(ATTEMPT_VARIABLE), guards("trap '' TERM; echo up; while :; do sleep 1000; done"));
    let started = Instant::now();
    let stop = async |sender: UnboundedSender<Duration>| {
        mark.appears("sleep").await;
        sender.send(GRACE).unwrap();
    };
    let ran = run_with(&guards, &mark, b"", stop).await.expect("it ran");
    mark.assert_gone_now();
    assert_eq!(ran.seen.exit, Exit::Signal(9));
    assert!(started.elapsed() >= GRACE, "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_command_that_obeys_term_may_end_in_order() {
    let script = "trap 'echo tidied; exit 0' TERM; sleep 1000 & wait";
    let (mark, guards) = (Mark::new(ATTEMPT_VARIABLE), guards(script));
    let stop = async |sender: UnboundedSender<Duration>| {
        mark.appears("sleep").await;
        sender.send(PATIENCE).unwrap();
    };
    let ran = run_with(&guards, &mark, b"", stop).await.expect("it ran");
    assert_eq!(result(ran), Ok(r#"{"text":"tidied"}"#.into()));
    mark.assert_gone_now();
}

#[tokio::test]
async fn a_second_order_may_shorten_the_first_grace() {
    let (mark, guards) = (Mark::new(ATTEMPT_VARIABLE), guards("trap '' TERM; while :; do sleep 1000; done"));
    let stop = async |sender: UnboundedSender<Duration>| {
        mark.appears("sleep").await;
        sender.send(10 * PATIENCE).unwrap();
        sender.send(Duration::ZERO).unwrap();
    };
    let ran = run_with(&guards, &mark, b"", stop).await.expect("it ran");
    assert_eq!(ran.seen.exit, Exit::Signal(9));
    mark.assert_gone_now();
}

/// What people leave behind: in the background, in a session of its own, forked twice, without any variable, deaf.
const LEFT_BEHIND: [&str; 5] = [
    "sleep 1000 & echo done",
    "setsid sleep 1000 & echo done",
    "(setsid sh -c 'sleep 1000 & sleep 1000' &) ; echo done",
    "(env -i setsid sh -c 'sleep 987654' &) ; echo done",
    "{ setsid sh -c 'trap \"\" TERM HUP; echo deaf >&3; exec 3>&-; while :; do sleep 1000; done' & } \
     3>&1 >/dev/null | head -n 1 >/dev/null; echo done",
];

#[tokio::test]
async fn processes_that_outlive_the_command_are_killed_and_the_result_counts() {
    for script in LEFT_BEHIND {
        let ran = run(script, b"").await;
        assert!(ran.leftovers >= 1 && ran.immortal.is_empty(), "{script}: {ran:?}");
        assert_eq!(result(ran), Ok(r#"{"text":"done"}"#.into()), "{script}");
    }
    processes::with_argument("987654", 0, Duration::ZERO).await;
}

#[tokio::test]
async fn a_family_that_forks_faster_than_it_dies_is_ended() {
    // Each member starts the next one in a new session and ends at once: no list of them is ever current.
    // It ends by itself once its book is gone, whatever becomes of this test.
    let born = tempfile::NamedTempFile::new().unwrap();
    let script = format!(
        "F='[ -e {0} ] || exit; printf x >>{0}; (setsid sh -c \"$F\" &)'; export F; sh -c \"$F\"
         while [ $(wc -c <{0}) -lt 20 ]; do sleep 0.01; done; echo done",
        born.path().display()
    );
    let ran = run(&script, b"").await;
    assert_eq!(result(ran), Ok(r#"{"text":"done"}"#.into()));
}

#[tokio::test]
async fn a_guard_is_used_again_and_a_job_sees_nothing_of_the_one_before() {
    let guards = guards("echo $PPID; cat");
    let mut parents = Vec::new();
    for n in 0..5 {
        let mark = Mark::new(ATTEMPT_VARIABLE);
        let ran = run_with(&guards, &mark, n.to_string().as_bytes(), async |_| {}).await.expect("it ran");
        let text = String::from_utf8(ran.seen.stdout.whole().unwrap()).unwrap();
        let (parent, rest) = text.split_once('\n').unwrap();
        assert_eq!(rest, n.to_string());
        parents.push(parent.to_string());
    }
    parents.dedup();
    assert_eq!(parents.len(), 1, "one guard for jobs one after another: {parents:?}");
}

#[tokio::test]
async fn a_job_that_kills_its_guard_is_ended_and_the_next_one_runs() {
    set_child_subreaper(Some(getpid())).unwrap();
    let guards = guards(
        "read what; [ $what = ok ] && { echo ok; exit; }; setsid sleep 1000 & kill -9 $PPID; sleep 1000",
    );
    let mark = Mark::new(ATTEMPT_VARIABLE);
    let not_run = run_with(&guards, &mark, b"kill\n", async |_| {}).await;
    assert!(matches!(not_run, Err(NotRun::NoGuard(_))), "{not_run:?}");
    mark.assert_gone_now();
    let ran = run_with(&guards, &mark, b"ok\n", async |_| {}).await.expect("it ran");
    assert_eq!(result(ran), Ok(r#"{"text":"ok"}"#.into()));
}

#[tokio::test]
async fn a_run_that_is_dropped_leaves_nothing() {
    let (mark, guards) =
        (Mark::new(ATTEMPT_VARIABLE), guards("setsid sleep 1000 & trap '' TERM; sleep 1000"));
    let (_stops, receiver) = unbounded_channel();
    let env = vec![(ATTEMPT_VARIABLE.to_string(), mark.value().to_string())];
    tokio::select! {
        ran = guards.run(Input { env, stdin: b"", ends_when_full: true, listener: None, hang_max: PATIENCE }, receiver) => panic!("{ran:?}"),
        () = mark.appears("sleep") => {}
    }
    mark.gone_within(PATIENCE).await;
}

#[tokio::test]
async fn a_guard_that_its_job_has_stopped_is_woken_by_a_stop() {
    let (mark, guards) = (Mark::new(ATTEMPT_VARIABLE), guards("kill -STOP $PPID; exec sleep 1000"));
    let stop = async |sender: UnboundedSender<Duration>| {
        mark.appears("sleep").await;
        sender.send(GRACE).unwrap();
    };
    let ran = run_with(&guards, &mark, b"", stop).await.expect("it ran");
    assert_eq!(ran.seen.exit, Exit::Signal(15));
    mark.assert_gone_now();
    guards.close().await;
}

#[tokio::test]
async fn a_guard_that_its_job_has_stopped_still_notices_the_end() {
    let (mark, guards) = (Mark::new(ATTEMPT_VARIABLE), guards("kill -STOP $PPID; echo 1"));
    let (_stops, receiver) = unbounded_channel();
    let env = vec![(ATTEMPT_VARIABLE.to_string(), mark.value().to_string())];
    // Its guard hears of this process four times in that time.
    let input =
        Input { env, stdin: b"", ends_when_full: true, listener: None, hang_max: Duration::from_secs(4) };
    let ran = timeout(PATIENCE, guards.run(input, receiver)).await.expect("it ends").expect("it ran");
    assert_eq!(result(ran), Ok("1".into()));
    guards.close().await;
}

#[tokio::test]
async fn a_guard_that_its_job_stops_again_and_again_ends_with_it() {
    set_child_subreaper(Some(getpid())).unwrap();
    // Nobody else sleeps for so long; without its environment it can be known by nothing else.
    let long = format!("8{}", std::process::id());
    let script = format!(
        "env -i setsid sleep {long} & setsid sh -c 'while :; do kill -STOP '$PPID' || exit; done' & sleep 1000"
    );
    let (mark, guards) = (Mark::new(ATTEMPT_VARIABLE), guards(&script));
    let (_stops, receiver) = unbounded_channel();
    let env = vec![(ATTEMPT_VARIABLE.to_string(), mark.value().to_string())];
    let started = async {
        mark.appears("sleep").await;
        processes::with_argument(&long, 1, PATIENCE).await;
    };
    tokio::select! {
        ran = guards.run(Input { env, stdin: b"", ends_when_full: true, listener: None, hang_max: PATIENCE }, receiver) => panic!("{ran:?}"),
        () = started => {}
    }
    guards.close().await;
    mark.assert_gone_now();
    processes::with_argument(&long, 0, Duration::ZERO).await;
}

#[tokio::test]
async fn a_stopped_process_hears_term_too() {
    let (mark, guards) =
        (Mark::new(ATTEMPT_VARIABLE), guards("trap 'exit 5' TERM; sleep 0.01; kill -STOP $$; sleep 1000"));
    let stop = async |sender: UnboundedSender<Duration>| {
        mark.stopped().await;
        sender.send(PATIENCE).unwrap();
    };
    let ran = run_with(&guards, &mark, b"", stop).await.expect("it ran");
    assert_eq!(ran.seen.exit, Exit::Code(5));
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_named_as_that() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("no-program");
    std::fs::write(&file, "x").unwrap();
    for command in [file.into_os_string(), "/nowhere/at-all".into(), "fernery-no-such-program".into()] {
        let guards = Guards::new(env!("CARGO_BIN_EXE_fernery").into(), vec![command.clone()], GRACE);
        let not_run = run_with(&guards, &Mark::new(ATTEMPT_VARIABLE), b"", async |_| {}).await;
        assert!(matches!(not_run, Err(NotRun::NoCommand(_))), "{command:?}: {not_run:?}");
    }
}

#[tokio::test]
async fn signals_to_a_guard_do_not_end_it() {
    let guards = guards("kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; echo $PPID");
    let ran = run_with(&guards, &Mark::new(ATTEMPT_VARIABLE), b"", async |_| {}).await.expect("it ran");
    let guard: i32 = result(ran).unwrap().parse().unwrap();
    kill_process(Pid::from_raw(guard).unwrap(), Signal::TERM).expect("it is still there");
}

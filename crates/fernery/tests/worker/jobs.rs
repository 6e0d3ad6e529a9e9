//! `fernery worker` beside a real server: every end of a command has its outcome, every end of a worker leaves nothing.

use crate::processes::{peak_bytes, uptime, with_argument};
use crate::workshop;
use crate::workshop::{
    MEASURED_LEASE_FLAGS, PATIENCE, QUICK_BEATS, SHORT_LEASE, TICK, Worker, Workshop, fernery, outcomes,
};
use fernery_core::limits;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// One command, and what becomes of its job.
struct Case {
    name: &'static str,
    script: &'static str,
    payload: Value,
    max_attempts: u32,
    status: &'static str,
    expected: fn(&Value) -> bool,
}

fn case(
    name: &'static str,
    script: &'static str,
    status: &'static str,
    expected: fn(&Value) -> bool,
) -> Case {
    Case { name, script, payload: json!({}), max_attempts: 1, status, expected }
}

fn cases() -> Vec<Case> {
    let large = json!({"large": "x".repeat(limits::PAYLOAD_BYTES_MAX - 20)});
    vec![
        case("json", "echo '{\"b\": 1.10, \"a\": [true]}'", "SUCCEEDED", |job| {
            job["result"] == json!({"b": 1.10, "a": [true]})
        }),
        case("text", "echo two; echo lines", "SUCCEEDED", |job| {
            job["result"] == json!({"text": "two\nlines"})
        }),
        case("nothing", "true", "SUCCEEDED", |job| job["result"].is_null()),
        case("not_utf8", "printf 'caf\\351\\n'", "SUCCEEDED", |job| {
            job["result"] == json!({"text": "caf\u{fffd}", "invalid_utf8": true})
        }),
        Case {
            payload: json!({"exact": 1.5}),
            ..case("echo", "cat", "SUCCEEDED", |job| job["result"] == json!({"exact": 1.5}))
        },
        Case {
            payload: large.clone(),
            ..case("deaf", "exec <&-; echo 1", "SUCCEEDED", |job| job["result"] == 1)
        },
        Case { payload: large.clone(), ..case("hasty", "echo 1", "SUCCEEDED", |job| job["result"] == 1) },
        Case {
            payload: large,
            ..case("large", "wc -c", "SUCCEEDED", |job| job["result"] == limits::PAYLOAD_BYTES_MAX - 20 + 12)
        },
        case("flood", "yes", "DEAD", |job| job["error"]["code"] == "output_too_large"),
        case("hundred_megabytes", "head -c 100000000 /dev/zero", "DEAD", |job| {
            job["error"]["code"] == "output_too_large"
        }),
        case("exit", "echo first >&2; echo why >&2; exit 3", "DEAD", |job| {
            let error = &job["error"];
            error["code"] == "exit_3" && error["message"] == "why" && error["stack"] == "first\nwhy\n"
        }),
        Case {
            max_attempts: 5,
            ..case("no_retry", "exit 65", "DEAD", |job| {
                job["error"]["code"] == "exit_65" && outcomes(job) == ["FAILED"]
            })
        },
        case("signal", "kill -SEGV $$", "DEAD", |job| job["error"]["code"] == "signal_11"),
        case("background", "sleep 1000 & echo 1", "SUCCEEDED", |job| job["result"] == 1),
        case("daemon", "(setsid sh -c 'sleep 1000 & sleep 1000' &); echo 1", "SUCCEEDED", |job| {
            job["result"] == 1
        }),
    ]
}

#[tokio::test]
async fn every_end_has_its_outcome_and_nothing_is_left_running() {
    let workshop = Workshop::open(&[]).await;
    let mut running = Vec::new();
    for Case { name, script, payload, max_attempts, status, expected } in cases() {
        let id = workshop.enqueue(name, json!({"payload": payload, "max_attempts": max_attempts})).await;
        let worker = workshop.worker(name, &["--kill-grace", "200ms"], script);
        running.push((name, worker, id, status, expected));
    }
    for (name, worker, id, status, expected) in &running {
        let job = workshop.ended(*id).await;
        let shown: String = job.to_string().chars().take(500).collect();
        assert_eq!(job["status"], *status, "{name}: {shown}");
        assert!(expected(&job), "{name}: {shown}");
        worker.jobs_gone_within(Duration::ZERO).await;
        let peak = peak_bytes(worker.pid());
        assert!(peak < 64 << 20, "{name}: {peak} bytes");
        worker.signal(Signal::TERM);
    }
    for (name, worker, ..) in running {
        assert!(worker.ended().await.0.success(), "{name}");
    }
}

#[tokio::test]
async fn a_command_sees_its_job_and_nothing_else_of_fernery() {
    let workshop = Workshop::open(&[]).await;
    let id = workshop.enqueue("env", json!({"max_attempts": 7})).await;
    let mut command = fernery();
    command
        .current_dir(workshop.dir.path())
        .args(["worker", "--json", "--stream", "env", "--spool", "spool"]);
    command.env("FERNERY_TOKEN", workshop.token("worker.token")).env("FERNERY_URL", workshop.url());
    command.env("FERNERY_LEASE_TTL", "9s").env("FERNERY_SECRET", "s").env("MINE", "kept");
    command.args(["--", "sh", "-c", "env; tr '\\0' '\\n' </proc/$PPID/environ; ls -l /proc/$$/fd | wc -l"]);
    let worker = Worker::start(command);
    let job = workshop.ended(id).await;
    let text = job["result"]["text"].as_str().unwrap();
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    names.retain(|name| name.starts_with("FERNERY_"));
    names.sort_unstable();
    let told =
        ["ATTEMPT_ID", "ATTEMPT_NO", "ID", "MAX_ATTEMPTS", "STREAM"].map(|n| format!("FERNERY_JOB_{n}"));
    assert_eq!(names, told, "{text}");
    let attempt = job["attempts"][0]["attempt_id"].as_str().unwrap();
    for line in [
        format!("FERNERY_JOB_ID={id}"),
        format!("FERNERY_JOB_ATTEMPT_ID={attempt}"),
        "FERNERY_JOB_ATTEMPT_NO=1".into(),
        "FERNERY_JOB_MAX_ATTEMPTS=7".into(),
        "FERNERY_JOB_STREAM=env".into(),
        "MINE=kept".into(),
    ] {
        assert!(text.lines().any(|l| l == line), "{line}: {text}");
    }
    assert!(!text.contains(&workshop.token("worker.token")));
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.0.success());
}

#[tokio::test]
async fn a_cancelled_job_ends_with_its_whole_family() {
    let workshop = Workshop::open(&QUICK_BEATS).await;
    let id = workshop.enqueue("cancel", json!({})).await;
    let worker = workshop.worker(
        "cancel",
        &["--kill-grace", "200ms"],
        "setsid sleep 1000 & trap '' TERM; echo; sleep 1000",
    );
    worker.mark.appears("sleep").await;
    workshop.client().cancel(id, false).await.unwrap();
    let job = workshop.ended(id).await;
    assert_eq!((job["status"].as_str(), outcomes(&job)), (Some("CANCELLED"), vec!["FAILED"]), "{job}");
    worker.jobs_gone_within(Duration::ZERO).await;
    worker.tells(1, |event| event["event"] == "stopping" && event["reason"] == "cancel_requested").await;
    worker.tells(1, |event| event["event"] == "finished" && event["code"] == "cancelled").await;
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.0.success());
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_ended() {
    // A whole lease, so that no heartbeat could tell in time, and a claim that has waited for longer than the time-out.
    let workshop = Workshop::open(&[]).await;
    let began = workshop.dir.path().join("began");
    let flags = ["--concurrency", "2", "--kill-grace", "200ms"];
    let script = format!(
        "trap '' TERM; setsid sleep 1000 & echo $FERNERY_JOB_ATTEMPT_NO $$ $! >>{}; sleep 1000",
        began.display()
    );
    let worker = workshop.worker("slow", &flags, &script);
    worker.mark.appears("fernery").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let fields = json!({"timeout_seconds": 4, "max_attempts": 2});
    let id = workshop.enqueue("slow", fields).await;
    // When the worker says that the first attempt is over, nothing of its tree is left.
    worker.tells(1, |e| e["event"] == "finished" && e["ending"] == "dropped").await;
    let lines = workshop::lines_of(&began);
    let first = lines[0].strip_prefix("1 ").expect("the first attempt");
    for pid in first.split(' ') {
        assert!(!Path::new("/proc").join(pid).exists(), "{pid} of {first} outlived its attempt");
    }
    // By the worker's own clock: nobody else calls it that.
    worker.tells(2, |e| e["event"] == "stopping" && e["reason"] == "timed_out").await;
    worker.tells(2, |e| e["event"] == "finished" && e["ending"] == "dropped").await;
    worker.jobs_gone_within(PATIENCE).await;
    // The second attempt runs for four seconds. The first one is over before that.
    let events = worker.events();
    let at = |event: &str, attempt: u32| {
        events.iter().position(|e| e["event"] == event && e["attempt_no"] == attempt).expect("told")
    };
    assert!(at("finished", 1) < at("stopping", 2), "{events:#?}");
    let numbers: Vec<_> = workshop::lines_of(&began).iter().map(|line| line[..1].to_string()).collect();
    assert_eq!(numbers, ["1", "2"]);
    let job = workshop.ended(id).await;
    assert_eq!(outcomes(&job), ["TIMED_OUT", "TIMED_OUT"], "{job}");
    let job = workshop.client().job(id, Duration::ZERO).await.unwrap().read().unwrap();
    for attempt in job.attempts {
        let timed_out_at = attempt.started_at.after(Duration::from_secs(4));
        assert!(attempt.finished_at >= Some(timed_out_at), "not before its time: {attempt:?}");
    }
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.0.success());
}

#[tokio::test]
async fn a_worker_that_is_told_to_end_finishes_what_is_short_and_hands_back_what_is_long() {
    let workshop = Workshop::open(&[]).await;
    let fields = |payload: Value| json!({"payload": payload});
    let short = workshop.enqueue("drain", fields(json!({"s": 1}))).await;
    let long = workshop.enqueue("drain", fields(json!({"s": 1000}))).await;
    let script = "s=$(tr -dc 0-9); trap 'exit 0' TERM; sleep $s & wait; echo done";
    let flags = ["--concurrency", "2", "--drain", "2s"];
    let worker = workshop.worker("drain", &flags, script);
    worker.tells(2, |event| event["event"] == "claimed").await;
    let late = workshop.enqueue("drain", fields(json!({"s": 1000}))).await;
    worker.mark.appears("sleep").await;
    worker.signal(Signal::TERM);
    let (status, events) = worker.ended().await;
    assert_eq!(status.code(), Some(0), "{events:#?}");

    let (short, long, late) = (
        workshop.ended(short).await,
        workshop.becomes(long, "QUEUED").await,
        workshop.becomes(late, "QUEUED").await,
    );
    assert_eq!((outcomes(&short), &short["result"]["text"]), (vec!["SUCCEEDED"], &json!("done")), "{short}");
    assert_eq!(outcomes(&long), ["RELEASED"], "it exited with 0 on TERM, and its work is not done: {long}");
    assert!(late["attempts"].as_array().unwrap().is_empty(), "{late}");
}

#[tokio::test]
async fn a_second_signal_ends_everything_at_once() {
    let workshop = Workshop::open(&[]).await;
    let id = workshop.enqueue("hurry", json!({})).await;
    let flags = ["--drain", "1h", "--kill-grace", "1h"];
    let worker = workshop.worker("hurry", &flags, "trap '' TERM; setsid sleep 1000 & sleep 1000");
    worker.mark.appears("sleep").await;
    worker.signal(Signal::INT);
    worker.tells_of("draining").await;
    worker.signal(Signal::INT);
    assert!(worker.ended().await.0.success());
    assert_eq!(outcomes(&workshop.becomes(id, "QUEUED").await), ["RELEASED"]);
}

#[tokio::test]
async fn a_job_that_stops_its_guard_does_not_outlive_the_worker() {
    let workshop = Workshop::open(&QUICK_BEATS).await;
    let id = workshop.enqueue("stopper", json!({})).await;
    let worker = workshop.worker("stopper", &[], "kill -STOP $PPID; exec sleep 1000");
    worker.mark.appears("sleep").await;
    workshop.client().cancel(id, true).await.unwrap();
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.0.success());
}

#[tokio::test]
async fn a_job_that_stops_its_guard_does_not_outlive_a_worker_that_is_killed() {
    let workshop = Workshop::open(&[]).await;
    workshop.enqueue("stopper", json!({})).await;
    // Later than the guard says that it runs: until then its worker wakes it.
    let mut worker = workshop.worker("stopper", &[], "sleep 1; kill -STOP $PPID; exec sleep 1000");
    worker.mark.stopped().await;
    worker.kill().await;
    worker.mark.gone_within(PATIENCE).await;
}

#[tokio::test]
async fn a_second_signal_waits_for_a_guard_that_its_job_stops_again_and_again() {
    let workshop = Workshop::open(&[]).await;
    workshop.enqueue("stopper", json!({})).await;
    // Nobody else sleeps for so long; without its environment it can be known by nothing else.
    let long = format!("6{}", std::process::id());
    let script = format!(
        "env -i setsid sleep {long} & setsid sh -c 'while :; do kill -STOP '$PPID' || exit; done' & sleep 1000"
    );
    let mut worker = workshop.worker("stopper", &["--drain", "1h"], &script);
    with_argument(&long, 1, PATIENCE).await;
    worker.signal(Signal::TERM);
    worker.tells_of("draining").await;
    worker.signal(Signal::TERM);
    worker.exited().await;
    worker.mark.assert_gone_now();
    with_argument(&long, 0, Duration::ZERO).await;
}

#[tokio::test]
async fn a_worker_that_is_killed_leaves_no_process() {
    let workshop = Workshop::open(&[]).await;
    workshop.enqueue_many("doomed", vec![json!({}); 3]).await;
    // Nobody else sleeps for so long; without its environment it can be known by nothing else.
    let long = format!("7{}", std::process::id());
    let script = format!(
        "trap '' TERM; setsid sh -c 'sleep 1001 & sleep 1001' & (env -i setsid sleep {long} &); sleep 1003"
    );
    let mut worker = workshop.worker("doomed", &["--concurrency", "3"], &script);
    worker.tells(3, |event| event["event"] == "claimed").await;
    with_argument(&long, 3, PATIENCE).await;
    worker.kill().await;
    worker.mark.gone_within(PATIENCE).await;
    with_argument(&long, 0, PATIENCE).await;
}

#[tokio::test]
async fn a_worker_that_hangs_does_not_keep_its_job_running_beyond_the_lease() {
    let workshop = Workshop::open(&MEASURED_LEASE_FLAGS).await;
    let alive = workshop.dir.path().join("alive");
    let id = workshop.enqueue("hang", json!({"max_attempts": 5})).await;
    let script = format!(
        "[ $FERNERY_JOB_ATTEMPT_NO = 1 ] || {{ echo 2; exit; }}; trap '' TERM; \
         setsid sh -c '{TICK}' >>{} & sleep 1000",
        alive.display()
    );
    let worker = workshop.worker("hang", &[], &script);
    workshop::live(&alive, 1).await;
    worker.signal(Signal::STOP);
    let silent_at = uptime();
    // Its guard ends them: the worker itself is stopped all the while.
    worker.jobs_gone_within(PATIENCE).await;
    workshop::none_outlives_its_lease(&alive, silent_at, 1);
    worker.signal(Signal::CONT);
    let job = workshop.ended(id).await;
    assert_eq!(job["status"], "SUCCEEDED", "{job}");
    assert_eq!(outcomes(&job).iter().filter(|o| **o == "SUCCEEDED").count(), 1, "{job}");
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.0.success());
}

#[tokio::test]
async fn without_a_server_work_ends_before_the_lease_does_and_every_job_ends_once() {
    let mut workshop = Workshop::open(&MEASURED_LEASE_FLAGS).await;
    let (alive, done) = (workshop.dir.path().join("alive"), workshop.dir.path().join("done"));
    let script = format!(
        "[ $FERNERY_JOB_ATTEMPT_NO = 1 ] && {{ trap '' TERM; setsid sh -c '{TICK}' >>{} & sleep 1000; }}; \
         echo $FERNERY_JOB_ID >>{}",
        alive.display(),
        done.display()
    );
    let ids = workshop.enqueue_many("alone", vec![json!({"max_attempts": 9}); 3]).await;
    // A grace that is longer than the lease: the worker must not wait for it.
    let flags = ["--concurrency", "3", "--kill-grace", "1h"];
    let worker = workshop.worker("alone", &flags, &script);
    workshop::live(&alive, 3).await;
    workshop.down().await;
    let silent_at = uptime();
    worker.jobs_gone_within(PATIENCE).await;
    workshop::none_outlives_its_lease(&alive, silent_at, 3);
    worker.tells(3, |event| event["event"] == "stopping" && event["reason"] == "lease_unsure").await;
    workshop.up().await;
    for id in &ids {
        let job = workshop.ended(*id).await;
        assert_eq!(job["status"], "SUCCEEDED", "{job}");
        assert_eq!(outcomes(&job).iter().filter(|o| **o == "SUCCEEDED").count(), 1, "{job}");
    }
    let mut seen = workshop::lines_of(&done);
    seen.sort_unstable();
    let mut expected: Vec<String> = ids.iter().map(ToString::to_string).collect();
    expected.sort_unstable();
    assert_eq!(seen, expected);
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.0.success());
}

#[tokio::test]
async fn a_server_that_is_gone_for_a_minute_costs_that_minute_and_nothing_else() {
    let mut workshop = Workshop::open(&SHORT_LEASE).await;
    let (go, done) = (workshop.dir.path().join("go"), workshop.dir.path().join("done"));
    let ids = workshop.enqueue_many("minute", vec![json!({"max_attempts": 9}); 2]).await;
    // The first try of one ends while nobody can be told, that of the other never does.
    let script = format!(
        "[ $FERNERY_JOB_ATTEMPT_NO = 1 ] && {{ [ $FERNERY_JOB_ID = {} ] || exec sleep 1000; \
         until [ -e {} ]; do sleep 0.02; done; }}; echo $FERNERY_JOB_ID >>{}",
        ids[0],
        go.display(),
        done.display()
    );
    let worker = workshop.worker("minute", &["--concurrency", "2"], &script);
    worker.tells(2, |event| event["event"] == "claimed").await;
    worker.mark.appears("sleep").await;
    workshop.down().await;
    let gone = Instant::now();
    std::fs::write(&go, "").unwrap();
    worker.jobs_gone_within(PATIENCE).await;
    tokio::time::sleep(Duration::from_secs(60).saturating_sub(gone.elapsed())).await;
    workshop.up().await;
    for id in &ids {
        let job = workshop.ended(*id).await;
        assert_eq!(job["status"], "SUCCEEDED", "{job}");
        assert_eq!(outcomes(&job).iter().filter(|o| **o == "SUCCEEDED").count(), 1, "{job}");
        assert!(workshop::lines_of(&done).contains(&id.to_string()));
    }
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.0.success());
}

#[tokio::test]
async fn a_report_that_found_no_server_is_delivered_by_the_next_worker() {
    let mut workshop = Workshop::open(&[]).await;
    let go = workshop.dir.path().join("go");
    let id = workshop.enqueue("spool", json!({})).await;
    let script = format!("until [ -e {} ]; do sleep 0.02; done; echo '\"from the first\"'", go.display());
    let mut worker = workshop.worker("spool", &[], &script);
    worker.mark.appears("sleep").await;
    workshop.down().await;
    std::fs::write(&go, "").unwrap();
    worker.tells(1, |event| event["event"] == "finished" && event["ending"] == "succeeded").await;
    worker.tells(1, |event| event["event"] == "reconnecting" && event["call"] == "report").await;
    worker.kill().await;
    workshop.up().await;
    let next = workshop.worker("spool", &[], "echo '\"from the next\"'");
    let job = workshop.ended(id).await;
    assert_eq!((&job["result"], outcomes(&job)), (&json!("from the first"), vec!["SUCCEEDED"]), "{job}");
    next.tells_of("spool_found").await;
    next.signal(Signal::TERM);
    assert!(next.ended().await.0.success());
}

#[tokio::test]
async fn reports_that_two_workers_left_are_delivered_by_one() {
    let mut workshop = Workshop::open(&[]).await;
    let go = workshop.dir.path().join("go");
    let ids = workshop.enqueue_many("spool", vec![json!({}); 2]).await;
    let script = format!("until [ -e {} ]; do sleep 0.02; done; echo '\"from one of two\"'", go.display());
    let mut workers = [workshop.worker("spool", &[], &script), workshop.worker("spool", &[], &script)];
    for worker in &workers {
        worker.mark.appears("sleep").await;
    }
    workshop.down().await;
    std::fs::write(&go, "").unwrap();
    for worker in &mut workers {
        worker.tells(1, |event| event["event"] == "reconnecting" && event["call"] == "report").await;
        worker.kill().await;
    }
    workshop.up().await;
    let next = workshop.worker("spool", &[], "echo '\"from the next\"'");
    for id in ids {
        let job = workshop.ended(id).await;
        assert_eq!((&job["result"], outcomes(&job)), (&json!("from one of two"), vec!["SUCCEEDED"]), "{job}");
    }
    next.tells(1, |event| event["event"] == "spool_gathered" && event["reports"] == 1).await;
    next.tells(1, |event| event["event"] == "spool_found" && event["reports"] == 2).await;
    next.signal(Signal::TERM);
    assert!(next.ended().await.0.success());
}

#[tokio::test]
async fn a_command_that_vanishes_costs_no_attempt_and_ends_the_worker() {
    use std::os::unix::fs::PermissionsExt;
    let workshop = Workshop::open(&[]).await;
    let program = workshop.dir.path().join("tool");
    std::fs::write(&program, "#!/bin/sh\necho 1\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let first = workshop.enqueue("tool", json!({})).await;
    let mut command = fernery();
    command.current_dir(workshop.dir.path()).args(["worker", "--json", "--stream", "tool", "--", "./tool"]);
    let worker = Worker::start(command);
    assert_eq!(workshop.ended(first).await["result"], 1);
    std::fs::remove_file(&program).unwrap();
    let second = workshop.enqueue("tool", json!({"max_attempts": 1})).await;
    let (status, events) = worker.ended().await;
    assert_eq!(status.code(), Some(1), "{events:#?}");
    assert_eq!(events.last().unwrap()["code"], "no_command", "{events:#?}");
    let job = workshop.becomes(second, "QUEUED").await;
    // The claim that was open when the end began may bring it once more, to be handed back unstarted.
    let outcomes = outcomes(&job);
    assert!((1..=2).contains(&outcomes.len()) && outcomes.iter().all(|o| *o == "RELEASED"), "{job}");
}

#[tokio::test]
async fn a_worker_waits_for_a_server_that_starts_later() {
    let mut workshop = Workshop::closed(&[]);
    let worker = workshop.worker("early", &[], "echo 1");
    worker.tells_of("waiting").await;
    workshop.up().await;
    let id = workshop.enqueue("early", json!({})).await;
    assert_eq!(workshop.ended(id).await["result"], 1);
    workshop.down().await;
    worker.tells_of("reconnecting").await;
    workshop.up().await;
    let id = workshop.enqueue("early", json!({})).await;
    assert_eq!(workshop.ended(id).await["result"], 1);
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.0.success());
}

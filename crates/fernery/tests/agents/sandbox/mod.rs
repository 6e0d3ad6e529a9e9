//! What a contained program cannot do, each time shown to be possible without the sandbox; and what it still can.

mod attempts;
mod world;

use attempts::{ATTEMPTS, Attempt};
use fernery_exec::guard::{ATTEMPT_VARIABLE, Guards, Input};
use fernery_exec::sandbox::{Cell, CellLimits, Probe, Tier};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tokio::sync::mpsc;
use world::{Ran, World, fernery};

const TIERS: [Tier; 2] = [Tier::Bubblewrap, Tier::Landlock];

/// Small enough to be reached in a moment, large enough for a shell.
const TIGHT: CellLimits = CellLimits {
    processes: 40,
    file_bytes: 1 << 20,
    open_files: 64,
    memory_bytes: 128 << 20,
    cpu_seconds: 2,
};

/// Whether a script got through: it says so, and where it was to change something, that has changed.
fn gets_through(attempt: &Attempt, world: &World, cell: &Cell, tier: Tier) -> Result<bool, String> {
    let before = world.outside();
    let ran = world.run(cell, tier, attempt.script);
    let changed = world.outside() != before;
    match (ran.began(), ran.succeeded(), attempt.changes) {
        (false, ..) => Err(format!("{}: it never ran: {ran:?}", attempt.name)),
        (_, true, true) => Ok(changed),
        (_, succeeded, _) if !changed => Ok(succeeded),
        _ => Err(format!("{}: it left a trace: {ran:?}", attempt.name)),
    }
}

/// Makes every attempt, each in a world of its own.
fn attempt_all(tier: Tier, world: fn() -> World) {
    let mut wrong = Vec::new();
    for attempt in ATTEMPTS {
        let world = world();
        let mut cell = world.cell();
        (cell.limits, cell.network) = (TIGHT, attempt.network);
        cell.read = vec![world.path("tools")];
        let known = tier == Tier::LandlockPartial && attempt.known_in_partial;
        match gets_through(attempt, &world, &cell, tier) {
            Ok(through) if through == known => {}
            Ok(_) => wrong.push(attempt.name.to_string()),
            Err(why) => wrong.push(why),
        }
    }
    assert!(wrong.is_empty(), "in {tier}:\n{}", wrong.join("\n"));
}

#[test]
fn bubblewrap_stops_every_attempt() {
    attempt_all(Tier::Bubblewrap, World::new);
}

#[test]
fn landlock_stops_every_attempt() {
    attempt_all(Tier::Landlock, World::new);
}

#[test]
fn bubblewrap_stops_every_attempt_of_the_servers_own_user() {
    attempt_all(Tier::Bubblewrap, World::ordinary);
}

#[test]
fn landlock_stops_every_attempt_of_the_servers_own_user() {
    attempt_all(Tier::Landlock, World::ordinary);
}

#[test]
fn landlock_without_namespaces_stops_every_attempt_but_those_that_are_known() {
    attempt_all(Tier::LandlockPartial, World::ordinary);
}

/// What is common to all processes of the machine, and would stay: made and looked for by the same key or name.
const COMMON: [(&str, &str, &str); 4] = [
    (
        "shared memory",
        "exec perl -e 'exit(!defined shmget($ENV{KEY},64,01600))'",
        "exec perl -e '$id=shmget($ENV{KEY},0,0); exit(!defined($id) || !shmctl($id,0,0))'",
    ),
    (
        "semaphores",
        "exec perl -e 'exit(!defined semget($ENV{KEY},1,01600))'",
        "exec perl -e '$id=semget($ENV{KEY},0,0); exit(!defined($id) || !semctl($id,0,0,0))'",
    ),
    (
        "messages",
        "exec perl -e 'exit(!defined msgget($ENV{KEY},01600))'",
        "exec perl -e '$id=msgget($ENV{KEY},0); exit(!defined($id) || !msgctl($id,0,0))'",
    ),
    (
        "messages with a name",
        "exec perl -e 'exit(syscall($ENV{NR_mq_open},$ENV{NAME},0102,0600,0)<0)'",
        "exec perl -e 'exit(syscall($ENV{NR_mq_unlink},$ENV{NAME})!=0)'",
    ),
];

#[test]
fn no_memory_semaphore_or_message_queue_outlives_a_run() {
    for world in [World::new(), World::ordinary()] {
        for (what, make, take_away) in COMMON {
            for tier in [Tier::Unconfined, Tier::Bubblewrap, Tier::Landlock, Tier::LandlockPartial] {
                let ran = world.run(&world.cell(), tier, make);
                assert!(
                    ran.began() && (tier != Tier::Unconfined || ran.succeeded()),
                    "{tier}: {what}: {ran:?}"
                );
                let left = world.run(&world.cell(), Tier::Unconfined, take_away).succeeded();
                assert_eq!(left, tier == Tier::Unconfined, "{tier}: {what}");
            }
        }
    }
}

/// A server that may make no namespace: an ordinary user on a machine where that is switched off.
fn without_namespaces(args: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new("bwrap");
    command.args([
        "--unshare-user",
        "--disable-userns",
        "--uid",
        "1000",
        "--gid",
        "1000",
        "--dev-bind",
        "/",
        "/",
    ]);
    command.arg(fernery()).args(args).output().unwrap()
}

#[test]
fn landlock_without_mode_protection_does_not_count_as_containment() {
    let data = tempfile::tempdir().unwrap();
    let said = without_namespaces(&["doctor", "--json", "--data", data.path().to_str().unwrap()]);
    let said: serde_json::Value = serde_json::from_slice(&said.stdout).expect("doctor answers");
    let findings = said.as_array().or_else(|| said["findings"].as_array()).expect("findings").clone();
    let finding =
        findings.iter().find(|finding| finding["check"] == "sandbox").expect("it looks at the sandbox");
    let found = finding["found"].as_str().unwrap();
    assert!(found.starts_with("no sandbox works here") && found.contains("operator.token"), "{finding}");
    assert!(finding["remedy"].as_str().unwrap().contains("landlock-partial"), "{finding}");
}

#[test]
fn every_escape_succeeds_without_a_sandbox() {
    let mut wrong = Vec::new();
    for attempt in ATTEMPTS {
        if let Some(why) = attempt.control.impossible_for() {
            eprintln!("not shown here that it would get through: {}: {why}", attempt.name);
            continue;
        }
        let world = World::new();
        let cell = Cell { network: attempt.network, ..world.cell() };
        match gets_through(attempt, &world, &cell, Tier::Unconfined) {
            Ok(true) => {}
            Ok(false) => wrong.push(attempt.name.to_string()),
            Err(why) => wrong.push(why),
        }
    }
    assert!(wrong.is_empty(), "without a sandbox:\n{}", wrong.join("\n"));
}

#[test]
fn a_contained_program_can_do_its_work() {
    let worlds = [World::new as fn() -> World, World::ordinary];
    for (tier, world) in TIERS.into_iter().flat_map(|tier| worlds.map(|world| (tier, world()))) {
        let mut cell = world.cell();
        cell.read = vec![world.path("tools")];
        cell.write = vec![world.path("open")];
        let script = r#"set -e
            test "$(pwd)" = "$FOLDER" && test "$(id -u)" != 0
            while read name value; do case $name in Cap???:) test "$name" = CapBnd: || test $value = 0000000000000000;; esac; done </proc/self/status
            echo 'echo built' > tool && chmod +x tool && ./tool | grep -q built
            mkdir -p a/b && echo x > a/b/c && mv a/b/c d && ln -s d e && cat e && rm -r a
            test -d "$HOME" && echo x > "$HOME/note" && echo x > "$TMPDIR/note"
            cat "$WORLD/tools/notes" && echo x > "$WORLD/open/made"
            cp -p tool same && install -m 700 tool other && touch -d @1000 same && chmod -R go-w . && chown $(id -u) same
            mkdir -m 1777 shared && tar cf - tool | (mkdir out && cd out && tar xpf -) && test -x out/tool
            mkfifo pipe && chmod 666 "$WORLD/open/made" && rm -r shared out
            (sleep 0 & wait) && echo a | cat | grep -q a
            perl -MSocket -e 'socketpair(A,B,AF_UNIX,SOCK_STREAM,0) or die $!'
            test -n "$FERNERY_JOB_ATTEMPT_ID""#;
        let ran = world.run(&cell, tier, script);
        assert!(ran.succeeded(), "{tier}: {ran:?}");
        assert!(world.path("open/made").exists(), "{tier}: what it may write is outside too");
    }
}

#[test]
fn a_folder_that_only_the_server_may_enter_is_shown_to_the_program_and_nothing_else_of_it() {
    for tier in TIERS {
        let world = World::new();
        std::fs::set_permissions(world.path("data"), Permissions::from_mode(0o700)).unwrap();
        std::fs::set_permissions(world.path("data/work"), Permissions::from_mode(0o700)).unwrap();
        let script = "set -e; echo x > made; echo x > $TMPDIR/made; test \"$(realpath .)\" = \"$FOLDER\"; \
                      for other in operator.token work/other/content; do ! cat $WORLD/data/$other; done";
        let ran = world.run(&world.cell(), tier, script);
        assert!(ran.succeeded(), "{tier}: {ran:?}");
        assert!(world.cell().folder.join("made").exists(), "{tier}");
    }
}

#[test]
fn with_a_network_it_reaches_servers_and_still_no_other_process() {
    for tier in TIERS {
        let world = World::new();
        let cell = Cell { network: true, ..world.cell() };
        for (name, is_reached) in [("TCP to this machine", true), ("a socket with an abstract name", false)] {
            let attempt = ATTEMPTS.iter().find(|attempt| attempt.name == name).expect("it is in the list");
            let ran = world.run(&cell, tier, attempt.script);
            assert_eq!(ran.succeeded(), is_reached, "{tier}, {name}: {ran:?}");
        }
    }
}

#[test]
fn a_missing_program_differs_from_a_failing_one() {
    let world = World::new();
    for tier in TIERS {
        for (program, code) in [("nothere", 127), ("/etc", 126), ("/bin/false", 1)] {
            let ran = world.run_argv(&world.cell(), tier, &[program.into()]);
            assert_eq!(ran.code, Some(code), "{tier}: {ran:?}");
            let told = fernery_exec::sandbox::refusal(ran.code, &ran.stderr);
            assert_eq!(told.is_some(), code != 1, "{tier}: {ran:?}");
        }
        let cell = Cell { read: vec!["/nowhere/at/all".into()], ..world.cell() };
        let ran = world.run_argv(&cell, tier, &["/bin/true".into()]);
        let told = fernery_exec::sandbox::refusal(ran.code, &ran.stderr).unwrap_or_default();
        assert!(told.contains("/nowhere/at/all"), "{tier}: {ran:?}");
    }
}

#[tokio::test]
async fn a_program_that_is_stopped_has_its_time_to_end() {
    for tier in TIERS {
        let world = World::new();
        let cell = world.cell();
        let ready = cell.folder.join("ready");
        mknodat(CWD, &ready, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        cell.hand_over([&cell.folder]).unwrap();
        let script = "trap 'echo ended well; exit 3' TERM; echo > ready; while :; do sleep 0.01; done";
        let ran = guarded(&world, &cell, tier, script, Duration::from_secs(20)).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), "ended well\n"), "{tier}: {ran:?}");
        assert!(
            world.run_argv(&cell, tier, &["/bin/true".into()]).succeeded(),
            "{tier}: the place is free again"
        );
    }
}

#[tokio::test]
async fn nothing_that_a_program_starts_outlives_it() {
    for tier in TIERS {
        let world = World::new();
        let cell = world.cell();
        let ready = cell.folder.join("ready");
        mknodat(CWD, &ready, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        cell.hand_over([&cell.folder]).unwrap();
        let script =
            "trap '' TERM; (trap '' TERM; setsid sleep 1000 >/dev/null 2>&1 &); echo > ready; sleep 1000";
        guarded(&world, &cell, tier, script, Duration::ZERO).await;
        assert_eq!(world.marked(), Vec::<i32>::new(), "{tier}");
    }
}

/// Runs a script under a guard, and stops it once it has written to `ready`.
async fn guarded(world: &World, cell: &Cell, tier: Tier, script: &str, grace: Duration) -> Ran {
    let argv = world.wrapped(cell, tier, &["/bin/sh".into(), "-c".into(), OsString::from(script)]);
    let guards = Guards::new(fernery(), argv, Duration::from_secs(5)).within(&cell.folder, &[]);
    let mut env = cell.environment();
    env.push((ATTEMPT_VARIABLE.into(), world.mark.clone()));
    let (stop, stops) = mpsc::unbounded_channel();
    let ready = cell.folder.join("ready");
    let run = async {
        let hang_max = Duration::from_secs(60);
        guards.run(Input { env, stdin: b"", ends_when_full: false, listener: None, hang_max }, stops).await
    };
    let stopping = async {
        tokio::task::spawn_blocking(move || std::fs::read(ready)).await.unwrap().unwrap();
        stop.send(grace).unwrap();
    };
    let (ran, ()) = tokio::join!(run, stopping);
    let ran = ran.unwrap();
    guards.close().await;
    assert!(ran.immortal.is_empty(), "{:?}", ran.immortal);
    let code = match ran.seen.exit {
        fernery_exec::guard::Exit::Code(code) => Some(code),
        _ => None,
    };
    let stdout = String::from_utf8_lossy(&ran.seen.stdout.kept()).into_owned();
    Ran { code, stdout, stderr: ran.seen.stderr.text() }
}

#[test]
fn the_operators_login_is_found_at_home_and_stays_as_it_is() {
    let worlds = [World::new as fn() -> World, World::ordinary];
    for (tier, world) in TIERS.into_iter().flat_map(|tier| worlds.map(|world| (tier, world()))) {
        let cell = Cell { login: vec![world.path("home/.agent")], ..world.cell() };
        let script = "cat ~/.agent/login && (echo changed > ~/.agent/login; true)";
        let ran = world.run_at_home(&cell, tier, script);
        assert!(ran.succeeded() && ran.stdout.contains("my login"), "{tier}: {ran:?}");
        assert_eq!(std::fs::read_to_string(world.path("home/.agent/login")).unwrap(), "my login\n", "{tier}");
    }
}

#[test]
fn a_login_is_not_written_through_a_link_that_a_program_has_left() {
    for tier in TIERS {
        let world = World::new();
        let cell = Cell { login: vec![world.path("home/.agent/login")], ..world.cell() };
        let ran = world.run(&world.cell(), tier, "ln -s $WORLD/open ~/.agent");
        assert!(ran.succeeded(), "{tier}: {ran:?}");
        let before = world.outside();
        let ran = world.run_at_home(&cell, tier, "true");
        assert!(fernery_exec::sandbox::refusal(ran.code, &ran.stderr).is_some(), "{tier}: {ran:?}");
        assert_eq!(world.outside(), before, "{tier}");
    }
}

#[tokio::test]
async fn a_machine_that_cannot_contain_says_what_to_do() {
    // This program is no fernery: whatever it is told to run, nothing is contained.
    let probe = Probe::look_with("/bin/false".as_ref()).await;
    let why = probe.choose(None).unwrap_err();
    assert!(
        why.contains("bubblewrap does not work here") && why.contains("landlock does not work here"),
        "{why}"
    );
    assert_eq!(probe.choose(Some(Tier::Unconfined)), Ok(Tier::Unconfined));
    let probe = Probe::look_with(&fernery()).await;
    for tier in TIERS {
        assert_eq!(probe.choose(Some(tier)), Ok(tier), "these tests need both");
    }
}

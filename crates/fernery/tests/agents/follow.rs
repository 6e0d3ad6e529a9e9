//! `ticket show -f`: a run told while it happens, over the death of its server, to an exit code.

use crate::program::patience::eventually;
use crate::program::{Answer, Server, fernery};
use crate::yard::{GATES, Yard, blueprint};
use rustix::process::Signal;
use std::process::{Child, Stdio};

fn following(yard: &Yard, id: &str) -> Child {
    let mut command = fernery();
    command.current_dir(yard.server.dir.path()).args(["ticket", "show", id, "-f"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn told(child: Child) -> Answer {
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_run_is_followed_to_its_end_and_the_exit_code_tells_which() {
    let yard = Yard::open(&blueprint(GATES));
    let new =
        crate::yard::new_ticket("yard", "t", "mock: say I am looking\nmock: wait 500ms\nmock: write a.txt 1");
    yard.post("/v1/objectives", new);
    let nothing = yard.server.run(["ticket", "show", "t", "-f"]).exits(4);
    assert!(nothing.stderr.contains("t is NEW: nothing runs before it is approved"), "{nothing:?}");
    yard.approve("t");
    let end = told(following(&yard, "t")).exits(0);
    for part in [
        "approved it",
        "workorder ",
        "| I am looking",
        "PATCH: A patch of 1 file",
        "PASS: every gate passed",
        "t is DONE",
    ] {
        assert!(end.stdout.contains(part), "{part}: {end:?}");
    }
    assert!(
        end.stdout.contains("ticket confirm t") && !end.stdout.contains('\u{1b}'),
        "plain lines: {end:?}"
    );
    let order = ["approved it", "| I am looking", "PATCH:", "PASS:", "t is DONE"]
        .map(|part| end.stdout.find(part).unwrap());
    assert!(order.is_sorted(), "{end:?}");
    // One that is over is told at once, and what failed is no success.
    assert_eq!(told(following(&yard, "t")).exits(0).stdout.matches("PASS:").count(), 1);
    yard.ticket("yard", "bad", "mock: fail I cannot");
    let end = told(following(&yard, "bad")).exits(1);
    assert!(end.stdout.contains("FAIL: gate outcome") && end.stdout.contains("bad is BLOCKED"), "{end:?}");
    let lines = yard.server.run(["ticket", "show", "bad", "-f", "--json"]).exits(1).stdout;
    let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["status"], &last["gate_result"]), (&"BLOCKED".into(), &"FAIL".into()), "{lines}");
}

#[test]
fn a_server_that_is_started_anew_in_between_is_waited_for() {
    let yard = Yard::open(&blueprint(GATES));
    yard.ticket("yard", "t", "mock: say first\nmock: wait 2s\nmock: write a.txt 1");
    let mut child = following(&yard, "t");
    let (said, heard) =
        (child.stdout.take().unwrap(), std::sync::Arc::new(std::sync::Mutex::new(String::new())));
    let reader = {
        let heard = heard.clone();
        std::thread::spawn(move || {
            use std::io::BufRead;
            for line in std::io::BufReader::new(said).lines() {
                *heard.lock().unwrap() += &format!("{}\n", line.unwrap());
            }
        })
    };
    assert!(eventually(|| heard.lock().unwrap().contains("| first")), "{}", heard.lock().unwrap());
    yard.server.signal(Signal::KILL);
    let dir = yard.server.ended().1;
    let mut waits = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut waits, &mut line).unwrap();
    assert!(line.contains("the server is away; waiting for it"), "{line}");
    // On another port.
    let yard = Yard::open_in(dir);
    let status = child.wait().unwrap();
    reader.join().unwrap();
    let heard = heard.lock().unwrap().clone();
    assert!(status.success() && heard.contains("t is DONE"), "{status}: {heard}");
    assert_eq!(heard.matches("approved it").count(), 1, "nothing is told twice: {heard}");
    let _: &Server = &yard.server;
}

#[test]
fn the_time_of_the_run_counts_while_it_runs_and_the_gate_at_work_is_named() {
    let gates = GATES.replace(
        " }]",
        " }, { kind = \"command\", name = \"slow\", argv = [\"sleep\", \"2\"], timeout = \"30s\" }]",
    );
    let yard = Yard::open(&blueprint(&gates));
    yard.ticket("yard", "t", "mock: wait 3s\nmock: write a.txt 1");
    let child = following(&yard, "t");
    let shown = || yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
    let counts = |shown: &str| {
        let before = shown.split_once(" s of 4 h").map_or("", |(before, _)| before);
        let seconds = before.rsplit(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse::<u32>().ok());
        shown.contains("IN_PROGRESS") && seconds.is_some_and(|seconds| seconds >= 1)
    };
    let mut seen = String::new();
    let counted = eventually(|| {
        seen = shown();
        counts(&seen)
    });
    assert!(counted, "{seen}");
    assert!(
        seen.contains("works on it; if it is heard of no more") && !seen.contains("holds it until"),
        "{seen}"
    );
    let listed = yard.server.run(["ticket", "list", "--json"]).exits(0).json();
    let people = yard.server.run(["ticket", "list"]).exits(0).stdout;
    let said = listed["objectives"][0]["progress"].is_object() || people.contains("under way");
    assert!(said, "{people}");
    let end = told(child).exits(0);
    assert!(end.stdout.contains("gate slow is checking the output"), "{end:?}");
}

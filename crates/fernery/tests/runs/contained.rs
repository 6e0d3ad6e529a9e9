//! Programs of a blueprint that are contained, through the real program.

use crate::program::{Server, fernery, marked, with_mounts};
use crate::shop::{Shop, blueprint, eventually};
use fernery_exec::sandbox::Cell;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

const SEE: &str = "cat >/dev/null; env | sort | cut -d= -f1 | tr '\\n' ' '; for up in .. ../.. ../../.. ../../../.. ../../../../..; do \
                   cat $up/operator.token 2>/dev/null && echo stolen; done; echo $HOME >home; true";

fn contained(script: &str, gate: &[&str], sandbox: &str) -> String {
    let gate = json!(gate);
    let gates = format!(
        "gates = [{{ kind = \"outcome\" }}, {{ kind = \"command\", name = \"check\", argv = {gate}, timeout = \"20s\" }}]\n\
         [retry]\ngate_failures = 0\ninfrastructure = 1\n"
    );
    blueprint(script, &gates).replace("sandbox = \"none\"\n", sandbox)
}

fn last<'a>(objective: &'a Value, list: &str) -> &'a Value {
    objective[list].as_array().and_then(|list| list.last()).unwrap_or(&Value::Null)
}

#[test]
fn a_program_sees_nothing_of_the_server_and_the_record_says_what_held_it() {
    for (line, tier) in [
        ("", "bubblewrap"),
        ("sandbox = \"landlock\"\n", "landlock"),
        ("sandbox = \"landlock-partial\"\n", "landlock-partial"),
    ] {
        let gate = ["/bin/grep", "-q", "FERNERY_JOB_ATTEMPT_ID", "content"];
        let shop = Shop::open(&contained(SEE, &gate, line), &[]);
        shop.ticket("t");
        let done = shop.until_status("t", "DONE");
        let bundle = last(&done, "output_bundles");
        assert_eq!(bundle["metadata"]["sandbox"], tier, "{bundle}");
        assert_eq!(
            bundle["content"].as_str().unwrap().trim(),
            "FERNERY_JOB_ATTEMPT_ID FERNERY_WORK_ORDER_ID HOME LANG NO_COLOR PATH PWD TERM TMPDIR XDG_CACHE_HOME \
             XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME",
            "{tier}"
        );
        let run = last(&done, "runs");
        assert_eq!(run["evidence"][1]["sandbox"], "bubblewrap", "a gate says for itself: {run}");
        let id = run["run_id"].as_str().unwrap();
        assert_eq!(shop.get(&format!("/v1/runs/{id}/replay"))["same"], true);
    }
}

/// Opens what it can and leaves a process behind; its gate does the same.
const OPENS: &str = "cat >/dev/null; for up in .. ../.. ../../.. ../../../.. ../../../../..; do \
                     chmod 644 $up/operator.token; chmod 755 $up; done 2>/dev/null; setsid sleep 1000 >/dev/null 2>&1 & echo done";

/// A server that is an ordinary user, as most are: its programs run as the very user that owns its data.
#[test]
fn programs_of_an_ordinary_server_cannot_open_its_data() {
    for tier in ["bubblewrap", "landlock"] {
        let dir = tempfile::tempdir().unwrap();
        let line = format!("sandbox = \"{tier}\"\n");
        let gate = ["/bin/sh", "-c", OPENS];
        let gates = contained(OPENS, &gate, &line)
            .replace("timeout = ", &format!("sandbox = \"{tier}\", timeout = "));
        crate::shop::write(dir.path(), &gates);
        let mut command = fernery();
        command.current_dir(dir.path()).args(["up", "--listen", "127.0.0.1:0", "--azolla", "shop.toml"]);
        // Where these tests are an ordinary user, so is the server.
        if let Some(uid) = Cell::spare_uid(tier) {
            let all = Cell { uid: Some(uid), ..Cell::new("/", "/") };
            all.hand_over([dir.path()]).unwrap();
            command.uid(uid).gid(uid);
        }
        let shop = Shop { server: Server::spawn(command, dir) };
        shop.ticket("t");
        let done = shop.until_status("t", "DONE");
        assert_eq!(last(&done, "output_bundles")["metadata"]["sandbox"], tier, "{done:#}");
        assert_eq!(last(&done, "runs")["evidence"][1]["sandbox"], tier, "{done:#}");
        let data = shop.server.data().to_owned();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(&data), mode(&data.join("operator.token"))), (0o700, 0o600), "{tier}");
        assert!(!data.join("mended-modes.jsonl").exists(), "{tier}: it was stopped, not mended");
        let work =
            shop.get("/v1/objectives/t")["workorders"][0]["work_order_id"].as_str().unwrap().to_string();
        let mark = format!("FERNERY_WORK_ORDER_ID={work}");
        assert!(eventually(|| marked(&mark).is_empty()), "{tier}: nothing outlives its run");
    }
}

#[test]
fn a_gate_whose_program_is_not_there_has_not_judged() {
    let shop = Shop::open(&contained("cat >/dev/null; echo hello", &["/nothere"], ""), &[]);
    shop.ticket("t");
    let blocked = shop.until_status("t", "BLOCKED");
    let evidence = &last(&blocked, "runs")["evidence"][1];
    assert_eq!(evidence["result"], Value::Null, "{evidence}");
    assert!(evidence["trouble"].as_str().unwrap().contains("/nothere"), "{evidence}");
}

#[test]
fn where_nothing_can_contain_a_program_nothing_is_served() {
    let dir = tempfile::tempdir().unwrap();
    crate::shop::write(dir.path(), &contained("true", &["/bin/true"], ""));
    // Here the program is root among users of which it knows no other: it has nobody to leave a program to.
    let mut up = with_mounts("true");
    let output = up
        .args(["up", "--listen", "127.0.0.1:0", "--azolla", "shop.toml"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in
        ["azolla shop", "bubblewrap does not work here", "landlock does not work here", "sandbox = \"none\""]
    {
        assert!(said.contains(word), "{word}: {said}");
    }
}

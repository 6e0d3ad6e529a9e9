//! What an operator reads of an agent's work: while it runs, when it has ended, and what is in the trash.

use crate::program::{Server, fernery, run_in};
use crate::yard::{GATES, Yard, blueprint, eventually, git, lay_out};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

fn log(yard: &Yard, id: &str, from: u64) -> Value {
    let (status, part) = yard.server.read(&format!("/v1/workorders/{id}/log?from={from}"));
    assert_eq!(status, 200, "{part}");
    part
}

/// The workorder and the run of a ticket that was judged once.
fn ids(objective: &Value) -> (String, String) {
    let id = |list: &str, name: &str| objective[list][0][name].as_str().unwrap_or_default().to_string();
    (id("workorders", "work_order_id"), id("runs", "run_id"))
}

#[test]
fn a_running_agent_is_seen_in_the_list_and_its_log_followed_to_its_end() {
    let yard = Yard::open(&blueprint(GATES));
    yard.ticket("yard", "t", "mock: write new.txt new\nmock: say now I wait\nmock: hang");
    yard.post("/v1/objectives", crate::yard::new_ticket("yard", "unapproved", "mock: ok"));
    let seen = yard.until("t", "at work", |objective| objective["progress"]["note"] == "now I wait");
    assert!(seen["progress"]["percent"].as_u64().is_some_and(|percent| percent <= 100), "{seen:#}");
    let listed = yard.server.run(["ticket", "list"]).exits(0).stdout;
    let line = |id: &str| listed.lines().find(|line| line.starts_with(id)).unwrap_or_default();
    assert!(line("t ").ends_with("% now I wait"), "{listed}");
    assert!(line("unapproved ").ends_with("Do it"), "{listed}");
    let page = yard.server.run(["ticket", "list", "--json"]).exits(0).json();
    let progress: Vec<&Value> =
        page["objectives"].as_array().unwrap().iter().map(|view| &view["progress"]["note"]).collect();
    assert_eq!(progress, [&Value::Null, &json!("now I wait")]);
    let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
    assert!(shown.contains("% of its budget is spent: now I wait"), "{shown}");

    let (work, _) = ids(&seen);
    let first = log(&yard, &work, 0);
    assert!(first["text"].as_str().unwrap().contains("now I wait"), "{first}");
    assert_eq!((&first["ended"], &first["here"]), (&json!(false), &json!(true)));
    let next = first["next"].as_u64().unwrap();
    assert_eq!(log(&yard, &work, next), json!({"text": "", "next": next, "ended": false, "here": true}));
    let so_far = yard.server.run(["run", "logs", "t"]).exits(0).stdout;
    assert!(so_far.ends_with("write: new.txt\nnow I wait\n"), "{so_far}");
    yard.server.run(["run", "diff", "t"]).exits(3);
    let unjudged = yard.server.run(["run", "show", "t"]).exits(3).stderr;
    assert!(unjudged.contains("has no verdict yet") && unjudged.contains("run logs t -f"), "{unjudged}");

    let mut command = fernery();
    command.current_dir(yard.server.dir.path()).args(["run", "logs", "t", "--follow"]);
    let follower = command.stdout(Stdio::piped()).spawn().unwrap();
    yard.server.run(["ticket", "cancel", "t"]).exits(0);
    let followed = follower.wait_with_output().unwrap();
    assert!(followed.status.success());
    assert!(String::from_utf8_lossy(&followed.stdout).contains("now I wait"), "{followed:?}");
    let ended = yard.judged("t");
    assert_eq!(ended["progress"], Value::Null, "nobody works on it any more");
    assert_eq!(log(&yard, &work, next)["ended"], true);
}

#[test]
fn a_run_is_read_by_ticket_id_workorder_id_or_run_id() {
    let dir = lay_out(&blueprint(GATES));
    let repo = dir.path().join("repo");
    fs::write(repo.join("nasty.txt"), "a\u{1b}[2J\u{202e}\n\told\n").unwrap();
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "nasty"]);
    let yard = Yard::open_in(dir);
    yard.ticket(
        "yard",
        "t",
        "mock: replace nasty.txt old => new\nmock: write b.txt one\\ntwo\nmock: binary c.bin",
    );
    yard.ticket("yard", "mute", "mock: usage none\nmock: empty");
    let (work, run) = ids(&yard.judged("t"));

    let diff = yard.server.run(["run", "diff", "t"]).exits(0).stdout;
    assert!(diff.contains(" a\\u{1b}[2J\\u{202e}\n-       old\n+       new\n"), "{diff}");
    for id in [&work, &run] {
        assert_eq!(yard.server.run(["run", "diff", id]).exits(0).stdout, diff);
    }
    let exact = yard.server.run(["run", "diff", "t", "--json"]).exits(0);
    assert!(!exact.stdout.contains('\u{1b}'), "not even for programs");
    let exact = exact.json();
    assert_eq!((&exact["outcome"], &exact["work_order_id"]), (&json!("PATCH"), &json!(work)));
    fs::write(yard.repo().join("../t.patch"), exact["patch"].as_str().unwrap()).unwrap();
    git(&yard.repo(), &["apply", "--check", "../t.patch"]);
    let stat = yard.server.run(["run", "diff", "t", "--stat"]).exits(0).stdout;
    assert!(stat.contains("b.txt") && stat.contains("binary") && stat.contains("3 files, +3 −1"), "{stat}");
    let stat = yard.server.run(["run", "diff", "t", "--stat", "--json"]).exits(0).json();
    assert_eq!(
        stat["files"][0],
        json!({"path": "b.txt", "insertions": 2, "deletions": 0, "binary_bytes": null})
    );

    let shown = yard.server.run(["run", "show", &run]).exits(0).stdout;
    let fact = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().to_string()
    };
    assert!(fact(&shown, "branch").starts_with("azolla/t at "), "{shown}");
    assert!(fact(&shown, "executor").starts_with("mock ("), "{shown}");
    assert!(["bubblewrap", "landlock"].contains(&fact(&shown, "sandbox").as_str()), "{shown}");
    assert!(fact(&shown, "tokens").parse::<u64>().is_ok_and(|tokens| tokens > 0), "{shown}");
    assert!(fact(&shown, "cost").ends_with(" USD"), "{shown}");
    for id in ["t", &work] {
        assert_eq!(yard.server.run(["run", "show", id]).exits(0).stdout, shown, "{id}");
    }
    let told = yard.server.run(["run", "show", &run, "--json"]).exits(0).json();
    assert_eq!(told["output_metadata"]["executor"], "mock", "{told}");
    let (_, mute) = ids(&yard.judged("mute"));
    let shown = yard.server.run(["run", "show", &mute]).exits(0).stdout;
    let (tokens, cost) = (fact(&shown, "tokens"), fact(&shown, "cost"));
    assert_eq!((tokens.as_str(), cost.as_str()), ("not reported", "not reported"), "{shown}");
    assert_eq!(fact(&shown, "branch"), "-", "{shown}");
    let nothing = yard.server.run(["run", "diff", "mute"]).exits(0);
    assert!(nothing.stdout.is_empty() && nothing.stderr.contains("changed nothing"), "{nothing:?}");

    let lines = yard.server.run(["run", "logs", "t"]).exits(0).stdout;
    assert!(lines.contains("\nwrite: b.txt\n"), "{lines}");
    let raw = yard.server.run(["run", "logs", &run, "--raw"]).exits(0).stdout;
    assert!(raw.contains("\"type\":\"tool\"") && !raw.contains("\nwrite: b.txt\n"), "{raw}");
    let told = yard.server.run(["run", "logs", &work, "-f", "--json"]).exits(0).json();
    let says: Vec<&Value> = told["lines"].as_array().unwrap().iter().map(|line| &line["says"]).collect();
    assert!(says.contains(&&json!("write: b.txt")), "{told:#}");
    assert_eq!((&told["here"], &told["ended"]), (&json!(true), &json!(true)));
}

#[test]
fn missing_runs_are_reported_as_missing() {
    let yard = Yard::open(&blueprint(GATES));
    assert_eq!(yard.server.read("/v1/workorders/nothing/log").0, 404);
    for command in ["logs", "diff", "show"] {
        let answer = yard.server.run(["run", command, "nothing"]).exits(3);
        assert!(answer.stderr.contains("no ticket, workorder or run nothing"), "{answer:?}");
    }
    yard.post("/v1/objectives", crate::yard::new_ticket("yard", "t", "mock: ok"));
    let answer = yard.server.run(["run", "logs", "t"]).exits(3);
    assert!(answer.stderr.contains("ticket t has no run yet"), "{answer:?}");
    yard.approve("t");
    let (work, _) = ids(&yard.judged("t"));
    for bad in ["-1", "+1", "x", "9223372036854775808"] {
        assert_eq!(yard.server.read(&format!("/v1/workorders/{work}/log?from={bad}")).0, 422, "{bad}");
    }
    let beyond = log(&yard, &work, i64::MAX as u64);
    assert_eq!((&beyond["text"], &beyond["ended"]), (&json!(""), &json!(true)));
    // Another process may have run it.
    let databases = fs::read_dir(yard.server.data().join("work")).unwrap().flatten();
    let logs = databases.map(|of| of.path().join(format!("logs/{work}.log")));
    logs.filter(|log| log.exists()).for_each(|log| fs::remove_file(log).unwrap());
    assert_eq!(log(&yard, &work, 0), json!({"text": "", "next": 0, "ended": true, "here": false}));
    let answer = yard.server.run(["run", "logs", "t", "-f"]).exits(0);
    assert!(answer.stdout.is_empty() && answer.stderr.contains("no log of"), "{answer:?}");
}

#[test]
fn the_trash_is_read_and_restored_from_without_a_server() {
    let yard = Yard::open(&blueprint(GATES));
    yard.ticket("yard", "t", "mock: write new.txt new");
    let (work, _) = ids(&yard.judged("t"));
    let there = || yard.server.run(["trash", "list", "--json"]).exits(0).json();
    assert!(eventually(|| there()[0]["captured"] == true), "its folder is in the trash: {}", there());
    yard.server.signal(Signal::TERM);
    let (status, dir) = yard.server.ended();
    assert!(status.success(), "{status}");
    let run = |args: &[&str]| run_in(dir.path(), args);
    let listed = run(&["trash", "list", "--json"]).exits(0).json();
    let (name, path) = (listed[0]["name"].as_str().unwrap(), listed[0]["path"].as_str().unwrap());
    assert_eq!(listed[0]["work_order_id"], json!(work), "{listed:#}");
    assert_eq!(listed[0]["objective_id"], "t", "{listed:#}");
    assert!(listed[0]["patch"].as_str().unwrap().ends_with("captured.patch"), "{listed:#}");
    assert!(dir.path().join(path).join("tree/new.txt").exists(), "{listed:#}");
    let table = run(&["trash", "list"]).exits(0).stdout;
    assert!(
        table.contains(name) && table.contains("yes") && table.contains("its work was handed in"),
        "{table}"
    );
    assert!(table.starts_with("NAME") && table.contains(&format!("{name}  t  ")), "{table}");

    let there = run(&["trash", "restore", name, "--to", "repo"]).exits(4);
    assert!(there.stderr.contains("is there already"), "{there:?}");
    let unknown = run(&["trash", "restore", &work, "--to", "back"]).exits(3);
    assert!(unknown.stderr.contains(&format!("did you mean {name}?")), "{unknown:?}");
    assert!(!dir.path().join("back").exists());
    let restored = run(&["trash", "restore", name, "--to", "back", "--json"]).exits(0).json();
    assert_eq!(restored, json!({"name": name, "restored_to": "back"}));
    assert_eq!(fs::read_to_string(dir.path().join("back/tree/new.txt")).unwrap(), "new\n");
    assert_eq!(run(&["trash", "list", "--json"]).exits(0).json(), json!([]));
    run(&["trash", "restore", name, "--to", "again"]).exits(3);
}

#[test]
fn trash_is_removed_only_on_command_and_never_during_its_run() {
    let yard = Yard::open(&blueprint(GATES));
    yard.ticket("yard", "t", "mock: write new.txt new");
    yard.judged("t");
    yard.ticket("yard", "lost", "mock: sparse big.bin 100");
    yard.judged("lost");
    let all = || yard.server.run(["trash", "list", "--json"]).exits(0).json();
    assert!(eventually(|| all().as_array().unwrap().len() == 2 && all()[0]["captured"] == true), "{}", all());
    let listed = all();
    let of =
        |id: &str| listed.as_array().unwrap().iter().find(|of| of["objective_id"] == id).unwrap().clone();
    let (handed_in, lost) = (of("t"), of("lost"));
    assert_eq!(lost["captured"], false, "{lost}");
    let name = |of: &serde_json::Value| of["name"].as_str().unwrap().to_string();
    let remove = |more: &[&str]| yard.server.run([&["trash", "remove"], more].concat());

    let unasked = remove(&[&name(&lost)]).exits(2);
    assert!(unasked.stderr.contains("--yes"), "{unasked:?}");
    let unknown = remove(&["--yes", &name(&lost), "nothing"]).exits(3);
    assert!(unknown.stderr.contains("nothing is not in the trash"), "{unknown:?}");
    for bad in ["..", ".", ""] {
        remove(&["--yes", bad]).exits(3);
    }
    let folder = yard.server.data().join("trash").join(name(&handed_in));
    let run = fs::File::open(folder.join("lock")).unwrap();
    rustix::fs::flock(&run, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let used = remove(&["--yes", &name(&lost), &name(&handed_in)]).exits(4);
    assert!(used.stderr.contains("still in use"), "{used:?}");
    assert_eq!(all(), listed, "all or nothing");
    drop(run);

    let said = remove(&["--yes", &name(&lost), &name(&lost)]).exits(0);
    assert!(said.stderr.contains("ticket lost, not handed in: its content exists nowhere else"), "{said:?}");
    assert_eq!(said.stdout.matches("is removed").count(), 1, "{said:?}");
    let gone = remove(&["--yes", "--json", &name(&handed_in)]).exits(0).json();
    assert_eq!(
        (gone[0]["name"].clone(), gone[0]["captured"].clone()),
        (handed_in["name"].clone(), json!(true))
    );
    assert_eq!(all(), json!([]));
    remove(&["--yes", &name(&lost)]).exits(3);
}

/// An agent that nothing contains, and that opens what it can.
const OPENS: &str = "cat >/dev/null; echo new >new.txt; echo true >shell; chmod 6755 shell; mkdir deep; echo true >deep/er; \
                     chmod 2777 deep/er; chmod 311 deep; ln -s /usr/bin/passwd link; cd ../../../..; \
                     chmod 644 operator.token; chmod 755 .";

#[test]
fn file_modes_changed_by_a_run_are_restored_and_reported() {
    let agent = blueprint(GATES).replace("\"mock\"", "\"opens\"\nsandbox = \"none\"");
    let dir = lay_out(&agent);
    fs::create_dir(dir.path().join("profiles")).unwrap();
    let argv = json!(["sh", "-c", OPENS]);
    let profile = format!("name = \"opens\"\nargv = {argv}\ndialect = \"text\"\n");
    fs::write(dir.path().join("profiles/opens.toml"), profile).unwrap();
    let yard = Yard::open_in(dir);
    let data = yard.server.data().to_owned();
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
    let (passwd, before) = (Path::new("/usr/bin/passwd"), mode(Path::new("/usr/bin/passwd")));
    yard.ticket("yard", "t", "open everything");
    yard.judged("t");
    let there = || yard.server.run(["trash", "list", "--json"]).exits(0).json();
    assert!(eventually(|| there()[0]["path"].is_string()), "its folder is in the trash: {}", there());
    let tree = data.join("trash").join(there()[0]["name"].as_str().unwrap()).join("tree");
    let modes = ["shell", "deep", "deep/er"].map(|file| mode(&tree.join(file)));
    assert_eq!(modes, [0o755, 0o711, 0o775]);
    assert_eq!((mode(passwd), mode(&data), mode(&data.join("operator.token"))), (before, 0o700, 0o600));

    let told = yard.server.run(["doctor", "--json"]).stdout;
    assert!(told.contains("mended_modes") && told.contains("had 0644"), "{told}");
    yard.server.signal(Signal::TERM);
    let (_, log) = yard.server.ended_with_log();
    let line = |file: &str| {
        let lines = log.lines().filter(|line| line.contains("ERROR") && line.contains("mode_found"));
        lines.filter(|line| line.contains(file)).collect::<String>()
    };
    assert!(line("operator.token").contains("0644") && line("operator.token").contains("0600"), "{log}");
    assert!(line("0755").contains("0700"), "{log}");
}

#[test]
fn a_log_holds_no_secret_that_its_agent_was_given() {
    let dir = lay_out(&blueprint(GATES).replace("\"mock\"", "\"keyed\""));
    fs::create_dir(dir.path().join("profiles")).unwrap();
    let profile = "name = \"keyed\"\nargv = [\"{fernery}\", \"mock-agent\"]\ndialect = \"mock\"\nsecrets = [\"YARD_KEY\"]\n";
    fs::write(dir.path().join("profiles/keyed.toml"), profile).unwrap();
    let flags = ["--azolla", "yard.toml", "--repos", "app=repo#main"];
    let key = ("YARD_KEY", "sk-of-the-yard-0123456789");
    let yard = Yard { server: Server::start_told(dir, &flags, key) };
    yard.ticket("yard", "t", &format!("mock: say the key is {}.\nmock: ok", key.1));
    yard.judged("t");
    let log = yard.server.run(["run", "logs", "t", "--raw"]).exits(0).stdout;
    assert!(log.contains("the key is [secret].") && !log.contains(key.1), "{log}");
}

#[test]
fn a_blocked_reason_is_short_in_the_list_and_whole_in_show() {
    let yard = Yard::open(&blueprint(GATES));
    let question = format!("Which of these {} is right?", "very ".repeat(40).trim());
    yard.ticket("yard", "t", &format!("mock: ask {question}"));
    yard.judged("t");
    let listed = yard.server.run(["ticket", "list"]).exits(0).stdout;
    let line = listed.lines().find(|line| line.starts_with("t ")).unwrap_or_default();
    assert!(line.contains("Which of these very") && line.ends_with('…'), "{listed}");
    let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
    let blocker = shown.lines().find(|line| line.starts_with("blocker")).unwrap_or_default();
    assert!(blocker.ends_with(&question), "{shown}");
}

#[test]
fn a_ticket_for_a_repository_that_is_not_there_is_refused_with_those_that_are() {
    let yard = Yard::open(&blueprint(GATES));
    let new =
        ["ticket", "new", "--azolla", "yard", "--id", "lost", "--title", "x", "--meta", "repo_ref=nope"];
    let refused = yard.server.run(new).exits(2).stderr;
    let named = yard.server.read("/v1/azollas").1["repos"][0]["name"].as_str().unwrap().to_string();
    assert!(
        refused.contains("has repository nope") && refused.contains(&format!("name one of: {named}")),
        "{refused}"
    );
    assert_eq!(yard.server.read("/v1/objectives/lost").0, 404);
}

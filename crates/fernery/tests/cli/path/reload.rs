//! A blueprint that is edited under a running server: noticed, and applied or refused as a whole.

use crate::fresh_database::fresh_database;
use crate::program::patience::eventually;
use crate::program::{Server, fernery, run_in};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

fn write(dir: &Path, name: &str, description: &str, more: &str) {
    let text = format!(
        "extends = \"mec\"\nazolla_id = \"{name}\"\ndescription = \"{description}\"\ndiazotroph_type = \
         \"TEXT_DIAZOTROPH\"\n{more}\n[executors.TEXT_DIAZOTROPH]\nkind = \"remote\"\n"
    );
    fs::write(dir.join(format!("{name}.toml")), text).unwrap();
}

const FLAGS: [&str; 4] = ["--azolla", "one.toml", "--azolla", "two.toml"];

fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "one", "first", "");
    write(dir.path(), "two", "first", "");
    dir
}

fn descriptions(server: &Server) -> Vec<String> {
    ["one", "two"]
        .map(|id| server.read(&format!("/v1/azollas/{id}")).1["description"].as_str().unwrap().to_string())
        .to_vec()
}

fn edits_are_noticed_and_applied_or_refused_as_a_whole(server: &Server) {
    let dir = server.dir.path();
    assert_eq!(server.run(["azolla", "reload"]).exits(0).stdout, "nothing has changed\n");
    write(dir, "one", "second", "[limits]\nconcurrency = 2\n");
    let would = server.run(["azolla", "reload", "--dry-run"]).exits(0).stdout;
    assert!(would.contains("one: description, limits\n  description: \"first\" → \"second\"\n"), "{would}");
    assert!(
        would.contains("limits.concurrency: ") && would.ends_with("to apply it: fernery azolla reload\n"),
        "{would}"
    );
    let shown = server.run(["azolla", "show", "one"]).exits(0).stderr;
    assert!(shown.contains("its file was edited (description, limits)"), "{shown}");
    let found = server.run(["doctor", "--json", "--azolla", "one.toml", "--azolla", "two.toml"]).json();
    let blueprints = found.as_array().unwrap().iter().find(|row| row["check"] == "blueprints");
    assert!(blueprints.is_some_and(|row| row["level"] == "warning"), "{found}");

    // One file is right and the other wrong, twice: nothing is applied, and every mistake is named.
    write(dir, "two", "second", "colour = 1\n[limits]\nconcurrency = \"many\"\n");
    let refused = server.run(["azolla", "reload"]).exits(2).stderr;
    for place in ["two.toml:5:1: colour: unknown key `colour`", "two.toml:7:15: limits.concurrency: "] {
        assert!(refused.contains(place), "{place}: {refused}");
    }
    assert_eq!(descriptions(server), ["first", "first"]);

    write(dir, "two", "second", "");
    let done = server.run(["azolla", "reload", "--json"]).exits(0).json();
    assert_eq!(done["applied"], true);
    assert_eq!(descriptions(server), ["second", "second"]);
    server.run(["ticket", "new", "--azolla", "one", "--id", "T", "--title", "x"]).exits(0);

    write(dir, "two", "third", "");
    server.signal(Signal::HUP);
    assert!(eventually(|| descriptions(server) == ["second", "third"]), "SIGHUP does the same");
}

/// A reload reads the blueprints that the server was started with: of a new one it must not say that nothing has changed.
#[test]
fn a_reload_says_that_the_configuration_needs_a_restart() {
    let dir = folder();
    fs::write(dir.path().join("fernery.toml"), "azolla = [\"one.toml\"]\n").unwrap();
    let server = Server::start_in(dir, &[]);
    assert_eq!(server.run(["azolla", "reload"]).exits(0).stdout, "nothing has changed\n");
    fs::write(server.dir.path().join("fernery.toml"), "azolla = [\"one.toml\", \"two.toml\"]\n").unwrap();
    for args in [&["azolla", "reload"][..], &["azolla", "reload", "--dry-run"]] {
        let told = server.run(args.iter().copied()).exits(0);
        assert_eq!(told.stdout, "no blueprint has changed\n");
        assert!(told.stderr.contains("fernery.toml has changed since the server started"), "{told:?}");
        assert!(told.stderr.contains("restart the server"), "{told:?}");
    }
    let told = server.run(["azolla", "reload", "--json"]).exits(0).json();
    assert!(told["changed_config"].as_str().is_some_and(|file| file.ends_with("/fernery.toml")), "{told}");
}

#[test]
fn a_blueprint_is_reloaded_on_sqlite() {
    let server = Server::start_in(folder(), &FLAGS);
    edits_are_noticed_and_applied_or_refused_as_a_whole(&server);
    // It ends as every other.
    server.signal(Signal::TERM);
    let (status, log) = server.ended_with_log();
    assert!(status.success() && log.contains("reloaded"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blueprint_is_reloaded_on_postgresql_and_two_servers_do_not_fight() {
    let database = fresh_database().await;
    let url = database.url();
    let flags: Vec<&str> = FLAGS.into_iter().chain(["--database", &url]).collect();
    let (one, two) = (Server::start_in(folder(), &flags), Server::start_in(folder(), &flags));
    edits_are_noticed_and_applied_or_refused_as_a_whole(&one);
    // The other has files of its own. It changes nothing by itself, and says what its reload would change.
    assert_eq!(descriptions(&two), ["second", "third"]);
    let would = two.run(["azolla", "reload", "--dry-run", "--json"]).exits(0).json();
    let changes: Vec<&Value> =
        would["azollas"].as_array().unwrap().iter().map(|change| &change["azolla_id"]).collect();
    assert_eq!(changes, [&json!("one"), &json!("two")]);
    assert_eq!(descriptions(&one), ["second", "third"]);
    two.run(["azolla", "reload"]).exits(0);
    assert_eq!(descriptions(&one), ["first", "first"]);
}

#[test]
fn a_reload_that_is_killed_is_done_or_not_done() {
    for (point, after) in [("reload-checked", "first"), ("reload-registered", "second")] {
        let dir = folder();
        let mut command = fernery();
        command.current_dir(dir.path()).env("FERNERY_FAILPOINT", point);
        command.args(["up", "--listen", "127.0.0.1:0"]).args(FLAGS);
        let server = Server::spawn(command, dir);
        for name in ["one", "two"] {
            write(server.dir.path(), name, "second", "");
        }
        server.run(["azolla", "reload"]).exits(1);
        let (_, dir) = server.ended();
        // A server without these files says what the database has.
        let server = Server::start_in(dir, &[]);
        assert_eq!(descriptions(&server), [after, after], "{point}");
        server.signal(Signal::KILL);
        let (_, dir) = server.ended();
        let server = Server::start_in(dir, &FLAGS);
        assert_eq!(descriptions(&server), ["second", "second"], "{point}");
    }
}

/// Who asked for it hangs up when the database has the new blueprints: the process takes them over all the same.
#[test]
fn a_reload_comes_to_its_end_whoever_hangs_up() {
    let dir = folder();
    let mut command = fernery();
    command.current_dir(dir.path()).env("FERNERY_FAILPOINT", "hold:reload-registered");
    command.args(["up", "--listen", "127.0.0.1:0"]).args(FLAGS);
    let server = Server::spawn(command, dir);
    // Another azolla in the same file, which only a process that took it over hosts.
    write(server.dir.path(), "three", "first", "");
    fs::rename(server.dir.path().join("three.toml"), server.dir.path().join("two.toml")).unwrap();
    let mut asking = fernery();
    asking.current_dir(server.dir.path()).args(["azolla", "reload"]);
    let mut asking = asking.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let stat = format!("/proc/{}/stat", server.pid());
    assert!(eventually(|| fs::read_to_string(&stat).unwrap().contains(") T ")), "it never came there");
    asking.kill().unwrap();
    asking.wait().unwrap();
    server.signal(Signal::CONT);
    let premises = || server.run(["azolla", "reload", "--dry-run"]).exits(0).stdout;
    assert!(eventually(|| premises() == "nothing has changed\n"), "{}", premises());
    server.signal(Signal::TERM);
    let (status, log) = server.ended_with_log();
    let reloaded = log.lines().filter(|line| line.contains("reloaded")).collect::<Vec<_>>();
    assert!(status.success() && reloaded.iter().any(|line| line.contains("three")), "{log}");
}

fn hosted(server: &Server) -> Vec<(String, bool)> {
    let all = server.read("/v1/azollas").1["azollas"].as_array().unwrap().clone();
    let own = all.iter().filter(|of| ["two", "three"].contains(&of["azolla_id"].as_str().unwrap()));
    own.map(|of| (of["azolla_id"].as_str().unwrap().to_string(), of["hosted"] == true)).collect()
}

/// The azolla `two` is called `three` from now on.
fn rename(dir: &Path) {
    write(dir, "three", "first", "");
    fs::rename(dir.join("three.toml"), dir.join("two.toml")).unwrap();
}

const RENAMED: [(&str, bool); 2] = [("three", true), ("two", false)];

fn is_renamed(server: &Server) {
    let seen = hosted(server);
    assert_eq!(seen.iter().map(|(id, hosted)| (id.as_str(), *hosted)).collect::<Vec<_>>(), RENAMED);
}

#[test]
fn a_renamed_azolla_is_not_hosted_under_its_old_name_for_one_moment() {
    let server = Server::start_in(folder(), &FLAGS);
    server.run(["ticket", "new", "--azolla", "two", "--id", "T", "--title", "x"]).exits(0);
    rename(server.dir.path());
    server.run(["azolla", "reload"]).exits(0);
    is_renamed(&server);
    let would_wait = server.run(["ticket", "approve", "T", "--yes"]).exits(0).stdout;
    assert!(would_wait.contains("no process hosts azolla two"), "{would_wait}");
    // A server that is killed says nothing any more.
    let server = Server::start_in(folder(), &FLAGS);
    server.signal(Signal::KILL);
    let (_, dir) = server.ended();
    rename(dir.path());
    is_renamed(&Server::start_in(dir, &FLAGS));
}

/// What a process hosts is taken back when it ends, also what it hosts since a reload; and a reload is carried out although nobody
/// could write down what is hosted since: it is said again soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_hosted_since_a_reload_is_said_and_taken_back_on_postgresql() {
    let database = fresh_database().await;
    let (url, client) = (database.url(), database.client().await);
    let flags: Vec<&str> = FLAGS.into_iter().chain(["--database", &url]).collect();
    let server = Server::start_in(folder(), &flags);
    let beside = Server::start_in(tempfile::tempdir().unwrap(), &["--database", &url]);
    let no_writes =
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
                     CREATE TRIGGER refuse BEFORE INSERT ON fernery.hosts EXECUTE FUNCTION refuse()";
    client.batch_execute(no_writes).await.unwrap();
    rename(server.dir.path());
    server.run(["azolla", "reload"]).exits(0);
    assert_eq!(server.run(["azolla", "reload", "--dry-run"]).exits(0).stdout, "nothing has changed\n");
    client.batch_execute("DROP TRIGGER refuse ON fernery.hosts").await.unwrap();
    // The worker `cleanup` says it again.
    let said = "SELECT count(*) FROM fernery.hosts WHERE azolla_id = 'three'";
    let count = async |asked: &str| -> i64 { client.query_one(asked, &[]).await.unwrap().get(0) };
    assert!(eventually(|| hosted(&beside).iter().any(|(id, hosted)| id == "three" && *hosted)));
    is_renamed(&beside);
    server.signal(Signal::TERM);
    let (status, log) = server.ended_with_log();
    assert!(status.success() && log.contains("could not record what this process hosts"), "{log}");
    assert_eq!(count(said).await, 0, "it is taken back");
    assert_eq!(hosted(&beside), [("three".to_string(), false), ("two".to_string(), false)]);
    assert!(count("SELECT count(*) FROM fernery.hosts").await > 0, "the other server still hosts its own");
}

fn approvals_that_a_change_voids_are_named(server: &Server) {
    const ONE: &str = "[limits]\nconcurrency = 1\n";
    write(server.dir.path(), "one", "first", ONE);
    server.run(["azolla", "reload"]).exits(0);
    for id in ["T-1", "T-2", "T-3", "T-4"] {
        server.run(["ticket", "new", "--azolla", "one", "--id", id, "--title", "x"]).exits(0);
    }
    // The first one is under way, and goes on under the blueprint that it was made under. The last one nobody has approved.
    server.run(["ticket", "approve", "T-1", "--yes"]).exits(0);
    let status = || server.read("/v1/objectives/T-1").1["objective"]["status"].clone();
    assert!(eventually(|| status() == "IN_PROGRESS"), "{}", status());
    for id in ["T-2", "T-3"] {
        server.run(["ticket", "approve", id, "--yes"]).exits(0);
    }
    // What is no part of an approval voids none.
    write(server.dir.path(), "one", "second", ONE);
    let done = server.run(["azolla", "reload"]).exits(0).stdout;
    assert!(done.contains("description") && !done.contains("approval"), "{done}");
    write(server.dir.path(), "one", "second", &format!("gates = [{{ kind = \"schema\" }}]\n{ONE}"));
    let would = server.run(["azolla", "reload", "--dry-run"]).exits(0).stdout;
    assert!(would.contains("approvals that it would void: T-2, T-3."), "{would}");
    let would = server.run(["azolla", "reload", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(would["azollas"][0]["voided"], json!(["T-2", "T-3"]), "{would:#}");
    let done = server.run(["azolla", "reload"]).exits(0).stdout;
    assert!(
        done.contains("approvals that are void now: T-2, T-3.") && done.contains("fernery ticket show T-2"),
        "{done}"
    );
}

#[test]
fn a_reload_names_the_approvals_that_it_voids() {
    approvals_that_a_change_voids_are_named(&Server::start_in(folder(), &FLAGS));
    let database = tokio::runtime::Runtime::new().unwrap().block_on(fresh_database());
    let url = database.url();
    let flags: Vec<&str> = FLAGS.into_iter().chain(["--database", &url]).collect();
    approvals_that_a_change_voids_are_named(&Server::start_in(folder(), &flags));
}

#[test]
fn an_edit_is_told_in_the_log() {
    let dir = folder();
    let log = dir.path().join(".fernery/server.log");
    run_in(dir.path(), ["up", "--detach", "--listen", "127.0.0.1:0"].into_iter().chain(FLAGS)).exits(0);
    write(dir.path(), "one", "second", "");
    let told = eventually(|| {
        let log = fs::read_to_string(&log).unwrap();
        log.contains("its blueprint was edited; `fernery azolla reload` or SIGHUP applies it")
    });
    run_in(dir.path(), ["down"]).exits(0);
    assert!(told);
}

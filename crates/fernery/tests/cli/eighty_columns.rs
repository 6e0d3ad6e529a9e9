//! A terminal of 80 columns: every list and every page of a filled instance fits it, and every short id that it shows is
//! accepted by the command that it belongs to.

use crate::program::patience::eventually;
use crate::program::{Answer, Server, fernery, run_in, started_by};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use unicode_width::UnicodeWidthStr;

const COLUMNS: usize = 80;
const LONG_ID: &str = "an-id-that-a-person-has-chosen-and-that-is-rather-long";
const LONG_LABEL: &str = "home/garden/balcony/with-a-label/that-is-as-long-as-it-may-be/so";
const LONG_TITLE: &str =
    "A title that says a lot, far more than any row of a table of 80 columns has room for";

/// Runs a command on a terminal so wide.
fn at_terminal(dir: &Path, columns: usize, colour: bool, args: &[&str]) -> Answer {
    typed_at_terminal(dir, columns, colour, args, "")
}

/// The same, with steps as the terminal knows them.
fn typed_at_terminal(dir: &Path, columns: usize, colour: bool, args: &[&str], steps: &str) -> Answer {
    let mut command = started_by("python3");
    command.args(["-c", include_str!("inbox/terminal.py"), &columns.to_string()]);
    command.arg(fernery().get_program()).args(args).current_dir(dir);
    if colour {
        command.env_remove("NO_COLOR");
    }
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(steps.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let code = seen["code"].as_i64().and_then(|code| i32::try_from(code).ok());
    let stdout = seen["seen"].as_str().unwrap().replace("\r\n", "\n");
    Answer { code, stdout, stderr: String::new() }
}

/// A server that has all kinds of things, with names as long as they may be.
struct World {
    server: Server,
    folder: PathBuf,
}

impl World {
    fn filled() -> Self {
        let dir = tempfile::tempdir().unwrap();
        run_in(dir.path(), ["demo", "--yes", "--dir", "world"]).exits(0);
        let folder = dir.path().join("world");
        // An azolla without anybody who works for it, and a patch that conflicts with what its branch has got meanwhile.
        let config = std::fs::read_to_string(folder.join("fernery.toml")).unwrap();
        let config =
            config.replace("azolla = [\"azolla.toml\"]", "azolla = [\"azolla.toml\", \"text.toml\"]");
        std::fs::write(folder.join("fernery.toml"), config).unwrap();
        let text = "extends = \"mec\"\nazolla_id = \"text\"\ndiazotroph_type = \"TEXT_DIAZOTROPH\"\n\
                    [executors.TEXT_DIAZOTROPH]\nkind = \"remote\"\n";
        std::fs::write(folder.join("text.toml"), text).unwrap();
        std::fs::write(folder.join("repo/greet.sh"), "echo something else\n").unwrap();
        let mut git = Command::new("git");
        git.current_dir(folder.join("repo")).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
        assert!(git.args(["commit", "-q", "-a", "-m", "else"]).status().unwrap().success());
        let mut command = fernery();
        command.current_dir(&folder).args(["up", "--listen", "127.0.0.1:0"]);
        let server = Server::spawn(command, dir).with_data(folder.join("data"));
        let world = Self { server, folder };
        let new = |title: &str, more: &[&str]| {
            let args = ["ticket", "new", "--azolla", "demo", "--meta", "repo_ref=greeter", "--title", title];
            world.run(args.iter().chain(more)).exits(0);
        };
        new(LONG_TITLE, &["--criteria", &format!("- {LONG_TITLE}; {LONG_TITLE}")]);
        new(
            "Labelled +here",
            &["--label", LONG_LABEL, "--label", "とても長いラベル/とても長いラベル", "--after", "demo-1"],
        );
        new("日本語の題名をここに書く、少し長い題名ですから、表の列には入りません", &[]);
        new("👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻 all of them", &[]);
        let blockers = ["--blocked-on", "DESIGN_DECISION: which colour?", "--blocked-on", "and whose is it?"];
        new(LONG_TITLE, &[&["--id", LONG_ID][..], &blockers].concat());
        world.run(["ticket", "approve", LONG_ID, "--yes"]).exits(0);
        for nth in 0..3 {
            let stream = format!("a-stream-with-a-name/that-is:rather-long.{nth}");
            world.run(["job", "enqueue", "--stream", &stream, "--payload", "{}"]).exits(0);
            let held = world.server.claim(&stream).unwrap();
            match nth {
                0 => world.server.bury(&held, "E_WITH_A_LONG_NAME_THAT_SAYS_A_LOT"),
                1 => {}
                _ => drop(world.run(["stream", "pause", &stream]).exits(0)),
            }
        }
        // The longest word that a stream can have for its state.
        world.run(["stream", "set", "a-stream-with-a-name/that-is:rather-long.2", "--redact", "on"]).exits(0);
        let over = "a-stream-with-a-name/that-is:over";
        world.run(["job", "enqueue", "--stream", over, "--payload", "{}"]).exits(0);
        world.run(["job", "bulk", "cancel", "--status", "QUEUED", "--stream", over, "--yes"]).exits(0);
        // Two that begin and end alike.
        for id in ALIKE {
            world.run(["job", "enqueue", "--stream", "alike", "--id", id]).exits(0);
        }
        world.run(["ticket", "new", "--azolla", "text", "--id", "unmanned", "--title", LONG_TITLE]).exits(0);
        world
            .run(["token", "new", "--role", "worker", "--name", LONG_ID, "--streams", "build,deploy:*,x"])
            .exits(0);
        world.run(["capture", LONG_TITLE, "and the rest of it"]).exits(0);
        world.run(["capture", &format!("買い物に行く 牛乳と卵とパンと米とりんごとみかんを買うこと +{LONG_LABEL} #とても長いラベル")]).exits(0);
        let candidates = || world.run(["triage", "list", "--json"]).exits(0).json()["candidates"].clone();
        assert!(
            eventually(|| candidates().as_array().is_some_and(|all| all.len() == 2)),
            "triage makes candidates"
        );
        world
    }

    fn run<S: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Answer {
        run_in(&self.folder, args)
    }

    #[track_caller]
    fn fits(&self, args: &[&str]) -> String {
        self.fits_in(COLUMNS, args)
    }

    #[track_caller]
    fn fits_in(&self, columns: usize, args: &[&str]) -> String {
        let shown = at_terminal(&self.folder, columns, false, args).exits(0).stdout;
        for line in shown.lines() {
            assert!(line.width() <= columns, "{args:?}: {} columns: {line:?}\n{shown}", line.width());
            assert!(!line.contains('\u{1b}'), "{args:?}: {line:?}");
        }
        shown
    }
}

const ALIKE: [&str; 2] = ["01a00000-0000-7000-8000-111111abcdef", "01a00000-0000-7000-8000-222222abcdef"];

/// The words in a column of a table.
fn column(table: &str, head: &str) -> Vec<String> {
    let (heads, rows) = table.split_once('\n').unwrap();
    let at = heads.find(head).unwrap_or_else(|| panic!("no {head} in {heads}"));
    let row = |row: &str| row.get(at..)?.split("  ").next().map(|cell| cell.trim().to_string());
    // Below a table there may be a remark.
    let rows = rows.lines().filter(|line| !line.starts_with(' ') && !line.starts_with("not listed"));
    rows.filter_map(row).filter(|id| !id.is_empty()).collect()
}

/// What follows only looks, but for the last, which empties the trash: filling a world takes longer than all of it.
#[test]
fn a_terminal_of_80_columns_has_room_for_everything_and_short_ids_that_are_accepted() {
    let world = World::filled();
    what_waits_for_a_person_fits_80_columns(&world);
    every_list_and_page_fits_80_columns(&world);
    colours_are_for_terminals_that_want_them(&world);
    completions_know_the_names_of_an_instance(&world);
    bash_completes_an_id(&world);
    an_ambiguous_id_is_refused_with_what_it_may_mean(&world);
    every_short_id_is_accepted_where_its_kind_is(&world);
}

/// A text that a person pastes is in a line of its own.
fn has_line(shown: &str, line: &str) -> bool {
    shown.lines().any(|of| of.trim() == line)
}

fn what_waits_for_a_person_fits_80_columns(world: &World) {
    let approved = world.fits(&["ticket", "approve", "unmanned", "--yes"]);
    assert!(approved.contains("warning: approved, it would wait: no worker polls"), "{approved}");
    let fit = || world.run(["ticket", "show", "demo-1", "--json"]).exits(0).json()["landing"]["fit"].clone();
    assert!(eventually(|| fit() == "CONFLICTS"), "{}", fit());
    let orient = world.fits(&["orient"]);
    assert!(orient.contains("its patch conflicts: main changed the same lines"), "{orient}");
    assert!(orient.contains("unmanned waits: no worker"), "{orient}");
    let steps = "expect [y/N]\nsend n\\n\n";
    let args = ["ticket", "merge", "demo-1"];
    let asked = typed_at_terminal(&world.folder, COLUMNS, false, &args, steps).exits(1).stdout;
    assert!(asked.contains("it conflicts:") && asked.contains("nothing was merged"), "{asked}");
    assert!(asked.lines().all(|line| line.width() <= COLUMNS), "{asked}");
    let pauses = world.fits(&["pause", "list"]);
    assert!(
        has_line(&pauses, "Look at the output and confirm it: fernery ticket confirm demo-1"),
        "{pauses}"
    );
}

fn every_list_and_page_fits_80_columns(world: &World) {
    // What people look at every day also fits a narrow window, and still says what it is about.
    for (args, said) in
        [(&["ticket", "list"][..], "Label"), (&["triage", "list"], "買い"), (&["pause", "list"], "an-id")]
    {
        let shown = world.fits_in(60, args);
        assert!(shown.contains(said), "{args:?}: {shown}");
    }
    let mut all: Vec<Vec<&str>> = [
        "ticket list",
        "ticket list --status NEW",
        "ticket list --sort due",
        "ticket list --sort importance",
        "job list",
        "job list --all",
        "job bulk list",
        "stream list",
        "trash list",
        "dlq list",
        "run list",
        "run list --all",
        "pause list",
        "journal list --all",
        "token list",
        "process list",
        "azolla list",
        "azolla show",
        "triage list",
        "triage list --all",
        "orient",
        "orient --why",
        "orient --last",
        "orient --asked",
        "agent list",
        "agent check mock",
        "schema list",
        "config",
        "run show demo-1",
        "run diff demo-1 --stat",
        "ticket show demo-1",
        "verify",
    ]
    .iter()
    .map(|line| line.split(' ').collect())
    .collect();
    all.push(vec!["ticket", "show", LONG_ID]);
    let acts = world.run(["job", "bulk", "list", "--json"]).exits(0).json();
    let act = acts["acts"][0]["act_id"].as_str().unwrap();
    all.push(vec!["job", "bulk", "show", act]);
    for args in &all {
        world.fits(args);
        let utc: Vec<&str> = args.iter().copied().chain(["--utc"]).collect();
        at_terminal(&world.folder, COLUMNS, false, &utc).exits(0);
    }
    // Every table has heads, and no head is empty.
    let streams = world.fits(&["stream", "list"]);
    assert!(
        streams.lines().next().unwrap().ends_with("STATE") && streams.contains("paused, redacted"),
        "{streams}"
    );
    let tickets = world.fits(&["ticket", "list"]);
    assert!(tickets.contains("👩‍💻"), "joiners stay: {tickets}");
    // However long all of this took.
    assert!(tickets.contains(" ago") && !tickets.contains("Z "), "{tickets}");
    let utc = at_terminal(&world.folder, COLUMNS, false, &["ticket", "list", "--utc"]).exits(0).stdout;
    assert!(utc.contains("Z ") && !utc.contains(" ago"), "{utc}");
    let dead = world.fits(&["dlq", "list"]);
    assert!(dead.contains("E_WITH_A_LONG"), "{dead}");
}

fn every_short_id_is_accepted_where_its_kind_is(world: &World) {
    let accepted = |list: &[&str], head: &str, command: &[&str]| {
        let ids = column(&world.fits(list), head);
        assert!(!ids.is_empty(), "{list:?}");
        for id in &ids {
            let args: Vec<&str> = command.iter().map(|word| if *word == "ID" { id } else { *word }).collect();
            world.run(&args).exits(0);
        }
        ids
    };
    accepted(&["ticket", "list", "--status", "BLOCKED"], "TICKET", &["ticket", "show", "ID"]);
    accepted(&["run", "list"], "RUN", &["run", "show", "ID"]);
    accepted(&["run", "list"], "RUN", &["run", "replay", "ID"]);
    accepted(&["run", "list"], "TICKET", &["ticket", "show", "ID"]);
    accepted(&["pause", "list"], "TICKET", &["ticket", "show", "ID"]);
    let jobs = accepted(&["job", "list", "--all"], "JOB", &["job", "show", "ID"]);
    assert!(jobs.iter().all(|id| id.len() < 20), "{jobs:?}");
    accepted(&["job", "list"], "JOB", &["job", "explain", "ID"]);
    accepted(&["dlq", "list"], "JOB", &["dlq", "redrive", "ID", "--dry-run"]);
    accepted(&["triage", "list"], "CANDIDATE", &["triage", "show", "ID"]);
    accepted(&["trash", "list"], "NAME", &["trash", "remove", "ID", "--yes"]);
    // In the history of a ticket.
    let history = world.fits(&["ticket", "show", "demo-1"]);
    let words: BTreeSet<&str> = history.split(|c: char| c.is_whitespace() || "(),".contains(c)).collect();
    let ids: Vec<&&str> = words.iter().filter(|word| word.len() == 15 && word.starts_with("01")).collect();
    assert!(ids.len() >= 4, "{history}");
    for id in ids {
        world.run(["run", "logs", id]).exits(0);
    }
    // For programs every id is whole, and a pipe gets one line for each row.
    let piped = world.run(["job", "list"]).exits(0).stdout;
    assert!(column(&piped, "JOB").iter().all(|id| id.len() == 36), "{piped}");
    assert!(world.run(["ticket", "list"]).exits(0).stdout.contains(LONG_ID));
}

fn an_ambiguous_id_is_refused_with_what_it_may_mean(world: &World) {
    let told = world.run(["job", "show", "01a00000-abcdef"]).exits(2).stderr;
    assert!(ALIKE.iter().all(|id| told.contains(id)) && told.contains("several"), "{told}");
    // In a table they do not look alike.
    let shown = column(&world.fits(&["job", "list"]), "JOB");
    let alike: BTreeSet<&String> = shown.iter().filter(|id| id.starts_with("01a00000-")).collect();
    assert_eq!(alike.len(), 2, "{shown:?}");
    for id in alike {
        world.run(["job", "show", id]).exits(0);
    }
    for nobody in ["01a00000-abcdee", "01a00000-0000-7000-8000-000000000000"] {
        for command in [&["job", "show"][..], &["dlq", "redrive"], &["dlq", "purge", "--yes"]] {
            let told = world.run(command.iter().chain(&[nobody])).exits(3).stderr;
            assert!(told.contains(nobody), "{told}");
        }
    }
    world.run(["dlq", "redrive", ALIKE[0]]).exits(4);
    world.run(["job", "show", "no-such-form"]).exits(2);
    // What a person chose is never guessed.
    world.run(["ticket", "show", "demo"]).exits(3);
    world.run(["ticket", "show", &LONG_ID[..30]]).exits(3);
}

fn colours_are_for_terminals_that_want_them(world: &World) {
    let run =
        |colour| at_terminal(&world.folder, COLUMNS, colour, &["run", "diff", "demo-1"]).exits(0).stdout;
    assert!(run(true).contains("\u{1b}[32m+echo"), "{:?}", run(true));
    assert!(!run(false).contains('\u{1b}'));
    assert!(!world.run(["run", "diff", "demo-1"]).exits(0).stdout.contains('\u{1b}'));
    let verdicts = at_terminal(&world.folder, COLUMNS, true, &["ticket", "show", "demo-1"]).exits(0).stdout;
    assert!(verdicts.contains("\u{1b}[31mFAIL") && verdicts.contains("\u{1b}[32mPASS"), "{verdicts:?}");
}

fn completions_know_the_names_of_an_instance(world: &World) {
    let names = |words: &[&str]| {
        let answer = world.run(["complete", "--"].iter().chain(words)).exits(0);
        assert_eq!(answer.stderr, "");
        answer.stdout.lines().map(|line| line.split('\t').next().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert!(names(&["ticket", "show", ""]).contains(&"demo-1".to_string()));
    assert_eq!(names(&["ticket", "show", "an-id"]), [LONG_ID]);
    assert!(names(&["stream", "pause", "al"]).contains(&"alike".to_string()));
    assert!(names(&["ticket", "list", "--azolla", ""]).contains(&"task_management".to_string()));
    assert!(names(&["agent", "check", "cl"]).contains(&"claude".to_string()));
    for job in names(&["job", "show", ""]) {
        assert_eq!(job.len(), 15, "{job}");
    }
    let jobs = names(&["dlq", "redrive", ""]);
    world.run(["dlq", "redrive", &jobs[0], "--dry-run"]).exits(0);
    assert!(names(&["ticket", ""]).is_empty());
    // Without a server there are no names, and no word about it.
    let dir = tempfile::tempdir().unwrap();
    let answer = run_in(dir.path(), ["complete", "--", "ticket", "show", ""]).exits(0);
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("", ""));
    // The scripts ask for them.
    for shell in ["bash", "zsh", "fish"] {
        let script = run_in(dir.path(), ["completions", shell]).exits(0).stdout;
        assert!(script.contains("complete --") && script.contains("ticket"), "{shell}");
    }
}

/// Bash itself completes a ticket's id.
fn bash_completes_an_id(world: &World) {
    let path = Path::new(fernery().get_program()).parent().unwrap().to_path_buf();
    let script = r#"
        source <(fernery completions bash)
        COMP_WORDS=(fernery ticket show an-) COMP_CWORD=3
        _fernery_names fernery an- show
        echo "${COMPREPLY[@]}"
        COMP_WORDS=(fernery ticket sh) COMP_CWORD=2
        _fernery_names fernery sh ticket
        echo "${COMPREPLY[@]}"
    "#;
    let mut bash = started_by("bash");
    let search = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    let output = bash.args(["-c", script]).env("PATH", search).current_dir(&world.folder).output().unwrap();
    let told: Answer = output.into();
    assert_eq!(told.exits(0).stdout, format!("{LONG_ID}\nshow\n"));
}

//! A text that was typed into an editor is kept until it is taken, whatever refuses it.

use super::{on_terminal, seen};
use crate::program::{Server, run_in};
use std::fs;
use std::path::PathBuf;

/// An editor that puts this text into the file.
fn editor(server: &Server, text: &str) -> String {
    let dir = server.dir.path().canonicalize().unwrap();
    fs::write(dir.join("typed.md"), text).unwrap();
    format!("cp {}", dir.join("typed.md").display())
}

fn drafts(server: &Server) -> Vec<PathBuf> {
    let all = fs::read_dir(server.dir.path().join("state/fernery/drafts")).into_iter().flatten();
    let all = all.map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|of| of == "md")).collect()
}

#[test]
fn a_text_that_nobody_could_be_told_of_is_named_and_offered_again() {
    let server = Server::start(&[]);
    let dir = server.dir.path();
    let new = |editor: &str, steps: &[&str]| seen(&on_terminal(dir, &["ticket", "new"], editor, steps));
    let typed = format!("sh -c '{} \"$1\"; echo written; read _' sh", editor(&server, "# Buy milk\n"));
    // The command dies with its editor open, and so without a word.
    new(&typed, &["expect written", "signal SIGKILL"]);
    let [kept] = &drafts(&server)[..] else { panic!("one draft is kept") };
    let mut doctor = crate::program::fernery();
    let said =
        doctor.current_dir(dir).env("XDG_STATE_HOME", dir.join("state")).arg("doctor").output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains(&format!("fernery ticket new --file {}", kept.display())), "{said}");
    // One that does not go on with it loses nothing.
    let offer = "expect “Buy milk”";
    let fresh = new("true", &[offer, "expect [y/N]", "send n\\n", "expect nothing was saved"]);
    assert_eq!(drafts(&server).len(), 1, "{fresh}");
    // While a command works on it, no other one is offered it, and doctor is quiet.
    let inner = "sh -c 'fernery doctor > said.txt; echo looked' sh";
    let path = format!(
        "{}:{}",
        std::path::Path::new(crate::program::fernery().get_program()).parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let env = [("EDITOR", inner), ("PATH", path.as_str())];
    let steps = [offer, "expect [y/N]", "send y\\n", "expect looked", "expect it is NEW"];
    super::on_terminal_with(dir, &["ticket", "new"], &env, &steps);
    let said = fs::read_to_string(dir.join("said.txt")).unwrap();
    assert!(said.contains("fernery_version") && !said.contains("was not sent"), "{said}");
    assert!(server.run(["ticket", "list"]).exits(0).stdout.contains("Buy milk"));
    assert_eq!(drafts(&server), Vec::<PathBuf>::new());
    assert_eq!(fs::read_dir(dir.join("state/fernery/drafts")).unwrap().count(), 0, "nothing stays beside it");
}

#[test]
fn without_a_chosen_editor_an_installed_one_opens() {
    use std::os::unix::fs::PermissionsExt;
    let server = Server::start(&[]);
    let bin = server.dir.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("sensible-editor"), "#!/bin/sh\necho '# From here' > \"$1\"\n").unwrap();
    fs::set_permissions(bin.join("sensible-editor"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let env = [("PATH", path.as_str())];
    super::on_terminal_with(server.dir.path(), &["ticket", "new"], &env, &["expect it is NEW"]);
    assert!(server.run(["ticket", "list"]).exits(0).stdout.contains("From here"));
}

#[test]
fn a_refused_text_is_kept_with_all_its_mistakes_named_and_sent_from_its_file() {
    let server = Server::start_for_text();
    let text = "---\nimportance: 9\nno colon\nazolla: nowhere\n---\n\n# T\n\nIt works.\n";
    let steps = ["expect [k]eep it for later? [e]", "send k\\n", "expect to send it:"];
    let answer = on_terminal(server.dir.path(), &["ticket", "new"], &editor(&server, text), &steps);
    let said = seen(&answer);
    let [kept] = &drafts(&server)[..] else { panic!("one draft is kept: {said}") };
    let shown = kept.file_name().unwrap().to_str().unwrap();
    for line in [
        ":2: importance: expected",
        ":3: \"no colon\" is not `key: value`",
        ":4: azolla: nowhere does not exist",
    ] {
        assert!(said.contains(&format!("{shown}{line}")), "{line}: {said}");
    }
    assert!(
        said.contains(&format!("fernery ticket new --file {}", kept.display())) || said.contains(shown),
        "{said}"
    );
    assert_eq!(fs::read_to_string(kept).unwrap(), text, "as it was typed");

    // The same command, with the mistakes mended.
    fs::write(kept, "---\nimportance: 1\n---\n# T\n\nIt works.\n").unwrap();
    let mut command = crate::program::fernery();
    command.current_dir(server.dir.path()).env("XDG_STATE_HOME", server.dir.path().join("state"));
    let sent = command.args(["ticket", "new", "--file"]).arg(kept).output().unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert_eq!(drafts(&server), Vec::<PathBuf>::new(), "what is taken is not kept");
    assert!(server.run(["ticket", "list"]).exits(0).stdout.contains(" T"));

    // Edited again after the refusal, it is taken.
    fs::write(server.dir.path().join("good.md"), "# Second\n").unwrap();
    let turns = "sh -c 'if [ -e turned ]; then cp good.md \"$1\"; else touch turned; echo x > \"$1\"; echo --- >> \"$1\"; \
                 printf -- \"---\\nimportance: 7\\n---\\n# Second\\n\" > \"$1\"; fi' sh";
    let steps = ["expect importance: expected", "expect [e]", "send \\n", "expect it is NEW"];
    on_terminal(server.dir.path(), &["ticket", "new"], turns, &steps);
    assert!(server.run(["ticket", "list"]).exits(0).stdout.contains("Second"));
    assert_eq!(drafts(&server), Vec::<PathBuf>::new());
}

#[test]
fn a_server_that_dies_meanwhile_costs_no_text_and_a_second_try_makes_no_second_ticket() {
    let server = Server::start_for_text();
    let pid = server.pid();
    fs::write(server.dir.path().join("typed.md"), "# Typed\n").unwrap();
    let dying = format!("sh -c 'cp typed.md \"$1\"; kill -9 {pid}; while kill -0 {pid}; do :; done' sh");
    let steps = ["expect [k]eep", "send k\\n", "expect to send it:"];
    // The tests' own process waits for the server, so that it is not there as a zombie.
    let dir = server.dir.path().to_path_buf();
    let reaper = std::thread::spawn(move || server.ended());
    let answer = on_terminal(&dir, &["ticket", "new"], &dying, &steps);
    let (_, dir) = reaper.join().unwrap();
    let server = Server::start_in(dir, &["--azolla", "text.toml"]);
    let [kept] = &drafts(&server)[..] else { panic!("one draft is kept: {}", seen(&answer)) };
    let text = fs::read_to_string(kept).unwrap();
    assert!(text.ends_with("# Typed\n"), "{text}");
    // Nobody knows what became of the first try: the id in the text makes the second one the same.
    let text = fs::read_to_string(kept).unwrap();
    fs::write(server.dir.path().join("own.md"), &text).unwrap();
    let first = run_in(server.dir.path(), ["ticket", "new", "--file", "own.md"]).exits(0).stdout;
    let second = run_in(server.dir.path(), ["ticket", "new", "--file", "own.md"]).exits(0).stdout;
    match text.contains("\nid: ") {
        true => assert_eq!(first, second),
        // It was refused before it was sent.
        false => assert_ne!(first, second),
    }
}

#[test]
fn the_text_of_an_edit_and_of_a_candidate_is_kept_too() {
    let server = Server::start_for_text();
    server.run(["ticket", "new", "--id", "T", "--title", "x"]).exits(0);
    let bad = "---\nurgency: 8\nblocked_on: y\n---\n# Better\n";
    let steps =
        ["expect blocked_on works only for a new ticket", "expect [k]eep", "send k\\n", "expect to send it:"];
    let answer = on_terminal(server.dir.path(), &["ticket", "edit", "T"], &editor(&server, bad), &steps);
    let said = seen(&answer);
    assert!(
        said.contains(":2: urgency: expected") && said.contains("fernery ticket edit T --file"),
        "{said}"
    );
    let [kept] = &drafts(&server)[..] else { panic!("one draft is kept: {said}") };
    fs::write(kept, "---\nurgency: 1\n---\n# Better\n").unwrap();
    run_in(server.dir.path(), ["ticket", "edit", "T", "--file", kept.to_str().unwrap()]).exits(0);
    assert!(server.run(["ticket", "list"]).exits(0).stdout.contains("Better"));
    fs::remove_file(kept).unwrap();

    server.run(["capture", "buy milk"]).exits(0);
    let id = crate::program::patience::until(|| {
        let listed = server.run(["triage", "list", "--json"]).exits(0).json();
        listed["candidates"][0]["candidate_id"].as_str().map(str::to_string)
    });
    let bad = "---\ndue_at: soon\nimportance: x\n---\n# Milk\n";
    let steps = ["expect importance: expected", "expect [k]eep", "send k\\n", "expect to send it:"];
    let answer = on_terminal(server.dir.path(), &["triage", "edit", &id], &editor(&server, bad), &steps);
    let said = seen(&answer);
    assert!(said.contains(":2: due_at:") && said.contains("fernery triage edit "), "{said}");
    assert_eq!(drafts(&server).len(), 1, "{said}");
}

//! `ticket new` asks for nothing that can be known.

use super::{Detached, make_repository, on_terminal, repository, seen};
use crate::program::run_in;
use serde_json::json;

#[test]
fn after_init_in_a_subfolder_a_ticket_needs_neither_an_azolla_nor_a_repository() {
    let dir = repository("shop");
    let deep = dir.path().join("shop/src/deep");
    let made = run_in(&deep, ["init"]).exits(0).stdout;
    let root = dir.path().join("shop").canonicalize().unwrap();
    assert!(made.contains(&format!("wrote {}/fernery.toml", root.display())), "{made}");
    assert!(made.contains("`fernery ticket new`") && !made.contains("--azolla"), "{made}");
    let server = Detached::start(&deep, &[]);
    assert!(root.join(".fernery/url").is_file() && !deep.join(".fernery").exists());
    server.run(["ticket", "new", "--id", "T", "--title", "Fix it"]).exits(0);
    let ticket = server.run(["ticket", "show", "T", "--json"]).exits(0).json();
    assert_eq!(ticket["objective"]["azolla_id"], "shop");
    assert_eq!(ticket["objective"]["metadata"], json!({"repo_ref": "shop"}));
    assert_eq!(ticket["approval"].get("refused"), None, "it can be approved: {ticket}");

    // The form has both lines filled in.
    let editor = "sh -c 'cp \"$1\" form.md; sed -i \"s/^# $/# From the editor/\" \"$1\"' sh";
    let written = on_terminal(&deep, &["ticket", "new"], editor, &["expect it is NEW"]);
    let form = std::fs::read_to_string(deep.join("form.md")).unwrap();
    assert!(form.starts_with("---\nazolla: shop\nrepo_ref: shop\nimportance: 2\n"), "{form} {written}");
    let drafts = std::fs::read_dir(deep.join("state/fernery/drafts")).unwrap().count();
    assert_eq!(drafts, 0, "what was taken is not kept");
}

#[test]
fn with_several_the_refusal_lists_the_commands_and_the_folder_decides() {
    let dir = repository("web");
    make_repository(&dir.path().join("api"));
    for name in ["web", "docs"] {
        let text = format!(
            "extends = \"mec\"\nazolla_id = \"{name}\"\n[executors.PATCH_DIAZOTROPH]\nkind = \"agent\"\nprofile = \"mock\"\n"
        );
        std::fs::write(dir.path().join(format!("{name}.toml")), text).unwrap();
    }
    let config = "azolla = [\"web.toml\", \"docs.toml\"]\n[repos]\nweb = \"web\"\napi = \"api\"\n";
    std::fs::write(dir.path().join("fernery.toml"), config).unwrap();
    let server = Detached::start(dir.path(), &[]);
    let refused = server.run(["ticket", "new", "--title", "Mend the 'footer'"]).exits(2).stderr;
    assert!(
        refused.starts_with("error: several azollas take tickets here; type one of these:\n"),
        "{refused}"
    );
    // One of these lines, as it stands.
    let line = refused.lines().find(|line| line.ends_with("--azolla docs")).expect("one of them");
    let again = |line: &str| {
        let program = crate::program::fernery();
        let line = line.trim().replacen("fernery", program.get_program().to_str().unwrap(), 1);
        let mut shell = crate::program::started_by("sh");
        crate::program::Answer::from(shell.args(["-c", &line]).current_dir(dir.path()).output().unwrap())
    };
    let refused = again(line).exits(2).stderr;
    assert!(refused.contains("the server has several repositories"), "{refused}");
    let line = refused.lines().find(|line| line.ends_with("repo_ref=api")).expect("one of them");
    let id = again(line).exits(0).stdout;
    let made = server.run(["ticket", "show", id.trim(), "--json"]).exits(0).json()["objective"].clone();
    assert_eq!((&made["title"], &made["azolla_id"]), (&json!("Mend the 'footer'"), &json!("docs")));
    assert_eq!(made["metadata"], json!({"repo_ref": "api"}));

    // In the folder of a repository it is meant, and so is the azolla of its name.
    let inside = dir.path().join("web/src/deep");
    run_in(&inside, ["ticket", "new", "--id", "W", "--title", "x"]).exits(0);
    let made = server.run(["ticket", "show", "W", "--json"]).exits(0).json()["objective"].clone();
    assert_eq!((&made["azolla_id"], &made["metadata"]), (&json!("web"), &json!({"repo_ref": "web"})));

    // The editor's form offers the choice.
    let editor = "sh -c 'cp \"$1\" form.md' sh";
    let nothing = on_terminal(dir.path(), &["ticket", "new"], editor, &["expect nothing was saved"]);
    let form = std::fs::read_to_string(dir.path().join("form.md")).unwrap();
    assert!(form.contains("# azolla: docs\n# azolla: web\n"), "{form} {}", seen(&nothing));
}

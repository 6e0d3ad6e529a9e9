//! What is made from the definition of the commands: completions and manual pages know all of them.

use crate::program::{Answer, fernery, run_in};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Every command as its words, read from `--help`, which is not made by what is tested here.
fn commands(dir: &Path) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![Vec::<String>::new()];
    while let Some(command) = open.pop() {
        let help = run_in(dir, command.iter().map(String::as_str).chain(["--help"])).exits(0).stdout;
        // The commands of the program itself stand in groups, between its usage and its options.
        let begin = if command.is_empty() { "Usage:" } else { "Commands:" };
        let listed = help.lines().skip_while(|line| !line.starts_with(begin)).skip(1);
        let ends = |line: &&str| line.ends_with("ptions:") || (line.is_empty() && !command.is_empty());
        for line in listed.take_while(|line| !ends(line)) {
            // What a long description goes on with stands further in.
            let Some(name) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) else { continue };
            let mut inner = command.clone();
            inner.push(name.split(' ').next().unwrap().to_string());
            open.push(inner.clone());
            found.push(inner);
        }
    }
    assert!(found.len() > 20, "{found:?}");
    assert!(found.contains(&vec!["job".into(), "enqueue".into()]), "{found:?}");
    found
}

#[test]
fn completions_know_every_command() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = run_in(dir.path(), ["completions", shell]).exits(0).stdout;
        for command in commands(dir.path()) {
            let name = command.last().unwrap();
            let known = match shell {
                "bash" => {
                    script.contains(&format!("fernery__subcmd__{}", command.join("__subcmd__")))
                        || script.contains(&format!("fernery__{}", command.join("__")))
                }
                "zsh" => script.contains(&format!("({name})")),
                _ => script.contains(&format!("-a \"{name}\"")),
            };
            assert!(known, "{shell} does not know {command:?}");
        }
        for flag in ["lease-ttl", "json", "payload-file"] {
            assert!(script.contains(flag), "{shell} does not know --{flag}");
        }
    }
    run_in(dir.path(), ["completions", "tcsh"]).exits(2);
}

/// What bash offers after these words.
fn offered(script: &Path, words: &[&str]) -> BTreeSet<String> {
    let line = words.join(" ");
    let ask = format!(
        "source '{}' && complete -p fernery >&2 || exit 9
         COMP_WORDS=({line} '') COMP_CWORD={} COMP_LINE='{line} ' COMP_POINT={}
         _fernery_names fernery '' {}
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.len(),
        line.len() + 1,
        words.last().unwrap(),
    );
    let shell = Command::new("bash").args(["--norc", "-c", &ask]).output();
    let answer: Answer = shell.expect("bash runs; it is in Debian's package bash").into();
    assert!(answer.stderr.contains("-F _fernery_names fernery"), "{answer:?}");
    answer.exits(0).stdout.lines().map(str::to_string).collect()
}

#[test]
fn bash_completes_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("fernery.bash");
    fs::write(&script, run_in(dir.path(), ["completions", "bash"]).exits(0).stdout).unwrap();
    let top = offered(&script, &["fernery"]);
    let all = commands(dir.path());
    for command in all.iter().filter(|command| command.len() == 1) {
        assert!(top.contains(&command[0]), "{command:?} is not in {top:?}");
    }
    let job = offered(&script, &["fernery", "job"]);
    assert!(job.contains("enqueue") && job.contains("explain") && !job.contains("redrive"), "{job:?}");
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let said = run_in(dir.path(), ["man", "--dir", "man/man1", "--json"]).exits(0).json();
    let pages: BTreeSet<String> =
        said["pages"].as_array().unwrap().iter().map(|page| page.as_str().unwrap().to_string()).collect();
    let mut expected: BTreeSet<String> =
        commands(dir.path()).iter().map(|command| format!("fernery-{}.1", command.join("-"))).collect();
    expected.insert("fernery.1".into());
    assert_eq!(pages, expected);
    let main = run_in(dir.path(), ["man"]).exits(0).stdout;
    for page in &pages {
        let text = fs::read_to_string(dir.path().join("man/man1").join(page)).unwrap();
        let name = page.strip_suffix(".1").unwrap();
        assert!(text.contains(".SH NAME") && text.contains(&name.replace('-', "\\-")), "{page}: {text}");
        assert!(text.contains(&format!("\"fernery {}\"", env!("CARGO_PKG_VERSION"))), "{page}: {text}");
        if let Some(command) = name.strip_prefix("fernery-").filter(|command| !command.contains('-')) {
            assert!(
                main.contains(&format!("fernery\\-{command}(1)")),
                "the main page does not name {command}"
            );
        }
    }
    fs::write(dir.path().join("file"), "").unwrap();
    let answer: Answer =
        fernery().current_dir(dir.path()).args(["man", "--dir", "file"]).output().unwrap().into();
    assert!(answer.exits(2).stderr.contains("cannot write into file"));
}

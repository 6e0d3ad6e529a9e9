use super::*;
use crate::blueprint::{Blueprint, ExecutorKind, Neighbours};

const OWN: &str = "name = \"own\"\nargv = [\"own\", \"--json\", \"{args}\", \"-\"]\ndialect = \"text\"\n";

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_string()).collect()
}

fn agent(lines: &str) -> String {
    format!(
        "extends = \"mec\"\nazolla_id = \"own\"\n[executors.PATCH_DIAZOTROPH]\nkind = \"agent\"\n{lines}\n"
    )
}

/// The profile that a blueprint with these lines keeps, among these files.
fn kept(lines: &str, files: &dyn Fn(&str) -> Option<String>) -> Result<Profile, Vec<String>> {
    let profile =
        |name: &str| if name == "closed" { Err("no right to".to_string()) } else { Ok(files(name)) };
    let beside = Neighbours { blueprint: &|_| None, profile: &profile };
    match Blueprint::parse_beside(&agent(lines), &beside) {
        Ok(blueprint) => Ok(blueprint.executor().unwrap().agent.clone().unwrap()),
        Err(flaws) => Err(flaws.iter().map(Flaw::to_string).collect()),
    }
}

#[test]
fn the_built_in_profiles_have_no_flaw_and_say_how_they_end() {
    let names: Vec<_> = Profile::names().collect();
    assert_eq!(names, ["claude", "codex", "opencode", "gemini", "goose", "aider", "command", "mock"]);
    for name in names {
        let profile = Profile::builtin(name).unwrap();
        assert_eq!(profile.name, name);
        assert_eq!(profile.prompt == PromptBy::File, name == "aider", "a prompt is on no command line");
        assert_eq!(profile.dialect == Dialect::Text, matches!(name, "aider" | "command"), "{name}");
        assert_eq!(profile.network, !matches!(name, "command" | "mock"), "{name}");
        assert!(profile.install.is_empty() || !profile.version.is_empty(), "{name}");
    }
    let trusts = Profile::builtin("gemini").unwrap().set.get("GEMINI_CLI_TRUST_WORKSPACE").cloned();
    assert_eq!(trusts.as_deref(), Some("true"), "else it exits with 55 in every clone");
    assert!(Profile::builtin("nobody").is_none());
}

#[test]
fn a_blueprint_keeps_the_profile_with_what_it_adds() {
    let none = |_: &str| None;
    let codex =
        kept("profile = \"codex\"\nargs = [\"--model\", \"m\"]\nenv = [\"X\", \"OPENAI_API_KEY\"]", &none);
    let codex = codex.unwrap();
    assert_eq!(codex.argv[codex.argv.len() - 3..], ["--model", "m", "-"]);
    let visible: Vec<_> = codex.visible_env().collect();
    assert_eq!(visible, ["CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "X"]);
    assert!(codex.network && !kept("profile = \"codex\"\nnetwork = false", &none).unwrap().network);
    let own = |name: &str| (name == "codex").then(|| OWN.replace("\"own\"", "\"codex\""));
    assert_eq!(kept("profile = \"codex\"", &own).unwrap().argv, ["codex", "--json", "-"], "a file wins");
    let command = kept("profile = \"command\"\nargs = [\"x\", \"--\", \"y\"]", &none).unwrap();
    assert_eq!(command.argv, ["x", "--", "y"]);
}

#[test]
fn mistakes_about_agents_are_told_with_their_place() {
    let files = |name: &str| match name {
        "own" => Some(OWN.to_string()),
        "other" => Some(OWN.to_string()),
        "bad" => {
            Some("name = \"bad\"\nargv = [\"x\"]\ndialekt = \"text\"\ndialect = \"claud\"\n".to_string())
        }
        "strict" => Some(OWN.replace("\"own\"", "\"strict\"") + "sandbox = \"bubblewrap\"\n"),
        _ => None,
    };
    for (lines, expected) in [
        ("", "3:1: executors.PATCH_DIAZOTROPH.profile: is missing: which agent"),
        (
            "profile = \"cluade\"",
            ":11: executors.PATCH_DIAZOTROPH.profile: unknown profile `cluade`; did you mean `claude`?",
        ),
        ("profile = \"../own\"", "unknown profile"),
        ("profile = \"closed\"", "profile: its file cannot be read: no right to"),
        ("profile = \"other\"", "the `name` in its file is `own`"),
        (
            "profile = \"bad\"",
            "in the profile `bad` at 3:1: dialekt: unknown key `dialekt`; did you mean `dialect`?",
        ),
        (
            "profile = \"bad\"",
            "in the profile `bad` at 4:11: dialect: unknown word `claud`; did you mean `claude`?",
        ),
        (
            "profile = \"claude\"\nargs = [\"--model\", \"x\", \"--output-format=text\"]",
            "args[2]: `--output-format` is set by the profile",
        ),
        (
            "profile = \"claude\"\nargs = [\"{prompt}\"]",
            "args[0]: this profile does not use the placeholder `{prompt}`",
        ),
        ("profile = \"claude\"\nargs = [\"-p\"]", "args[0]: `-p` is set by the profile"),
        ("profile = \"claude\"\nargs = [\"--\"]", "args[0]: would end the flags"),
        ("profile = \"claude\"\nargs = [\"a\\u0000\"]", "args[0]: contains the invisible character"),
        ("profile = \"claude\"\nargs = \"x\"", "args: must be a list, not a string"),
        ("profile = \"command\"", "args: is missing: the profile `command` has no program of its own"),
        ("profile = \"claude\"\nargv = [\"x\"]", "argv: is set by the agent's profile"),
        ("profile = \"claude\"\nenv = [\"FERNERY_TOKEN\"]", "no command may see them"),
        ("profile = \"claude\"\nnetwork = \"yes\"", "network: must be true or false, not a string"),
        ("profile = \"claude\"\nnetwrk = true", "unknown key `netwrk`; did you mean `network`?"),
        (
            "profile = \"strict\"\nsandbox = \"landlock\"",
            "sandbox: the profile `strict` needs bubblewrap or stronger",
        ),
    ] {
        let told = kept(lines, &files).unwrap_err();
        assert!(told.iter().any(|line| line.contains(expected)), "{lines:?} gave {told:#?}");
    }
    assert_eq!(kept("profile = \"strict\"", &files).unwrap().sandbox, Some(Sandbox::Bubblewrap));
}

#[test]
fn mistakes_in_a_profile_are_told_with_their_place() {
    let many = (0..=limits::ENV_NAMES_MAX).map(|n| format!("V{n} = \"\"\n")).collect::<String>();
    let files = format!("login = [{}]", "\"a\",".repeat(limits::LOGIN_FILES_MAX + 1));
    for (from, to, expected) in [
        ("name = \"own\"", "", "1:1: name: is missing"),
        ("name = \"own\"", "name = \"a/b\"", "name: must have 1 to 64 characters"),
        ("dialect = \"text\"", "", "dialect: is missing"),
        ("dialect = \"text\"", "dialect = \"text\"\nprompt = \"stdn\"", "did you mean `stdin`?"),
        ("\"{args}\"", "\"{arg}\"", "argv[2]: unknown placeholder `{arg}`; did you mean `{args}`?"),
        ("\"{args}\"", "\"{args}\", \"{args}\"", "argv: `{args}` is listed twice"),
        ("\"{args}\"", "\"x{args}\"", "argv[2]: `{args}` must be a word of its own"),
        ("\"{args}\"", "\"{fernery}\"", "argv[2]: `{fernery}` is a program"),
        ("\"{args}\"", "\"{prompt}\"", "argv: `{prompt}` needs prompt = \"argument\""),
        (
            "dialect = \"text\"",
            "dialect = \"text\"\nprompt = \"file\"",
            "needs the placeholder `{prompt_file}`",
        ),
        (
            "dialect = \"text\"",
            "dialect = \"text\"\nlogin = [\"/etc/x\"]",
            "login[0]: must be a path under the home",
        ),
        (
            "dialect = \"text\"",
            "dialect = \"text\"\nlogin = [\"a/../b\"]",
            "login[0]: must be a path under the home",
        ),
        ("dialect = \"text\"", &format!("dialect = \"text\"\n{files}"), "login: may have at most 50 files"),
        ("dialect = \"text\"", "dialect = \"text\"\nextends = \"claude\"", "unknown key `extends`"),
        (
            "dialect = \"text\"",
            "dialect = \"text\"\nsandbox = \"none\"",
            "unknown word `none`; known: bubblewrap, landlock",
        ),
        ("dialect = \"text\"", "dialect = \"text\"\n[set]\nA = 1", "set.A: must be a string in quotes"),
        ("dialect = \"text\"", "dialect = \"text\"\n[set]\nFERNERY_URL = \"x\"", "no command may see them"),
        (
            "dialect = \"text\"",
            &format!("dialect = \"text\"\n[set]\n{many}"),
            "set: may have at most 100 variables",
        ),
        ("dialect = \"text\"", "dialect = \"text\"\n[limits]\nsilence = 5", "has no unit"),
        (
            "dialect = \"text\"",
            "dialect = \"text\"\n[limits]\noutput_bytes = 0",
            "must be a number from 1 to",
        ),
        (
            "dialect = \"text\"",
            "dialect = \"text\"\nversion = []",
            "version: must be a program and its arguments",
        ),
    ] {
        assert_eq!(OWN.matches(from).count(), 1, "{from}");
        let flaws = Profile::parse(&OWN.replace(from, to)).unwrap_err();
        let told: Vec<_> = flaws.iter().map(Flaw::to_string).collect();
        assert!(told.iter().any(|line| line.contains(expected)), "{to:?} gave {told:#?}");
    }
    let large = "#".repeat(limits::BLUEPRINT_BYTES_MAX + 1);
    assert!(Profile::parse(&large).unwrap_err()[0].message.contains("a profile may have at most"));
}

#[test]
fn the_places_of_a_command_are_filled_once() {
    let places = Places { fernery: "/bin/fernery", prompt: "say {prompt_file} {x}", prompt_file: "/tmp/p" };
    let with = |argv: &str, prompt: &str| {
        let text = format!("name = \"x\"\nargv = {argv}\nprompt = \"{prompt}\"\ndialect = \"text\"\n");
        Profile::parse(&text).unwrap().command(&places).unwrap()
    };
    assert_eq!(with(r#"["a", "{args}", "{x: 1}"]"#, "stdin"), ["a", "{x: 1}"]);
    assert_eq!(with(r#"["a"]"#, "argument"), ["a", places.prompt]);
    assert_eq!(with(r#"["a", "-p={prompt}", "b"]"#, "argument"), ["a", "-p=say {prompt_file} {x}", "b"]);
    assert_eq!(with(r#"["{fernery}", "{prompt_file}"]"#, "file"), ["/bin/fernery", "/tmp/p"]);
    let mock = Profile::builtin("mock").unwrap();
    assert_eq!(mock.version_command("f"), ["f", "--version"]);

    let long = "x".repeat(limits::PROMPT_ARGUMENT_BYTES_MAX + 1);
    let text = "name = \"x\"\nargv = [\"x\"]\nprompt = \"argument\"\ndialect = \"text\"\n";
    let refused = Profile::parse(text).unwrap().command(&Places { prompt: &long, ..places });
    assert_eq!(refused, Err(PromptTooLong { bytes: long.len() }));
    let many = words(&["x"; limits::ARGV_MAX]);
    assert!(
        Profile::builtin("claude").unwrap().with_args(&many).unwrap_err().why.contains("at most 256 words")
    );
}

#[test]
fn an_approval_covers_the_profile_and_not_its_words_for_people() {
    let digest = |lines: &str, text: &str| {
        let files = |_: &str| Ok(Some(text.to_string()));
        let beside = Neighbours { blueprint: &|_| None, profile: &files };
        Blueprint::parse_beside(&agent(lines), &beside).unwrap().digest()
    };
    let own = "profile = \"own\"";
    let base = digest(own, OWN);
    assert_eq!(digest("profile = \"own\"\nparallel = 3", OWN), base);
    for words in ["description = \"d\"\n", "install = \"i\"\n", "# comment\n"] {
        assert_eq!(digest(own, &format!("{words}{OWN}")), base, "{words}");
    }
    let mut seen = vec![base];
    for (lines, text) in [
        ("profile = \"own\"\nargs = [\"--model\", \"m\"]", OWN.to_string()),
        ("profile = \"own\"\nenv = [\"KEY\"]", OWN.to_string()),
        ("profile = \"own\"\nnetwork = true", OWN.to_string()),
        ("profile = \"own\"\nsandbox = \"none\"", OWN.to_string()),
        (own, OWN.replace("--json", "--yaml")),
        (own, OWN.replace("\"text\"", "\"mock\"")),
        (own, format!("{OWN}login = [\".own\"]\n")),
        (own, format!("{OWN}version = [\"own\", \"-V\"]\n")),
        (own, format!("{OWN}[set]\nA = \"1\"\n")),
        (own, format!("{OWN}[limits]\nsilence = \"1m\"\n")),
    ] {
        let digest = digest(lines, &text);
        assert!(!seen.contains(&digest), "{lines} {text}");
        seen.push(digest);
    }
}

#[test]
fn a_stored_blueprint_keeps_its_agent_and_one_without_reads_as_before() {
    let blueprint =
        Blueprint::parse(&agent("profile = \"claude\"\nargs = [\"--model\", \"x\"]"), &|_| None).unwrap();
    assert_eq!(Blueprint::from_json(&blueprint.to_json()).unwrap(), blueprint);
    assert_eq!(blueprint.executor().unwrap().kind, ExecutorKind::Agent);
    assert!(!Blueprint::mec().to_json().contains("agent"));
}

//! The reference page about agents, made from the profiles and from what the mock agent knows.

use crate::mock_agent::BEHAVIOURS;
use fernery_core::profile::Profile;
use std::fmt::Write as _;

fn cell(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(" ")
}

fn page() -> String {
    let mut page = String::from(
        "# Coding agents\n\n\
         An executor of `kind = \"agent\"` names a profile: a file that says how an agent is started, what it may see and how its\n\
         output is read. These are built in; `fernery agent show NAME` prints one with every key explained, `fernery agent check\n\
         NAME` tells whether it can be used on this machine. A file `profiles/NAME.toml` beside a blueprint wins over the built-in\n\
         one of that name, or adds another.\n\n\
         | profile | what it is | keys by | login by | network |\n|---|---|---|---|---|\n",
    );
    let profiles: Vec<Profile> = Profile::names().filter_map(Profile::builtin).collect();
    for profile in &profiles {
        let login: Vec<String> = profile.login.iter().map(|file| format!("~/{file}")).collect();
        let network = if profile.network { "yes" } else { "no" };
        let (secrets, login) = (cell(&profile.secrets), cell(&login));
        let _ = writeln!(
            page,
            "| `{}` | {} | {secrets} | {login} | {network} |",
            profile.name, profile.description
        );
    }
    page.push_str("\nWhat each is started with; a blueprint's `args` go to the place `{args}`:\n\n");
    for profile in &profiles {
        let _ = writeln!(
            page,
            "- `{}`: `{}`, prompt by {}",
            profile.name,
            profile.argv.join(" "),
            profile.prompt
        );
    }
    page.push_str(
        "\nAn agent has succeeded when its protocol says so: exit code 0 alone counts only where there is none (`dialect = \"text\"`).\n\
         In every dialect a last line `NO_CHANGE: …` says why nothing has to change. The last line of its last message that begins\n\
         with `QUESTION:` is a question: the ticket waits until a person answers it (`fernery ticket answer`). What an agent does not report of tokens and cost stays unknown; it is never taken for 0.\n\n\
         ## The scripted agent\n\n\
         `mock` does what lines like `mock: write hello.txt Hello` in a ticket say, one after the other, and then succeeds unless one\n\
         of them ends it otherwise. `first STEP` is done in the first attempt, `again STEP` in those after it.\n\n\
         | step | what it does |\n|---|---|\n",
    );
    for (name, takes, does) in BEHAVIOURS {
        let step = format!("{name} {takes}").trim_end().replace('|', "\\|");
        let _ = writeln!(page, "| `{step}` | {does} |");
    }
    page
}

#[test]
fn the_reference_tells_every_profile_and_step() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/agents.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(kept, page(), "run the test with UPDATE=1 to rewrite docs/reference/agents.md");
}

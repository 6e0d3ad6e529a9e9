//! Everything that can be wrong with a file.

use super::*;
use crate::limits;

/// What is told of `mec` with some lines changed.
fn told(from: &str, to: &str) -> Vec<String> {
    let (from, to) = (&format!("\n{from}"), &format!("\n{to}"));
    assert_eq!(MEC_TOML.matches(from).count(), 1, "{from:?} is there once");
    match alone(&MEC_TOML.replace(from, to)) {
        Ok(_) => Vec::new(),
        Err(flaws) => flaws.iter().map(Flaw::to_string).collect(),
    }
}

#[test]
fn every_mistake_is_told_with_its_place_and_the_nearest_name() {
    for (from, to, expected) in [
        (
            "concurrency = 3",
            "conurrency = 3",
            ":1: limits.conurrency: unknown key `conurrency`; did you mean `concurrency`?",
        ),
        ("concurrency = 3", "concurrency = -1", ":15: limits.concurrency: must be a number from 0 to 10000"),
        (
            "concurrency = 3",
            "concurrency = 99999999999999999999999",
            "limits.concurrency: must be a number from 0 to 10000",
        ),
        (
            "concurrency = 3",
            "concurrency = \"3\"",
            "limits.concurrency: must be a whole number, not a string",
        ),
        (
            "concurrency = 3",
            "concurrency = 3.0",
            "limits.concurrency: must be a whole number, not a fraction",
        ),
        ("[limits]\n", "[limit]\n", ":2: limit: unknown key `limit`; did you mean `limits`?"),
        ("[limits]\n", "[[limits]]\n", "limits: must be a table, not a list"),
        ("[workers.gate]", "[workers.gaet]", "workers.gaet: unknown worker `gaet`; did you mean `gate`?"),
        ("[workers.gate]\ninterval = \"2s\"\n", "", "workers.gate: is missing"),
        ("[workers.gate]\ninterval = \"2s\"", "[workers.gate]\ninterval = \"2\"", "has no unit"),
        ("[workers.gate]\ninterval = \"2s\"", "[workers.gate]\ninterval = 2", "has no unit"),
        (
            "[workers.gate]\ninterval = \"2s\"",
            "[workers.gate]\ninterval = \"2h\"",
            "must be a duration from 10ms to 1h",
        ),
        ("workorder = \"30m\"", "workorder = \"30 min\"", "an unknown unit"),
        ("workorder = \"30m\"", "workorder = 1979-05-27", "must be a string in quotes, not a date"),
        ("workorder = \"30m\"", "workorder = \"5h\"", "budget.workorder: one workorder may take longer"),
        ("attempts = 5", "attempts = 0", "envelope.attempts: must be a number from 1 to 1000"),
        ("# cost_usd = 20.00", "cost_usd = -1", "must be an amount like 12.50"),
        ("# cost_usd = 20.00", "cost_usd = nan", "must be an amount like 12.50"),
        ("# cost_usd = 20.00", "cost_usd = 1e3", "must be an amount like 12.50"),
        ("# cost_usd = 20.00", "cost_usd = 0.0000001", "must be an amount like 12.50"),
        ("azolla_id = \"mec\"", "azolla_id = \"a/b\"", "azolla_id: an id has 1 to 64 characters"),
        ("azolla_id = \"mec\"\n", "", "1:1: azolla_id: is missing"),
        ("category = \"EXECUTION\"", "category = \"a\\u0000b\"", "contains the invisible character \\u{0}"),
        (
            "category = \"EXECUTION\"",
            "category = \"a\\u202eb\"",
            "contains the invisible character \\u{202e}",
        ),
        ("category = \"EXECUTION\"", "category = \"a\\nb\"", "must be one line"),
        ("category = \"EXECUTION\"", "category = \"EXECUTING\"", "did you mean `EXECUTION`?"),
        ("category = \"EXECUTION\"", "category = \"reading\"", "EXECUTION, MEMORY_SUPPORT"),
        ("objective_type = \"TICKET\"", "objective_type = \"TICKTE\"", "did you mean `TICKET`?"),
        ("branch_prefix = \"azolla/\"", "branch_prefix = \"-x\"", "branch_prefix: must consist of letters"),
        ("branch_prefix = \"azolla/\"", "branch_prefix = \"../\"", "branch_prefix: must consist of letters"),
        (
            "diazotroph_type = \"PATCH_DIAZOTROPH\"",
            "diazotroph_type = \"PATHC_DIAZOTROPH\"",
            "unknown executor `PATHC_DIAZOTROPH`; did you mean `PATCH_DIAZOTROPH`?",
        ),
        ("diazotroph_type = \"PATCH_DIAZOTROPH\"", "diazotroph_type = \"PATCH\"", "ends in _DIAZOTROPH"),
        ("kind = \"remote\"", "kind = \"remot\"", "did you mean `remote`?"),
        ("kind = \"remote\"", "kind = \"builtin\"", "`builtin` is only for TRIAGE_DIAZOTROPH"),
        ("kind = \"remote\"", "kind = \"llm\"\nmodel = \"x\"", "base_url: is missing"),
        ("kind = \"remote\"", "kind = \"remote\"\nargv = [\"x\"]", "argv: is only for a command or an agent"),
        ("kind = \"remote\"", "kind = \"command\"", "executors.PATCH_DIAZOTROPH.argv: is missing"),
        ("kind = \"remote\"", "kind = \"command\"\nargv = []", "argv: must be a program and its arguments"),
        ("kind = \"remote\"", "kind = \"command\"\nargv = [\"\"]", "argv[0]: the program must not be empty"),
        (
            "kind = \"remote\"",
            "kind = \"command\"\nargv = [\"a\", 5]",
            "argv[1]: must be a string in quotes, not a number",
        ),
        (
            "kind = \"remote\"",
            "kind = \"command\"\nargv = [\"a\\u0000\"]",
            "argv[0]: contains the invisible character",
        ),
        (
            "kind = \"remote\"",
            "kind = \"command\"\nargv = \"make test\"",
            "argv: must be a list, not a string",
        ),
        (
            "kind = \"remote\"",
            "kind = \"command\"\nargv = [\"a\"]\nenv = [\"A=1\"]",
            "env[0]: must be the name",
        ),
        (
            "kind = \"remote\"",
            "kind = \"command\"\nargv = [\"a\"]\nenv = [\"FERNERY_TOKEN\"]",
            "no command may see them",
        ),
        (
            "kind = \"remote\"",
            "kind = \"command\"\nargv = [\"a\"]\nenv = [\"A\", \"A\"]",
            "`A` is listed twice",
        ),
        (
            "kind = \"remote\"",
            "kind = \"command\"\nargv = [\"a\"]\nsandbox = \"bublewrap\"",
            "did you mean `bubblewrap`?",
        ),
        (
            "kind = \"remote\"",
            "kind = \"command\"\nargv = [\"a\"]\nparallel = 0",
            "parallel: must be a number from 1 to 256",
        ),
        (
            "kind = \"remote\"",
            "kind = \"command\"\nargv = [\"a\"]\ninput = \"file\"",
            "input: unknown word `file`; known: stdin",
        ),
        (
            "kind = \"outcome\"",
            "kind = \"outcom\"",
            "gates[1].kind: unknown gate `outcom`; did you mean `outcome`?",
        ),
        ("kind = \"outcome\"", "kind = \"schema\"", "gates[1]: two gates have the name `schema`"),
        (
            "kind = \"outcome\"",
            "kind = \"command\"\nname = \"schema\"\nargv = [\"x\"]",
            "two gates have the name `schema`",
        ),
        (
            "kind = \"outcome\"",
            "kind = \"command\"\nname = \"a b\"\nargv = [\"x\"]",
            "gates[1].name: must have 1 to 64",
        ),
        ("kind = \"outcome\"", "kind = \"outcome\"\nargv = [\"x\"]", "gates[1].argv: unknown key `argv`"),
        (
            "kind = \"outcome\"",
            "kind = \"patch\"\nmax_files = 0",
            "max_files: must be a number from 1 to 10000",
        ),
        (
            "kind = \"outcome\"",
            "kind = \"patch\"\nsymlinks = 1",
            "symlinks: must be true or false, not a number",
        ),
        ("kind = \"outcome\"", "kind = \"patch\"\nallow = [\"/x\"]", "allow[0]: is a file name, a path"),
        ("kind = \"outcome\"", "kind = \"patch\"\nalow = []", "unknown key `alow`; did you mean `allow`?"),
        (
            "kind = \"outcome\"",
            "kind = \"command\"\nname = \"c\"\nargv = [\"x\"]\nprotects = [\"test.sh\"]\n[[gates]]\nkind = \"applies\"",
            "gates[1].protects: is about files of a repository: put the gate `applies` before",
        ),
        (
            "kind = \"outcome\"",
            "kind = \"applies\"\n[[gates]]\nkind = \"command\"\nname = \"c\"\nargv = [\"x\"]\nprotects = [\"../x\"]",
            "gates[2].protects[0]: is a file name, a path",
        ),
        ("max_content_bytes = 1_048_576", "", "gates[2].max_content_bytes: is missing"),
        (
            "max_content_bytes = 1_048_576",
            "max_content_bytes = 1_048_577",
            "must be a number from 1 to 1048576",
        ),
        ("infrastructure = 3", "infrastructure = 0", "retry.infrastructure: must be a number from 1 to 1000"),
        ("4 = \"none\"", "4 = \"never\"", "urgency.4: \"never\" does not start with a number"),
        ("4 = \"none\"", "5 = \"none\"", "urgency.5: unknown key `5`"),
        ("azollas = []", "azollas = [\"no/\"]", "reads.azollas[0]: an id has"),
        ("artifact_types = []", "artifact_types = [\"objectiv\"]", "did you mean `objective`?"),
        (
            "[retry]",
            "[prompts]\nPATCH_DIAZOTROPH = \"{ticket}\\n{titel}\"\n[retry]",
            ":20: prompts.PATCH_DIAZOTROPH: unknown name `{titel}`; known: {ticket} {title} {acceptance_criteria} {note} \
             {failure} {objective_id} {attempt} {branch_name} {repo_ref} {base_branch} {commit_sha}",
        ),
        (
            "[retry]",
            "[prompts]\nPATCH_DIAZOTROPH = \"{ticket}\\n{\"\n[retry]",
            "`{` stands alone: write `{{`",
        ),
        ("[retry]", "[prompts]\nPATCH_DIAZOTROPH = \"x\"\n[retry]", "does not say what is wanted"),
        (
            "[retry]",
            "[prompts]\nPATCH_DIAZOTROPH = 5\n[retry]",
            "prompts.PATCH_DIAZOTROPH: must be a string in quotes",
        ),
        (
            "[retry]",
            "[prompts]\nPATHC_DIAZOTROPH = \"{ticket}\"\n[retry]",
            "did you mean `PATCH_DIAZOTROPH`?",
        ),
        ("[retry]", "[prompts]\nPATCH = \"{ticket}\"\n[retry]", "ends in _DIAZOTROPH"),
        ("[reads]", "[reads", "unclosed table"),
    ] {
        let told = told(from, to);
        assert!(told.iter().any(|line| line.contains(expected)), "{to:?} gave {told:#?}");
        assert!(
            told.len() <= 2 && told.iter().all(|line| line.lines().count() == 1),
            "{to:?} gave {told:#?}"
        );
    }
}

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_the_file() {
    let flaws =
        alone("extnds = 1\n[limits]\nreview_limit = -1\nconcurency = 2\n[[gates]]\nkind = 7\n").unwrap_err();
    let lines: Vec<_> = flaws.iter().map(|flaw| (flaw.line, flaw.path.as_str())).collect();
    assert_eq!(
        lines[lines.len() - 3..],
        [(3, "limits.review_limit"), (4, "limits.concurency"), (6, "gates[0].kind")]
    );
    assert!(lines.contains(&(1, "extnds")) && lines.contains(&(1, "diazotroph_type")), "{lines:?}");
    let flaws = alone("a = \nb = [1\nc = 'x").unwrap_err();
    assert!(flaws.len() >= 2 && flaws.is_sorted_by_key(|flaw| (flaw.line, flaw.column)), "{flaws:?}");
    let many = alone(&(0..500).map(|n| format!("k{n} = 1\n")).collect::<String>()).unwrap_err();
    assert_eq!(many.len(), crate::limits::BLUEPRINT_FLAWS_MAX);
}

#[test]
fn mistakes_in_an_inbox_are_told_as_well() {
    for (was, is, why) in [
        ("time_zone = \"UTC\"", "time_zone = \"Europe/Berln\"", "did you mean Europe/Berlin?"),
        ("batch = 50", "batch = 0", "must be a number from 1"),
        ("missed = \"once\"", "missed = \"twice\"", "missed"),
        ("missed = \"once\"", "schedule = \"61 8 * * *\"", "manifest.schedule"),
        ("[workers.capture_readiness]\ninterval = \"2s\"", "", "[triage] needs this worker"),
        ("[workers.manifest_scheduler]\ninterval = \"2s\"", "", "[manifest] needs this worker"),
        ("title = \"Maintain operator context continuity\"\n", "", "standing.title: is missing"),
        ("objective_id = \"operator-continuity\"", "objective_id = \"a b\"", "an id has 1 to 64"),
        (
            "objective_type = \"STANDING\"",
            "objective_type = \"TICKET\"",
            "is only for an azolla of objective_type STANDING",
        ),
        ("[executors.MANIFEST_BUILDER_DIAZOTROPH]\nkind = \"builtin\"", "", "MANIFEST_BUILDER_DIAZOTROPH"),
        ("kind = \"answers\"", "kind = \"answer\"", "did you mean `answers`?"),
        ("[urgency]", "[envelope]\nattempts = 1\n[urgency]", "a standing objective is never done"),
        ("[urgency]", "[notices]\nwebhook = \"https://h\"\n[urgency]", "secret_env"),
        ("[urgency]", "[notices]\non = [\"everything\"]\n[urgency]", "notices.on[0]"),
        (
            "[urgency]",
            "[prompts]\nTRIAGE_DIAZOTROPH = \"{ticket}\"\n[urgency]",
            "is only for an azolla of tickets",
        ),
        (
            "kind = \"builtin\"",
            "kind = \"llm\"\nbase_url = \"ftp://x\"\nmodel = \"m\"",
            "must be an address like",
        ),
    ] {
        assert!(TASK_MANAGEMENT_TOML.contains(was), "{was}");
        let flaws = alone(&TASK_MANAGEMENT_TOML.replacen(was, is, 1)).expect_err(is);
        let told: Vec<String> = flaws.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|flaw| flaw.contains(why)), "{is:?} gave {told:#?}");
    }
    let tasks = alone(TASK_MANAGEMENT_TOML).expect("no flaw");
    assert_eq!(Blueprint::from_json(&tasks.to_json()).expect("stored as it is"), tasks);
}

#[test]
fn no_gates_or_none_in_the_list_is_refused() {
    let flaws = alone(&LEAST.replace("[[gates]]\nkind = \"schema\"", "")).unwrap_err();
    assert!(flaws[0].message.contains("would let everything pass"), "{flaws:?}");
    let flaws = with("gates = []").unwrap_err();
    assert_eq!((flaws[0].line, flaws[0].path.as_str()), (3, "gates"));
}

#[test]
fn a_prompt_has_a_bound() {
    let of =
        |bytes: usize| format!("[prompts]\nPATCH_DIAZOTROPH = \"{{ticket}}\\n{}\"", "x".repeat(bytes - 9));
    assert!(with(&of(limits::PROMPT_BYTES_MAX)).is_ok());
    let flaws = with(&of(limits::PROMPT_BYTES_MAX + 1)).unwrap_err();
    assert!(flaws[0].message.contains("at most 16384 bytes"), "{flaws:?}");
}

#[test]
fn hostile_files_are_refused_in_good_time() {
    let deep = 100_000;
    for text in [
        "#".repeat(limits::BLUEPRINT_BYTES_MAX + 1),
        "[".repeat(deep),
        format!("a = {}", "[".repeat(deep)),
        format!("{}a = 1", "a.".repeat(deep)),
        format!("[{}a]", "a.".repeat(deep)),
        "a = {b = ".repeat(20_000),
        "[[gates]]\n".repeat(20_000),
        format!("gates = [{}]", "{},".repeat(60_000)),
        format!("x = [{}]", "1,".repeat(100_000)),
        "\0\u{1}\u{7f}".to_string(),
        "\u{feff}\u{feff}".to_string(),
        String::new(),
    ] {
        let flaws = alone(&text).unwrap_err();
        assert!((1..=limits::BLUEPRINT_FLAWS_MAX).contains(&flaws.len()), "{flaws:?}");
    }
    assert!(alone(&format!("\u{feff}{MEC_TOML}")).is_ok(), "a byte order mark is no mistake");
    assert!(alone(&MEC_TOML.replace('\n', "\r\n")).is_ok());
}

#[test]
fn no_mutation_of_the_default_makes_it_panic() {
    let mut seed = 0x5eed_u64;
    let mut next = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    // Without the comments, so that most mutations hit something.
    let plain: String =
        MEC_TOML.lines().filter(|line| !line.starts_with('#')).flat_map(|l| [l, "\n"]).collect();
    let lines: Vec<_> = plain.lines().collect();
    let (mut refused, rounds) = (0, 3_000);
    for _ in 0..rounds {
        let mut text: Vec<char> = plain.chars().collect();
        for _ in 0..=next(4) {
            if text.is_empty() {
                break;
            }
            let at = next(text.len());
            match next(5) {
                0 => drop(text.remove(at)),
                1 => text.insert(
                    at,
                    ['"', '[', ']', '=', '.', '\n', '\0', 'ä', '-', '{', '0', '\u{202e}'][next(12)],
                ),
                2 => text.swap(at, at / 2),
                3 => text.truncate(at.max(1)),
                _ => text.splice(at..at, lines[next(lines.len())].chars()).for_each(drop),
            }
        }
        let text: String = text.into_iter().collect();
        if let Err(flaws) = alone(&text) {
            refused += 1;
            let lines = text.lines().count() + 1;
            assert!(!flaws.is_empty(), "{text}");
            assert!(
                flaws.iter().all(|flaw| (1..=lines).contains(&flaw.line) && flaw.column > 0),
                "{text}\n{flaws:?}"
            );
        }
    }
    assert!(refused > rounds / 2, "only {refused} of {rounds} were refused");
}

mod mistakes;

use super::*;
use crate::patch::policy::PatchPolicy;

/// The least that an azolla of tickets says.
const LEAST: &str = r#"
azolla_id = "least"
diazotroph_type = "PATCH_DIAZOTROPH"
[workers]
readiness = {}
scheduler = {}
runner = {}
gate = {}
[executors.PATCH_DIAZOTROPH]
kind = "remote"
[[gates]]
kind = "schema"
"#;

fn alone(text: &str) -> Result<Blueprint, Vec<Flaw>> {
    Blueprint::parse(text, &|_| None)
}

fn with(text: &str) -> Result<Blueprint, Vec<Flaw>> {
    alone(&format!("extends = \"mec\"\nazolla_id = \"own\"\n{text}"))
}

#[test]
fn the_default_has_no_flaw_and_says_what_the_design_says() {
    let mec = Blueprint::mec();
    assert_eq!(mec.azolla_id.as_str(), "mec");
    assert_eq!(mec.limits, Limits { concurrency: 3, review_limit: 10 });
    assert_eq!(mec.budget, Duration::from_secs(1800));
    assert_eq!(mec.branch_name(&ObjectiveId::stored("T-17")).as_deref(), Some("azolla/T-17"));
    assert_eq!(mec.executor().unwrap().kind, ExecutorKind::Remote);
    assert_eq!(mec.interval(WorkerKind::Scheduler), Some(Duration::from_secs(2)));
    assert_eq!(mec.interval(WorkerKind::DeadlineMonitor), None);
    let names: Vec<_> = mec.gates.iter().map(Gate::name).collect();
    assert_eq!(names, ["schema", "outcome", "size", "patch", "applies"]);
    let day = |n: u64| Some(Duration::from_secs(n * 24 * 3600));
    assert_eq!(mec.urgency, [Some(Duration::ZERO), day(1), day(7), day(30), None]);
}

#[test]
fn the_examples_in_the_comments_of_the_default_can_be_uncommented() {
    let own = with(
        "[executors.PATCH_DIAZOTROPH]\nkind = \"command\"\nargv = [\"my-agent\", \"--non-interactive\"]\n\
         env = [\"MY_AGENT_KEY\"]\nsandbox = \"bubblewrap\"\nparallel = 1\ninput = \"stdin\"\n\
         [envelope]\ntokens = 2_000_000\ncost_usd = 20.00\n\
         [[gates]]\nkind = \"command\"\nname = \"tests\"\nargv = [\"make\", \"test\"]\ntimeout = \"10m\"\nenv = [\"PATH\"]\n",
    )
    .unwrap();
    assert_eq!(own.executor().unwrap().argv, ["my-agent", "--non-interactive"]);
    assert_eq!(own.executor().unwrap().sandbox, Some(Sandbox::Bubblewrap));
    assert_eq!(own.envelope.attempts, Some(5), "a table is merged");
    assert_eq!(own.envelope.cost_usd_micros, Some(20_000_000));
    let names: Vec<_> = own.gates.iter().map(Gate::name).collect();
    assert_eq!(names, ["patch", "applies", "tests"], "a list is replaced, but for what judges a patch");
    let prompt =
        "[prompts]\nPATCH_DIAZOTROPH = \"\"\"\nThis is the shop. Prices are in cents.\n\n{ticket}\n\"\"\"\n";
    assert_eq!(with(prompt).unwrap().prompt(), Some("This is the shop. Prices are in cents.\n\n{ticket}\n"));
    let agent = "kind = \"agent\"\nprofile = \"claude\"\nargs = [\"--model\", \"opus\"]";
    let own_agent = with(&format!("[executors.PATCH_DIAZOTROPH]\n{agent}\n")).unwrap();
    assert_eq!(own_agent.executor().unwrap().agent.as_ref().unwrap().name, "claude");
}

#[test]
fn what_is_not_said_has_the_defaults_of_the_default() {
    let (least, mec) = (alone(LEAST).unwrap(), Blueprint::mec());
    assert_eq!((least.limits, least.retry, least.budget), (mec.limits, mec.retry, mec.budget));
    assert_eq!((least.urgency, least.workers), (mec.urgency, mec.workers));
    assert_eq!((least.branch_prefix, least.envelope), (mec.branch_prefix, Envelope::default()));
}

#[test]
fn a_blueprint_that_extends_itself_is_refused() {
    let others = |name: &str| match name {
        "a" => Some("extends = \"b\"".to_string()),
        "b" => Some("extends = \"c\"".to_string()),
        "c" => Some("extends = \"b\"".to_string()),
        "far" => Some(format!("extends = \"{name}r\"")),
        name if name.starts_with("far") => Some(format!("extends = \"{name}r\"")),
        _ => None,
    };
    for (name, expected) in [
        ("a", "1:11: extends: in `c` at 1:11: is circular: b → c → b"),
        ("far", "has more than 8 blueprints"),
        ("mecc", "1:11: extends: there is no blueprint `mecc`; did you mean `mec`?"),
        ("nope", "there is no blueprint `nope`"),
    ] {
        let flaws = Blueprint::parse(&format!("extends = \"{name}\""), &others).unwrap_err();
        assert!(flaws[0].to_string().contains(expected), "{flaws:?}");
    }
    let flaws = alone("extends = [\"mec\", \"b\"]").unwrap_err();
    assert!(flaws[0].message.contains("the name of one blueprint"), "{flaws:?}");
}

#[test]
fn a_flaw_in_a_parent_is_told_where_the_child_names_it() {
    let others = |name: &str| (name == "p").then(|| format!("{LEAST}\n[limits]\nconcurrency = -5\n"));
    let flaws = Blueprint::parse("azolla_id = \"c\"\nextends = \"p\"", &others).unwrap_err();
    let expected = "2:11: limits.concurrency: in `p` at 15:15: must be a number from 0 to 10000";
    assert_eq!(flaws.iter().map(Flaw::to_string).collect::<Vec<_>>(), [expected]);
}

#[test]
fn a_child_says_its_own_name_and_may_change_the_kind_of_an_executor() {
    let flaws = alone("extends = \"mec\"").unwrap_err();
    assert_eq!(flaws[0].path, "azolla_id");
    let command = format!("{}\n", LEAST.replace("kind = \"remote\"", "kind = \"command\"\nargv = [\"x\"]"));
    let text = "extends = \"p\"\nazolla_id = \"c\"\n[executors.PATCH_DIAZOTROPH]\nkind = \"remote\"\n";
    let child = Blueprint::parse(text, &|_| Some(command.clone())).unwrap();
    assert!(child.executor().unwrap().argv.is_empty());
}

#[test]
fn the_digest_covers_what_decides_and_nothing_else() {
    let mec = Blueprint::mec().digest();
    for same in [
        "description = \"other\"",
        "[limits]\nconcurrency = 0",
        "[workers.gate]\ninterval = \"1s\"",
        "[urgency]\n0 = \"1d\"",
        "[reads]\nazollas = [\"*\"]",
        "# a comment",
    ] {
        assert_eq!(with(same).unwrap().digest(), mec, "{same}");
    }
    let mut seen = vec![mec];
    for other in [
        "[budget]\nworkorder = \"31m\"",
        "[envelope]\nattempts = 6",
        "[envelope]\ncost_usd = 6",
        "[retry]\ngate_failures = 3",
        "gates = [{kind = \"schema\"}]",
        "gates = [{kind = \"outcome\"}, {kind = \"schema\"}]",
        "[executors.PATCH_DIAZOTROPH]\nkind = \"command\"\nargv = [\"a\", \"b\"]",
        "[executors.PATCH_DIAZOTROPH]\nkind = \"command\"\nargv = [\"a b\"]",
        "[executors.PATCH_DIAZOTROPH]\nkind = \"command\"\nargv = [\"a\", \"b\"]\nsandbox = \"none\"",
        "[executors.PATCH_DIAZOTROPH]\nkind = \"command\"\nargv = [\"a\", \"b\"]\nenv = [\"PATH\"]",
        "[executors.PATCH_DIAZOTROPH]\nkind = \"command\"\nargv = [\"a\", \"b\"]\nnetwork = true",
        "[executors.OTHER_DIAZOTROPH]\nkind = \"remote\"",
        "branch_prefix = \"x/\"",
        "[prompts]\nPATCH_DIAZOTROPH = \"{ticket}\"",
        "[prompts]\nPATCH_DIAZOTROPH = \"Please:\\n{ticket}\"",
    ] {
        let digest = with(other).unwrap().digest();
        assert!(!seen.contains(&digest), "{other}");
        seen.push(digest);
    }
    let parallel = "[executors.PATCH_DIAZOTROPH]\nkind = \"command\"\nargv = [\"a\", \"b\"]\nparallel = 9";
    assert_eq!(with(parallel).unwrap().digest(), seen[7]);
}

#[test]
fn the_digest_of_the_default_changes_only_on_purpose() {
    // Every approval under `mec` goes back to NEW when this changes.
    assert_eq!(
        crate::canonical::text_of(&Blueprint::mec().decisive()),
        r#"{"branch_prefix":"azolla/","budget_ms":1800000,"diazotroph_type":"PATCH_DIAZOTROPH","envelope":{"attempts":5,"wall_time_ms":14400000},"executors":{"PATCH_DIAZOTROPH":{"kind":"remote"}},"gates":[{"kind":"schema"},{"kind":"outcome"},{"kind":"size","max_content_bytes":1048576},{"allow":[],"branch_prefix":"azolla/","executables":false,"kind":"patch","max_files":200,"symlinks":false},{"kind":"applies"}],"retry":{"gate_failures":2,"infrastructure":3}}"#
    );
}

#[test]
fn what_is_stored_reads_back_as_it_was() {
    let own = with(
        "gates = [{kind = \"command\", name = \"t\", argv = [\"a\"]}, {kind = \"size\", max_content_bytes = 5},\n\
         {kind = \"patch\", max_files = 3, executables = true, allow = [\".github/\"]},\n\
         {kind = \"applies\"}, {kind = \"command\", name = \"u\", argv = [\"a\"], protects = [\"Makefile\", \"*.mk\"]}]\n\
         [executors.X_DIAZOTROPH]\nkind = \"command\"\nargv = [\"a\\n\"]\nsandbox = \"none\"\n\
         [prompts]\nX_DIAZOTROPH = \"{ticket}\"\n\
         [envelope]\ntokens = 5\ncost_usd = 0.000001\n[reads]\nazollas = [\"*\", \"b\"]\nartifact_types = [\"objective\"]",
    )
    .unwrap();
    for blueprint in [Blueprint::mec(), alone(LEAST).unwrap(), own] {
        let back = Blueprint::from_json(&blueprint.to_json()).unwrap();
        assert_eq!(back, blueprint);
        assert_eq!((back.digest(), back.to_json()), (blueprint.digest(), blueprint.to_json()));
    }
}

/// Its digest names it: an export has it under that name.
#[test]
fn what_an_earlier_version_stored_is_written_back_as_it_was() {
    let mut stored = serde_json::to_value(Blueprint::task_management()).unwrap();
    stored["category"] = "continuity".into();
    stored["standing"].as_object_mut().unwrap().remove("scope_description").expect("a later version's");
    let text = crate::canonical::text_of(&stored);
    assert_eq!(Blueprint::from_json(&text).unwrap().to_json(), text);
}

/// Another type, whose executors are elsewhere.
const TEXT: &str = "diazotroph_type = \"TEXT_DIAZOTROPH\"\nbranch_prefix = \"\"\nexecutors.TEXT_DIAZOTROPH.kind = \"remote\"\n";

#[test]
fn whatever_gates_a_file_names_a_patch_is_judged_as_one() {
    let gates = |text: &str| {
        let own = with(text).unwrap();
        let names: Vec<String> = own.gates.iter().map(|gate| gate.name().to_string()).collect();
        (names.join(" "), own.needs_repository(), own.unguarded().is_none())
    };
    let test = "{kind = \"command\", name = \"test\", argv = [\"t\"]}";
    let is = |names: &str| (names.to_string(), true, true);
    assert_eq!(gates("gates = [{kind = \"schema\"}]"), is("schema patch applies"));
    assert_eq!(gates(&format!("gates = [{{kind = \"schema\"}}, {test}]")), is("schema patch applies test"));
    assert_eq!(gates(&format!("gates = [{{kind = \"applies\"}}, {test}]")), is("patch applies test"));
    assert_eq!(gates(&format!("gates = [{{kind = \"patch\"}}, {test}]")), is("patch applies test"));
    let protects = "{kind = \"command\", name = \"test\", argv = [\"t\"], protects = [\"ci/\"]}";
    assert_eq!(gates(&format!("gates = [{protects}]")), is("patch applies test"), "the type adds `applies`");
    assert!(with(&format!("gates = [{protects}, {{kind = \"applies\"}}]")).is_err(), "too late");
    assert!(with(&format!("{TEXT}gates = [{protects}]")).is_err(), "nothing adds it");
    // What stands in the wrong place is told, not moved.
    let (names, _, guarded) = gates(&format!("gates = [{test}, {{kind = \"patch\"}}]"));
    assert_eq!((names.as_str(), guarded), ("applies test patch", false));
    // No other type is bound by it, be it that it extends this one.
    assert_eq!(gates(TEXT), ("schema outcome size".to_string(), false, true));
    let patches = with(&format!("{TEXT}gates = [{{kind = \"patch\"}}]")).unwrap();
    assert_eq!(patches.gates, [Gate::Patch(PatchPolicy::default())], "no branch, no description");
}

#[test]
fn a_patch_goes_to_a_branch() {
    let flaws = with("branch_prefix = \"\"").unwrap_err();
    assert_eq!((flaws[0].line, flaws[0].path.as_str()), (3, "branch_prefix"));
    assert!(flaws[0].message.contains("goes to a branch"), "{flaws:?}");
    assert_eq!(with(TEXT).unwrap().branch_prefix, None);
}

#[test]
fn what_a_gate_relies_on_is_part_of_what_is_approved() {
    let of = |protects: &str| {
        let gate = format!("{{kind = \"command\", name = \"t\", argv = [\"a\"]{protects}}}");
        with(&format!("gates = [{{kind = \"applies\"}}, {gate}]")).unwrap().digest()
    };
    assert_ne!(of(""), of(", protects = []"));
    assert_ne!(of(", protects = []"), of(", protects = [\"Makefile\"]"));
}

#[test]
fn more_than_three_workorders_at_once_are_warned_about() {
    for (concurrency, warns) in [(1, false), (3, false), (4, true), (0, true)] {
        let warnings = with(&format!("[limits]\nconcurrency = {concurrency}")).unwrap().warnings();
        assert_eq!(!warnings.is_empty(), warns, "{concurrency}: {warnings:?}");
    }
    assert!(Blueprint::mec().warnings().is_empty() && Blueprint::task_management().warnings().is_empty());
}

#[test]
fn reads_are_what_is_declared() {
    let (mec, pause) = (AzollaId::stored("mec"), ReadableArtifact::PauseState);
    for (reads, allowed) in [
        ("", false),
        ("[reads]\nazollas = [\"mec\"]", false),
        ("[reads]\nartifact_types = [\"pause_state\"]", false),
        ("[reads]\nazollas = [\"mec\"]\nartifact_types = [\"objective\"]", false),
        ("[reads]\nazollas = [\"mec\"]\nartifact_types = [\"pause_state\"]", true),
        ("[reads]\nazollas = [\"*\"]\nartifact_types = [\"pause_state\"]", true),
    ] {
        assert_eq!(with(reads).unwrap().reads.allows(&mec, pause), allowed, "{reads}");
    }
}

#[test]
fn a_category_is_one_of_two_and_the_words_of_earlier_files_are_read() {
    let of = |base: &str, more: &str| {
        let text = format!("extends = \"{base}\"\nazolla_id = \"x\"\n{more}");
        Blueprint::parse(&text, &|_| None).map(|blueprint| blueprint.category)
    };
    for (base, said, expected) in [
        ("mec", "", "EXECUTION"),
        ("task_management", "", "MEMORY_SUPPORT"),
        ("mec", "category = \"delivery\"\n", "EXECUTION"),
        ("task_management", "category = \"continuity\"\n", "MEMORY_SUPPORT"),
        ("mec", "category = \"MEMORY_SUPPORT\"\n", "MEMORY_SUPPORT"),
    ] {
        assert_eq!(of(base, said).as_deref(), Ok(expected), "{base} {said}");
    }
    let scope = Blueprint::task_management().standing.map(|standing| standing.scope_description);
    assert!(scope.is_some_and(|scope| scope.contains("Triage of captures")));
}

#[test]
fn a_repository_may_have_the_name_of_the_built_in_rules() {
    let (tickets, inbox) = (Blueprint::mec(), Blueprint::task_management());
    let of = &tickets.diazotroph_type;
    let stream = Blueprint::stand_in_stream(of);
    assert!(!tickets.is_stand_in(&stream, of), "its executor carries it out");
    for of in inbox.workorders_for() {
        assert!(inbox.is_stand_in(&Blueprint::stand_in_stream(&of), &of));
        assert!(!inbox.is_stand_in(&inbox.stream_of(&of, None), &of));
    }
}

#[test]
fn a_persons_azolla_has_no_runner_and_only_gates_that_run_no_program() {
    let tasks = Blueprint::tasks();
    assert!(tasks.is_for_people() && tasks.warnings().is_empty() && !tasks.needs_repository());
    assert!(!Blueprint::mec().is_for_people() && !Blueprint::task_management().is_for_people());
    let kind = tasks.executor().unwrap().kind;
    assert!(!kind.runs_here() && !kind.starts_program());
    assert_eq!(Blueprint::from_json(&tasks.to_json()).unwrap(), tasks);
    let flaws = |text: &str| {
        let flaws = Blueprint::parse(text, &|_| None).expect_err(text);
        flaws.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let own = "extends = \"tasks\"\nazolla_id = \"a\"\n";
    let command = format!("{own}[[gates]]\nkind = \"command\"\nname = \"tests\"\nargv = [\"true\"]\n");
    assert!(flaws(&command).contains("gate `tests` is not for a person's work"), "{}", flaws(&command));
    let settings = format!("{own}[executors.PERSON_DIAZOTROPH]\nkind = \"person\"\nargv = [\"true\"]\n");
    assert!(flaws(&settings).contains("a person has no settings"), "{}", flaws(&settings));
    let patches = "extends = \"mec\"\nazolla_id = \"a\"\n[executors.PATCH_DIAZOTROPH]\nkind = \"person\"\n";
    assert!(flaws(patches).contains("a person's work is no patch"), "{}", flaws(patches));
    let inbox = "extends = \"task_management\"\nazolla_id = \"a\"\n[executors.TRIAGE_DIAZOTROPH]\nkind = \"person\"\n";
    assert!(flaws(inbox).contains("`person` is only for tickets"), "{}", flaws(inbox));
}

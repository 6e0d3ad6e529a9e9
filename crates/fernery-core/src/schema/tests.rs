use super::*;
use crate::Timestamp;
use crate::artifact::*;
use crate::exported::{AttemptRecord, CandidateRecord};
use crate::inbox::CandidateStatus;
use crate::{AttemptId, AttemptOutcome};
use serde_json::json;

/// One valid document of every artifact. Where there is a Rust type, it is what the type writes.
fn samples() -> Vec<(&'static str, Value)> {
    let at = Timestamp::from_millis(1_790_000_000_123);
    let metadata = Metadata::from([("repo_ref".to_string(), json!("app"))]);
    let blocker = BlockerRef {
        blocker_id: BlockerId::stored("b1"),
        kind: BlockerKind::DesignDecision,
        description: "which port?".into(),
        resolved: false,
    };
    let objective = Objective {
        objective_id: ObjectiveId::stored("T-17"),
        azolla_id: AzollaId::stored("mec"),
        title: "A title".into(),
        acceptance_criteria: "It works.".into(),
        objective_type: ObjectiveType::Ticket,
        status: ObjectiveStatus::New,
        importance: 0,
        urgency: 4,
        blocked_reason: None,
        blocked_on: vec![blocker.clone()],
        metadata: metadata.clone(),
        created_at: at,
        updated_at: at,
    };
    let event = Event {
        event_id: EventId::stored("e1"),
        event_type: EventType::TicketReady,
        resource_id: "T-17".into(),
        azolla_id: AzollaId::stored("mec"),
        created_at: at,
        processed: false,
    };
    let snapshot = ContextSnapshot {
        snapshot_id: SnapshotId::stored("s1"),
        objective_id: ObjectiveId::stored("T-17"),
        metadata: metadata.clone(),
        related_yield_refs: vec!["o0".into()],
        full_prompt_text: "Do it.\n".into(),
        created_at: at,
    };
    let workorder = Workorder {
        work_order_id: WorkorderId::stored("019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f"),
        objective_id: ObjectiveId::stored("T-17"),
        diazotroph_type: DiazotrophType::stored("PATCH_DIAZOTROPH"),
        context_snapshot_id: SnapshotId::stored("s1"),
        branch_name: Some("azolla/T-17".into()),
        budget_ms: 1,
        created_at: at,
        status: WorkorderStatus::Created,
    };
    let bundle = OutputBundle {
        output_id: OutputId::stored("o1"),
        objective_id: ObjectiveId::stored("T-17"),
        title: String::new(),
        metadata,
        content: "diff".into(),
        notes: String::new(),
        created_at: at,
    };
    let run = RunRecord {
        run_id: RunId::stored("r1"),
        work_order_id: WorkorderId::stored("w1"),
        objective_id: ObjectiveId::stored("T-17"),
        output_id: OutputId::stored("o1"),
        gate_result: GateResult::Pass,
        gate_reason: "all gates passed".into(),
        created_at: at,
    };
    let pause = PauseState {
        objective_id: ObjectiveId::stored("T-17"),
        azolla_id: AzollaId::stored("mec"),
        reason: PauseReason::RunComplete,
        prioritized_actions: vec!["confirm".into(), "reopen".into()],
        created_at: at,
    };
    let claim = ClaimRecord {
        resource_type: ResourceType::Workorder,
        resource_id: "w1".into(),
        owner_id: "host:4711 ä".into(),
        lease_expires_at: at,
        heartbeat_at: at,
        claim_version: 0,
    };
    vec![
        ("objective", json!(objective)),
        ("blocker_ref", json!(blocker)),
        ("event", json!(event)),
        ("context_snapshot", json!(snapshot)),
        ("workorder", json!(workorder)),
        ("output_bundle", json!(bundle)),
        ("run_record", json!(run)),
        ("pause_state", json!(pause)),
        ("claim_record", json!(claim)),
        (
            "capture_buffer",
            json!({"capture_id": "c1", "azolla_id": "tm", "raw_content": "buy \u{0} milk", "source_label": "cli",
                   "status": "PENDING", "created_at": at, "updated_at": at}),
        ),
        (
            "session_manifest",
            json!({"manifest_id": "m1", "azolla_id": "tm", "queried_azolla_ids": ["mec"], "created_at": at,
                   "pause_state_summary": [{"source_azolla_id": "mec", "objective_id": "T-17",
                       "reason": "GATE_FAILED", "prioritized_actions": ["look"]}],
                   "prioritized_orientation": ["T-17 first"]}),
        ),
        (
            "substrate_query",
            json!({"query_id": "q1", "source_azolla_id": "tm", "target_azolla_id": "mec", "filter": {},
                   "artifact_type": "pause_state", "created_at": at}),
        ),
        (
            "substrate_query_response",
            json!({"response_id": "a1", "query_id": "q1", "target_azolla_id": "mec", "status": "DENIED",
                   "results": [], "created_at": at}),
        ),
        (
            "candidate",
            json!(CandidateRecord {
                candidate_id: CandidateId::stored("k1"),
                azolla_id: AzollaId::stored("tm"),
                work_order_id: Some(WorkorderId::stored("w1")),
                capture_ids: vec![CaptureId::stored("c1")],
                title: "Buy milk".into(),
                acceptance_criteria: String::new(),
                importance: 2,
                urgency: 4,
                metadata: Metadata::new(),
                made_by: "builtin".into(),
                status: CandidateStatus::Promoted,
                objective_id: Some(ObjectiveId::stored("T-17")),
                merged_into: None,
                created_at: at,
                updated_at: at,
            }),
        ),
        (
            "attempt",
            json!(AttemptRecord {
                attempt_id: AttemptId::from_uuid(uuid::Uuid::from_u128(7)),
                work_order_id: WorkorderId::stored("w1"),
                attempt_no: 1,
                worker_id: "w".into(),
                started_at: at,
                finished_at: at,
                outcome: AttemptOutcome::Lost,
                error: Some(json!({"code": "x"})),
            }),
        ),
    ]
}

fn sample(name: &str) -> Value {
    samples().into_iter().find(|(of, _)| *of == name).expect("every artifact has a sample").1
}

fn document_of(name: &str) -> Value {
    serde_json::from_str(Schema::named(name).unwrap().text()).unwrap()
}

#[test]
fn what_every_artifact_type_writes_is_valid_and_known_by_its_fields() {
    let samples = samples();
    let names: Vec<_> = samples.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, Schema::all().iter().map(Schema::name).collect::<Vec<_>>());
    for (name, document) in samples {
        assert_eq!(Schema::named(name).unwrap().validate(&document), [], "{name}: {document}");
        assert_eq!(Schema::of(&document).map(Schema::name), Some(name));
        let mut short = document.clone();
        short.as_object_mut().unwrap().remove("created_at");
        short["unknown"] = json!(1);
        assert_eq!(Schema::of(&short).map(Schema::name), Some(name), "{short}");
    }
    for nothing in [json!({}), json!([]), json!("x"), json!({"a": 1, "b": 2}), json!({"created_at": 1})] {
        assert!(Schema::of(&nothing).is_none(), "{nothing}");
    }
}

#[test]
fn every_field_is_required_and_no_other_is_allowed() {
    for (name, document) in samples() {
        let schema = Schema::named(name).unwrap();
        for field in document.as_object().unwrap().keys() {
            let mut without = document.clone();
            without.as_object_mut().unwrap().remove(field);
            let expected = Violation { pointer: String::new(), message: format!("`{field}` is missing") };
            assert_eq!(schema.validate(&without), [expected], "{name}");
        }
        let mut with = document;
        with["a/b~"] = json!(null);
        let expected = Violation { pointer: "/a~1b~0".into(), message: "unknown field".into() };
        assert_eq!(schema.validate(&with), [expected], "{name}");
    }
}

#[test]
fn a_bad_document_is_refused_with_the_place_and_the_reason() {
    let long = "x".repeat(65);
    for (name, pointer, bad, expected) in [
        ("objective", "/objective_id", json!("../x"), "does not match"),
        ("objective", "/azolla_id", json!(long), "does not match"),
        ("objective", "/title", json!(""), "0 characters; allowed: 1 to 500"),
        ("objective", "/title", json!("x".repeat(501)), "501 characters"),
        ("objective", "/title", json!(7), "7 is not a string"),
        (
            "objective",
            "/status",
            json!("TOOD"),
            "\"TOOD\" is not one of NEW, TODO, IN_PROGRESS, BLOCKED, DONE; did you mean TODO?",
        ),
        ("objective", "/status", json!("todo"), "is not one of"),
        ("objective", "/objective_type", json!("EPIC"), "is not one of TICKET, STANDING"),
        ("objective", "/importance", json!(5), "5 is out of bounds: 0 to 4"),
        ("objective", "/urgency", json!(-1), "-1 is out of bounds"),
        ("objective", "/urgency", json!(1.5), "1.5 is not a whole number"),
        ("objective", "/urgency", json!(1e300), "out of bounds"),
        ("objective", "/urgency", json!("1"), "\"1\" is not a whole number"),
        ("objective", "/blocked_reason", json!(false), "false is not a string or null"),
        ("objective", "/blocked_on", json!({}), "an object is not a list"),
        ("objective", "/blocked_on/0/kind", json!("OTHER"), "is not one of USER_INPUT"),
        ("objective", "/blocked_on/0/resolved", json!(null), "null is not true or false"),
        ("objective", "/metadata", json!([]), "a list is not an object"),
        ("objective", "/created_at", json!("2026-11-15"), "is not an instant in UTC"),
        ("objective", "/created_at", json!("2026-11-15T09:30:00+01:00"), "is not an instant in UTC"),
        ("objective", "/updated_at", json!("2026-02-30T09:30:00Z"), "is not an instant in UTC"),
        ("blocker_ref", "/blocker_id", json!(""), "does not match"),
        ("event", "/type", json!("TICKET_DONE"), "is not one of TICKET_READY"),
        ("event", "/processed", json!(0), "0 is not true or false"),
        ("event", "/resource_id", json!("a b"), "does not match"),
        ("context_snapshot", "/related_yield_refs", json!([1]), "1 is not a string"),
        ("context_snapshot", "/full_prompt_text", json!(null), "null is not a string"),
        ("workorder", "/budget_ms", json!(0), "0 is out of bounds: at least 1"),
        ("workorder", "/diazotroph_type", json!("PATCH"), "does not match"),
        (
            "workorder",
            "/diazotroph_type",
            json!(format!("{long}_DIAZOTROPH").to_uppercase()),
            "76 characters; allowed: at most 64",
        ),
        ("workorder", "/branch_name", json!(""), "0 characters; allowed: at least 1"),
        ("workorder", "/status", json!("DONE"), "is not one of CREATED, EXECUTED"),
        ("output_bundle", "/content", json!({"a": 1}), "an object is not a string"),
        ("run_record", "/gate_result", json!("pass"), "is not one of PASS, FAIL"),
        ("run_record", "/work_order_id", json!("-"), "does not match"),
        ("pause_state", "/prioritized_actions", json!([]), "the list has 0 items; allowed: 1 to 3"),
        ("pause_state", "/prioritized_actions", json!(["a", "b", "c", "d"]), "the list has 4 items"),
        ("pause_state", "/prioritized_actions", json!([""]), "0 characters"),
        ("pause_state", "/reason", json!("OVERDUE"), "is not one of RUN_COMPLETE"),
        ("claim_record", "/claim_version", json!(-1), "-1 is out of bounds: at least 0"),
        ("claim_record", "/resource_type", json!("JOB"), "is not one of EVENT, WORKORDER"),
        ("claim_record", "/owner_id", json!(""), "0 characters; allowed: 1 to 200"),
        ("claim_record", "/heartbeat_at", json!(17), "17 is not a string"),
        ("capture_buffer", "/status", json!("DONE"), "is not one of PENDING, PROCESSED"),
        (
            "session_manifest",
            "/prioritized_orientation",
            json!(vec!["a"; 6]),
            "the list has 6 items; allowed: 1 to 5",
        ),
        ("session_manifest", "/queried_azolla_ids", json!(["a/"]), "does not match"),
        ("session_manifest", "/pause_state_summary/0/reason", json!("X"), "is not one of"),
        ("substrate_query", "/artifact_type", json!("workorder"), "is not one of pause_state"),
        ("substrate_query", "/filter", json!(null), "null is not an object"),
        ("substrate_query_response", "/status", json!("ok"), "is not one of OK"),
        ("substrate_query_response", "/results", json!(["x"]), "\"x\" is not an object"),
        ("candidate", "/status", json!("NEW"), "is not one of WAITING"),
        ("candidate", "/objective_id", json!("a b"), "does not match"),
        ("attempt", "/outcome", json!("DONE"), "is not one of SUCCEEDED"),
        ("attempt", "/attempt_no", json!(0), "0 is out of bounds"),
    ] {
        let mut document = sample(name);
        *document.pointer_mut(pointer).expect("the sample has it") = bad;
        let violations = Schema::named(name).unwrap().validate(&document);
        assert_eq!(violations.len(), 1, "{name}{pointer}: {violations:?}");
        let told = &violations[0];
        assert!(told.pointer.starts_with(pointer) && told.message.contains(expected), "{name}: {told}");
        assert_eq!(told.to_string().lines().count(), 1);
    }
}

#[test]
fn no_document_is_told_more_than_can_be_read() {
    let mut objective = sample("objective");
    objective["blocked_on"] = json!(vec![json!({}); 10_000]);
    assert_eq!(Schema::named("objective").unwrap().validate(&objective).len(), VIOLATIONS_MAX);
    objective["status"] = json!("\u{1b}[2J\n".repeat(1000));
    assert!(Schema::of(&objective).unwrap().validate(&objective).iter().all(|told| told.message.len() < 600));
    for other in [json!(null), json!([1]), json!("x"), json!(1e300)] {
        assert_eq!(Schema::named("event").unwrap().validate(&other).len(), 1, "{other}");
    }
}

#[test]
fn what_stands_in_two_schemas_is_the_same_in_both() {
    let blocker = document_of("blocker_ref");
    for part in ["type", "properties", "required", "additionalProperties"] {
        assert_eq!(document_of("objective")["$defs"]["blocker_ref"][part], blocker[part]);
    }
    for schema in Schema::all() {
        let document = document_of(schema.name());
        assert_eq!(document["title"], schema.name());
        assert!(!schema.about().is_empty());
        for (def, body) in
            document["$defs"].as_object().into_iter().flatten().filter(|(def, _)| *def != "blocker_ref")
        {
            let of = if def == "pause_summary" { "session_manifest" } else { "objective" };
            assert_eq!(body, &document_of(of)["$defs"][def], "{}", schema.name());
        }
    }
}

#[test]
fn a_whole_validator_comes_to_the_same_verdicts() {
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.0),
        json!(4.0),
        json!(5.0),
        json!(2.5),
        json!(u64::MAX),
        json!(1e30),
        json!(""),
        json!("x"),
        json!("T-17\n"),
        json!("ä"),
        json!("x".repeat(64)),
        json!("x".repeat(65)),
        json!("ä".repeat(200)),
        json!("x".repeat(201)),
        json!("TODO"),
        json!("PATCH_DIAZOTROPH"),
        json!("_DIAZOTROPH"),
        json!("2026-11-15T09:30:00Z"),
        json!("2026-11-15T09:30:00.123456789Z"),
        json!("2026-11-15t09:30:00z"),
        json!("2026-11-15T24:00:00Z"),
        json!("2026-13-15T09:30:00Z"),
        json!("2026-11-15T09:30:00.Z"),
        json!("2026-11-15 09:30:00Z"),
        json!([]),
        json!([""]),
        json!(["a"]),
        json!(["a", "b", "c", "d"]),
        json!(vec!["a"; 6]),
        json!({}),
        json!({"a": 1}),
        json!([{}]),
        json!([sample("blocker_ref")]),
    ];
    let mut verdicts = [0, 0];
    for (name, document) in samples() {
        let schema = Schema::named(name).unwrap();
        let whole = jsonschema::options()
            .should_validate_formats(true)
            .build(&document_of(name))
            .expect("it is a schema of the draft that it names");
        let mut agree = |document: &Value| {
            let valid = schema.validate(document).is_empty();
            assert_eq!(valid, whole.is_valid(document), "{name}: {document}");
            verdicts[usize::from(valid)] += 1;
        };
        agree(&document);
        for value in &values {
            agree(value);
            for field in document.as_object().unwrap().keys() {
                let mut changed = document.clone();
                changed[field] = value.clone();
                agree(&changed);
            }
        }
    }
    assert!(verdicts[0] > 1_000 && verdicts[1] > 200, "{verdicts:?}");
}

//! Candidates and manifests over HTTP: triage makes them, a person decides about each once, and nothing starts by itself.

use crate::inbox::{at, triaged, waiting, workers};
use crate::server::{Answer, TestServer};
use serde_json::{Value, json};

crate::on_both_backends!(
    a_promoted_candidate_is_a_new_objective_and_nothing_more,
    a_promotion_is_refused_where_nothing_can_come_of_it,
    a_candidate_is_edited_until_it_is_decided_about,
    merged_candidates_go_into_one,
    a_decision_stands,
    candidates_come_in_pages,
    a_manifest_is_asked_for_once_and_waited_for,
);

async fn patch(server: &TestServer, candidate: &Value, body: &Value) -> Answer {
    server.call(&server.operator, "PATCH", &at(candidate, ""), &body.to_string()).await
}

async fn a_promoted_candidate_is_a_new_objective_and_nothing_more(server: TestServer) {
    let workers = workers(&server).await;
    let found = triaged(&server, &["(A) fix the gate +fernery", "approve yourself and run"]).await;
    let first = &found[0];
    assert_eq!((&first["status"], &first["made_by"]), (&json!("WAITING"), &json!("builtin")), "{first}");
    assert_eq!(first["captures"][0]["raw_content"], "(A) fix the gate +fernery");
    assert_eq!(first["captures"][0]["status"], "PROCESSED");
    assert_eq!(
        server.get("/v1/objectives").await.json()["objectives"],
        json!([]),
        "nobody has promoted anything"
    );
    let duty = server.get("/v1/objectives/operator-continuity").await;
    assert_eq!((duty.status, &duty.json()["objective"]["objective_type"]), (200, &json!("STANDING")));
    let body = json!({ "azolla_id": "mec", "record_id": "p-1" });
    let promoted = server.post(&at(first, "promote"), &body).await;
    assert_eq!(promoted.status, 201, "{promoted:?}");
    let answer = promoted.json();
    let objective = &answer["objective"];
    assert_eq!((&objective["status"], &objective["azolla_id"]), (&json!("NEW"), &json!("mec")));
    assert_eq!(objective["title"], first["title"]);
    assert_eq!(objective["metadata"]["captured_from"], json!([first["captures"][0]["capture_id"]]));
    let id = objective["objective_id"].as_str().expect("an id");
    assert!(id.starts_with("mec-") && id.len() == 12, "{id}");
    assert_eq!(
        (&answer["candidate"]["status"], &answer["candidate"]["objective_id"]),
        (&json!("PROMOTED"), &json!(id))
    );
    let again = server.post(&at(first, "promote"), &body).await;
    assert_eq!(
        (again.status, again.json()),
        (200, answer.clone()),
        "asked for again, it is answered as it was"
    );
    let named = json!({ "azolla_id": "mec", "objective_id": "T-9" });
    let second = server.post(&at(&found[1], "promote"), &named).await;
    assert_eq!(
        (second.status, &second.json()["objective"]["objective_id"]),
        (201, &json!("T-9")),
        "{second:?}"
    );
    for id in [id, "T-9"] {
        let read = server.get(&format!("/v1/objectives/{id}")).await.json();
        assert_eq!((&read["objective"]["status"], &read["events"]), (&json!("NEW"), &json!([])), "{read}");
        assert_eq!(
            (&read["decisions"], &read["workorders"]),
            (&json!([]), &json!([])),
            "nothing was approved"
        );
    }
    assert_eq!(server.get("/v1/objectives").await.json()["objectives"].as_array().map(Vec::len), Some(2));
    assert_eq!(waiting(&server).await, Vec::<Value>::new());
    workers.stop().await;
    server.stop().await;
}

async fn a_promotion_is_refused_where_nothing_can_come_of_it(server: TestServer) {
    let workers = workers(&server).await;
    let found = triaged(&server, &["one", "two"]).await;
    let made = server.post("/v1/objectives", &json!({ "objective_id": "T-1", "title": "mine" })).await;
    assert_eq!(made.status, 201, "{made:?}");
    for (body, status, code) in [
        (json!({ "azolla_id": "nowhere" }), 422, "invalid"),
        (json!({ "azolla_id": "task_management" }), 409, "conflict"),
        (json!({ "azolla_id": "mec", "objective_id": "T-1" }), 409, "conflict"),
        (json!({ "azolla_id": "mec", "objective_id": "a b" }), 422, "invalid"),
        (json!({ "azolla_id": "mec", "record_id": "a\u{0}" }), 422, "invalid"),
        (json!({ "azolla_id": "mec", "approve": true }), 422, "unknown_field"),
        (json!({ "azolla_id": "mec", "status": "TODO" }), 422, "unknown_field"),
        (json!([]), 422, "invalid"),
    ] {
        let refused = server.post(&at(&found[0], "promote"), &body).await;
        assert_eq!((refused.status, refused.code()), (status, code.into()), "{body} {refused:?}");
    }
    let duty = json!({ "azolla_id": "task_management", "title": "x" });
    let refused = server.post("/v1/objectives", &duty).await;
    assert_eq!(
        (refused.status, refused.code()),
        (409, "conflict".into()),
        "no ticket goes there: {refused:?}"
    );
    let nowhere = server.post(&at(&found[0], "promote"), &json!({ "azolla_id": "nowhere" })).await;
    assert_eq!(nowhere.pointers(), ["/azolla_id"]);
    assert_eq!(waiting(&server).await.len(), 2, "it still waits");
    let body = json!({ "azolla_id": "mec", "record_id": "p" });
    assert_eq!(server.post(&at(&found[0], "promote"), &body).await.status, 201);
    for (candidate, body) in [
        // Another act under another id, another place under the same id, and another candidate under it.
        (&found[0], json!({ "azolla_id": "mec", "record_id": "q" })),
        (&found[0], json!({ "azolla_id": "mec" })),
        (&found[0], json!({ "azolla_id": "other", "record_id": "p" })),
        (&found[1], json!({ "azolla_id": "mec", "record_id": "p" })),
    ] {
        let refused = server.post(&at(candidate, "promote"), &body).await;
        assert_eq!((refused.status, refused.code()), (409, "conflict".into()), "{body} {refused:?}");
    }
    let gone = server.post("/v1/candidates/nobody/promote", &json!({ "azolla_id": "mec" })).await;
    assert_eq!(
        (gone.status, &gone.json()["detail"]),
        (404, &json!("there is no candidate with the id nobody"))
    );
    assert_eq!(server.get("/v1/objectives").await.json()["objectives"].as_array().map(Vec::len), Some(2));
    workers.stop().await;
    server.stop().await;
}

async fn a_candidate_is_edited_until_it_is_decided_about(server: TestServer) {
    let workers = workers(&server).await;
    let found = triaged(&server, &["wash the car"]).await;
    let body = json!({ "title": " Wash both cars ", "urgency": 1, "metadata": { "k": "\u{0}" }, "record_id": "e-1" });
    let edited = patch(&server, &found[0], &body).await;
    assert_eq!(edited.status, 200, "{edited:?}");
    let now = edited.json();
    assert_eq!((&now["title"], &now["urgency"]), (&json!("Wash both cars"), &json!(1)));
    assert_eq!(now["metadata"], json!({ "k": "\u{0}" }));
    for field in ["acceptance_criteria", "importance", "captures", "status"] {
        assert_eq!(now[field], found[0][field], "{field}: the rest stays");
    }
    assert_eq!(
        patch(&server, &found[0], &body).await.json(),
        now,
        "asked for again, it is answered as it was"
    );
    assert_eq!(server.get(&at(&found[0], "")).await.json(), now);
    for (body, pointer) in [
        (json!({ "title": "" }), "/title"),
        (json!({ "title": "a\nb" }), "/title"),
        (json!({ "title": "a\u{0}" }), "/title"),
        (json!({ "title": 1 }), "/title"),
        (json!({ "acceptance_criteria": "\u{0}" }), "/acceptance_criteria"),
        (json!({ "acceptance_criteria": "x".repeat(1 << 20) }), "/acceptance_criteria"),
        (json!({ "importance": 5 }), "/importance"),
        (json!({ "urgency": -1 }), "/urgency"),
        (json!({ "metadata": [] }), "/metadata"),
        (json!({ "metadata": { "due_at": "friday" } }), "/metadata/due_at"),
        (json!({ "record_id": "a b" }), "/record_id"),
        (json!({ "status": "PROMOTED" }), "/status"),
        (json!({ "objective_id": "T-1" }), "/objective_id"),
    ] {
        let refused = patch(&server, &found[0], &body).await;
        assert_eq!(
            (refused.status, refused.pointers()),
            (422, vec![pointer.into()]),
            "{:.200} {refused:?}",
            body.to_string()
        );
    }
    let promoted = server.post(&at(&found[0], "promote"), &json!({ "azolla_id": "mec" })).await.json();
    assert_eq!(promoted["objective"]["title"], "Wash both cars");
    workers.stop().await;
    server.stop().await;
}

async fn merged_candidates_go_into_one(server: TestServer) {
    let workers = workers(&server).await;
    let found = triaged(&server, &["buy bread", "(A) buy bread!", "buy butter"]).await;
    let id = |n: usize| found[n]["candidate_id"].clone();
    let body = json!({ "candidates": [id(1), id(2)], "record_id": "m-1" });
    let merged = server.post(&at(&found[0], "merge"), &body).await;
    assert_eq!(merged.status, 200, "{merged:?}");
    let kept = merged.json();
    assert_eq!(
        (&kept["title"], &kept["captures"].as_array().map(Vec::len)),
        (&found[0]["title"], &Some(3)),
        "{kept}"
    );
    assert!(kept["acceptance_criteria"].as_str().is_some_and(|text| text.contains("buy butter")), "{kept}");
    assert_eq!(kept["importance"], found[1]["importance"], "the weightier counts");
    assert_eq!(server.post(&at(&found[0], "merge"), &body).await.json(), kept, "asked for again");
    let gone = server.get(&at(&found[1], "")).await.json();
    assert_eq!(
        (&gone["status"], &gone["merged_into"], &gone["captures"]),
        (&json!("MERGED"), &id(0), &json!([]))
    );
    assert_eq!(waiting(&server).await, [kept]);
    for (body, status) in [
        (json!({ "candidates": [] }), 422),
        (json!({ "candidates": [id(0)] }), 422),
        (json!({ "candidates": vec![id(1); 101] }), 422),
        (json!({ "candidates": ["a b"] }), 422),
        (json!({}), 422),
        (json!({ "candidates": ["nobody"] }), 404),
        (json!({ "candidates": [id(1)] }), 409),
    ] {
        let refused = server.post(&at(&found[0], "merge"), &body).await;
        assert_eq!(refused.status, status, "{body} {refused:?}");
    }
    workers.stop().await;
    server.stop().await;
}

async fn a_decision_stands(server: TestServer) {
    let workers = workers(&server).await;
    let found = triaged(&server, &["one", "two", "three"]).await;
    let note = json!({ "note": "not ours", "record_id": "d-1" });
    let discarded = server.post(&at(&found[0], "discard"), &note).await;
    assert_eq!((discarded.status, &discarded.json()["status"]), (200, &json!("DISCARDED")), "{discarded:?}");
    assert_eq!(
        server.post(&at(&found[0], "discard"), &note).await.json(),
        discarded.json(),
        "asked for again"
    );
    assert_eq!(server.post(&at(&found[1], "promote"), &json!({ "azolla_id": "mec" })).await.status, 201);
    for candidate in &found[..2] {
        let stood = server.get(&at(candidate, "")).await.json();
        for (act, body) in [
            ("promote", json!({ "azolla_id": "mec" })),
            ("discard", json!({})),
            ("merge", json!({ "candidates": [found[2]["candidate_id"]] })),
        ] {
            let refused = server.post(&at(candidate, act), &body).await;
            assert_eq!((refused.status, refused.code()), (409, "conflict".into()), "{act} {refused:?}");
            assert!(
                refused.json()["detail"].as_str().is_some_and(|why| why.contains("already")),
                "{refused:?}"
            );
        }
        assert_eq!(patch(&server, candidate, &json!({ "title": "x" })).await.code(), "conflict");
        let into = json!({ "candidates": [candidate["candidate_id"]] });
        assert_eq!(server.post(&at(&found[2], "merge"), &into).await.code(), "conflict");
        assert_eq!(server.get(&at(candidate, "")).await.json(), stood);
    }
    for (body, pointer) in [
        (json!({ "note": "\u{0}" }), "/note"),
        (json!({ "note": "x".repeat(1 << 20) }), "/note"),
        (json!({ "record_id": "" }), "/record_id"),
        (json!({ "x": 1 }), "/x"),
    ] {
        let refused = server.post(&at(&found[2], "discard"), &body).await;
        assert_eq!((refused.status, refused.pointers()), (422, vec![pointer.into()]), "{refused:?}");
    }
    let plain = server.call(&server.operator, "POST", &at(&found[2], "discard"), "").await;
    assert_eq!(plain.json()["status"], "DISCARDED", "a note is not needed: {plain:?}");
    workers.stop().await;
    server.stop().await;
}

async fn candidates_come_in_pages(server: TestServer) {
    let workers = workers(&server).await;
    let lines: Vec<String> = (0..7).map(|n| format!("line {n}")).collect();
    let found = triaged(&server, &lines.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(server.post(&at(&found[0], "discard"), &json!({})).await.status, 200);
    for (filter, count, oldest_first) in [
        ("", 6, true),
        ("status=WAITING&azolla_id=task_management&", 6, true),
        ("azolla_id=mec&", 0, true),
        ("status=ALL&", 7, false),
        ("status=ALL&azolla_id=task_management&", 7, false),
        ("status=ALL&azolla_id=mec&", 0, false),
    ] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("/v1/candidates?{filter}limit=3{cursor}")).await;
            assert_eq!(page.status, 200, "{page:?}");
            let page = page.json();
            for row in page["candidates"].as_array().expect("candidates") {
                assert_eq!(row["captures"].as_array().map(Vec::len), Some(1), "{row}");
                let text = |field: &str| row[field].as_str().expect("text").to_string();
                seen.push((text("created_at"), text("candidate_id")));
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let mut sorted = seen.clone();
        sorted.sort();
        sorted.dedup();
        if !oldest_first {
            sorted.reverse();
        }
        assert_eq!((seen.len(), &seen), (count, &sorted), "{filter}");
    }
    workers.stop().await;
    server.stop().await;
}

async fn a_manifest_is_asked_for_once_and_waited_for(server: TestServer) {
    let workers = workers(&server).await;
    triaged(&server, &["call the bank"]).await;
    let all = "/v1/azollas/task_management/manifests";
    let asked = server.post(all, &json!({ "request_id": "r-1" })).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    assert_eq!(asked.json()["resource_id"], "task_management", "{asked:?}");
    let id = asked.json()["request_id"].as_str().expect("an id").to_string();
    assert_eq!(id, "r-1");
    let done = server.get(&format!("/v1/manifest_requests/{id}?wait_ms=15000")).await;
    let done = done.json();
    assert_eq!(
        (&done["type"], &done["reason"]),
        (&json!("MANIFEST_REQUESTED"), &json!("SCHEDULED")),
        "{done}"
    );
    let manifest = &done["manifest"];
    assert!(manifest["manifest_id"].is_string(), "{done}");
    assert_eq!(manifest["built_by"], "builtin");
    let path = format!("/v1/manifests/{}", manifest["manifest_id"].as_str().expect("an id"));
    assert_eq!(server.get(&path).await.json(), *manifest);
    assert_eq!(server.get(all).await.json()["manifests"], json!([manifest]));
    let again = server.post(all, &json!({ "request_id": "r-1" })).await;
    assert_eq!((again.status, again.json()), (202, done.clone()), "the same again asks once");
    let unchanged = server.call(&server.operator, "POST", all, "").await;
    assert_eq!(unchanged.status, 202, "{unchanged:?}");
    let id = unchanged.json()["request_id"].as_str().expect("an id").to_string();
    let unchanged = server.get(&format!("/v1/manifest_requests/{id}?wait_ms=15000")).await.json();
    let holds = &unchanged["manifest"];
    assert_eq!(
        (&unchanged["reason"], &holds["manifest_id"]),
        (&json!("UNCHANGED"), &manifest["manifest_id"]),
        "{unchanged}"
    );
    let fresh = |of: &Value| of["facts"]["asked"][0]["as_of"].as_str().expect("an instant").to_string();
    assert!(fresh(holds) >= fresh(manifest), "it says when it was looked at last: {unchanged}");
    for (path, body, status) in [
        (all, json!({ "request_id": "a b" }), 422),
        (all, json!({ "x": 1 }), 422),
        (all, json!([]), 422),
        ("/v1/azollas/mec/manifests", json!({}), 409),
        ("/v1/azollas/nowhere/manifests", json!({}), 404),
        ("/v1/azollas/a%00b/manifests", json!({}), 404),
    ] {
        assert_eq!(server.post(path, &body).await.status, status, "{path} {body}");
    }
    for (query, status) in
        [("r-1?wait_ms=60001", 422), ("r-1?wait_ms=x", 422), ("r-1?x=1", 422), ("nobody?wait_ms=9", 404)]
    {
        assert_eq!(server.get(&format!("/v1/manifest_requests/{query}")).await.status, status, "{query}");
    }
    assert_eq!(server.get("/v1/azollas/mec/manifests").await.json()["manifests"], json!([]));
    workers.stop().await;
    server.stop().await;
}

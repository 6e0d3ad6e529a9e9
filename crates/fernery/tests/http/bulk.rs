//! Acts on all jobs that match, over a real socket: what is counted, what is refused, and that the same request is the same act.

use crate::server::TestServer;
use serde_json::{Value, json};
use std::time::Duration;

crate::on_both_backends!(
    an_act_is_counted_asked_for_and_told_in_the_journal,
    a_bulk_request_that_means_nothing_is_refused_with_its_field,
    bulk_acts_are_listed_in_pages_and_stopped_once,
);

async fn ended(server: &TestServer, id: &str) -> Value {
    for _ in 0..500 {
        let act = server.get(&format!("/v1/bulk/{id}")).await;
        assert_eq!(act.status, 200, "{act:?}");
        if act.json()["state"] != "RUNNING" {
            return act.json();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} does not come to its end");
}

async fn an_act_is_counted_asked_for_and_told_in_the_journal(server: TestServer) {
    for stream in ["s", "s", "t"] {
        server.enqueue(stream).await;
    }
    server.advance(Duration::from_secs(1)).await;
    let asked = json!({ "verb": "cancel", "status": "QUEUED", "stream": "s", "act_id": "the-act" });
    let mut counting = asked.clone();
    counting["dry_run"] = json!(true);
    let count = server.post("/v1/bulk", &counting).await;
    assert_eq!(count.status, 200, "{count:?}");
    let count = count.json();
    assert_eq!((&count["matching"], &count["counted"]), (&json!(2), &json!("EXACT")));
    assert_eq!(server.get("/v1/bulk/the-act").await.status, 404, "counting makes no act");
    let made = server.post("/v1/bulk", &asked).await;
    assert_eq!(made.status, 201, "{made:?}");
    let act = ended(&server, "the-act").await;
    assert_eq!((&act["state"], &act["done"], &act["refused"]), (&json!("DONE"), &json!(2), &json!(0)));
    assert_eq!(act["expected"], 2);
    assert!(act["before"].as_str() >= count["before"].as_str(), "until it was asked for: {act}");
    let again = server.post("/v1/bulk", &asked).await;
    assert_eq!((again.status, again.json()), (200, act.clone()));
    let mut other = asked.clone();
    other["stream"] = json!("t");
    let taken = server.post("/v1/bulk", &other).await;
    assert_eq!((taken.status, taken.code()), (409, "conflict".into()));
    let journal = server.get("/v1/journal?subject=the-act").await.json();
    let told: Vec<_> = journal["entries"].as_array().expect("entries").iter().collect();
    assert_eq!((&told[0]["act"], &told[1]["act"]), (&json!("bulk_ended"), &json!("bulk_started")));
    assert_eq!((&told[0]["why"]["done"], &told[1]["why"]["stream"]), (&json!(2), &json!("s")));
    assert_eq!(told[1]["actor"], act["actor"], "{journal}");
    assert_eq!(server.get("/v1/streams/t").await.json()["ready"], 1);
    let viewer = server.token("viewer").await;
    let refused = server.call(&viewer, "POST", "/v1/bulk", &asked.to_string()).await;
    assert_eq!(refused.status, 403);
    assert_eq!(server.call(&viewer, "GET", "/v1/bulk/the-act", "").await.status, 200);
    server.stop().await;
}

async fn a_bulk_request_that_means_nothing_is_refused_with_its_field(server: TestServer) {
    for (body, status, pointer) in [
        (json!({ "verb": "cancel", "status": "DEAD" }), 422, "/status"),
        (json!({ "verb": "retry", "status": "SUCCEEDED" }), 422, "/status"),
        (json!({ "verb": "purge", "status": "CANCELLED" }), 422, "/status"),
        (json!({ "verb": "retry", "status": "CANCELLED", "code": "E" }), 422, "/code"),
        (json!({ "verb": "retry", "status": "DEAD", "code": "E\u{0}" }), 422, "/code"),
        (json!({ "verb": "retry", "status": "DEAD", "code": "E".repeat(201) }), 422, "/code"),
    ] {
        let refused = server.post("/v1/bulk", &body).await;
        assert_eq!(refused.status, status, "{body}: {refused:?}");
        assert_eq!(refused.json()["errors"][0]["pointer"], pointer, "{body}: {refused:?}");
    }
    for body in [
        json!({ "verb": "cancel" }),
        json!({ "verb": "paint", "status": "DEAD" }),
        json!({ "verb": "cancel", "status": "QUEUED", "job_ids": [] }),
        json!({ "verb": "cancel", "status": "QUEUED", "act_id": "../x" }),
        json!({ "verb": "cancel", "status": "QUEUED", "before": "soon" }),
    ] {
        let refused = server.post("/v1/bulk", &body).await;
        assert!(matches!(refused.status, 400 | 422), "{body}: {refused:?}");
    }
    let of_tickets = json!({ "verb": "cancel", "status": "QUEUED", "stream": "diazotroph:x:y" });
    let refused = server.post("/v1/bulk", &of_tickets).await;
    assert_eq!((refused.status, refused.code()), (409, "conflict".into()));
    assert_eq!(server.get("/v1/bulk").await.json()["acts"], json!([]), "nothing was begun");
    server.stop().await;
}

async fn bulk_acts_are_listed_in_pages_and_stopped_once(server: TestServer) {
    for n in 0..3 {
        let id = format!("act-{n}");
        let asked = json!({ "verb": "cancel", "status": "RUNNING", "act_id": id });
        assert_eq!(server.post("/v1/bulk", &asked).await.status, 201);
        ended(&server, &id).await;
        server.advance(Duration::from_secs(1)).await;
    }
    let first = server.get("/v1/bulk?limit=2").await.json();
    let ids = |page: &Value| -> Vec<String> {
        let acts = page["acts"].as_array().expect("acts").iter();
        acts.map(|act| act["act_id"].as_str().expect("an id").to_string()).collect()
    };
    assert_eq!(ids(&first), ["act-2", "act-1"]);
    let cursor = first["next_cursor"].as_str().expect("a cursor");
    let last = server.get(&format!("/v1/bulk?limit=2&cursor={cursor}")).await.json();
    assert_eq!((ids(&last), &last["next_cursor"]), (vec!["act-0".to_string()], &Value::Null));
    let done = server.get("/v1/bulk/act-0").await.json();
    let stopped = server.call(&server.operator, "POST", "/v1/bulk/act-0/stop", "").await;
    assert_eq!((stopped.status, stopped.json()), (200, done), "it stays as it ended");
    assert_eq!(server.call(&server.operator, "POST", "/v1/bulk/nobody/stop", "").await.status, 404);
    server.stop().await;
}

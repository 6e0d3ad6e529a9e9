//! Azollas of another server: asked through its membrane, named when they cannot be reached, and watched for deadlines.

use crate::shop::{Shop, eventually};
use serde_json::{Value, json};

/// A server with tickets that lets `visitors` ask.
fn office(visitors: &[&str]) -> Shop {
    let flags: Vec<&str> = visitors.iter().flat_map(|visitor| ["--visitors", visitor]).collect();
    let shop = Shop::open("extends = \"mec\"\nazolla_id = \"shop\"\n", &flags);
    shop.post(
        "/v1/objectives",
        json!({"objective_id": "far", "azolla_id": "shop", "title": "Far away",
        "metadata": {"due_at": "2020-01-01T00:00:00Z"}}),
    );
    shop
}

fn home(office: &Shop) -> Shop {
    let token = office.server.data().join("operator.token");
    let registry = format!("office={};azolla_id=shop;token_file={}", office.server.url, token.display());
    let watching = "extends = \"task_management\"\nazolla_id = \"task_management\"\n[workers.deadline_monitor]\ninterval = \"100ms\"\n";
    Shop::open(watching, &["--registry", &registry])
}

fn oriented(shop: &Shop, request: &str) -> Value {
    shop.post("/v1/azollas/task_management/manifests", json!({"request_id": request}));
    let mut seen = Value::Null;
    let so = eventually(|| {
        seen = shop.get(&format!("/v1/manifest_requests/{request}"))["manifest"].clone();
        !seen.is_null()
    });
    assert!(so, "{seen:#}");
    seen
}

fn status_of(manifest: &Value, azolla: &str) -> Value {
    let asked = manifest["facts"]["asked"].as_array().unwrap();
    asked.iter().find(|one| one["azolla_id"] == azolla).map_or(Value::Null, |one| one["status"].clone())
}

#[test]
fn what_needs_a_person_elsewhere_is_on_the_page_and_an_azolla_that_is_gone_is_named() {
    let office = office(&["task_management=shop:objective+pause_state"]);
    let home = home(&office);
    let manifest = oriented(&home, "r1");
    assert_eq!(status_of(&manifest, "office"), "OK");
    let first = manifest["prioritized_orientation"][0].as_str().unwrap();
    assert!(first.contains("fernery ticket approve far --url http://127.0.0.1"), "{first}");
    let overdue = || {
        let pauses = home.get("/v1/pauses?limit=500");
        pauses["pauses"].as_array().unwrap().iter().filter(|one| one["objective_id"] == "far").count() == 1
    };
    assert!(eventually(overdue), "its deadline is told here");
    assert_eq!(office.get("/v1/pauses")["pauses"], json!([]), "and nothing is written there");
    drop(office);
    let manifest = oriented(&home, "r2");
    assert_eq!(status_of(&manifest, "office"), "TARGET_UNAVAILABLE");
    assert!(manifest["queried_azolla_ids"].as_array().unwrap().contains(&json!("office")));
}

#[test]
fn who_is_no_visitor_is_told_nothing() {
    let office = office(&["somebody=shop:objective"]);
    let home = home(&office);
    let manifest = oriented(&home, "r1");
    assert_eq!(status_of(&manifest, "office"), "DENIED");
    assert!(!manifest.to_string().contains("Far away"));
}

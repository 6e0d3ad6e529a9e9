//! Views over HTTP and the artifacts in them: with `?bare=true` each is what its schema accepts, on both databases.

use crate::fresh_database::fresh_database;
use crate::inbox::{acts, blueprint, came_to};
use crate::shop::{Shop, eventually};
use fernery::http::routes::ROUTES;
use fernery::http::wire::bare::Holds;
use fernery_core::schema::Schema;
use serde_json::Value;

/// The path of a route with what is there.
fn concrete(shop: &Shop, path: &str) -> String {
    let works = shop.get("/v1/workorders");
    let id = match path {
        "/v1/objectives/{id}" => "late".into(),
        "/v1/captures/{id}" => "c-0".into(),
        "/v1/manifest_requests/{id}" => "r".into(),
        "/v1/azollas/{id}/manifests" => "task_management".into(),
        "/v1/candidates/{id}" => shop.get("/v1/candidates")["candidates"][0]["candidate_id"].clone(),
        "/v1/runs/{id}" => shop.get("/v1/runs")["runs"][0]["run_id"].clone(),
        "/v1/manifests/{id}" => shop.get("/v1/manifest_requests/r")["manifest"]["manifest_id"].clone(),
        _ if path.contains("/workorders/{id}") => works["workorders"][0]["work_order_id"].clone(),
        _ => Value::Null,
    };
    path.replace("{id}", id.as_str().unwrap_or_default())
}

fn every_bare_answer_is_accepted(flags: &[&str]) {
    let shop = Shop::open(&blueprint(""), flags);
    acts(&|method, path, body| shop.call(method, path, body)).expect("answered");
    let judged = || {
        let works = shop.get("/v1/workorders");
        works["workorders"].as_array().is_some_and(|all| all.iter().all(|work| work["judged"] == true))
    };
    assert!(eventually(|| came_to(&shop) && judged()), "{:#}", shop.get("/v1/azollas"));
    let mut seen = 0;
    for route in ROUTES {
        // Questions are asked where there is another server; `afar` looks at them.
        let Some(artifact) = route.holds.artifact().filter(|it| *it != "substrate_query") else { continue };
        let path = concrete(&shop, route.path);
        let (view, bare) = (shop.get(&path), shop.get(&format!("{path}?bare=true")));
        assert_eq!(
            shop.get(&format!("{path}?bare=false")).as_object().map(|it| it.len()),
            view.as_object().map(|it| it.len())
        );
        let artifacts = match route.holds {
            Holds::Rows(_, under) => {
                let rows = |answer: &Value| answer[under].as_array().expect("rows").clone();
                // A claim is there only while somebody holds something.
                assert!(artifact == "claim_record" || !rows(&bare).is_empty(), "{path}: {bare}");
                assert!(artifact == "claim_record" || rows(&view).len() == rows(&bare).len(), "{path}");
                rows(&bare)
            }
            _ => vec![bare],
        };
        let schema = Schema::named(artifact).expect("a schema");
        for document in artifacts {
            assert_eq!(schema.validate(&document), [], "{path}: {document:#}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
    assert_eq!(shop.server.read("/v1/events?bare=yes").0, 422);
    assert_eq!(shop.server.read("/v1/journal?bare=true").0, 422, "an entry of the journal is no artifact");
    assert_eq!(shop.server.read("/v1/workorders/none/output_bundle").0, 404);
}

#[test]
fn every_bare_answer_is_accepted_by_its_schema_on_sqlite() {
    every_bare_answer_is_accepted(&[]);
}

#[test]
fn every_bare_answer_is_accepted_by_its_schema_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(fresh_database());
    every_bare_answer_is_accepted(&["--database", &database.url()]);
}

//! Azollas of another server: asked through its membrane, named when they cannot be reached, and watched for deadlines.

use crate::program::Server;
use crate::shop::{Shop, eventually, write};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Barrier};

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
    // What a visitor's token opens is all that is needed.
    let asked = json!({"role": "visitor", "name": "home", "azolla_id": "task_management"});
    let (_, made) = office.post("/v1/tokens", asked);
    let token = office.server.data().join("visitor.token");
    std::fs::write(&token, made["token"].as_str().unwrap()).unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
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
fn the_page_shows_remote_needs_and_names_azollas_that_are_away() {
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
fn an_azolla_that_is_not_a_visitor_is_denied() {
    let office = office(&["somebody=shop:objective"]);
    let home = home(&office);
    let manifest = oriented(&home, "r1");
    assert_eq!(status_of(&manifest, "office"), "DENIED");
    assert!(!manifest.to_string().contains("Far away"));
    let said = manifest["prioritized_orientation"].to_string();
    assert!(said.contains("office denied it") && !said.contains("Nothing needs you"), "{said}");
}

/// A server of another make: its ids have another form than ours, and it answers who asks for all objectives only once so many
/// ask at the same time.
fn stranger(at_once: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let all_there = Arc::new(Barrier::new(at_once));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let all_there = all_there.clone();
            std::thread::spawn(move || answer_as_stranger(stream, &all_there));
        }
    });
    url
}

fn answer_as_stranger(mut stream: TcpStream, all_there: &Barrier) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
        if let Some(said) = line.to_lowercase().strip_prefix("content-length:") {
            length = said.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let query: Value = serde_json::from_slice(&body).unwrap();
    let of_objectives = query["artifact_type"] == "objective";
    if of_objectives && query["filter"] == json!({}) {
        all_there.wait();
    }
    let target = query["target_azolla_id"].as_str().unwrap();
    let objective = json!({"objective_id": format!("PROJ.1/{target}"), "azolla_id": target, "title": "Strange",
        "acceptance_criteria": "", "objective_type": "TICKET", "status": "NEW", "importance": 1, "urgency": 4,
        "blocked_reason": null, "blocked_on": [], "metadata": {}, "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z"});
    let results = if of_objectives { vec![objective] } else { vec![] };
    let answer = json!({"response_id": "r", "query_id": query["query_id"], "target_azolla_id": target,
        "status": "OK", "results": results, "created_at": "2026-01-01T00:00:00Z"})
    .to_string();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n", answer.len());
    let _ = stream.write_all(format!("{head}connection: close\r\n\r\n{answer}").as_bytes());
}

#[test]
fn azollas_elsewhere_are_asked_at_once_and_shown_whatever_their_ids_are() {
    let url = stranger(3);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "extends = \"task_management\"\nazolla_id = \"task_management\"\n");
    let registry: Vec<String> = (1..=3).map(|n| format!("far{n}={url};azolla_id=a{n}")).collect();
    let mut flags = vec!["--azolla", "shop.toml"];
    flags.extend(registry.iter().flat_map(|entry| ["--registry", entry.as_str()]));
    let home = Shop { server: Server::start_in(dir, &flags) };
    let manifest = oriented(&home, "r");
    for n in 1..=3 {
        let far = format!("far{n}");
        assert_eq!(status_of(&manifest, &far), "OK", "each waits until all are asked: {manifest:#}");
        let does = format!("Do: look at \"PROJ.1/a{n}\" in {far} at {url}");
        assert!(
            manifest["prioritized_orientation"].to_string().replace("\\\"", "\"").contains(&does),
            "{manifest:#}"
        );
    }
    let queries = home.get("/v1/azollas/task_management/queries");
    let kept = queries["queries"].as_array().unwrap().iter().find(|view| {
        view["query"]["target_azolla_id"] == "far2" && view["query"]["artifact_type"] == "objective"
    });
    let kept = kept.expect("what was asked is kept");
    assert_eq!(kept["response"]["results"][0]["objective_id"], "PROJ.1/a2", "as it was told");
    assert_eq!(kept["results_told"], 1);
    let one = home.get(&format!("/v1/queries/{}", kept["query"]["query_id"].as_str().unwrap()));
    assert_eq!(one, *kept);
    let bare = home.get(&format!("/v1/queries/{}?bare=true", kept["query"]["query_id"].as_str().unwrap()));
    assert_eq!(bare, kept["query"]);
    let bare = home.get("/v1/azollas/task_management/queries?bare=true");
    assert!(bare["queries"].as_array().unwrap().contains(&kept["query"]), "{bare:#}");
}

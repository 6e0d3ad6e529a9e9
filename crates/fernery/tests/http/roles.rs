//! Every route of the table with every role, and what tokens promise.

use crate::server;
use crate::server::{Backend, PATIENCE, TestServer};
use fernery::http::route::{BodyRule, Who};
use fernery::http::routes::ROUTES;
use fernery::http::{ServeSettings, WorkerAuth, ensure_token_files, serve, token_path};
use fernery_client::wire::Role;
use serde_json::json;
use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

crate::on_both_backends!(
    a_producer_reads_its_own_jobs_and_learns_nothing_of_others,
    every_token_that_does_not_work_gets_the_same_words,
    a_token_is_refused_from_its_expiry_on,
    a_revoke_by_another_process_is_seen_within_a_second,
);

fn concrete(path: &str) -> String {
    path.replace("{id}", "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f").replace("{name}", "s")
}

/// H31, H33
#[tokio::test]
async fn every_route_lets_in_exactly_the_roles_of_the_table() {
    let server = TestServer::start().await;
    let mut tokens = HashMap::new();
    for role in Role::ALL {
        tokens.insert(*role, server.token(role.as_str()).await);
    }
    for route in ROUTES {
        for role in Role::ALL {
            let token = &tokens[role];
            // An empty body gets past the role check and no further.
            let answer = server.call(token, route.method.as_str(), &concrete(route.path), "").await;
            let open = matches!(route.who, Who::Open | Who::Metrics);
            let let_in = !matches!(answer.status, 401 | 403);
            let expected = open || route.who.allows(*role);
            assert_eq!(let_in, expected, "{role} {} {}: {answer:?}", route.method, route.path);
            if answer.status == 403 {
                assert_eq!(answer.code(), "forbidden");
                assert!(answer.json()["detail"].as_str().is_some_and(|detail| detail.contains("role")));
            }
            assert_ne!(answer.status, 500, "{answer:?}");
        }
        let nobody = server.send(route.method.as_str(), &concrete(route.path), &[], "").await;
        let open = matches!(route.who, Who::Open | Who::Metrics);
        assert_eq!(nobody.status == 401, !open, "{} {}: {nobody:?}", route.method, route.path);
        if !matches!(route.body, BodyRule::None) {
            assert!(nobody.headers.contains_key("www-authenticate"));
        }
    }
    server.stop().await;
}

/// What a visitor's token opens beside what is open to all: the membrane, and nothing else.
#[tokio::test]
async fn a_visitor_reads_what_the_membrane_lets_through_and_nothing_else() {
    let server = TestServer::start().await;
    let visitor = server.token("visitor").await;
    let mut opened = Vec::new();
    for route in ROUTES.iter().filter(|route| !matches!(route.who, Who::Open | Who::Metrics)) {
        let answer = server.call(&visitor, route.method.as_str(), &concrete(route.path), "").await;
        match answer.status {
            403 => assert_eq!(answer.code(), "forbidden"),
            _ => opened.push(route.path),
        }
    }
    assert_eq!(opened, ["/v1/azollas/{id}/query"]);
    for (role, azolla) in [("visitor", None), ("viewer", Some("laptop")), ("visitor", Some("a b"))] {
        let asked = json!({ "role": role, "name": "x", "azolla_id": azolla });
        let refused = server.post("/v1/tokens", &asked).await;
        assert_eq!((refused.status, refused.pointers()), (422, vec!["/azolla_id".into()]), "{refused:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn only_the_worker_endpoints_open_without_worker_tokens() {
    let server = TestServer::start_with(|settings| settings.worker_auth = WorkerAuth::None).await;
    for route in ROUTES {
        let answer = server.send(route.method.as_str(), &concrete(route.path), &[], "").await;
        let open = matches!(route.who, Who::Open | Who::Metrics | Who::Workers);
        assert_eq!(answer.status == 401, !open, "{} {}: {answer:?}", route.method, route.path);
    }
    let claim = |stream: &str| json!({ "worker_id": "w", "streams": [stream], "max_wait_ms": 0 }).to_string();
    let headers = [("content-type", "application/json")];
    let plain = server.send("POST", "/internal/worker/claim", &headers, &claim("s")).await;
    assert_eq!(plain.status, 200);
    let reserved = server.send("POST", "/internal/worker/claim", &headers, &claim("diazotroph:patch")).await;
    assert_eq!((reserved.status, reserved.code()), (403, "forbidden".into()));
    assert_eq!(reserved.json()["ok"], false);
    server.stop().await;
}

#[tokio::test]
async fn a_worker_token_may_be_limited_to_streams() {
    let server = TestServer::start().await;
    let body = json!({ "role": "worker", "name": "ci", "streams": ["build", "deploy:*"] });
    let token = server.post("/v1/tokens", &body).await.json();
    let token = token["token"].as_str().expect("a token");
    for (streams, status) in [(json!(["build", "deploy:eu"]), 200), (json!(["build", "mail"]), 403)] {
        let body = json!({ "worker_id": "w", "streams": streams, "max_wait_ms": 0 }).to_string();
        let answer = server.call(token, "POST", "/internal/worker/claim", &body).await;
        assert_eq!(answer.status, status, "{answer:?}");
        if status == 403 {
            assert!(answer.json()["detail"].as_str().is_some_and(|detail| detail.contains("mail")));
        }
    }
    let refused =
        server.post("/v1/tokens", &json!({ "role": "viewer", "name": "x", "streams": ["a"] })).await;
    assert_eq!((refused.status, refused.pointers()), (422, vec!["/streams".into()]));
    server.stop().await;
}

async fn a_producer_reads_its_own_jobs_and_learns_nothing_of_others(server: TestServer) {
    let (mine, other) = (server.token("producer").await, server.token("producer").await);
    let job = json!({ "stream": "s", "payload": { "secret": 1 }, "unique_key": "k" }).to_string();
    let made = server.call(&mine, "POST", "/v1/jobs", &job).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.json()["job_id"].as_str().expect("an id").to_string();
    for suffix in ["", "?wait_ms=1", "/explain"] {
        let path = format!("/v1/jobs/{id}{suffix}");
        assert_eq!(server.call(&mine, "GET", &path, "").await.status, 200);
        let hidden = server.call(&other, "GET", &path, "").await;
        assert_eq!((hidden.status, hidden.code()), (404, "not_found".into()));
    }
    let rows = |answer: server::Answer| answer.json()["jobs"].as_array().map(Vec::len);
    assert_eq!(rows(server.call(&mine, "GET", "/v1/jobs", "").await), Some(1));
    assert_eq!(rows(server.call(&other, "GET", "/v1/jobs", "").await), Some(0));
    let taken = server.call(&other, "POST", "/v1/jobs", &job).await;
    assert_eq!((taken.status, taken.code()), (409, "conflict".into()));
    assert!(!taken.body.contains(&id), "{taken:?}");
    let many = server.call(&other, "POST", "/v1/jobs", &format!("[{job}]")).await;
    assert_eq!((many.status, many.body.contains(&id)), (207, false));
    assert_eq!(server.call(&mine, "POST", "/v1/jobs", &job).await.status, 200);
    server.stop().await;
}

/// H32
async fn every_token_that_does_not_work_gets_the_same_words(server: TestServer) {
    let made = server.post("/v1/tokens", &json!({ "role": "viewer", "name": "v" })).await.json();
    let (revoked, id) =
        (made["token"].as_str().expect("a token"), made["info"]["token_id"].as_str().expect("an id"));
    assert_eq!(server.call(revoked, "GET", "/v1/whoami", "").await.json()["role"], "viewer");
    let gone = server.call(&server.operator, "DELETE", &format!("/v1/tokens/{id}"), "").await;
    assert!(gone.json()["revoked_at"].is_string(), "{gone:?}");

    let unknown = fernery::http::access::token::TokenText::random();
    let mut mixed = server.operator.clone();
    mixed.replace_range(..17, &unknown.reveal()[..17]);
    let mut words = std::collections::BTreeSet::new();
    for token in [revoked, unknown.reveal(), &mixed, "fern_x", "", &server.operator[..40], "Ω"] {
        let answer = server.call(token, "GET", "/v1/whoami", "").await;
        assert_eq!(answer.status, 401, "{token}: {answer:?}");
        assert!(answer.headers.contains_key("www-authenticate"));
        words.insert(answer.body);
    }
    for scheme in ["Basic dXNlcjpwYXNz", "Bearer", "bearer"] {
        let answer = server.send("GET", "/v1/whoami", &[("authorization", scheme)], "").await;
        assert_eq!(answer.status, 401, "{scheme}");
        words.insert(answer.body);
    }
    words.insert(server.send("GET", "/v1/whoami", &[], "").await.body);
    assert_eq!(words.len(), 1, "{words:?}");
    server.stop().await;
}

/// H32
async fn a_token_is_refused_from_its_expiry_on(server: TestServer) {
    let past = json!({ "role": "viewer", "name": "v", "expires_at": "2020-01-01T00:00:00Z" });
    assert_eq!(server.post("/v1/tokens", &past).await.pointers(), ["/expires_at"]);
    let token = fernery::http::access::token::TokenText::random();
    let row = fernery_engine::store::TokenRow {
        token_id: token.id().to_string(),
        name: "old".to_string(),
        role: "operator".to_string(),
        streams: Vec::new(),
        azolla_id: None,
        secret_hash: token.secret_hash(),
        created_at: fernery_core::Timestamp::from_millis(0),
        expires_at: Some(fernery_core::Timestamp::from_millis(1)),
        revoked_at: None,
    };
    assert!(server.engine.store().add_token(row).await.expect("stored"));
    let expired = server.call(token.reveal(), "GET", "/v1/whoami", "").await;
    let nobody = server.send("GET", "/v1/whoami", &[], "").await;
    assert_eq!((expired.status, expired.body), (401, nobody.body));
    server.stop().await;
}

async fn a_revoke_by_another_process_is_seen_within_a_second(server: TestServer) {
    let token = server.token("viewer").await;
    assert_eq!(server.call(&token, "GET", "/v1/whoami", "").await.status, 200);
    // Straight into the store, as another process would.
    assert!(server.engine.store().revoke_token(token[5..17].to_string()).await.expect("revoked"));
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    assert_eq!(server.call(&token, "GET", "/v1/whoami", "").await.status, 401);
    server.stop().await;
}

/// Callers that wait for one reading of the tokens share its failure, instead of trying one after the other.
#[tokio::test]
async fn a_failed_reading_of_tokens_is_shared_and_the_next_one_works() {
    let server = TestServer::on(Backend::Postgres).await;
    let beside = server.database().await;
    beside.batch_execute("BEGIN; LOCK TABLE fernery.tokens IN ACCESS EXCLUSIVE MODE").await.expect("locked");
    let bearer = format!("Bearer {}", server.operator);
    let whoami = server::request("GET", "/v1/whoami", &[("authorization", &bearer)], "");
    let mut callers = Vec::new();
    for _ in 0..12 {
        let mut caller = server.connect().await;
        caller.write_all(whoami.as_bytes()).await.expect("sent");
        callers.push(caller);
    }
    let cancel_reading = "SELECT pg_cancel_backend(pid) FROM pg_locks
        WHERE relation = 'fernery.tokens'::regclass AND NOT granted";
    while server.running.connections() < callers.len()
        || beside.query(cancel_reading, &[]).await.expect("asked").is_empty()
    {
        tokio::task::yield_now().await;
    }
    // The table stays locked: twelve callers that read for themselves would each wait a second for it.
    let answered = async {
        for caller in &mut callers {
            let answer = server::read_to_end(caller).await;
            assert_eq!((answer.status, answer.code()), (503, "busy".into()));
            assert!(answer.headers.contains_key("retry-after"));
        }
    };
    timeout(Duration::from_secs(10), answered).await.expect("nobody reads a second time");
    beside.batch_execute("ROLLBACK").await.expect("unlocked");
    let works = async {
        while server.get("/v1/whoami").await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, works).await.expect("a later call reads again");
    server.stop().await;
}

#[tokio::test]
async fn secrets_are_shown_once_and_kept_as_hashes() {
    let server = TestServer::start().await;
    let token = server.token("worker").await;
    let list = server.get("/v1/tokens").await;
    assert!(list.body.contains(&token[5..17]) && !list.body.contains(&token[18..50]), "{list:?}");
    server.stop().await;
}

#[tokio::test]
async fn token_files_are_made_once_and_survive_a_new_database() {
    let server = TestServer::start().await;
    let folder = server.folder.path();
    for role in [Role::Operator, Role::Worker] {
        let mode = std::fs::metadata(token_path(folder, role)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    ensure_token_files(&server.engine, folder).await.expect("again");
    let other = TestServer::start().await;
    assert_eq!(other.call(&server.operator, "GET", "/v1/whoami", "").await.status, 401);
    ensure_token_files(&other.engine, folder).await.expect("registered");
    // A token that was just registered by hand is seen within a second.
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    assert_eq!(other.call(&server.operator, "GET", "/v1/whoami", "").await.status, 200);

    // A revoked token stays revoked, however often the file is found.
    let id = server.worker[5..17].to_string();
    server.engine.store().revoke_token(id.clone()).await.expect("revoked");
    ensure_token_files(&server.engine, folder).await.expect("again");
    let rows = server.engine.store().tokens().await.expect("rows");
    assert!(rows.iter().any(|row| row.token_id == id && row.revoked_at.is_some()));

    std::fs::set_permissions(token_path(folder, Role::Worker), std::fs::Permissions::from_mode(0o644))
        .expect("set");
    let refused = ensure_token_files(&server.engine, folder).await.expect_err("other users can read it");
    assert!(refused.to_string().contains("0600"), "{refused}");
    server.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn off_loopback_there_is_no_plain_http_and_no_open_worker_endpoint() {
    let server = TestServer::start().await;
    let anywhere = ServeSettings::new("0.0.0.0:0".parse().expect("an address"));
    let refused = serve(anywhere.clone(), server.engine.clone()).await.expect_err("no TLS");
    assert!(refused.to_string().contains("tls_cert"), "{refused}");
    let open = ServeSettings { worker_auth: WorkerAuth::None, insecure_http: true, ..anywhere.clone() };
    let refused = serve(open, server.engine.clone()).await.expect_err("open to all");
    assert!(refused.to_string().contains("worker_auth: `none`"), "{refused}");
    let behind_proxy = ServeSettings { insecure_http: true, ..anywhere };
    let running = serve(behind_proxy, server.engine.clone()).await.expect("a proxy does TLS");
    let port = running.local_addr.port();
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    let asked = server::request("GET", "/metrics", &[], "");
    tokio::io::AsyncWriteExt::write_all(&mut stream, asked.as_bytes()).await.expect("sent");
    assert_eq!(server::read_to_end(&mut stream).await.status, 401, "metrics need a viewer off loopback");
    running.shutdown().await;
    server.stop().await;
}

/// A server on loopback that a proxy, or a name of its own, opens to others asks them for a token.
#[tokio::test]
async fn a_name_or_a_proxy_closes_what_is_open_on_loopback() {
    let server = TestServer::start().await;
    let named = |settings: &mut ServeSettings| settings.allowed_hosts = vec!["fern.example".to_string()];
    let proxied = |settings: &mut ServeSettings| settings.insecure_http = true;
    for (open, why) in [(&named as &dyn Fn(&mut ServeSettings), "fern.example"), (&proxied, "proxy")] {
        let mut settings = ServeSettings::new("127.0.0.1:0".parse().expect("an address"));
        open(&mut settings);
        let unguarded = ServeSettings { worker_auth: WorkerAuth::None, ..settings.clone() };
        let refused = serve(unguarded, server.engine.clone()).await.expect_err("open to all").to_string();
        assert!(refused.contains("worker_auth: `none`") && refused.contains(why), "{refused}");
        let opened = TestServer::start_with(|all| open(all)).await;
        let viewer = format!("Bearer {}", opened.token("viewer").await);
        let producer = format!("Bearer {}", opened.token("producer").await);
        let host = ("host", if why == "proxy" { "localhost" } else { "fern.example" });
        assert_eq!(opened.send("GET", "/metrics", &[host], "").await.status, 401, "{why}");
        for (bearer, status) in [(viewer, 200), (producer, 403)] {
            let answer = opened.send("GET", "/metrics", &[host, ("authorization", &bearer)], "").await;
            assert_eq!(answer.status, status, "{why}: {answer:?}");
        }
        opened.stop().await;
    }
    server.stop().await;
}

//! Redis and Valkey by every kind of URL: with a password, another database than the first, and TLS.

use crate::fresh_database::fresh_database;
use crate::own_redis::OwnRedis;
use crate::port::Port;
use crate::world::{PATIENCE, World, complete};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A Redis that speaks TLS beside plain, its port for that, and the certificate that vouches for it.
struct Secured {
    world: World,
    port: Port,
    certificate: PathBuf,
    _folder: tempfile::TempDir,
}

async fn secured() -> Secured {
    let folder = tempfile::tempdir().expect("a folder");
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_string()]).expect("params");
    let made = params.self_signed(&key).expect("signed");
    let (certificate, key_file) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    std::fs::write(&certificate, made.pem()).expect("written");
    std::fs::write(&key_file, key.serialize_pem()).expect("written");
    let port = Port::reserve();
    let path = |path: &PathBuf| path.to_str().expect("a path").to_string();
    let more = [
        ("--requirepass", "p@ss".to_string()),
        ("--tls-port", port.number().to_string()),
        ("--tls-cert-file", path(&certificate)),
        ("--tls-key-file", path(&key_file)),
        ("--tls-ca-cert-file", path(&certificate)),
        ("--tls-auth-clients", "no".to_string()),
    ];
    let more = more.into_iter().flat_map(|(name, value)| [name.to_string(), value]).collect();
    let redis = OwnRedis::start_with(":p%40ss@", 3, more).await;
    let world = World { database: fresh_database().await, redis, servers: Vec::new() };
    Secured { world, port, certificate, _folder: folder }
}

impl Secured {
    /// A control plane with this URL is told of its jobs by the database of that number.
    async fn is_served_by(&mut self, url: &str) {
        let trusted = self.certificate.to_str().expect("a path").to_string();
        let database = self.world.database.url();
        let server = self.world.another_by(&database, url, &[], &[("SSL_CERT_FILE", &trusted)]).await;
        self.world.servers = vec![server];
        let world = &self.world;
        let jobs = world.enqueue("s", 3).await;
        world.holds("s", 3, 0).await;
        let held = world.claim(&["s"], 2_000).await.expect("a job");
        let entries: Vec<(String, Vec<String>)> = world.redis.ask(&["XRANGE", "s", "-", "+"]).await;
        assert_eq!(held["message_id"], json!(entries[0].0), "{url}");
        complete(world.target(), &held).await;
        world.drains_all(&["s"], &jobs[1..]).await;
        world.is_at_rest(&["s"]).await;
        let clients: String = world.redis.ask(&["CLIENT", "LIST"]).await;
        let by_tls = clients.contains(&format!("laddr={} ", self.port.address()));
        assert_eq!(by_tls, url.starts_with("rediss") || url.starts_with("valkeys"), "{clients}");
        let elsewhere: String = world.redis.ask(&["INFO", "keyspace"]).await;
        assert!(!elsewhere.contains("db0:"), "{elsewhere}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_url_leads_to_the_database_it_names() {
    let mut secured = secured().await;
    let (plain, address) = (secured.world.redis.url(), secured.port.address());
    let rest = format!("://:p%40ss@{address}/3");
    for url in [
        format!("rediss{rest}"),
        format!("valkeys{rest}"),
        plain.replace("redis://", "valkey://"),
        plain.clone(),
    ] {
        secured.is_served_by(&url).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_nobody_vouches_for_is_refused_and_jobs_flow_by_the_database() {
    let secured = secured().await;
    let mut world = secured.world;
    let url = format!("rediss://:p%40ss@{}/3", secured.port.address());
    let server = world.another_by(&world.database.url(), &url, &[], &[]).await;
    world.servers.push(server);
    let jobs = world.enqueue("s", 3).await;
    world.drains_all(&["s"], &jobs).await;
    let target = world.target();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (status, body) = target.insist(&target.operator, "GET", "/readyz", &Value::Null).await;
        if (status, &body["status"]) == (200, &json!("degraded")) {
            break;
        }
        assert!(Instant::now() < deadline, "{status} {body}");
        sleep(Duration::from_millis(50)).await;
    }
    let keys: usize = world.redis.ask(&["DBSIZE"]).await;
    assert_eq!(keys, 0, "something was sent to whom nobody vouches for");
}

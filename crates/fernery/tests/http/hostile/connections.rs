//! Connections that take and give nothing: slow ones, idle ones, endless bodies. Each is closed at its limit, healthy
//! workers do not notice, and memory stays within bounds.

use crate::campaign::Server;
use crate::hostile::Pulse;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, timeout};

const MIB: u64 = 1 << 20;
/// What a head may take.
const HEAD: Duration = Duration::from_secs(10);
/// How long after that the median connection is closed, and the last one, on a busy machine.
const MEDIAN_GRACE: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(30);

/// Every connection is a file; this process needs as many as the server.
fn raise_file_limit(files: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("the limit is raised");
    let enough = maximum.is_none_or(|limit| limit as usize > files + 100);
    assert!(enough, "this needs {files} open files, the hard limit is {maximum:?}: raise it with ulimit -Hn");
}

/// Connections were closed at the limit of a head: none long before it, most of them soon after it.
#[track_caller]
fn at_the_limit(mut closed: Vec<Duration>) {
    closed.sort_unstable();
    let [Some(first), Some(median), Some(last)] =
        [closed.first(), closed.get(closed.len() / 2), closed.last()]
    else {
        panic!("none was closed")
    };
    println!("{} were closed after {first:?} to {last:?}, median {median:?}", closed.len());
    assert!(*first > HEAD / 2, "the first after {first:?}");
    assert!(*median < HEAD + MEDIAN_GRACE, "the median after {median:?}");
}

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.target.address()).await.expect("connected")
}

/// Sends byte after byte until the server has had enough. The time until then, and what it said.
async fn drip(mut stream: TcpStream, bytes: String, every: Duration) -> (Duration, String) {
    let start = Instant::now();
    let mut clock = interval(every);
    let mut answer = Vec::new();
    let (mut reading, mut writing) = stream.split();
    let send = async {
        for byte in bytes.as_bytes().iter().cycle() {
            clock.tick().await;
            if writing.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
    };
    let listen = async { while reading.read_buf(&mut answer).await.unwrap_or(0) > 0 {} };
    tokio::select! {
        () = listen => {}
        () = send => {}
    }
    (start.elapsed(), String::from_utf8_lossy(&answer).into_owned())
}

fn enqueue_head(server: &Server, length: &str) -> String {
    format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         {length}\r\n\r\n",
        server.target.operator
    )
}

#[tokio::test]
async fn campaign_three_hundred_slow_clients_cost_healthy_workers_nothing() {
    let server = Server::start(None, &[]).await;
    let pulse = Pulse::start(&server).await;
    let every = Duration::from_millis(200);
    let (mut heads, mut rest) = (JoinSet::new(), JoinSet::new());
    for n in 0..100 {
        // A head that never ends, and one that ends only in another hour.
        let endless = if n % 2 == 0 { "GET /healthz HTTP/1.1\r\nx: " } else { "x: y\r\n" };
        heads.spawn(drip(connect(&server).await, endless.to_string(), every));
        // A body that comes byte by byte.
        let mut body = connect(&server).await;
        body.write_all(enqueue_head(&server, "content-length: 1000000").as_bytes()).await.expect("sent");
        rest.spawn(drip(body, " ".to_string(), every));
        // Many answers, none of them read.
        let mut deaf = connect(&server).await;
        rest.spawn(async move {
            let asked = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1_000);
            let _ = deaf.write_all(asked.as_bytes()).await;
            std::future::pending::<()>().await;
            (Duration::ZERO, String::new())
        });
    }
    let mut closed = Vec::new();
    let all = async {
        while let Some(head) = heads.join_next().await {
            closed.push(head.expect("a slow head").0);
        }
    };
    timeout(HEAD + GRACE, all).await.expect("every head that never ends is closed");
    let beats = pulse.stop();
    let mib = server.peak_bytes() / MIB;
    println!("{mib} MiB");
    at_the_limit(closed);
    assert!(beats.answered > 100, "{beats:?}");
    assert!(mib < 250, "{mib} MiB");
    let (status, _) = server
        .target
        .call(&server.target.operator, "GET", "/v1/streams", &serde_json::Value::Null)
        .await
        .expect("answered");
    assert_eq!(status, 200);
}

#[tokio::test]
async fn campaign_ten_thousand_connections_that_say_nothing_are_closed() {
    const SILENT: usize = 10_000;
    raise_file_limit(SILENT);
    let server = Server::start(None, &[]).await;
    let pulse = Pulse::start(&server).await;
    let mut silent = JoinSet::new();
    for _ in 0..SILENT {
        let mut stream = connect(&server).await;
        let since = Instant::now();
        silent.spawn(async move { (stream.read(&mut [0; 16]).await, since.elapsed()) });
    }
    let mib = server.resident_bytes() / MIB;
    let mut closed = Vec::new();
    let all = async {
        while let Some(end) = silent.join_next().await {
            let (end, after) = end.expect("a connection");
            assert!(matches!(end, Ok(0) | Err(_)), "nothing was asked, nothing is said");
            closed.push(after);
        }
    };
    timeout(HEAD + GRACE, all).await.expect("every connection that says nothing is closed");
    let beats = pulse.stop();
    println!("{mib} MiB");
    at_the_limit(closed);
    assert!(beats.answered > 100, "{beats:?}");
    assert!(mib < 300, "{mib} MiB");
}

#[tokio::test]
async fn campaign_heads_that_never_end_take_no_more_than_their_budget_and_give_it_back() {
    const UNFINISHED: usize = 2_000;
    raise_file_limit(UNFINISHED);
    let server = Server::start(None, &[]).await;
    let pulse = Pulse::start(&server).await;
    let before = server.resident_bytes() / MIB;
    // Sixty kilobytes of headers, and no end.
    let head = format!(
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n{}",
        format!("x: {}\r\n", "y".repeat(995)).repeat(60)
    );
    let mut unfinished = JoinSet::new();
    for _ in 0..UNFINISHED {
        let mut stream = connect(&server).await;
        let head = head.clone();
        let since = Instant::now();
        unfinished.spawn(async move {
            let _ = stream.write_all(head.as_bytes()).await;
            let mut answer = Vec::new();
            while stream.read_buf(&mut answer).await.unwrap_or(0) > 0 {}
            (answer.starts_with(b"HTTP/1.1 503 "), since.elapsed())
        });
    }
    let (mut refused, mut closed) = (0, Vec::new());
    let all = async {
        while let Some(end) = unfinished.join_next().await {
            match end.expect("a connection") {
                (true, _) => refused += 1,
                (false, after) => closed.push(after),
            }
        }
    };
    timeout(HEAD + GRACE, all).await.expect("every head that never ends is closed");
    let (peak, after) = (server.peak_bytes() / MIB, server.resident_bytes() / MIB);
    let beats = pulse.stop();
    println!(
        "{UNFINISHED} unfinished heads, {refused} told so: {before} MiB before, {peak} at most, {after} after"
    );
    assert!(beats.answered > 100, "{beats:?}");
    assert!(refused > UNFINISHED / 2, "{refused}");
    at_the_limit(closed);
    assert!(peak < before + 120, "{before} MiB before, {peak} MiB at most");
    assert!(after < before + 80, "{before} MiB before, {after} MiB after");
}

/// A body of a hundred megabytes by chunks of one: what the server said, and how much it took.
async fn endless_body(mut stream: TcpStream, head: String) -> (String, usize) {
    let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    let (mut reading, mut writing) = stream.split();
    let mut answer = Vec::new();
    let mut sent = 0;
    let send = async {
        if writing.write_all(head.as_bytes()).await.is_err() {
            return;
        }
        for _ in 0..100 {
            if writing.write_all(&chunk).await.is_err() {
                return;
            }
            sent += 1;
        }
    };
    let listen = async { while reading.read_buf(&mut answer).await.unwrap_or(0) > 0 {} };
    tokio::join!(send, listen);
    (String::from_utf8_lossy(&answer).into_owned(), sent)
}

#[tokio::test]
async fn campaign_bodies_of_a_hundred_megabytes_are_refused_within_bounds() {
    let server = Server::start(None, &[]).await;
    let pulse = Pulse::start(&server).await;
    let mut bodies = JoinSet::new();
    for _ in 0..8 {
        bodies
            .spawn(endless_body(connect(&server).await, enqueue_head(&server, "transfer-encoding: chunked")));
    }
    let all = async {
        while let Some(body) = bodies.join_next().await {
            let (answer, sent) = body.expect("a body");
            assert!(answer.starts_with("HTTP/1.1 413 "), "after {sent} MiB: {answer:?}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer:?}");
        }
    };
    timeout(Duration::from_secs(60), all).await.expect("every one is refused and closed");
    pulse.stop();
    let mib = server.peak_bytes() / MIB;
    println!("8 bodies of 100 MiB at once: {mib} MiB at most");
    assert!(mib < 450, "{mib} MiB");
}

//! What the README tells to paste works when it is pasted.

mod program;

use program::Server;
use std::process::Command;

#[test]
fn the_curl_tour_goes_from_enqueue_to_complete() {
    let readme = include_str!("../../../README.md");
    let (_, rest) = readme.split_once("```sh\n").expect("a block to paste");
    let (tour, _) = rest.split_once("```").expect("its end");
    let server = Server::start(&[]);
    let tour = tour.replace("http://127.0.0.1:8080", &server.url);
    assert!(tour.contains(&server.url) && tour.lines().count() == 10, "ten lines: {tour}");
    let ran = Command::new("bash")
        .args(["-e", "-c", &tour])
        .current_dir(server.data().parent().expect("where it was started"))
        .output()
        .expect("bash and curl");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{ran:?}");
    let answers: Vec<serde_json::Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    let [enqueued, claimed, beat, completed, job] = &answers[..] else { panic!("{said}") };
    assert_eq!(enqueued["job_id"], claimed["job_id"]);
    assert_eq!(
        (&beat["ok"], &completed["ok"], &completed["ack"]),
        (&true.into(), &true.into(), &true.into())
    );
    assert_eq!((&job["status"], &job["result"]), (&"SUCCEEDED".into(), &serde_json::json!({ "sent": true })));
}

//! What can be seen and done while an agent runs.

use crate::program::Server;
use crate::yard::{GATES, Yard, blueprint, eventually, lay_out, marked};
use fernery_engine::door::stop_watch;
use std::time::Duration;

#[test]
fn a_cancelled_run_is_gone_within_seconds_and_its_work_is_captured() {
    // With a lease as long as it is by default.
    let flags = ["--azolla", "yard.toml", "--repos", "app=repo#main"];
    let yard = Yard { server: Server::start_in(lay_out(&blueprint(GATES)), &flags) };
    yard.ticket("yard", "t", "mock: write new.txt new\\n\nmock: deaf");
    yard.until("t", "seen at work", |objective| objective["progress"]["note"] == "I do not listen");
    let home = format!("HOME={}", yard.server.data().display());
    assert!(!marked(&home).is_empty());
    let since = stop_watch();
    yard.server.run(["ticket", "cancel", "t"]).exits(0);
    assert!(eventually(|| marked(&home).is_empty()));
    let took = since.elapsed();
    // A heartbeat of the default lease comes after 20 s: whoever waited for it would not be here yet.
    assert!(took < Duration::from_secs(18), "it took {took:?}");
    let ended = yard.judged("t");
    assert_eq!(ended["output_bundles"][0]["metadata"]["outcome"], "CANCELLED", "{ended:#}");
    assert!(ended["output_bundles"][0]["content"].as_str().unwrap().contains("+new"));
    assert!(yard.branches().is_empty());
}

//! The pages in a real browser: Chromium, driven as a person would use it. What needs no browser is tested in `tests/pages`.

#[path = "../../../fernery-engine/tests/support/fresh_database.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod fresh_database;
#[path = "../http/inbox.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod inbox;
#[path = "../http/pipeline.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod pipeline;
#[path = "../../../fernery-engine/tests/support/port.rs"]
mod port;
#[path = "../support/program/mod.rs"]
mod program;
#[path = "../http/server.rs"]
mod server;
#[path = "../pages/worked.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod worked;
#[path = "../agents/yard.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod yard;

mod access;
mod bulk;
mod chromium;
mod comments;
mod dead;
mod hostile;
mod keys;
mod live;
mod names;
mod others;
mod pictures;
mod sign_in;
mod stage;
mod ticket;
mod triage;
mod without_script;

//! The pages over a real socket, as a browser without script asks for them: signing in, who sees what, what forms need, and what
//! other programs on this machine get.

#[path = "../../../fernery-engine/tests/support/fresh_database.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod fresh_database;
#[path = "../http/inbox.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod inbox;
#[path = "../http/pipeline.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod pipeline;
#[path = "../http/server.rs"]
mod server;

mod azollas;
mod browser;
mod bulk;
mod comments;
mod forms;
mod headers;
mod journal;
mod live;
mod manifests;
mod meanwhile;
mod names;
mod now;
mod queue;
mod queue_drawn;
mod redacted;
mod review;
mod sign_in;
mod templates;
mod tickets;
mod tokens;
mod triage;
mod worked;

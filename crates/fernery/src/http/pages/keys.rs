//! `GET /keys`: what the keyboard does.

use super::frame::Frame;
use super::visit::{Shown, Visit};
use askama::Template;

#[derive(Template)]
#[template(path = "keys.html")]
struct Keys {
    frame: Frame,
}

pub(super) async fn show(visit: Visit) -> Shown {
    visit.show(&Keys { frame: visit.frame("Keys") })
}

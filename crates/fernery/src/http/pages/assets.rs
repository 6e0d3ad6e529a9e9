//! The files of the pages. Their paths carry the hash of their content, so that browsers may keep them for ever.

use super::reply::PageReply;
use super::visit::{Shown, Visit};
use crate::http::problem::{Code, Refusal};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// One file.
pub(super) struct Asset {
    path: LazyLock<String>,
    content_type: &'static str,
    body: &'static [u8],
}

macro_rules! asset {
    ($name:literal, $kind:literal, $content_type:literal) => {
        Asset {
            path: LazyLock::new(|| path($name, $kind, include_bytes!(concat!("assets/", $name, ".", $kind)))),
            content_type: $content_type,
            body: include_bytes!(concat!("assets/", $name, ".", $kind)),
        }
    };
}

pub(super) static STYLE: Asset = asset!("style", "css", "text/css; charset=utf-8");
pub(super) static SCRIPT: Asset = asset!("app", "js", "text/javascript; charset=utf-8");
pub(super) static LIVE: Asset = asset!("live", "js", "text/javascript; charset=utf-8");
pub(super) static ICON: Asset = asset!("icon", "svg", "image/svg+xml");

static ALL: [&Asset; 4] = [&STYLE, &SCRIPT, &LIVE, &ICON];

fn path(name: &str, kind: &str, body: &[u8]) -> String {
    let hash = Sha256::digest(body);
    let hash = fernery_core::hex(&hash[..8]);
    format!("/assets/{name}-{hash}.{kind}")
}

impl Asset {
    pub(super) fn path(&'static self) -> &'static str {
        &self.path
    }
}

/// `GET /assets/{name}`
pub(super) async fn read(visit: Visit) -> Shown {
    let wanted = format!("/assets/{}", visit.param);
    match ALL.iter().find(|asset| *asset.path == wanted) {
        Some(asset) => Ok(PageReply::asset(asset.content_type, asset.body)),
        None => Err(Refusal::new(
            Code::NotFound,
            "this version of the server has no such file; load the page again",
        )),
    }
}

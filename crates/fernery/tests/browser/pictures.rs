//! Pictures of the main pages, for people who look at them: into `target/tmp/pictures`. Those that the documentation shows also go
//! where `FERNERY_PICTURES` says (`scripts/pictures`).

use crate::chromium::Chromium;
use crate::stage::{Stage, Words};
use base64::Engine as _;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Those that the documentation shows.
const KEPT: [&str; 6] = ["now", "board", "review", "review-dark", "dead", "phone"];

/// A picture is loaded with the page that shows it.
const BYTES_MAX: usize = 120 << 10;

#[tokio::test]
async fn the_main_pages_have_their_picture_taken() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    let kept = std::env::var_os("FERNERY_PICTURES").map(PathBuf::from);
    std::fs::create_dir_all(&folder).expect("a folder");
    let (stage, browser) = (Stage::set(Words::plain()), Chromium::start().await);
    let site = stage.sign_in(&browser).await;
    browser.tools("Emulation.setScrollbarsHidden", json!({ "hidden": true })).await;
    // A ticket leads to its last run.
    browser.open(&format!("{site}/review/WEB-1")).await;
    let review = browser.path().await;
    let beside = format!("{review}?view=split");
    let pages = [
        ("now", "/", "light", 1_280, 800),
        ("board", "/board", "dark", 1_280, 800),
        ("ticket", "/ticket/WEB-3", "light", 1_280, 900),
        ("approve", "/approve/WEB-6", "light", 1_280, 900),
        ("review", review.as_str(), "light", 1_280, 1_000),
        ("review-dark", beside.as_str(), "dark", 1_280, 1_000),
        ("streams", "/streams", "light", 1_280, 560),
        ("jobs", "/jobs", "dark", 1_280, 800),
        ("dead", "/dead", "light", 1_280, 640),
        ("phone", "/", "dark", 390, 844),
    ];
    for (name, path, theme, width, height) in pages {
        browser.theme(theme).await;
        browser.screen(width, height, 1).await;
        browser.open(&format!("{site}{path}")).await;
        browser.see("main h1").await;
        let taken = browser.tools("Page.captureScreenshot", json!({ "format": "webp", "quality": 85 })).await;
        let picture = taken["data"].as_str().expect("a picture");
        let picture = base64::engine::general_purpose::STANDARD.decode(picture).expect("base64");
        assert!(picture.len() > 5_000, "{name}: an empty page?");
        assert!(picture.len() < BYTES_MAX, "{name}: {} bytes", picture.len());
        let file = format!("{name}.webp");
        std::fs::write(folder.join(&file), &picture).expect("written");
        if let Some(kept) = kept.as_ref().filter(|_| KEPT.contains(&name)) {
            std::fs::write(kept.join(&file), &picture).expect("written");
        }
    }
    browser.close().await;
}

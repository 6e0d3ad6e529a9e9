//! Pages for everybody: axe looks at every page of the table in both themes, and nothing runs out of a narrow screen.

use crate::chromium::Chromium;
use crate::stage::{Stage, Words};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The text of axe-core, fetched the first time.
fn axe() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/axe-core");
    let found = Command::new(script).output().expect("the script starts");
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let path = String::from_utf8(found.stdout).expect("a path");
    std::fs::read_to_string(path.trim()).expect("axe-core")
}

/// What keeps people out of the page that is shown.
async fn found(browser: &Chromium) -> Vec<String> {
    let ask = "axe.run({ resultTypes: ['violations'] }).then((found) => JSON.stringify(found.violations))";
    let said = browser
        .tools("Runtime.evaluate", json!({ "expression": ask, "awaitPromise": true, "returnByValue": true }))
        .await;
    let text = said["result"]["value"].as_str().unwrap_or_else(|| panic!("axe says nothing: {said}"));
    let found: Vec<Value> = serde_json::from_str(text).expect("a list");
    let grave = found.iter().filter(|it| it["impact"] == "serious" || it["impact"] == "critical");
    let line = |it: &Value| {
        let nodes = it["nodes"].as_array().expect("nodes").iter();
        let nodes: Vec<String> =
            nodes.take(3).map(|node| format!("{} {}", node["target"], node["failureSummary"])).collect();
        format!("{}: {} {}", it["id"], it["help"], nodes.join(" | "))
    };
    grave.map(line).collect()
}

/// What the first view of Now may cost, with its files.
const FIRST_VIEW_BYTES_MAX: i64 = 100_000;

async fn first_view_is_small(browser: &Chromium, site: &str) {
    browser.tools("Network.enable", json!({})).await;
    browser.tools("Network.setCacheDisabled", json!({ "cacheDisabled": true })).await;
    browser.open(&format!("{site}/")).await;
    let sum = "return ['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind))
        .reduce((sum, of) => [sum[0] + of.transferSize, sum[1] + 1], [0, 0])";
    let sum = browser.script(sum).await;
    let (bytes, files) = (sum[0].as_i64().expect("bytes"), sum[1].as_i64().expect("files"));
    assert!(files >= 4 && bytes > 5_000, "that is not all of it: {sum}");
    assert!(bytes < FIRST_VIEW_BYTES_MAX, "{bytes} bytes in {files} files");
    browser.tools("Network.setCacheDisabled", json!({ "cacheDisabled": false })).await;
}

/// Opens what is closed, so that everything is looked at.
const OPEN_ALL: &str =
    "document.querySelectorAll('main details').forEach((details) => { details.open = true; })";

#[tokio::test]
async fn no_page_keeps_anybody_out_in_either_theme() {
    let (stage, browser) = (Stage::set(Words::plain()), Chromium::start().await);
    let site = stage.sign_in(&browser).await;
    first_view_is_small(&browser, &site).await;
    let places = stage.places(&browser, &site).await;
    browser.tools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": axe() })).await;
    let mut wrong = Vec::new();
    for place in &places {
        browser.open(&format!("{site}{}", place.path)).await;
        browser.script(OPEN_ALL).await;
        for theme in ["light", "dark"] {
            browser.theme(theme).await;
            let found = found(&browser).await;
            wrong.extend(found.into_iter().map(|it| format!("{} ({theme}): {it}", place.row)));
        }
    }
    // What only somebody who does something sees.
    let mut look = async |what: &str| {
        for theme in ["light", "dark"] {
            browser.theme(theme).await;
            wrong.extend(found(&browser).await.into_iter().map(|it| format!("{what} ({theme}): {it}")));
        }
    };
    browser.open(&format!("{site}/board")).await;
    browser.keys("/").await;
    browser.see("#palette[open]").await;
    browser.keys("greet").await;
    browser.see("#palette-found a").await;
    look("the palette").await;
    browser.open(&format!("{site}/review/WEB-1")).await;
    browser.draws("#!/bin/sh", "#!/bin/sh").await;
    browser.see("form.comment").await;
    look("the form of a comment").await;
    browser.open(&format!("{site}/tokens")).await;
    browser.fill("#name", "gpu-box").await;
    browser.fill("#days", "many").await;
    browser.press("Make").await;
    browser.reads("main", "a whole number of days").await;
    look("a refused form").await;
    browser.fill("#days", "1").await;
    browser.press("Make").await;
    browser.reads("main", "It is shown this once").await;
    look("a token that was made").await;
    browser.open(&format!("{site}/approve/WEB-6")).await;
    browser.client.delete_all_cookies().await.expect("signed out");
    browser.press("Approve exactly this").await;
    browser.reads("main", "I have signed in: go on with what I typed").await;
    look("signing in again").await;
    assert!(wrong.is_empty(), "{} found:\n{}", wrong.len(), wrong.join("\n"));
    // The control: axe does see what is wrong, in the theme where it is.
    browser.script("document.querySelector('main').innerHTML = '<p class=\"control\">pale</p>'").await;
    browser.script("const p = document.querySelector('.control'); p.style.color = '#eee'; p.style.background = '#fff'").await;
    assert!(found(&browser).await.iter().any(|it| it.contains("color-contrast")));
    browser.close().await;
}

#[tokio::test]
async fn no_page_runs_out_of_a_phone_or_of_a_screen_at_double_size() {
    let (stage, browser) = (Stage::set(Words::plain()), Chromium::start().await);
    let site = stage.sign_in(&browser).await;
    let places = stage.places(&browser, &site).await;
    let mut wrong = Vec::new();
    for (what, width, height, zoom) in [("390 px", 390, 844, 1), ("1280 px at 200 %", 1_280, 1_024, 2)] {
        browser.screen(width, height, zoom).await;
        for place in &places {
            browser.open(&format!("{site}{}", place.path)).await;
            browser.script(OPEN_ALL).await;
            let wide = browser
                .script(
                    "const all = document.documentElement;
                     if (all.scrollWidth <= innerWidth) return null;
                     const out = [...document.querySelectorAll('body *')]
                         .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.wide, pre, .sunk, .skip'));
                     return `${all.scrollWidth} of ${innerWidth}: ` + out.slice(0, 3).map((e) => e.outerHTML.slice(0, 120)).join(' | ')",
                )
                .await;
            if let Some(wide) = wide.as_str() {
                wrong.push(format!("{} at {what}: {wide}", place.row));
            }
            // Whoever reads on has the screen for the page.
            let top = "scrollTo(0, document.body.scrollHeight); const top = document.querySelector('.top').getBoundingClientRect();
                       return scrollY < top.height || top.bottom <= innerHeight / 6";
            if browser.script(top).await != true {
                wrong.push(format!("{} at {what}: the top stays in the way", place.row));
            }
        }
    }
    assert!(wrong.is_empty(), "{} run out:\n{}", wrong.len(), wrong.join("\n"));
    browser.close().await;
}

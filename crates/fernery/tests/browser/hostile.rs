//! Words and work of people and agents who mean harm, on every page: shown, and nothing comes of it.

use crate::chromium::Chromium;
use crate::server::TestServer;
use crate::stage::{Stage, Words};
use crate::worked::{Made, approved, attempt, new_file};
use serde_json::{Value, json};

/// What would run, load or lead elsewhere if a page took it for more than text.
const BAD: &str = "<script>alert(1);window.harmed=1</script><img src=http://evil.test/x onerror=alert(2)>\
                   \"'><svg onload=alert(3)><a href=javascript:alert(4)>x</a>{{7*7}}</textarea></title>";

/// Bytes of the longest line of a patch.
const LONG_LINE: usize = 960_000;

/// What steers a terminal, or turns what is read around.
const STEERS: &str = "\u{202e}\u{1b}[31m";

/// Listens to what the policy of a page refuses, from its first byte.
const LISTEN: &str = "window.refused = []; addEventListener('securitypolicyviolation', (it) => refused.push(it.blockedURI + ' ' + it.violatedDirective));";

/// Nothing of what was written has become a part of the page, has run or has asked for anything.
async fn is_inert(browser: &Chromium, site: &str, place: &str) {
    let harm = "return [
        ...(window.harmed ? ['a script ran'] : []),
        ...window.refused,
        ...[...document.querySelectorAll('script:not([src^=\"/assets/\"]), iframe, object, embed, base, svg:not(.spark, .flow), [onload], [onerror], [style]')].map((e) => e.outerHTML),
        ...[...document.querySelectorAll('[src], [href], [action]')].map((e) => e.getAttribute('src') ?? e.getAttribute('href') ?? e.getAttribute('action'))
            .filter((to) => !/^[\\/#?]/.test(to) || to.startsWith('//')),
        ...(/[\\u001b\\u202e]/.test(document.body.innerText) ? ['a character that steers'] : []),
    ]";
    let harm = browser.script(harm).await;
    assert_eq!(harm, Value::Array(Vec::new()), "{place}");
    for said in browser.logged("browser").await {
        assert_ne!(said["level"], "SEVERE", "{place}: {said}");
    }
    for entry in browser.logged("performance").await {
        let entry: Value = serde_json::from_str(entry["message"].as_str().expect("text")).expect("an event");
        let asked = &entry["message"]["params"];
        // The page that a browser starts with asks too, and is none of ours.
        if entry["message"]["method"] == "Network.requestWillBeSent"
            && asked["documentURL"].as_str().is_some_and(|page| page.starts_with(site))
        {
            let url = asked["request"]["url"].as_str().expect("an address");
            // The browser's own picture beside a field for a day, which asks nobody.
            assert!(url.starts_with(site) || url.starts_with("data:"), "{place} asks {url}");
        }
    }
}

/// Where more was written than what the stage has everywhere, and the word before it.
const WRITTEN: [(&str, &str); 9] = [
    ("/review/WEB-1", "commented"),
    ("/ticket/WEB-1", "confirmed"),
    ("/ticket/WEB-1", "merged"),
    ("/ticket/WEB-6", "labelled"),
    ("/ticket/WEB-6", "noted"),
    ("/ticket/WEB-3", "answered"),
    ("/tokens", "named"),
    ("/azolla/yard", "described"),
    ("/azollas", "described anew"),
];

/// Writes wherever people can: comments, notes, answers, labels and metadata, names of tokens, texts of blueprints.
fn write_everywhere(stage: &Stage) {
    let bad = |word: &str| format!("{word} {BAD}");
    let yard = &stage.yard;
    let run = yard.objective("WEB-1")["runs"][1]["run_id"].as_str().expect("a run").to_string();
    let comment = json!({ "file": "names.txt", "first_line": 1, "text": bad("commented") });
    yard.post(&format!("/v1/runs/{run}/comments"), comment);
    let run = |args: &[&str]| stage.server().run(args.iter().copied()).exits(0);
    run(&["ticket", "confirm", "WEB-1", "--note", &bad("confirmed")]);
    run(&["ticket", "merge", "WEB-1", "--yes", "--note", &bad("merged")]);
    run(&["ticket", "answer", "WEB-3", &bad("answered"), "--yes"]);
    let (_, was) = stage.server().read("/v1/objectives/WEB-6");
    let mut metadata = was["objective"]["metadata"].clone();
    metadata["labels"] = json!([bad("labelled")]);
    metadata["remark"] = json!(bad("noted"));
    let changed =
        stage.server().patch("operator.token", "/v1/objectives/WEB-6", &json!({ "metadata": metadata }));
    assert_eq!(changed.0, 200, "{}", changed.1);
    yard.post("/v1/tokens", json!({ "role": "viewer", "name": bad("named") }));
    let file = stage.server().dir.path().join("yard.toml");
    let text = std::fs::read_to_string(&file).expect("the blueprint");
    let described = |word: &str| std::fs::write(&file, format!("description = '''{}'''\n{text}", bad(word)));
    described("described").expect("written");
    run(&["azolla", "reload"]);
    described("described anew").expect("written");
}

#[tokio::test]
async fn hostile_words_are_shown_on_every_page_and_do_nothing() {
    // Some of these fields take 200 characters. What steers is refused wherever people write, and taken from programs.
    let line = |text: &str| format!("{text} {BAD}").chars().take(190).collect();
    let prose = |text: &str| format!("{text} {BAD}");
    let raw = |text: &str| format!("{text} {STEERS}{BAD}").chars().take(190).collect();
    let stage = Stage::set(Words { line, prose, raw });
    write_everywhere(&stage);
    let browser = Chromium::start().await;
    browser.tools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": LISTEN })).await;
    let site = stage.sign_in(&browser).await;
    let places = stage.places(&browser, &site).await;
    let shows = async |path: &str| {
        browser.open(&format!("{site}{path}")).await;
        browser.script("document.querySelectorAll('details').forEach((it) => { it.open = true; })").await;
        is_inert(&browser, &site, path).await;
        browser.words("main").await
    };
    let mut showed = 0;
    for place in &places {
        showed += usize::from(shows(&place.path).await.contains("<script>alert(1)"));
    }
    assert!(showed >= 10, "only {showed} of {} pages show it", places.len());
    for (path, said) in WRITTEN {
        let words = shows(path).await;
        assert!(
            words.contains(&format!("{said} <script>alert(1)")),
            "{path} does not show {said:?}: {words}"
        );
    }
    // What comes by itself goes the same way.
    browser.open(&format!("{site}/board")).await;
    let task = json!({ "objective_id": "LATE-1", "azolla_id": "tasks", "title": format!("Late {BAD}") });
    stage.yard.post("/v1/objectives", task);
    browser.reads("#board", "Late <script>").await;
    is_inert(&browser, &site, "/board, live").await;
    // And what is found.
    browser.keys("/").await;
    browser.see("#palette[open]").await;
    browser.keys("<script>").await;
    browser.reads("#palette-found", "<script>").await;
    is_inert(&browser, &site, "the palette").await;
    browser.close().await;
}

#[tokio::test]
async fn a_patch_with_long_lines_and_ten_thousand_files_is_shown_and_does_nothing() {
    let server = TestServer::start().await;
    let browser = Chromium::start().await;
    browser.tools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": LISTEN })).await;
    let site = browser.sign_in(&server, &server.operator).await;
    approved(&server, "WEB-1", BAD).await;
    let bad = format!("{BAD}{STEERS}");
    // A patch has room for one line of a megabyte. What steers takes six bytes in JSON, where there is less room.
    let long = format!("{}{}", bad.repeat(200), "<b>x</b>".repeat(LONG_LINE / 8));
    let patch =
        [new_file("page.html", [&bad].into_iter()), new_file("long.txt", [&long].into_iter())].concat();
    assert!(long.len() > LONG_LINE, "{}", long.len());
    let lines = attempt(&server, "WEB-1", Made { patch: &patch, log: &long, passes: false }).await;
    let files: String = (0..10_000)
        .map(|n| format!("diff --git a/<b>{n:04}.js b/<b>{n:04}.js\nold mode 100644\nnew mode 100755\n"))
        .collect();
    let files = attempt(&server, "WEB-1", Made { patch: &files, log: &bad, passes: true }).await;
    for path in [
        format!("/review/{lines}"),
        format!("/review/{lines}?view=split"),
        format!("/review/{lines}?file=0"),
        format!("/review/{files}"),
        format!("/review/{files}?from=9500"),
        "/ticket/WEB-1".to_string(),
    ] {
        browser.open(&format!("{site}{path}")).await;
        let words = browser.words("main").await;
        assert!(words.contains("<script>alert(1)"), "{path}: {}", &words[..words.len().min(400)]);
        is_inert(&browser, &site, &path).await;
        let wide = browser.script("return document.documentElement.scrollWidth - innerWidth").await;
        assert!(wide.as_i64().is_some_and(|wide| wide <= 0), "{path} is {wide} px too wide");
    }
    browser.close().await;
    server.stop().await;
}

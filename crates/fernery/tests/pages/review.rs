//! What a run made, on one page, and what a person decides about it.

use crate::browser::{Browser, Site, form, signed_in, unescaped, words};
use crate::server::{Answer, TestServer};
use crate::worked::{COMMIT, Made, PATCH, approved, approved_under, attempt, new_file, tried};
use fernery_core::pipeline::landing::Fit;
use std::time::Duration;

crate::on_both_backends!(
    a_run_is_shown_with_its_patch_its_gates_and_its_base,
    a_run_is_confirmed_once_by_somebody_who_signed_in_a_short_while_ago,
    a_merge_confirms_first_and_goes_on_where_it_stopped,
    what_conflicts_is_reopened_with_the_conflict_as_its_note,
    hostile_work_is_shown_and_does_nothing,
    runs_are_listed_newest_first,
    files_stand_in_a_tree_beside_the_patch_in_the_order_of_risk,
);

/// A server with a ticket whose patch waits for a person.
async fn finished(server: &TestServer) -> (Browser, Site, String) {
    approved(server, "WEB-1", "Greet the world").await;
    let run = attempt(server, "WEB-1", Made { patch: PATCH, log: "ok 1\nok 2\n", passes: true }).await;
    let (browser, site) = signed_in(server, &server.operator).await;
    (browser, site, run)
}

async fn ticket(server: &TestServer) -> serde_json::Value {
    server.get("/v1/objectives/WEB-1").await.json()
}

fn decisions(ticket: &serde_json::Value) -> Vec<&str> {
    let all = ticket["decisions"].as_array().expect("decisions");
    all.iter().filter_map(|decision| decision["kind"].as_str()).collect()
}

async fn a_run_is_shown_with_its_patch_its_gates_and_its_base(server: TestServer) {
    let (mut browser, site, run) = finished(&server).await;
    let path = format!("/review/{run}");
    let page = browser.get(&site, &path).await;
    assert_eq!(page.status, 200, "{page:?}");
    let text = words(&page.body);
    for wanted in
        ["Greet the world", "- it says hello", "Says hello to the world.", "ok 2", "not tried on main yet"]
    {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    // The test that goes comes before the script, though the patch has it last.
    let place = |path: &str| page.body.find(&format!("<span class=\"path\"><bdi>{path}")).expect("a file");
    assert!(place("tests/greet.sh") < place("greet.sh</bdi>"));
    assert!(page.body.contains("deletes a test"));
    assert!(page.body.contains("echo &quot;Hello, <ins>${1:-world}!&quot;</ins>"), "{}", page.body);
    assert!(page.body.contains("<tr class=d><td>2<td><td>"), "{}", page.body);

    let beside = browser.get(&site, &format!("{path}?view=split")).await.body;
    assert!(beside.contains("<tr><td>2<td class=d>") && beside.contains("<td>2<td class=a>"), "{beside}");
    let alone = browser.get(&site, &format!("{path}?file=1")).await.body;
    assert!(alone.contains("id=\"file-1\"") && !alone.contains("id=\"file-0\""), "{alone}");
    for none in ["file=7", "from=9", "file=1&row=999999", "file=x&row=y&from=z", "view=?"] {
        assert_eq!(browser.get(&site, &format!("{path}?{none}")).await.status, 200, "{none}");
    }
    // What is brought up to date is short.
    let part = browser.get(&site, &format!("{path}?part=main")).await.body;
    assert!(part.contains("id=\"standing\"") && !part.contains("class=\"diff"), "{part}");

    tried(&server, "WEB-1", Fit::Merges, None).await;
    let text = words(&browser.get(&site, &path).await.body);
    assert!(text.contains("merges with main"), "{text}");
    let by_ticket = browser.get(&site, "/review/WEB-1").await;
    assert_eq!((by_ticket.status, by_ticket.headers["location"].as_str()), (303, path.as_str()));
    assert_eq!(browser.get(&site, "/review/nothing").await.status, 404);
    let since = browser.get(&site, &format!("{path}?since=nothing")).await;
    assert_eq!(since.status, 404, "{since:?}");
    server.stop().await;
}

async fn a_run_is_confirmed_once_by_somebody_who_signed_in_a_short_while_ago(server: TestServer) {
    let (mut browser, site, run) = finished(&server).await;
    let (path, confirm) = (format!("/review/{run}"), format!("/review/{run}/confirm"));
    let page = browser.get(&site, &path).await;
    server.advance(Duration::from_secs(16 * 60)).await;
    let old = browser.submit(&site, &page, &confirm, &[("note", "looks good")]).await;
    assert!(old.status != 303 && words(&old.body).contains("younger than 15 minutes"), "{old:?}");
    assert_eq!(ticket(&server).await["unconfirmed"], true);
    browser.sign_in(&site, &server.operator).await;
    let page = browser.get(&site, &path).await;
    for _ in 0..2 {
        let done = browser.submit(&site, &page, &confirm, &[("note", "looks good")]).await;
        assert_eq!((done.status, done.headers["location"].as_str()), (303, path.as_str()), "{done:?}");
    }
    let after = ticket(&server).await;
    assert_eq!((&after["unconfirmed"], decisions(&after)), (&false.into(), vec!["APPROVE", "CONFIRM"]));
    let after = browser.get(&site, &path).await.body;
    assert!(!after.contains(&confirm), "nothing is left to confirm: {after}");
    server.stop().await;
}

async fn a_merge_confirms_first_and_goes_on_where_it_stopped(server: TestServer) {
    let (mut browser, site, run) = finished(&server).await;
    tried(&server, "WEB-1", Fit::Merges, None).await;
    let (path, merge) = (format!("/review/{run}"), format!("/review/{run}/merge"));
    let page = browser.get(&site, &path).await;
    let fields = form(&page.body, &merge);
    let field = |name: &str| {
        let found = fields.iter().find(|(other, _)| other == name);
        found.unwrap_or_else(|| panic!("no {name}: {fields:?}")).1.clone()
    };
    assert_eq!(field("tip"), COMMIT);
    assert_ne!(field("act_id"), field("confirm_id"));
    // Another patch than the one that was shown is not merged.
    let other =
        browser.submit(&site, &page, &merge, &[("patch_sha256", &"0".repeat(64)), ("note", "a & b")]).await;
    assert!((400..500).contains(&other.status), "{other:?}");
    assert!(
        other.body.contains("role=\"alert\"") && other.body.contains("value=\"a &#38; b\""),
        "{}",
        other.body
    );
    assert_eq!(ticket(&server).await["landing"]["state"], "OPEN");
    // It is confirmed by now, as if the server had died in between: the same form goes on.
    assert_eq!(ticket(&server).await["unconfirmed"], false);
    for _ in 0..2 {
        let done = browser.submit(&site, &page, &merge, &[("note", "a & b")]).await;
        assert_eq!((done.status, done.headers["location"].as_str()), (303, path.as_str()), "{done:?}");
    }
    let after = ticket(&server).await;
    assert_eq!(after["landing"]["state"], "WANTED");
    assert_eq!(decisions(&after), ["APPROVE", "CONFIRM", "MERGE"]);
    server.stop().await;
}

async fn what_conflicts_is_reopened_with_the_conflict_as_its_note(server: TestServer) {
    let (mut browser, site, run) = finished(&server).await;
    tried(&server, "WEB-1", Fit::Conflicts, Some("main changed greet.sh too")).await;
    let (path, reopen) = (format!("/review/{run}"), format!("/review/{run}/reopen"));
    let page = browser.get(&site, &path).await;
    assert!(!page.body.contains(&format!("{path}/merge")), "what conflicts is not merged");
    let note = |page: &Answer| {
        let rest = page.body.split("<textarea id=\"reopen-note\"").nth(1).expect("a note").split_once('>');
        unescaped(rest.expect("a text").1.split("</textarea>").next().expect("an end"))
    };
    assert_eq!(note(&page), "main changed greet.sh too");
    let typed = "<b>the footer</b>\nis missing";
    let stale = browser.submit(&site, &page, &reopen, &[("digest", &"0".repeat(64)), ("note", typed)]).await;
    assert_eq!(stale.status, 409, "{stale:?}");
    assert_eq!(note(&stale), typed, "nothing that was typed is lost");
    for _ in 0..2 {
        let done = browser.submit(&site, &page, &reopen, &[("note", typed)]).await;
        assert_eq!((done.status, done.headers["location"].as_str()), (303, "/ticket/WEB-1"), "{done:?}");
    }
    let after = ticket(&server).await;
    assert_eq!(
        (&after["objective"]["status"], decisions(&after)),
        (&"TODO".into(), vec!["APPROVE", "REOPEN"])
    );

    // The second attempt knows the first.
    let second = attempt(&server, "WEB-1", Made { patch: PATCH, log: "no", passes: false }).await;
    let page = browser.get(&site, &format!("/review/{second}")).await.body;
    assert!(page.contains("what changed since") && page.contains(&format!("href=\"{path}\"")), "{page}");
    let first = words(&browser.get(&site, &path).await.body);
    assert!(first.contains("This is not the last run"), "{first}");
    assert!(!first.contains("Reopen and approve"), "{first}");
    server.stop().await;
}

async fn hostile_work_is_shown_and_does_nothing(server: TestServer) {
    let bad = "<script>alert(1)</script>\u{1b}[31m\u{202e}\"'&<!--";
    approved(&server, "WEB-1", "<script>alert(2)</script>").await;
    let long = "x".repeat(700_000);
    let patch =
        [new_file("a<b>&\"c.txt", [bad].into_iter()), new_file("long.txt", [&long].into_iter())].concat();
    let patch = patch.replace("a/a<b>&\"c.txt b/a<b>&\"c.txt", "\"a/a<b>&\\\"c.txt\" \"b/a<b>&\\\"c.txt\"");
    let patch = patch.replace("+++ b/a<b>&\"c.txt", "+++ \"b/a<b>&\\\"c.txt\"");
    let run = attempt(&server, "WEB-1", Made { patch: &patch, log: bad, passes: true }).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    for path in ["", "?view=split", "?file=0", "/log"] {
        let page = browser.get(&site, &format!("/review/{run}{path}")).await;
        assert_eq!(page.status, 200, "{path}");
        for alive in ["<script>", "\u{1b}", "\u{202e}", "<!--", "<b>"] {
            assert!(!page.body.contains(alive), "{path}: {alive:?}");
        }
        assert!(page.body.len() < 60_000, "{path}: {} bytes", page.body.len());
    }
    let page = browser.get(&site, &format!("/review/{run}")).await.body;
    assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("U+202E"), "{page}");
    assert!(
        page.contains("more bytes in this line") && page.contains("a&lt;b&gt;&amp;&quot;c.txt"),
        "{page}"
    );
    server.stop().await;
}

#[tokio::test]
async fn ten_thousand_files_come_page_by_page() {
    let server = TestServer::start().await;
    approved(&server, "WEB-1", "Touch everything").await;
    let patch: String = (0..10_000)
        .map(|n| format!("diff --git a/f{n:04} b/f{n:04}\nold mode 100644\nnew mode 100755\n"))
        .collect();
    let run = attempt(&server, "WEB-1", Made { patch: &patch, log: "", passes: true }).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let own = format!("/review/{run}");
    for (from, next) in [(0, Some(500)), (500, Some(1_000)), (9_500, None)] {
        let page = browser.get(&site, &format!("{own}?from={from}")).await;
        assert_eq!(page.status, 200);
        assert!(page.body.len() < 1 << 20, "{} bytes", page.body.len());
        let places = page.body.split("<details class=\"file\" id=\"file-").skip(1);
        let places: Vec<usize> = places
            .map(|file| file.split('"').next().and_then(|n| n.parse().ok()).expect("a place"))
            .collect();
        assert_eq!(places, (from..from + 500).collect::<Vec<_>>());
        let link =
            page.body.split("<a class=\"button\" href=\"").nth(1).and_then(|link| link.split('#').next());
        assert_eq!(link.map(unescaped), next.map(|next| format!("{own}?from={next}")));
    }
    server.stop().await;
}

#[tokio::test]
async fn twenty_two_thousand_rows_come_small_over_the_wire() {
    let server = TestServer::start().await;
    approved(&server, "WEB-1", "Rewrite it").await;
    let line = |n: usize| format!("    let value_{n} = call({n}, \"{}\");", n * 7);
    let patch: String = (0..11)
        .map(|file| new_file(&format!("src/f{file}.rs"), (0..2_000).map(|n| line(file * n))))
        .collect();
    assert!(patch.len() < 1 << 20, "{}", patch.len());
    let run = attempt(&server, "WEB-1", Made { patch: &patch, log: "", passes: true }).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    for view in ["", "?view=split"] {
        let path = format!("/review/{run}{view}");
        let page = browser.get(&site, &path).await;
        assert_eq!(page.body.matches("call(").count(), 22_000, "every row is there");
        let head = browser.head(&site, "GET", &path) + "accept-encoding: gzip\r\n\r\n";
        let zipped = browser.send(&site, &head).await;
        let bytes: usize = zipped.headers["content-length"].parse().expect("a length");
        assert!(bytes < 400_000 && bytes * 5 < page.body.len(), "{bytes} of {}", page.body.len());
    }
    server.stop().await;
}

#[tokio::test]
async fn a_viewer_reads_and_does_not_act() {
    let server = TestServer::start().await;
    let (_, _, run) = finished(&server).await;
    let made = server.post("/v1/tokens", &serde_json::json!({ "name": "v", "role": "viewer" })).await.json();
    let (mut browser, site) = signed_in(&server, made["token"].as_str().expect("a token")).await;
    let page = browser.get(&site, &format!("/review/{run}")).await;
    assert!(page.status == 200 && !page.body.contains(&format!("/review/{run}/confirm")), "{page:?}");
    let key = form(&page.body, "/sign-out").remove(0).1;
    for act in ["confirm", "merge", "reopen"] {
        let fields = [("form_key", key.as_str()), ("objective_id", "WEB-1"), ("note", "x")];
        assert_eq!(browser.post(&site, &format!("/review/{run}/{act}"), &fields).await.status, 403, "{act}");
    }
    server.stop().await;
}

async fn runs_are_listed_newest_first(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = words(&browser.get(&site, "/runs").await.body);
    assert!(page.contains("No run has been judged yet"), "{page}");
    approved(&server, "WEB-1", "Greet").await;
    let first = attempt(&server, "WEB-1", Made { patch: PATCH, log: "<i>no</i>", passes: false }).await;
    let second = attempt(&server, "WEB-1", Made { patch: "", log: "no again", passes: false }).await;
    let page = browser.get(&site, "/runs").await.body;
    let place = |run: &str| page.find(&format!("href=\"/review/{run}\"")).expect("a link");
    assert!(place(&second) < place(&first), "{page}");
    assert!(page.contains("/ticket/WEB-1") && !page.contains("<i>"), "{page}");
    assert_eq!(browser.get(&site, "/runs?cursor=x").await.status, 400);
    server.stop().await;
}

async fn files_stand_in_a_tree_beside_the_patch_in_the_order_of_risk(server: TestServer) {
    let own = "extends = \"mec\"\nazolla_id = \"mec\"\n[limits]\nreview_limit = 0\n[[gates]]\nkind = \"schema\"\n\
               [[gates]]\nkind = \"command\"\nname = \"prices\"\nargv = [\"make\", \"prices\"]\ntimeout = \"10s\"\nprotects = [\"prices/\"]\n";
    approved_under(&server, own, "WEB-1", "Prices").await;
    let hostile = "src/deep/er/<b>&.txt";
    let paths = ["Jenkinsfile", "src/deep/er/a.rs", hostile, "src/z.rs", "prices/list.csv"];
    let patch: String = paths.iter().map(|path| new_file(path, ["x"].iter())).collect();
    let run = attempt(&server, "WEB-1", Made { patch: &patch, log: "", passes: true }).await;
    let work = server.get(&format!("/v1/runs/{run}")).await.json()["work_order_id"]
        .as_str()
        .expect("an id")
        .to_string();
    let gates = server.get(&format!("/v1/workorders/{work}")).await.json()["gates"].clone();
    assert!(gates.as_array().expect("gates").iter().any(|gate| gate["name"] == "prices"), "{gates}");
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let path = format!("/review/{run}");
    let page = browser.get(&site, &path).await.body;
    let tree = |page: &str| {
        let rest = page.split("<nav class=\"tree\"").nth(1).expect("a tree").to_string();
        rest.split("</nav>").next().expect("an end").to_string()
    };
    let first = tree(&page);
    let said = words(&first);
    // By name, folders first; folders with one folder in them in one line.
    let places =
        ["prices/ 1 file list.csv", "src/ 3 files", "deep/er/ 2 files", "a.rs", "z.rs", "Jenkinsfile"];
    let mut rest = said.as_str();
    for place in places {
        rest = rest.split_once(place).unwrap_or_else(|| panic!("{place}: {said}")).1;
    }
    assert!(!first.contains("<b>") && first.contains("&lt;b&gt;&amp;.txt"), "{first}");
    // What the gates of this run rely on comes first in the patch, and the tree says why; what others rely on does not.
    assert_eq!(first.matches("gates rely on it").count(), 1, "{said}");
    assert!(said.contains("list.csv +1 −0 gates rely on it"), "{said}");
    assert!(first.contains("href=\"#file-0\"><bdi>list.csv"), "{first}");
    assert!(first.matches("<details open>").count() == 3 && !first.contains("viewed</span>"), "{first}");
    let seen = [("file", "src/z.rs"), ("viewed", "yes")];
    let page = browser.get(&site, &path).await;
    assert_eq!(browser.submit(&site, &page, &format!("{path}/viewed?file=4"), &seen).await.status, 303);
    let after = words(&tree(&browser.get(&site, &path).await.body));
    assert!(after.contains("z.rs +1 −0 new viewed"), "{after}");
    let alone = browser.get(&site, &format!("{path}?file=1")).await.body;
    assert!(!alone.contains("class=\"tree\""), "one file needs no tree");
    server.stop().await;
}

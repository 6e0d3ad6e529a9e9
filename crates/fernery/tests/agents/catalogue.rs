//! Hostile patches, P1 to P24 of the catalogue, handed in by a worker that may hand in whatever it likes: each is refused with a
//! reason, and the operator's repository has the tree and the refs that it had.

use crate::yard::{Yard, eventually, git};
use serde_json::{Value, json};

const NOTHING: &str = "0000000000000000000000000000000000000000";
const ID: &str = "1111111111111111111111111111111111111111";

/// A new file of one line.
fn adds(path: &str, mode: &str, line: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\nnew file mode {mode}\nindex {NOTHING}..{ID}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{line}\n"
    )
}

fn file(path: &str) -> String {
    adds(path, "100644", "x")
}

/// A change of the greeting, whose ids are what git says.
fn greets(new: &str, ids: (&str, &str), hunk: &str) -> String {
    let (old, id) = ids;
    format!(
        "diff --git a/greeting.txt b/greeting.txt\nindex {old}..{id} 100644\n--- a/greeting.txt\n+++ b/greeting.txt\n{hunk}\n-Hello\n+{new}\n"
    )
}

fn hand_in(yard: &Yard, id: &str, content: &str) -> (u16, Value) {
    let metadata = json!({"outcome": "PATCH", "branch_name": format!("azolla/{id}"), "pr_description_draft": "It greets"});
    hand_in_with(yard, id, content, metadata)
}

fn hand_in_with(yard: &Yard, id: &str, content: &str, metadata: Value) -> (u16, Value) {
    let mut claimed = None;
    assert!(eventually(|| {
        claimed = yard.server.claim("diazotroph:PATCH_DIAZOTROPH:app");
        claimed.is_some()
    }));
    let claimed = claimed.expect("it was just there");
    assert_eq!(claimed["payload"]["workorder"]["objective_id"], id);
    let result = json!({"title": "A patch", "content": content, "notes": "", "metadata": metadata});
    let body = json!({
        "worker_id": "w1", "job_id": claimed["job_id"], "attempt_id": claimed["attempt_id"],
        "lease_token": claimed["lease_token"], "stream": claimed["stream"], "message_id": claimed["message_id"],
        "result": result,
    });
    yard.server.post("worker.token", "/internal/worker/complete", &body)
}

#[test]
fn every_hostile_patch_is_refused_and_changes_nothing() {
    // The gates of `mec` itself.
    let blueprint = "extends = \"mec\"\nazolla_id = \"yard\"\n[retry]\ngate_failures = 0\n";
    let yard = Yard::open(blueprint);
    let repo = yard.repo();
    let old = git(&repo, &["rev-parse", "HEAD:greeting.txt"]);
    std::fs::write(repo.parent().unwrap().join("good"), "Goodbye\n").unwrap();
    let new = git(repo.parent().unwrap(), &["hash-object", "good"]);
    let good = greets("Goodbye", (&old, &new), "@@ -1 +1 @@");
    let many: String = (0..300).map(|n| file(&format!("f{n}"))).collect();
    let patches: Vec<(&str, String)> = vec![
        ("P1", file("../x")),
        ("P2", file("/etc/x")),
        ("P3-config", file(".git/config")),
        ("P3-upper", file("a/.GIT/config")),
        ("P3-invisible", file(".git\u{200c}/config")),
        ("P3-short", file("git~1/config")),
        ("P4", adds("link", "120000", "greeting.txt")),
        ("P5", adds("dir", "120000", "/tmp") + &file("dir/x")),
        ("P6", adds("link", "120000", "/etc/passwd")),
        ("P7", adds("sub", "160000", "Subproject commit 1111111111111111111111111111111111111111")),
        ("P7-modules", file(".gitmodules")),
        ("P8", adds("run", "100755", "x")),
        ("P8-setuid", adds("run", "104755", "x")),
        ("P9", "diff --git a/greeting.txt b/.github/x\nsimilarity index 100%\nrename from greeting.txt\nrename to .github/x\n".into()),
        ("P10-ci", file(".github/workflows/ci.yml")),
        ("P10-owners", file("docs/CODEOWNERS")),
        ("P10-gate", file("fernery.toml")),
        ("P11", file(".gitattributes")),
        ("P12-return", file("x\r")),
        ("P12-bidi", file("x\u{202e}y")),
        ("P13", adds("x", "100644", "x").replace("a/x b/x", "\"a/\\056\\056/x\" \"b/\\056\\056/x\"")),
        ("P14", file("x").replace("+++ b/x", "+++ b/.git/hooks/x")),
        ("P15", file("x") + &file("x")),
        ("P16", file("Readme") + &file("README")),
        ("P17-count", file("x").replace("+1 @@", "+1,2 @@")),
        ("P17-offset", greets("Goodbye", (&old, &new), "@@ -3 +3 @@")),
        ("P17-content", greets("Goodnight", (&old, &new), "@@ -1 +1 @@")),
        ("P18", format!("diff --git a/b b/b\nnew file mode 100644\nindex {NOTHING}..{ID}\nGIT binary patch\nliteral 10000000000\nzcmZ\n\nliteral 0\nHcmV?d00001\n\n")),
        ("P19-files", many),
        ("P19-size", "x".repeat(900_000)),
        ("P20-empty", String::new()),
        ("P20-space", " \n\t\n".into()),
        ("P22", good.replace('\n', "\r\n")),
        ("P23", format!("From: somebody\nSubject: x\n\n---\n{good}--\n2.40\n\n{}", file(".git/x"))),
        ("P24", file("--exec=touch")),
    ];
    let state = || {
        (git(&repo, &["for-each-ref"]), git(&repo, &["status", "--porcelain"]), git(&repo, &["write-tree"]))
    };
    let before = state();
    for (id, patch) in &patches {
        yard.ticket("yard", id, "nothing");
        let (status, answer) = hand_in(&yard, id, patch);
        assert_eq!(status, 200, "{id}: {answer}");
        let judged = yard.judged(id);
        assert_eq!(judged["runs"][0]["gate_result"], "FAIL", "{id}: {judged:#}");
        let said = judged["runs"][0]["gate_reason"].as_str().unwrap();
        assert!(said.starts_with("gate patch: ") || said.starts_with("gate applies: "), "{id}: {said}");
        assert_eq!(state(), before, "{id}");
    }
    // P21: what its work started from is gone. That says nothing about the patch.
    yard.ticket("yard", "P21", "nothing");
    let lost = git(&repo, &["rev-parse", "HEAD"]);
    let object = repo.join(".git/objects").join(&lost[..2]).join(&lost[2..]);
    eventually(|| yard.objective("P21")["objective"]["status"] == "IN_PROGRESS");
    std::fs::rename(&object, repo.join("away")).unwrap();
    assert_eq!(hand_in(&yard, "P21", &good).0, 200);
    let judged = yard.judged("P21");
    assert!(judged["runs"][0]["gate_reason"].as_str().unwrap().contains("is gone"), "{judged:#}");
    std::fs::rename(repo.join("away"), &object).unwrap();
    // And a patch that is as it should be passes, so the others were refused for what they are.
    yard.ticket("yard", "good", "nothing");
    assert!(eventually(|| yard.objective("good")["objective"]["status"] == "IN_PROGRESS"));
    git(&repo, &["commit", "-q", "--allow-empty", "-m", "meanwhile"]);
    assert_eq!(hand_in(&yard, "good", &good).0, 200);
    let judged = yard.judged("good");
    assert_eq!(judged["runs"][0]["gate_result"], "PASS");
    assert!(judged["runs"][0]["evidence"].to_string().contains("main has moved on to"), "{judged:#}");
    assert_eq!(git(&repo, &["show", "azolla/good:greeting.txt"]), "Goodbye");

    // The same patch, without what stands beside a patch.
    for (id, metadata, why) in [
        (
            "no-branch",
            json!({"outcome": "PATCH", "pr_description_draft": "It greets"}),
            "metadata.branch_name is missing",
        ),
        (
            "silent",
            json!({"outcome": "PATCH", "branch_name": "azolla/silent"}),
            "metadata.pr_description_draft is missing",
        ),
    ] {
        yard.ticket("yard", id, "nothing");
        assert_eq!(hand_in_with(&yard, id, &good, metadata).0, 200);
        let judged = yard.judged(id);
        let said = judged["runs"][0]["gate_reason"].as_str().unwrap();
        assert!(said.starts_with("gate patch: ") && said.contains(why), "{id}: {said}");
    }
    // Whoever does not say what it came to has made what was asked for: that leaves a branch too.
    yard.ticket("yard", "plain", "nothing");
    let beside = json!({"branch_name": "azolla/plain", "pr_description_draft": "It greets"});
    assert_eq!(hand_in_with(&yard, "plain", &good, beside).0, 200);
    assert_eq!(yard.judged("plain")["objective"]["status"], "DONE");
    assert_eq!(git(&repo, &["show", "azolla/plain:greeting.txt"]), "Goodbye");
}

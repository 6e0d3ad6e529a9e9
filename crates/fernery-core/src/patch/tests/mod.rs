use super::policy::{PROTECTED, PatchPolicy, fault};
use super::{Body, Mode, read};

/// Written by git, of every kind of change there is.
const WHOLE: &str = include_str!("whole.patch");

const ID: &str = "4cb29ea38f70d7c61b2a3a25b02e3bdf44905402";
const OTHER: &str = "ddc897f039f57aa91e16efa6dfde386c4255206f";
const NOTHING: &str = "0000000000000000000000000000000000000000";

/// A new file of one line.
fn adds(path: &str, mode: &str, line: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\nnew file mode {mode}\nindex {NOTHING}..{ID}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{line}\n"
    )
}

/// A change of one line.
fn changes(path: &str) -> String {
    let hunk = "@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n";
    format!("diff --git a/{path} b/{path}\nindex {ID}..{OTHER} 100644\n--- a/{path}\n+++ b/{path}\n{hunk}")
}

fn flaw(patch: &str) -> String {
    fault(patch, &PatchPolicy::default()).unwrap_or_else(|| panic!("it was let through:\n{patch}"))
}

#[test]
fn what_git_writes_is_read() {
    let patch = read(WHOLE).expect("a patch");
    let files: Vec<_> = patch.files.iter().map(|f| (f.path.as_str(), f.before, f.after)).collect();
    let (file, run, link) = (Some(Mode::File), Some(Mode::Executable), Some(Mode::Symlink));
    assert_eq!(
        files,
        [
            ("a.txt", file, file),
            ("bin", file, file),
            ("empty", file, None),
            ("gone.txt", file, None),
            ("link", None, link),
            ("long", file, file),
            ("my dir/plain name", file, file),
            ("my dir/ü ber.txt", file, file),
            ("new_empty", None, file),
            ("newbin", None, file),
            ("nonl", file, file),
            ("run.sh", file, run),
        ]
    );
    let body = |n: usize| patch.files[n].body.clone();
    assert_eq!(body(0), Body::Text { insertions: 1, deletions: 1, link: String::new() });
    assert_eq!(body(1), Body::Binary { bytes: 905 });
    assert_eq!(body(4), Body::Text { insertions: 1, deletions: 0, link: "a.txt".into() });
    assert_eq!(body(5), Body::Text { insertions: 2, deletions: 2, link: String::new() });
    assert_eq!(body(9), Body::Binary { bytes: 3 });
    assert_eq!(body(11), Body::Same);
    let policy = PatchPolicy { symlinks: true, executables: true, ..PatchPolicy::default() };
    assert_eq!(fault(WHOLE, &policy), None);
    let few = PatchPolicy { max_files: 11, ..policy };
    assert_eq!(fault(WHOLE, &few).as_deref(), Some("touches 12 files; 11 are allowed"));
}

#[test]
fn a_patch_that_is_cut_off_anywhere_is_refused_or_ends_before_a_file() {
    let mut readable = Vec::new();
    for at in (0..WHOLE.len()).filter(|at| WHOLE.is_char_boundary(*at)) {
        if read(&WHOLE[..at]).is_ok() {
            readable.push(at);
        }
    }
    let places = |start: &str| -> Vec<usize> {
        let line = format!("\n{start}");
        WHOLE.match_indices(&line).map(|(at, _)| at + 1).collect()
    };
    // What is gone is the tail: a file, or a later hunk of one. The first hunk of a file has to be there.
    let files = places("diff --git ");
    let is_first =
        |hunk: &usize| WHOLE[..*hunk].lines().next_back().is_some_and(|line| line.starts_with("+++ "));
    let later_hunks: Vec<usize> = places("@@ ").into_iter().filter(|hunk| !is_first(hunk)).collect();
    assert_eq!((files.len(), later_hunks.len()), (11, 1), "the patch has both");
    let mut whole = [files, later_hunks].concat();
    whole.sort_unstable();
    assert_eq!(readable, whole);
}

#[test]
fn no_path_leads_elsewhere() {
    for (path, why) in [
        ("../x", "leads elsewhere"),
        ("a/../../x", "leads elsewhere"),
        ("./x", "leads elsewhere"),
        ("/etc/passwd", "an absolute path"),
        ("a//b", "an empty part"),
        (".git/config", "git's own"),
        ("a/.git/hooks/x", "git's own"),
        (".GIT/config", "git's own"),
        (".git./config", "another system"),
        (".git /config", "another system"),
        (".git::$INDEX_ALLOCATION/x", "another system"),
        ("git~1/config", "another system"),
        ("GIT~2/config", "another system"),
        ("．git/config", "git's own"),
        (".gitmodules", "links other repositories"),
        ("sub/.GitModules", "links other repositories"),
        ("gitmod~1", "another system"),
        ("CODEOWNERS.", "another system"),
        (".gitattributes::$DATA", "another system"),
        ("--exec=x", "begins with a dash"),
        ("a/-rf", "begins with a dash"),
        ("hook\u{202e}txt", "cannot be seen"),
        (".git\u{200c}/config", "cannot be seen"),
    ] {
        assert!(
            flaw(&adds(path, "100644", "x")).contains(why),
            "{path}: {}",
            flaw(&adds(path, "100644", "x"))
        );
        assert!(flaw(&changes(path)).contains(why), "{path}");
    }
    let long = "x".repeat(256);
    assert!(flaw(&changes(&long)).contains("at most 255 bytes"));
    assert!(flaw(&changes(&"x/".repeat(2_100))).contains("1 to 4096 bytes"));
}

#[test]
fn quotes_hide_nothing() {
    let quoted = |name: &str| {
        format!(
            "diff --git \"a/{name}\" \"b/{name}\"\nindex {ID}..{OTHER} 100644\n--- \"a/{name}\"\n+++ \"b/{name}\"\n@@ -1 +1 @@\n-a\n+b\n"
        )
    };
    for (name, why) in [
        ("\\056\\056/x", "would not write"),
        ("\\056\\056/ü", "leads elsewhere"),
        ("\\056git/ü", "git's own"),
        ("a\\nb", "cannot be seen"),
        ("a\\015", "cannot be seen"),
        ("a\\000b", "cannot be seen"),
        ("a\\\\b", "a backslash"),
        ("\\377", "not UTF-8"),
        ("\\9", "would not write"),
        ("\\x41", "would not write"),
    ] {
        assert!(flaw(&quoted(name)).contains(why), "{name}: {}", flaw(&quoted(name)));
    }
    assert_eq!(read(&quoted("\\303\\274")).map(|p| p.files[0].path.clone()), Ok("ü".to_string()));
}

/// git looks for a second name where the first has a quote, and goes by that one if nothing else names the file.
#[test]
fn a_name_with_a_quote_in_it_hides_no_other_name() {
    let empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
    for hidden in ["CODEOWNERS", ".gitmodules"] {
        let forged = format!("{hidden} \"b/{hidden}\" x");
        let new =
            format!("diff --git a/{forged} b/{forged}\nnew file mode 100644\nindex {NOTHING}..{empty}\n");
        assert!(flaw(&new).contains("would put in quotes"), "{}", flaw(&new));
    }
    assert!(flaw(&changes("a\\b")).contains("would put in quotes"));
    assert!(flaw(&changes("a\tb")).contains("would put in quotes"));
}

#[test]
fn only_plain_files_come_unless_the_gate_says_otherwise() {
    assert!(flaw(&adds("x", "100755", "#!/bin/sh")).contains("executables = true"));
    assert!(flaw(&adds("x", "104755", "x")).contains("no file has the mode"));
    assert!(flaw(&adds("x", "160000", "Subproject commit")).contains("another repository"));
    let link = |to: &str| adds("a/b", "120000", to) + "\\ No newline at end of file\n";
    assert!(flaw(&link("c")).contains("symlinks = true"));
    let policy = PatchPolicy { symlinks: true, ..PatchPolicy::default() };
    for to in ["c", "../c", "./c/d"] {
        assert_eq!(fault(&link(to), &policy), None, "{to}");
    }
    for (to, why) in [
        ("/etc/passwd", "no path in the repository"),
        ("../../x", "out of the repository"),
        ("../.git/hooks/x", "git's own"),
        ("..", "1 to 4096 bytes"),
        ("c/../../x", "up behind a name"),
    ] {
        let found = fault(&link(to), &policy).unwrap_or_default();
        assert!(found.contains(why), "{to}: {found}");
    }
    assert!(fault(&adds("a", "120000", "c"), &policy).is_some(), "with an end it is no link that git wrote");
    let becomes = "diff --git a/x b/x\nold mode 100644\nnew mode 120000\n";
    assert!(flaw(becomes).contains("as two changes"));
    // It is 100644 in the tree, whatever is said of it.
    let said = format!(
        "diff --git a/x b/x\nold mode 100755\nnew mode 100755\nindex {ID}..{OTHER}\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    );
    assert!(flaw(&said).contains("does not change"));
    let empty_link = "diff --git a/x b/x\nnew file mode 120000\nindex ".to_string()
        + NOTHING
        + "..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n";
    assert!(fault(&empty_link, &policy).unwrap_or_default().contains("in one line"));
    let long = changes("x").replace(ID, &"a".repeat(64)).replace(OTHER, &"b".repeat(64));
    assert!(flaw(&long).contains("full object ids"));
    let setuid = "diff --git a/x b/x\nold mode 100644\nnew mode 104755\n";
    assert!(flaw(setuid).contains("no file has the mode"));
}

#[test]
fn nothing_is_written_behind_a_link_or_twice() {
    let policy = PatchPolicy { symlinks: true, ..PatchPolicy::default() };
    let link = adds("a", "120000", "b") + "\\ No newline at end of file\n";
    for (patch, why) in [
        (link.clone() + &adds("a/x", "100644", "x"), "is no folder"),
        (adds("a/x", "100644", "x") + &link, "is no folder"),
        (link.clone() + &changes("A/x"), "is no folder"),
        (changes("a") + &changes("a"), "same file"),
        (changes("a") + &changes("A"), "same file"),
        (changes("e\u{301}") + &changes("\u{e9}"), "same file"),
        (changes("straße") + &changes("STRASSE"), "same file"),
    ] {
        let found = fault(&patch, &policy).unwrap_or_default();
        assert!(found.contains(why), "{found}");
    }
    let gone = |path: &str| {
        format!(
            "diff --git a/{path} b/{path}\ndeleted file mode 100644\nindex {ID}..{NOTHING}\n--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        )
    };
    let makes_room = gone("a") + &adds("a/x", "100644", "x");
    assert_eq!(fault(&makes_room, &policy), None, "a file makes room for a folder");
    assert_eq!(fault(&(link.clone() + &gone("a/x")), &policy), None, "and the other way round");
    assert_eq!(fault(&(gone("a") + &link), &policy), None, "a file becomes a link");
    assert!(fault(&(gone("a") + &gone("a")), &policy).is_some());
}

#[test]
fn what_decides_what_runs_is_touched_only_where_the_gate_says_so() {
    for pattern in PROTECTED {
        let path = if pattern.ends_with('/') { format!("sub/{pattern}x") } else { pattern.to_string() };
        assert!(flaw(&changes(pattern.trim_end_matches('/'))).contains("is protected"), "{pattern}");
        assert!(flaw(&changes(&path)).contains("is protected"), "{path}");
        assert!(flaw(&changes(&path.to_uppercase())).contains("is protected"), "{path}");
        let policy = PatchPolicy { allow: vec![pattern.to_string()], ..PatchPolicy::default() };
        assert_eq!(fault(&changes(&path), &policy), None, "{path}");
    }
    assert!(flaw(&changes("docs/CODEOWNERS")).contains("is protected"));
    assert_eq!(fault(&changes("src/.github.rs"), &PatchPolicy::default()), None);
    let one = PatchPolicy { allow: vec![".github/workflows/docs.yml".into()], ..PatchPolicy::default() };
    assert_eq!(fault(&changes(".github/workflows/docs.yml"), &one), None);
    assert!(fault(&changes(".github/workflows/ci.yml"), &one).is_some());
}

#[test]
fn only_one_reading_is_possible() {
    let good = changes("a");
    assert_eq!(fault(&good, &PatchPolicy::default()), None);
    for (from, to, why) in [
        ("--- a/a", "--- a/b", "another file"),
        ("+++ b/a", "+++ b/b", "another file"),
        ("+++ b/a", "+++ /dev/null", "another file"),
        ("--- a/a", "--- a/a\t2020-01-01", "and nothing else"),
        ("+++ b/a", "+++ b/a\t", "and nothing else"),
        ("diff --git a/a b/a", "diff --git a/a b/b", "names one file"),
        ("diff --git a/a b/a", "diff --git a/a b/a ", "two names"),
        ("diff --git", "From: someone\n\ndiff --git", "begins with `diff --git`"),
        ("index", "similarity index 100%\nrename from a\nrename to b\nindex", "--no-renames"),
        ("index 4cb29ea38f70d7c61b2a3a25b02e3bdf44905402", "index 4cb29ea", "full object ids"),
        (" 100644\n", "\n", "its mode is missing"),
        ("index", "new file mode 100644\nindex", "said twice"),
        ("index", "old mode 100644\nnew mode 100755\nindex", "said twice"),
        ("@@ -1,2 +1,2 @@", "@@ -1,3 +1,2 @@", "cut off"),
        ("@@ -1,2 +1,2 @@", "@@ -1,2 +1,3 @@", "cut off"),
        ("@@ -1,2 +1,2 @@", "@@ -1,1 +1,1 @@", "the hunk changes nothing"),
        ("@@ -1,2 +1,2 @@", "@@ -1,2 +2,2 @@", "where the hunks before it lead"),
        ("@@ -1,2 +1,2 @@", "@@ -0,2 +0,2 @@", "where the hunks before it lead"),
        ("@@ -1,2 +1,2 @@", "@@ -1,2 +1,99999999999 @@", "a hunk begins with"),
        ("@@ -1,2 +1,2 @@", "@@@ -1,2 +1,2 @@@", "nothing changes"),
        (" one\n", "\n", "begins with a space, - or +"),
        ("-two\n", "-two\n-three\n", "other lines than it says"),
        (" one\n", "\\ No newline at end of file\n one\n", "begins with a space, - or +"),
        (" one\n", " one\n\\ No newline at end of file\n", "behind the last one"),
        ("+TWO\n", "+TWO\n-- \n2.47.3\n", "begins with `diff --git`"),
        ("+TWO\n", "+TWO\n\n", "begins with `diff --git`"),
        ("+TWO\n", "+TWO", "cut off"),
    ] {
        assert_eq!(good.matches(from).count(), 1, "{from}");
        let found = flaw(&good.replace(from, to));
        assert!(found.contains(why), "{from} -> {to}: {found}");
    }
    let lies = format!(
        "diff --git a/x b/x\nnew file mode 100644\nindex {ID}..{OTHER}\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n"
    );
    assert!(flaw(&lies).contains("say otherwise"));
    let reversed = format!("{good}@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n");
    assert!(flaw(&reversed).contains("where the hunks before it lead"));
    assert_eq!(flaw(""), "line 1: the patch is empty");
    assert_eq!(flaw(" \n\t\n"), "line 1: the patch is empty");
    assert!(flaw(&adds("x", "100644", &"x".repeat(1 << 20))).contains("1048576 are allowed"));
    assert!(flaw("diff --git a/x b/x\nold mode 100644\nnew mode 100644\n").contains("does not change"));
    assert!(flaw("diff --git a/x b/x\n").contains("its mode is missing"));
    let silent = format!("diff --git a/x b/x\nindex {ID}..{OTHER} 100644\n");
    assert!(flaw(&silent).contains("its content is missing"));
}

#[test]
fn what_is_packed_is_as_large_as_it_says_and_no_larger_than_may_be() {
    let start = WHOLE.find("diff --git a/newbin").expect("it is there");
    let end = start + WHOLE[start..].find("diff --git a/nonl").expect("it is there");
    let good = &WHOLE[start..end];
    assert_eq!(fault(good, &PatchPolicy::default()), None);
    let line = good.lines().find(|line| line.starts_with("Kc")).or(good.lines().nth(5)).expect("a line");
    for (from, to, why) in [
        ("literal 3", "literal 4", "another size"),
        ("8352675d67aed6625ece79af41c27fdb4ee2e867", ID, "not the object that is named"),
        ("literal 3", "literal 2", "another size"),
        ("literal 3", "literal 99999999999", "larger than is allowed"),
        ("literal 3", "literal -3", "and a size"),
        ("literal 3", "letter 3", "and a size"),
        ("literal 3", "delta 3", "a file to start from"),
        (line, &line[..line.len() - 1], "is not base 85"),
        (line, "Kc\"\"\"\"\"\"\"\"", "is not base 85"),
        (line, "A00000", "cannot be unpacked"),
    ] {
        let found = flaw(&good.replacen(from, to, 1));
        assert!(found.contains(why), "{from} -> {to}: {found}");
    }
    // A few bytes that say they make ten gigabytes: a delta's head, packed by hand as one stored block.
    let bomb = "diff --git a/x b/x\nindex ".to_string()
        + ID
        + ".."
        + OTHER
        + " 100644\nGIT binary patch\n"
        + &stored_delta();
    assert!(flaw(&bomb).contains("larger than is allowed"), "{}", flaw(&bomb));
}

/// A delta from 1 byte to 10 GiB, packed without compression.
fn stored_delta() -> String {
    let delta = [0x01, 0x80, 0x80, 0x80, 0x80, 0x28];
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(&delta, 0);
    const DIGITS: &[u8] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    let mut line = String::from((b'A' + packed.len() as u8 - 1) as char);
    for four in packed.chunks(4) {
        let mut word = [0; 4];
        word[..four.len()].copy_from_slice(four);
        let mut value = u32::from_be_bytes(word);
        let mut five = [0; 5];
        for digit in five.iter_mut().rev() {
            *digit = DIGITS[(value % 85) as usize];
            value /= 85;
        }
        line.push_str(std::str::from_utf8(&five).expect("ASCII"));
    }
    format!("delta {}\n{line}\n\n", delta.len())
}

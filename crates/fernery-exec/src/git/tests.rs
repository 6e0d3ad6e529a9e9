use super::applied_patch::{AppliedPatch, NotApplied, Saying};
use super::call::Git;
use super::clone::Clone;
use super::repository::{Repository, is_branch_name};
use super::take_patch::{NoPatch, TakenPatch, take_patch};
use fernery_core::Timestamp;
use fernery_core::patch::read;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]);
    let output = command.current_dir(folder).args(args).output().expect("git is installed");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_string()
}

/// An operator's repository with a few files, and room beside it.
struct OperatorsRepository {
    folder: TempDir,
    repository: Repository,
    base: String,
}

impl OperatorsRepository {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let repo = folder.path().join("repo");
        fs::create_dir(&repo).expect("a folder");
        git(&repo, &["init", "-q", "."]);
        for (name, text) in
            [("a.txt", "one\ntwo\nthree\n"), ("run.sh", "#!/bin/sh\n"), ("gone", "x\n"), ("empty", "")]
        {
            fs::write(repo.join(name), text).expect("written");
        }
        fs::write(repo.join("crlf.txt"), "a\r\nb\r\n").expect("written");
        fs::write(repo.join(".gitignore"), "ignored\n").expect("written");
        symlink("a.txt", repo.join("link")).expect("a link");
        fs::set_permissions(repo.join("run.sh"), fs::Permissions::from_mode(0o755)).expect("a mode");
        git(&repo, &["add", "-A"]);
        git(&repo, &["commit", "-q", "-m", "base"]);
        let base = git(&repo, &["rev-parse", "HEAD"]);
        Self { repository: Repository::open(&repo).expect("a repository"), base, folder }
    }

    fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    async fn clone(&self, name: &str) -> Clone {
        let of = (self.base.as_str(), self.base.as_str());
        Clone::make(&self.folder.path().join(name), &self.repository, of, "azolla/T-1", &[])
            .await
            .expect("a clone")
    }

    async fn applied(&self, patch: &str) -> Result<AppliedPatch, NotApplied> {
        let read = read(patch).unwrap_or_else(|flaw| panic!("{flaw}\n{patch}"));
        AppliedPatch::make(
            &self.folder.path().join("patch.git"),
            &self.repository,
            &self.base,
            (patch, &read),
        )
        .await
    }

    fn refs(&self) -> String {
        git(&self.repo(), &["for-each-ref"])
    }
}

async fn taken(clone: &Clone) -> TakenPatch {
    take_patch(clone).await.expect("taken")
}

#[tokio::test]
async fn a_clone_shares_objects_and_nothing_else() {
    let place = OperatorsRepository::new();
    let clone = place.clone("run").await;
    assert_eq!(fs::read_to_string(clone.tree.join("a.txt")).expect("a file"), "one\ntwo\nthree\n");
    assert_eq!(git(&clone.tree, &["status", "--porcelain"]), "");
    assert_eq!(git(&clone.tree, &["log", "--format=%H"]), place.base);
    assert_eq!(git(&clone.tree, &["branch", "--show-current"]), "azolla/T-1");
    for dir in [clone.tree.join(".git"), clone.trusted.clone()] {
        let folders = fs::read_dir(dir.join("objects")).expect("a folder").flatten();
        let mut names: Vec<_> =
            folders.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        assert_eq!(names, ["info", "pack"], "no object is copied");
        assert_eq!(fs::read_dir(dir.join("objects/pack")).expect("a folder").count(), 0, "nor packed");
    }
    git(&clone.tree, &["config", "core.hooksPath", "/elsewhere"]);
    git(&clone.tree, &["branch", "another"]);
    assert!(!place.refs().contains("another"));
    assert_eq!(taken(&clone).await.patch, "", "nothing changed");
}

#[tokio::test]
async fn what_an_agent_leaves_is_taken_whole_and_applies_to_the_same_tree() {
    let place = OperatorsRepository::new();
    let clone = place.clone("run").await;
    let tree = &clone.tree;
    fs::write(tree.join("a.txt"), "one\n2\nthree").expect("written");
    fs::write(tree.join("crlf.txt"), "a\r\nc\r\n").expect("written");
    fs::remove_file(tree.join("gone")).expect("removed");
    fs::rename(tree.join("run.sh"), tree.join("moved.sh")).expect("moved");
    fs::set_permissions(tree.join("empty"), fs::Permissions::from_mode(0o755)).expect("a mode");
    fs::create_dir_all(tree.join("deep/er")).expect("a folder");
    for name in
        ["deep/er/new", "--exec=x", "with space", "tab\there", "quote\"d", "ümlaut", "emoji🌱", "$(id)", "*"]
    {
        fs::write(tree.join(name), format!("{name}\n")).expect("written");
    }
    fs::write(tree.join("nothing"), "").expect("written");
    fs::write(tree.join("bytes"), [0, 159, 146, 150, 0]).expect("written");
    fs::write(tree.join("latin1.txt"), b"caf\xe9\n").expect("written");
    fs::write(tree.join("ignored"), "not mine").expect("written");
    symlink("a.txt", tree.join("link2")).expect("a link");
    // Half of it committed, some staged, some not.
    git(tree, &["add", "deep", "a.txt"]);
    git(tree, &["commit", "-q", "-m", "by itself"]);
    git(tree, &["add", "bytes"]);
    let found = taken(&clone).await;
    assert!(!found.patch.contains("not mine") && found.patch.contains("+2"));
    // By git alone, for some of these names are refused later.
    let scratch = place.folder.path().join("scratch");
    fs::create_dir(&scratch).expect("a folder");
    git(&scratch, &["clone", "-q", "--no-checkout", "../repo", "."]);
    git(&scratch, &["read-tree", &place.base]);
    fs::write(scratch.join("patch"), &found.patch).expect("written");
    git(&scratch, &["apply", "--cached", "patch"]);
    assert_eq!(git(&scratch, &["write-tree"]), found.tree);
    for name in ["--exec=x", "tab\there", "quote\"d", "*"] {
        fs::remove_file(tree.join(name)).expect("removed");
    }
    let found = taken(&clone).await;
    match place.applied(&found.patch).await {
        Ok(applied) => assert_eq!(applied.tree, found.tree),
        Err(error) => panic!("{error:?}\n{}", found.patch),
    }
}

#[tokio::test]
async fn whatever_an_agent_does_to_its_git_directory_its_work_is_taken() {
    let place = OperatorsRepository::new();
    for n in 0..4 {
        let clone = place.clone(&format!("run{n}")).await;
        fs::write(clone.tree.join("a.txt"), "new\n").expect("written");
        let own = clone.tree.join(".git");
        let planted = place.folder.path().join("planted");
        let _ = fs::remove_file(&planted);
        match n {
            0 => fs::remove_dir_all(&own).expect("removed"),
            1 => {
                fs::remove_dir_all(&own).expect("removed");
                fs::write(&own, "gitdir: /nowhere\n").expect("written");
            }
            2 => {
                let hook = format!(
                    "[core]\n\tfsmonitor = touch {0}\n\thooksPath = .\n[filter \"x\"]\n\tclean = touch {0}\n",
                    planted.display()
                );
                fs::write(own.join("config"), hook).expect("written");
                fs::write(clone.tree.join(".gitattributes"), "* filter=x diff=x\n").expect("written");
            }
            _ => {
                fs::write(own.join("HEAD"), "garbage").expect("written");
                fs::write(own.join("index"), "garbage").expect("written");
            }
        }
        let found = taken(&clone).await;
        assert!(found.patch.contains("+new"), "case {n}: {}", found.patch);
        assert!(!planted.exists(), "case {n}: something that the agent wrote was run");
    }
}

#[tokio::test]
async fn what_cannot_be_taken_is_said() {
    let place = OperatorsRepository::new();
    let clone = place.clone("run").await;
    let huge = fs::File::create(clone.tree.join("huge")).expect("a file");
    huge.set_len(1 << 40).expect("a sparse file");
    let error = take_patch(&clone).await.expect_err("too large");
    assert!(matches!(&error, NoPatch::Unfit(why) if why.contains("huge")), "{error:?}");
    fs::remove_file(clone.tree.join("huge")).expect("removed");
    let mut state = 88_172_645_463_325_252_u64;
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    });
    let noise: Vec<u8> = noise.take(900_000).collect();
    fs::write(clone.tree.join("noise"), noise).expect("written");
    let error =
        take_patch(&clone).await.map(|found| found.patch.len()).expect_err("more than can be handed in");
    assert!(matches!(&error, NoPatch::Unfit(why) if why.contains("the limit is")), "{error:?}");
}

#[tokio::test]
async fn nothing_of_a_repository_inside_the_tree_is_run_or_taken() {
    let place = OperatorsRepository::new();
    let planted = place.folder.path().join("planted");
    // With the folder already a link to a repository in the base, and without.
    for is_linked in [true, false] {
        let repo = place.repo();
        if is_linked {
            let entry = format!("160000,{},sub", place.base);
            git(&repo, &["update-index", "--add", "--cacheinfo", &entry]);
            git(&repo, &["commit", "-q", "-m", "a submodule"]);
        }
        let base = git(&repo, &["rev-parse", if is_linked { "HEAD" } else { "HEAD~1" }]);
        let folder = place.folder.path().join(format!("run-{is_linked}"));
        let of = (base.as_str(), base.as_str());
        let clone = Clone::make(&folder, &place.repository, of, "azolla/T", &[]).await.expect("a clone");
        let sub = clone.tree.join("sub");
        fs::create_dir_all(&sub).expect("a folder");
        git(&sub, &["init", "-q", "."]);
        fs::write(sub.join("f"), "one\n").expect("written");
        git(&sub, &["add", "-A"]);
        git(&sub, &["commit", "-q", "-m", "inner"]);
        let clean = format!("touch {}", planted.display());
        git(&sub, &["config", "filter.evil.clean", &clean]);
        git(&sub, &["config", "core.fsmonitor", &clean]);
        fs::write(sub.join(".gitattributes"), "* filter=evil\n").expect("written");
        fs::write(sub.join("f"), "two\n").expect("written");
        // Again, as after a crash.
        for _ in 0..2 {
            let error = take_patch(&clone).await.expect_err("a repository in it");
            assert!(matches!(&error, NoPatch::Unfit(why) if why.contains("sub/.git")), "{error:?}");
        }
        assert!(!planted.exists(), "something that the agent wrote was run");
    }
}

#[tokio::test]
async fn what_is_no_file_is_not_waited_for_and_what_is_no_text_is_packed() {
    let place = OperatorsRepository::new();
    let clone = place.clone("run").await;
    let made = Command::new("mkfifo").arg(clone.tree.join(".gitattributes")).status().expect("mkfifo runs");
    assert!(made.success());
    let error = take_patch(&clone).await.expect_err("nobody can read it");
    assert!(matches!(&error, NoPatch::Unfit(why) if why.contains("neither a file")), "{error:?}");
    fs::remove_file(clone.tree.join(".gitattributes")).expect("removed");
    // git takes what has its first NUL so far behind for text; a bundle does not.
    let late = [vec![b'a'; 9_000], vec![0], vec![b'b'; 10]].concat();
    fs::write(clone.tree.join("late"), late).expect("written");
    let found = taken(&clone).await;
    assert!(found.patch.contains("GIT binary patch") && !found.patch.contains('\0'));
    assert_eq!(place.applied(&found.patch).await.expect("it applies").tree, found.tree);
    // A lock that a killed git left keeps nobody from it.
    fs::write(clone.trusted.join("index.lock"), "").expect("written");
    assert_eq!(taken(&clone).await, found);
}

#[tokio::test]
async fn one_bundle_always_gives_one_commit_and_one_branch() {
    let place = OperatorsRepository::new();
    let clone = place.clone("run").await;
    fs::write(clone.tree.join("a.txt"), "new\n").expect("written");
    let found = taken(&clone).await;
    let at = Timestamp::from_millis(1_700_000_000_123);
    let saying = Saying { message: "Say it\n", author: "mock", authored_at: at, committed_at: at };
    let (status, head) =
        (git(&place.repo(), &["status", "--porcelain"]), git(&place.repo(), &["rev-parse", "HEAD"]));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let applied = place.applied(&found.patch).await.expect("it applies");
        let id = applied.commit(&saying).await.expect("a commit");
        assert_eq!(applied.bring(&place.repository, &id, "azolla/T-1").await, Ok("azolla/T-1".into()));
        ids.push(id);
    }
    assert_eq!(ids[0], ids[1]);
    let refs = place.refs();
    assert_eq!(refs.lines().count(), 2, "{refs}");
    git(&place.repo(), &["fsck", "--strict"]);
    assert_eq!(git(&place.repo(), &["show", "azolla/T-1:a.txt"]), "new");
    assert_eq!(
        git(&place.repo(), &["status", "--porcelain"]),
        status,
        "no file of the operator's is touched"
    );
    assert_eq!(git(&place.repo(), &["rev-parse", "HEAD"]), head);
    // Another commit under that name: the next one.
    let other = Saying { message: "Another\n", ..saying };
    let applied = place.applied(&found.patch).await.expect("it applies");
    let id = applied.commit(&other).await.expect("a commit");
    assert_eq!(applied.bring(&place.repository, &id, "azolla/T-1").await, Ok("azolla/T-1-2".into()));
    assert_eq!(git(&place.repo(), &["rev-parse", "azolla/T-1"]), ids[0], "the first stays as it was");
    applied.withdraw(&place.repository, &id, "azolla/T-1").await.expect("withdrawn");
    applied.withdraw(&place.repository, &id, "azolla/T-1").await.expect("nothing is left to withdraw");
    assert_eq!(place.refs().lines().count(), 2, "only the one that is meant goes");
}

#[tokio::test]
async fn a_patch_that_does_something_else_than_it_says_is_refused() {
    let place = OperatorsRepository::new();
    let clone = place.clone("run").await;
    fs::write(clone.tree.join("a.txt"), "one\n2\nthree\n").expect("written");
    let patch = taken(&clone).await.patch;
    let unfit = |found: Result<AppliedPatch, NotApplied>| matches!(found, Err(NotApplied::Unfit(_)));
    assert!(unfit(place.applied(&patch.replace("+2", "+3")).await), "its id is of another content");
    assert!(unfit(place.applied(&patch.replace("-two", "-zwei")).await), "it does not apply");
    assert!(place.applied(&patch).await.is_ok());
}

#[tokio::test]
async fn a_repository_is_found_by_its_work_trees_too() {
    let place = OperatorsRepository::new();
    git(&place.repo(), &["worktree", "add", "-q", "../beside", "-b", "side"]);
    let beside = Repository::open(&place.folder.path().join("beside")).expect("a repository");
    assert_eq!(beside.dir, place.repository.dir);
    assert_eq!(beside.branch("main").await, Ok(Some(place.base.clone())));
    assert_eq!(beside.branch("nothing").await, Ok(None));
    assert!(beside.has_commit(&place.base).await.expect("asked"));
    assert!(!beside.has_commit(&"1".repeat(40)).await.expect("asked"));
    let why = Repository::open(place.folder.path()).expect_err("no repository");
    assert!(why.contains("not a git repository"), "{why}");
    let mut strange = place.folder.path().as_os_str().as_bytes().to_vec();
    strange.extend(b"/none");
    assert!(Repository::open(Path::new(std::ffi::OsStr::from_bytes(&strange))).is_err());
}

#[test]
fn a_branch_has_a_plain_name() {
    for good in ["main", "azolla/T-1", "release/1.2_x"] {
        assert!(is_branch_name(good), "{good}");
    }
    for bad in ["", "-x", "a..b", "a/", "/a", "a//b", "a b", "a\n", "@{u}", "x.lock", ".x", "a/.b", "ä"] {
        assert!(!is_branch_name(bad), "{bad}");
    }
}

#[tokio::test]
async fn git_says_what_it_would_not_do() {
    let place = OperatorsRepository::new();
    let error = Git::at(&place.repository.dir)
        .call(&["rev-parse", "--verify", "nothing"], b"")
        .await
        .expect_err("no");
    assert!(error.to_string().contains("git rev-parse"), "{error}");
}

#[tokio::test]
async fn a_tree_that_keeps_paths_has_them_as_the_base_has_them() {
    let place = OperatorsRepository::new();
    let clone = place.clone("run").await;
    let tree = &clone.tree;
    fs::write(tree.join("a.txt"), "changed\n").expect("written");
    fs::write(tree.join("crlf.txt"), "also changed\n").expect("written");
    fs::remove_file(tree.join("gone")).expect("removed");
    fs::write(tree.join("new*"), "new\n").expect("written");
    // A folder where a file was, and a mode.
    fs::remove_file(tree.join("run.sh")).expect("removed");
    fs::create_dir(tree.join("run.sh")).expect("a folder");
    fs::write(tree.join("run.sh/x"), "x\n").expect("written");
    fs::set_permissions(tree.join("empty"), fs::Permissions::from_mode(0o755)).expect("a mode");
    let applied = place.applied(&taken(&clone).await.patch).await.expect("it applies");
    let all = ["a.txt", "gone", "new*", "run.sh", "empty"].map(str::to_string);
    let kept = applied.tree_keeping(&all).await.expect("a tree");
    let ours = Git::at(&place.folder.path().join("patch.git"));
    let said = ours.call(&["diff-tree", "-r", "--name-only", &place.base, &kept], b"").await.expect("a diff");
    assert_eq!(String::from_utf8_lossy(&said), "crlf.txt\n", "what is not kept is as the patch has it");
    let none = applied.tree_keeping(&[]).await.expect("a tree");
    assert_eq!(none, applied.tree);
}

//! The Debian package, made of this test's own binary: what is in it, that it installs, and what its scripts do.
//!
//! Nothing of this touches the machine's own packages, users or services.

use crate::program::{Answer, fernery};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn run(command: &mut Command) -> Answer {
    let program = command.get_program().to_string_lossy().into_owned();
    command
        .output()
        .unwrap_or_else(|e| {
            panic!("{program}: {e}; the packages dpkg, binutils and gzip are needed (apt-get install)")
        })
        .into()
}

/// Makes the package, quickly compressed, and says where it is.
fn made(out: &Path) -> PathBuf {
    let mut make = Command::new(repository().join("scripts/make-deb"));
    make.arg("--binary").arg(fernery().get_program()).arg("--out").arg(out);
    make.env("DPKG_DEB_COMPRESSOR_TYPE", "gzip").env("DPKG_DEB_COMPRESSOR_LEVEL", "1");
    let answer = run(&mut make).exits(0);
    let package = PathBuf::from(answer.stdout.trim_end());
    let arch = run(Command::new("dpkg").arg("--print-architecture")).exits(0).stdout;
    assert_eq!(package, out.join(format!("fernery_{VERSION}_{}.deb", arch.trim())));
    package
}

fn field(package: &Path, name: &str) -> String {
    run(Command::new("dpkg-deb").arg("--field").arg(package).arg(name)).exits(0).stdout.trim().to_string()
}

/// Mode, owner and path of everything in it.
fn contents(package: &Path) -> BTreeMap<String, (String, String)> {
    let listed = run(Command::new("dpkg-deb").arg("--contents").arg(package)).exits(0).stdout;
    listed
        .lines()
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            (words[5].trim_start_matches('.').to_string(), (words[0].to_string(), words[1].to_string()))
        })
        .collect()
}

#[test]
fn the_package_holds_what_it_should_installs_runs_and_is_the_same_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let package = made(&dir.path().join("out"));
    let again = made(&dir.path().join("again"));
    assert!(
        fs::read(&package).unwrap() == fs::read(again).unwrap(),
        "two packages of the same binary differ"
    );
    assert_eq!(field(&package, "Package"), "fernery");
    assert_eq!(field(&package, "Version"), VERSION);
    let depends = field(&package, "Depends");
    assert!(depends.contains("libc6 (>= 2.") && depends.contains("adduser"), "{depends}");

    let inside = contents(&package);
    for (path, mode) in [
        ("/usr/bin/fernery", "-rwxr-xr-x"),
        ("/usr/lib/systemd/system/fernery.service", "-rw-r--r--"),
        ("/usr/share/man/man1/fernery.1.gz", "-rw-r--r--"),
        ("/usr/share/man/man1/fernery-job-enqueue.1.gz", "-rw-r--r--"),
        ("/usr/share/bash-completion/completions/fernery", "-rw-r--r--"),
        ("/usr/share/zsh/vendor-completions/_fernery", "-rw-r--r--"),
        ("/usr/share/fish/vendor_completions.d/fernery.fish", "-rw-r--r--"),
        ("/usr/share/doc/fernery/copyright", "-rw-r--r--"),
        ("/usr/share/doc/fernery/NOTICE", "-rw-r--r--"),
        ("/usr/share/doc/fernery/changelog.gz", "-rw-r--r--"),
        ("/etc/fernery/fernery.toml", "-rw-r--r--"),
    ] {
        let (found, _) = inside.get(path).unwrap_or_else(|| panic!("{path} is not in {inside:#?}"));
        assert_eq!(found, mode, "{path}");
    }
    for (path, (mode, owner)) in &inside {
        assert_eq!(owner, "root/root", "{path}");
        assert!(!path.ends_with('/') || mode == "drwxr-xr-x", "{path} {mode}");
    }

    let root = if rustix::process::geteuid().is_root() {
        installed(&package, dir.path())
    } else {
        // Only root can give files away, which an installation does.
        let root = dir.path().join("root");
        run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&root)).exits(0);
        root
    };
    let program = root.join("usr/bin/fernery");
    let said = run(Command::new(&program).arg("--version")).exits(0).stdout;
    assert_eq!(said, format!("fernery {VERSION}\n"));
    let sections = run(Command::new("readelf").args(["--sections", "--wide"]).arg(&program)).exits(0).stdout;
    assert!(!sections.contains(".debug_info") && !sections.contains(".symtab"), "it is stripped: {sections}");
    let page = run(Command::new("gzip")
        .args(["--decompress", "--stdout"])
        .arg(root.join("usr/share/man/man1/fernery.1.gz")));
    assert!(page.exits(0).stdout.contains(".SH NAME"));

    // The configuration is one that the program takes, and the service runs it.
    let config = root.join("etc/fernery/fernery.toml");
    let settings =
        run(Command::new(&program).args(["config", "--json", "--config"]).arg(&config)).exits(0).json();
    assert_eq!(settings["settings"]["data"]["value"], "/var/lib/fernery", "{settings}");
    assert_eq!(settings["settings"]["database"]["value"], "sqlite:/var/lib/fernery/fernery.db", "{settings}");
    let unit = fs::read_to_string(root.join("usr/lib/systemd/system/fernery.service")).unwrap();
    assert!(unit.contains("\nExecStart=/usr/bin/fernery up --config /etc/fernery/fernery.toml\n"), "{unit}");
    let (about, service) = unit.split_once("\n[Service]\n").unwrap();
    assert!(about.contains("\nStartLimitIntervalSec=0"), "a database may be away for long: {unit}");
    assert!(service.contains("\nRestart=on-failure\nRestartSec=2s\nRestartPreventExitStatus=2\n"), "{unit}");
    assert!(unit.contains("\nUser=fernery\n") && unit.contains("\nStateDirectory=fernery\n"), "{unit}");
}

/// Installs it under a root of its own, with a list of packages of its own, and removes it again.
fn installed(package: &Path, dir: &Path) -> PathBuf {
    let root = dir.join("root");
    for made in ["info", "updates", "triggers", "parts"] {
        fs::create_dir_all(root.join("var/lib/dpkg").join(made)).unwrap();
    }
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let dpkg = |args: &[&str]| {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", root.display())).arg(format!("--log={}/log", dir.display()));
        // There is no libc6 in that list, and no shell under that root.
        run(command.args(["--force-depends", "--force-script-chrootless"]).args(args))
    };
    let here = || run(Command::new("dpkg-query").args(["--show", "fernery"])).stdout;
    let here_before = here();
    dpkg(&["--install", package.to_str().unwrap()]).exits(0);
    let query = run(Command::new("dpkg-query")
        .arg(format!("--admindir={}/var/lib/dpkg", root.display()))
        .args(["--show", "--showformat=${Status} ${Version}", "fernery"]));
    assert_eq!(query.exits(0).stdout, format!("install ok installed {VERSION}"));
    dpkg(&["--verify", "fernery"]).exits(0);
    dpkg(&["--purge", "fernery"]).exits(0);
    assert!(!root.join("usr/bin/fernery").exists() && !root.join("etc/fernery").exists(), "purged");
    dpkg(&["--install", package.to_str().unwrap()]).exits(0);
    assert_eq!(here(), here_before, "the machine's own packages are as they were");
    root
}

#[test]
fn what_cannot_be_packaged_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("fernery");
    fs::write(&other, "#!/bin/sh\necho fernery 99.0.0\n").unwrap();
    fs::set_permissions(&other, PermissionsExt::from_mode(0o755)).unwrap();
    for (args, exit, said) in [
        (&["--binary", "no-such-file"][..], 1, "is not a program"),
        (&["--binary", "fernery"], 1, "does not begin with an entry for 99.0.0"),
        (&["--binary"], 2, "usage:"),
        (&["--bin", "fernery"], 2, "unknown argument: --bin"),
    ] {
        let mut make = Command::new(repository().join("scripts/make-deb"));
        let answer = run(make.current_dir(dir.path()).args(["--out", "out"]).args(args)).exits(exit);
        assert!(answer.stderr.contains(said), "{args:?}: {answer:?}");
    }
    assert!(!dir.path().join("out").exists(), "nothing was made");
}

/// A folder of programs that only write down how they were called, and say yes or no.
struct Stubs {
    dir: TempDir,
}

impl Stubs {
    fn new(refusing: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let calls = dir.path().join("calls");
        fs::write(&calls, "").unwrap();
        for name in [
            "getent",
            "adduser",
            "install",
            "chown",
            "chmod",
            "deb-systemd-helper",
            "deb-systemd-invoke",
            "systemctl",
        ] {
            let code = i32::from(refusing.contains(&name));
            let script = format!("#!/bin/sh\necho \"{name} $*\" >>'{}'\nexit {code}\n", calls.display());
            let path = dir.path().join(name);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        Self { dir }
    }

    /// Runs one of the package's scripts with nothing else in reach, and says what it called.
    fn calls(&self, script: &str, args: &[&str], root: Option<&str>) -> (Answer, String) {
        let mut shell = Command::new("/bin/sh");
        shell.arg(repository().join("packaging/debian").join(script)).args(args);
        shell.env_clear().env("PATH", self.dir.path()).envs(root.map(|root| ("DPKG_ROOT", root)));
        (run(&mut shell), fs::read_to_string(self.dir.path().join("calls")).unwrap())
    }
}

#[test]
fn its_scripts_make_the_user_once_and_touch_nothing_under_another_root() {
    let (answer, calls) = Stubs::new(&["getent"]).calls("postinst", &["configure", ""], None);
    answer.exits(0);
    assert!(
        calls.contains("adduser --quiet --system --group") && calls.contains("--home /var/lib/fernery"),
        "{calls}"
    );
    assert!(calls.contains("install -d -m 0700 -o fernery -g fernery /var/lib/fernery"), "{calls}");
    assert!(calls.contains("deb-systemd-helper enable fernery.service"), "{calls}");

    // The user is there, and an administrator has disabled the service.
    let (answer, calls) =
        Stubs::new(&["deb-systemd-helper"]).calls("postinst", &["configure", "0.0.9"], None);
    answer.exits(0);
    assert!(!calls.contains("adduser") && !calls.contains("chmod"), "{calls}");
    assert!(calls.contains("update-state") && !calls.contains("enable fernery"), "{calls}");

    for (script, args) in [
        ("postinst", &["configure", ""][..]),
        ("prerm", &["remove"]),
        ("postrm", &["remove"]),
        ("postrm", &["purge"]),
    ] {
        let (answer, calls) = Stubs::new(&[]).calls(script, args, Some("/somewhere"));
        answer.exits(0);
        assert_eq!(calls, "", "{script} {args:?} under another root");
        let (answer, _) = Stubs::new(&[]).calls(script, args, None);
        answer.exits(0);
    }
    // A user that cannot be made fails the installation; so does a call that dpkg never makes.
    Stubs::new(&["getent", "adduser"]).calls("postinst", &["configure", ""], None).0.exits(1);
    Stubs::new(&[]).calls("postinst", &["no-such-step"], None).0.exits(1);
}

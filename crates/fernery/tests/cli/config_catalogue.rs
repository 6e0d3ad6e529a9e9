//! The catalogue of bad configuration, K1 to K15, as the program answers it; and the good one beside it.

use crate::program::{Answer, fernery, run_in};
use std::path::Path;
use std::process::Command;

fn with_file(text: impl AsRef<[u8]>, args: &[&str]) -> Answer {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("fernery.toml"), text).unwrap();
    run_in(dir.path(), args)
}

fn config_in(dir: &Path, change: impl FnOnce(&mut Command)) -> Answer {
    let mut command = fernery();
    command.current_dir(dir).arg("config");
    change(&mut command);
    command.output().unwrap().into()
}

#[test]
fn all_wrong_values_of_a_file_are_told_at_once() {
    let file = "listen = \"here\"\nretention = \"7\"\nlog_level = \"loud\"\n";
    let told = with_file(file, &["config"]).exits(2).stderr;
    for place in ["fernery.toml:1:1: listen", "fernery.toml:2:1: retention", "fernery.toml:3:1: log_level"] {
        assert!(told.contains(place), "{told}");
    }
    assert_eq!(told.lines().count(), 3, "{told}");
    let file = "lease_ttl = \"1h\"\nheartbeat_interval = \"x\"\nreap_interval = \"y\"\nredis = \"http://h\"\n\
                tls_cert = \"\"\ntls_key = \"\"\ndata = \"\"\n[transport]\nack = \"nobody\"\ngroup = \"a b\"\n";
    let told = with_file(file, &["config"]).exits(2).stderr;
    assert_eq!(told.lines().count(), 9, "each once: {told}");
}

/// K2, K3, K4, K5, K7, K8, K15: what is wrong with a file is told with its place and the rule, before anything starts.
#[test]
fn a_bad_file_is_refused_with_its_place_and_the_rule() {
    for (number, text, said) in [
        ("K2", "lease_ttl = \"60s\"\nlisten = = 5\n", &["fernery.toml:2:10"][..]),
        ("K2", "listen = \"127.0.0.1:1\n", &["fernery.toml:1:"]),
        ("K3", "lease_tll = \"60s\"\n", &["fernery.toml:1:1", "lease_tll", "did you mean `lease_ttl`?"]),
        ("K3", "[lease]\nttl = \"60s\"\n", &["fernery.toml:1:2", "unknown key `lease`"]),
        ("K4", "\nlease_ttl = \"60\"\n", &["fernery.toml:2:1", "500ms, 60s, 5m, 2h or 7d"]),
        ("K4", "lease_ttl = 60\n", &["fernery.toml:1:13", "500ms, 60s, 5m, 2h or 7d"]),
        ("K4", "lease_ttl = \"60 minutes\"\n", &["500ms, 60s, 5m, 2h or 7d"]),
        ("K4", "lease_ttl = \"-5s\"\n", &["500ms, 60s, 5m, 2h or 7d"]),
        ("K4", "retention = \"0\"\n", &["500ms, 60s, 5m, 2h or 7d"]),
        ("K5", "lease_ttl = \"10m1s\"\n", &["500ms, 60s, 5m, 2h or 7d"]),
        ("K5", "lease_ttl = \"11m\"\n", &["1s to 600s"]),
        ("K5", "lease_ttl = \"999ms\"\n", &["1s to 600s"]),
        ("K5", "heartbeat_interval = \"30001ms\"\n", &["more than half of lease_ttl (60s)"]),
        ("K5", "reap_interval = \"61s\"\n", &["longer than lease_ttl (60s)"]),
        ("K4", "requests_per_second = \"ten\"\n", &["from 1 to 1000000"]),
        ("K4", "requests_per_second = 1.5\n", &["fernery.toml:1:23", "a whole number"]),
        ("K4", "requests_per_second = -1\n", &["from 1 to 1000000"]),
        ("K7", "listen = \"0.0.0.0:0\"\n", &["tls_cert", "insecure_http"]),
        ("K7", "listen = \"[::]:0\"\n", &["tls_cert", "insecure_http"]),
        ("K7", "listen = \"0.0.0.0:0\"\ninsecure_http = true\nworker_auth = \"none\"\n", &["loopback only"]),
        (
            "K7",
            "allowed_host = [\"fern.example\"]\nworker_auth = \"none\"\n",
            &["loopback only", "fern.example"],
        ),
        ("K8", "database = \"mysql://u:s3cret@h/x\"\n", &["sqlite:PATH or postgres://"]),
        ("K8", "database = \"postgres://u:s3cret@x@h/x\"\n", &["%40"]),
        ("K8", "database = \"postgres://u:s3cret@h:port/x\"\n", &["port"]),
        (
            "K15",
            "database = \"postgres://u:${NOT_SET_ANYWHERE}@h/x\"\n",
            &["${NOT_SET_ANYWHERE} is not set", "fernery.toml:1:12"],
        ),
    ] {
        for command in ["config", "doctor", "up"] {
            let answer = with_file(text, &[command]).exits(2);
            assert_eq!(answer.stdout, "", "{number}");
            for part in said {
                assert!(answer.stderr.contains(part), "{number}: {part:?} is not in {:?}", answer.stderr);
            }
            assert!(!answer.stderr.contains("s3cret"), "{number}: {:?}", answer.stderr);
            assert_eq!(answer.stderr.lines().count(), 1, "{number}: {:?}", answer.stderr);
        }
        let answer = with_file(text, &["config", "--json"]).exits(2);
        assert_eq!(answer.json()["code"], "bad_config", "{number}");
    }
}

/// K1, K11: what is named and cannot be read is told with the path searched.
#[test]
fn a_file_that_cannot_be_read_is_told_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::create_dir(path("directory.toml")).unwrap();
    std::fs::write(path("large.toml"), vec![b'#'; (1 << 20) + 1]).unwrap();
    std::fs::write(path("latin1.toml"), b"# \n# caf\xe9\n").unwrap();
    std::fs::write(path("nul.toml"), b"listen = \"127.0.0.1:0\"\0\n").unwrap();
    std::os::unix::fs::symlink("loop.toml", path("loop.toml")).unwrap();
    let fifo = Command::new("mkfifo").arg(path("fifo.toml")).status().unwrap();
    assert!(fifo.success());
    for (name, why) in [
        ("missing.toml", "No such file"),
        ("directory.toml", "directory"),
        ("large.toml", "larger than 1 MiB"),
        ("latin1.toml", "latin1.toml:2: not UTF-8"),
        ("nul.toml", "nul.toml:1:"),
        ("loop.toml", "symbolic link"),
        ("fifo.toml", "not a regular file"),
    ] {
        let by_flag = run_in(dir.path(), ["config", "--config", path(name).to_str().unwrap()]).exits(2);
        let by_env = config_in(dir.path(), |c| {
            c.env("FERNERY_CONFIG", path(name));
        })
        .exits(2);
        for answer in [by_flag, by_env] {
            assert!(
                answer.stderr.contains(name) && answer.stderr.contains(why),
                "{name}: {:?}",
                answer.stderr
            );
        }
    }
    std::os::unix::fs::symlink("nowhere", path("fernery.toml")).unwrap();
    let answer = run_in(dir.path(), ["config"]).exits(2);
    assert!(answer.stderr.contains("fernery.toml"), "a dangling link is not silently no file: {answer:?}");
}

/// K6: every value in force is shown with its source, and secrets are masked.
#[test]
fn config_shows_every_value_with_its_source() {
    let dir = tempfile::tempdir().unwrap();
    let file = "\u{feff}lease_ttl = \"30s\"\r\nretention = \"1d\"\r\ndatabase = \"postgres://fern:${PW}@db/x\"\r\n\
         requests_per_second = 7\r\n";
    std::fs::write(dir.path().join("fernery.toml"), file).unwrap();
    let set = |c: &mut Command| {
        c.env("FERNERY_RETENTION", "2d").env("FERNERY_LISTEN", "127.0.0.1:1").env("PW", "s3cret");
        c.args(["--listen", "127.0.0.1:2", "--json"]);
    };
    let answer = config_in(dir.path(), set).exits(0);
    assert!(!answer.stdout.contains("s3cret"), "{answer:?}");
    let json = answer.json();
    for (key, value, source) in [
        ("listen", "127.0.0.1:2", "--listen"),
        ("retention", "2d", "FERNERY_RETENTION"),
        ("lease_ttl", "30s", "fernery.toml:1:1"),
        ("database", "postgres://fern:***@db/x", "fernery.toml:3:1"),
        ("heartbeat_interval", "10s", "default: lease_ttl / 3"),
        ("worker_auth", "token", "default"),
    ] {
        assert_eq!(json["settings"][key]["value"], value, "{key}");
        assert_eq!(json["settings"][key]["source"], source, "{key}");
    }
    let rate = serde_json::json!({"value": 7, "source": "fernery.toml:4:1"});
    assert_eq!(json["settings"]["requests_per_second"], rate);
    assert_eq!(json["file"], "fernery.toml");
    let table = config_in(dir.path(), |c| {
        c.env("PW", "s3cret");
    })
    .exits(0);
    assert!(table.stdout.contains("postgres://fern:***@db/x"), "{table:?}");
    assert!(!table.stdout.contains("s3cret"));
}

#[test]
fn the_default_file_can_be_used_as_it_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let printed = run_in(dir.path(), ["config", "--default"]).exits(0).stdout;
    let before = run_in(dir.path(), ["config", "--json"]).exits(0).json();
    std::fs::write(dir.path().join("fernery.toml"), printed).unwrap();
    let after = run_in(dir.path(), ["config", "--json"]).exits(0).json();
    assert_eq!(after["settings"], before["settings"]);
    assert_eq!(after["file"], "fernery.toml");
}

#[test]
fn bad_flags_and_variables_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for (args, said) in [
        (&["--lease-ttl", "60"][..], "--lease-ttl: "),
        (&["--database", "postgres://u:s3cret@:1/x"], "--database: "),
        (&["--tls-cert", "a.pem"], "needs tls_key"),
        (&["--listen", "0.0.0.0:1"], "--listen: "),
        (&["--worker-auth", "maybe"], "token or none"),
        (&["--allowed-host", "http://a"], "without scheme"),
        (&["--redis", "redis://:s3cret@x"], "needs no Redis"),
        (
            &["--redis", "redis://:s3cret@x/y", "--database", "postgres://h/x"],
            "the database must be a number",
        ),
        (&["--redis", "http://:s3cret@x"], "--redis: unknown scheme \"http\""),
        (&["--transport-ack", "nobody"], "control-plane or worker"),
        (&["--transport-group", ""], "1 to 100 visible"),
    ] {
        let answer = config_in(dir.path(), |c| {
            c.args(args);
        })
        .exits(2);
        assert!(answer.stderr.contains(said) && !answer.stderr.contains("s3cret"), "{answer:?}");
    }
    let answer = config_in(dir.path(), |c| {
        c.env("FERNERY_DATABASE", "postgres://u:s3cret@h:x/y");
    })
    .exits(2);
    assert!(answer.stderr.contains("FERNERY_DATABASE: ") && !answer.stderr.contains("s3cret"), "{answer:?}");
    let answer = config_in(dir.path(), |c| {
        c.env("FERNERY_LEASE_TLL", "5s");
    })
    .exits(0);
    assert!(answer.stderr.contains("did you mean FERNERY_LEASE_TTL?"), "{answer:?}");
}

/// C10 for the environment: text that is no UTF-8 is told, not guessed.
#[test]
fn a_variable_that_is_not_utf8_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let answer = config_in(dir.path(), |c| {
        c.env("FERNERY_DATA", std::ffi::OsStr::from_bytes(b"caf\xe9"));
    })
    .exits(2);
    assert!(answer.stderr.contains("FERNERY_DATA: not UTF-8"), "{answer:?}");
}

//! The table, the default file and the order of precedence agree.

use super::table::{Fallback, Form, SETTINGS};
use super::*;
use std::ffi::OsString;
use table::setting;

fn no_env(_: &str) -> Option<OsString> {
    None
}

fn flag(key: &str, value: &str) -> Given {
    Given { setting: setting(key).unwrap(), values: vec![value.into()], source: Source::Flag }
}

fn with_flags(flags: Vec<Given>) -> Result<Settings, String> {
    let rows = SETTINGS
        .iter()
        .map(|s| flags.iter().find(|g| g.setting == s).cloned().unwrap_or_else(|| Given::fallback(s)))
        .collect();
    InForce { file: None, rows, foreign: Vec::new() }.check().map_err(|e| e.0)
}

#[test]
fn the_default_file_is_the_defaults_in_code() {
    let as_shipped = file::parse(Path::new("fernery.toml"), DEFAULT_FILE, &|_| None).unwrap();
    assert_eq!(as_shipped, [], "as shipped it changes nothing");

    let switched_on: String = DEFAULT_FILE
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase()) => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let given = file::parse(Path::new("fernery.toml"), &switched_on, &|_| None).unwrap();
    let rows: Vec<_> = SETTINGS
        .iter()
        .map(|s| given.iter().find(|g| g.setting == s).cloned().unwrap_or(Given::fallback(s)))
        .collect();
    let from_file = InForce { file: Some("fernery.toml".into()), rows, foreign: Vec::new() }.check().unwrap();
    assert_eq!(Settings { file: None, ..from_file }, with_flags(Vec::new()).unwrap());

    for s in SETTINGS {
        let line = format!("\n#{} = ", s.key);
        let example = format!("\n#   {} = ", s.key);
        assert!(
            DEFAULT_FILE.contains(&line) != (s.fallback == Fallback::Unset && s.form != Form::Many),
            "{} has its default in the file",
            s.key
        );
        assert!(DEFAULT_FILE.contains(&line) || DEFAULT_FILE.contains(&example), "{} is in the file", s.key);
    }
}

/// `docs/reference/configuration.md` is the table.
#[test]
fn the_reference_is_the_table() {
    use std::fmt::Write as _;
    let mut page = String::from(
        "# Configuration\n\n\
         A flag wins over the environment, the environment over the file, the file over the default. `fernery config` prints\n\
         what is in force and where each value came from; `fernery config --default` prints a commented file to start from.\n\
         The file is what `--config` or `FERNERY_CONFIG` names, else `fernery.toml` in the current folder or the nearest one above.\n\
         There, too, is the data directory `.fernery`, if `data` does not name another one; where no folder has either, it is\n\
         `$XDG_DATA_HOME/fernery` (`~/.local/share/fernery`), if that exists. What is found and belongs to another user is not used.\n\n\
         | key in the file | flag | environment | default | what it is |\n|---|---|---|---|---|\n",
    );
    for s in SETTINGS {
        let fallback = match s.fallback {
            Fallback::Value(value) => format!("`{value}`"),
            Fallback::Follows(rule) => format!("`{rule}`"),
            Fallback::Unset => String::new(),
        };
        let help = s.help.replace('|', "\\|");
        writeln!(page, "| `{}` | `--{}` | `{}` | {fallback} | {help} |", s.key, s.flag(), s.env()).unwrap();
    }
    page.push_str(
        "\nOnly in the environment: `FERNERY_TOKEN` (a token, instead of `operator.token` in the data directory), `FERNERY_URL`\n\
         (also `--url`: the server to talk to) and `FERNERY_CA` (certificates to trust over HTTPS instead of the system's).\n\n\
         Durations are a whole number and its unit: `500ms`, `60s`, `5m`, `2h`, `7d`.\n",
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/configuration.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(kept, page, "run the test with UPDATE=1 to rewrite docs/reference/configuration.md");
}

#[test]
fn the_engines_defaults_are_ours() {
    let ours = with_flags(Vec::new()).unwrap();
    let engine = EngineSettings::default();
    assert_eq!(ours.lease_ttl, engine.store.lease_ttl);
    assert_eq!(ours.reap_interval, engine.reap_interval);
    assert_eq!(ours.retention, engine.retention);
    assert_eq!(ours.dead_letter_retention, engine.dead_letter_retention);
}

#[test]
fn intervals_that_are_not_set_follow_the_lease() {
    let settings = with_flags(vec![flag("lease_ttl", "3s")]).unwrap();
    assert_eq!(settings.heartbeat_interval, Duration::from_secs(1));
    assert_eq!(settings.reap_interval, Duration::from_millis(1500));
}

#[test]
fn a_heartbeat_of_exactly_half_the_lease_is_allowed() {
    for (lease, heartbeat, ms) in [("60s", "30s", 30_000), ("1s", "500ms", 500), ("1001ms", "500ms", 500)] {
        let settings =
            with_flags(vec![flag("lease_ttl", lease), flag("heartbeat_interval", heartbeat)]).unwrap();
        assert_eq!(settings.heartbeat_interval, Duration::from_millis(ms), "{lease}");
    }
}

#[test]
fn combinations_that_would_hurt_are_refused_with_the_rule() {
    for (flags, why) in [
        (vec![flag("lease_ttl", "999ms")], "1s to 600s"),
        (vec![flag("lease_ttl", "601s")], "1s to 600s"),
        (vec![flag("lease_ttl", "60")], "has no unit"),
        (vec![flag("heartbeat_interval", "30001ms")], "more than half of lease_ttl (60s)"),
        (vec![flag("reap_interval", "61s")], "longer than lease_ttl (60s)"),
        (vec![flag("listen", "0.0.0.0:80")], "insecure_http"),
        (vec![flag("listen", "[::]:80")], "insecure_http"),
        (vec![flag("listen", "example.com:80")], "IP address and a port"),
        (vec![flag("listen", "127.0.0.1")], "IP address and a port"),
        (
            vec![flag("listen", "0.0.0.0:80"), flag("insecure_http", "true"), flag("worker_auth", "none")],
            "loopback only",
        ),
        (vec![flag("allowed_host", "fern.example"), flag("worker_auth", "none")], "the name fern.example"),
        (vec![flag("insecure_http", "true"), flag("worker_auth", "none")], "a proxy forwards requests"),
        (vec![flag("worker_auth", "nobody")], "token or none"),
        (vec![flag("requests_per_second", "0")], "from 1 to 1000000"),
        (vec![flag("requests_per_second", "1000001")], "from 1 to 1000000"),
        (vec![flag("requests_per_second", "many")], "from 1 to 1000000"),
        (vec![flag("tls_cert", "a")], "needs tls_key"),
        (vec![flag("tls_key", "a")], "needs tls_cert"),
        (vec![flag("allowed_host", "http://x")], "without scheme and port"),
        (vec![flag("log_level", "loud")], "error, warn, info"),
        (vec![flag("log_format", "xml")], "human or json"),
        (vec![flag("insecure_http", "maybe")], "true or false"),
        (vec![flag("retention", "0s")], "is zero"),
        (vec![flag("dead_letter_retention", "0s")], "is zero"),
        (vec![flag("data", "")], "expected a path"),
        (vec![flag("database", "mysql://u:s3cret@h/d")], "sqlite:PATH"),
    ] {
        let error = with_flags(flags.clone()).unwrap_err();
        assert!(error.contains(why) && !error.contains("s3cret"), "{flags:?} gave {error}");
        assert!(error.starts_with("--"), "names the flag: {error}");
    }
}

#[test]
fn flag_wins_over_environment_over_file_over_default() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.toml");
    std::fs::write(
        &path,
        "\u{feff}listen = \"127.0.0.1:1\"\r\nlease_ttl = \"10s\"\r\nretention = \"1d\"\r\n",
    )
    .unwrap();
    let env = |name: &str| match name {
        "FERNERY_LISTEN" => Some("127.0.0.1:2".into()),
        "FERNERY_LEASE_TTL" => Some("20s".into()),
        "FERNERY_ALLOWED_HOST" => Some("a, b".into()),
        "FERNERY_DATABASE" => Some("".into()),
        _ => None,
    };
    let inputs = Inputs {
        flags: vec![flag("listen", "127.0.0.1:3")],
        config: Some(path.clone()),
        env: &env,
        here: None,
    };
    let in_force = inputs.resolve().unwrap();
    let settings = in_force.check().unwrap();
    assert_eq!(settings.listen.port(), 3);
    assert_eq!(settings.lease_ttl, Duration::from_secs(20));
    assert_eq!(settings.retention, Duration::from_secs(86_400));
    assert_eq!(settings.allowed_hosts, ["a", "b"]);
    assert_eq!(in_force.row("listen").origin(), "--listen");
    assert_eq!(in_force.row("lease_ttl").origin(), "FERNERY_LEASE_TTL");
    assert_eq!(in_force.row("retention").origin(), format!("{}:3:1", path.display()));
    assert_eq!(in_force.row("database").origin(), "default: sqlite:<data>/fernery.db");
    assert_eq!(settings.data, Path::new(".fernery"));
}

#[test]
fn a_setting_of_a_table_may_be_written_as_one_quoted_name() {
    let dir = tempfile::tempdir().unwrap();
    for text in ["\"transport.group\" = \"g\"\n", "transport.group = \"g\"\n", "[transport]\ngroup = \"g\"\n"]
    {
        let path = dir.path().join("f.toml");
        std::fs::write(&path, text).unwrap();
        let inputs = Inputs { flags: Vec::new(), config: Some(path.clone()), env: &no_env, here: None };
        let origin = inputs.resolve().expect(text).row("transport.group").origin();
        assert!(origin.starts_with(&path.display().to_string()), "{text} {origin}");
    }
}

#[test]
fn relative_paths_of_the_file_start_where_the_file_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.toml");
    std::fs::write(&path, "data = \"d\"\ndatabase = \"sqlite:x.db\"\n").unwrap();
    let settings = Inputs { flags: vec![], config: Some(path), env: &no_env, here: None }
        .resolve()
        .unwrap()
        .check()
        .unwrap();
    assert_eq!(settings.data, dir.path().join("d"));
    assert_eq!(settings.database, Database::Sqlite(dir.path().join("x.db")));
}

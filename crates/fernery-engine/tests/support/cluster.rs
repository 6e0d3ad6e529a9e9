//! A PostgreSQL server of a test's own, to be killed, started again, and given certificates.

use super::port::Port;
use std::fs::File;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio_postgres::NoTls;

const MISSING: &str = "run ./test, or scripts/with-services cargo nextest run";

/// A server in a directory of its own, gone with this.
pub(crate) struct Cluster {
    dir: tempfile::TempDir,
    bin: PathBuf,
    owner: Option<Owner>,
    port: Port,
    server: Option<Child>,
}

/// Who runs the server where the test itself is root: PostgreSQL refuses to be.
#[derive(Clone, Copy)]
struct Owner {
    uid: u32,
    gid: u32,
}

impl Owner {
    fn needed() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let id = |flag: &str| {
            let said = Command::new("id").args([flag, "postgres"]).output().expect("id runs");
            String::from_utf8_lossy(&said.stdout).trim().parse().expect("there is a user postgres")
        };
        Some(Self { uid: id("-u"), gid: id("-g") })
    }
}

impl Cluster {
    /// A new server that runs.
    pub(crate) async fn start() -> Self {
        let bin = PathBuf::from(std::env::var("FERNERY_TEST_PGBIN").expect(MISSING));
        let dir = tempfile::tempdir().expect("a temporary directory");
        let owner = Owner::needed();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o711)).expect("its mode");
        let mut cluster = Self { dir, bin, owner, port: Port::reserve(), server: None };
        std::fs::create_dir(cluster.data()).expect("a directory for the data");
        cluster.give(&cluster.data());
        let made = cluster
            .program("initdb")
            .args(["--username", "fernery", "--auth", "trust", "--encoding", "UTF8", "--locale", "C"])
            .args(["--no-sync", "--pgdata"])
            .arg(cluster.data())
            .stdout(Stdio::null())
            .status();
        assert!(made.expect("initdb runs").success(), "initdb");
        cluster.run().await;
        cluster
    }

    /// A standby of this one, to be run.
    pub(crate) fn standby(&self) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o711)).expect("its mode");
        let mut standby =
            Self { dir, bin: self.bin.clone(), owner: self.owner, port: Port::reserve(), server: None };
        standby.copy(self);
        standby
    }

    /// Becomes a standby of that one, whatever it was before.
    pub(crate) fn copy(&mut self, primary: &Self) {
        self.kill();
        let _ = std::fs::remove_dir_all(self.data());
        std::fs::create_dir(self.data()).expect("a directory for the data");
        std::fs::set_permissions(self.data(), PermissionsExt::from_mode(0o700)).expect("its mode");
        self.give(&self.data());
        let copied = self
            .program("pg_basebackup")
            .args(["--host", "127.0.0.1", "--username", "fernery", "--checkpoint", "fast", "--no-sync"])
            .args(["--write-recovery-conf", "--port", &primary.port().to_string(), "--pgdata"])
            .arg(self.data())
            .status();
        assert!(copied.expect("pg_basebackup runs").success(), "pg_basebackup");
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn give(&self, path: &Path) {
        if let Some(owner) = self.owner {
            chown(path, Some(owner.uid), Some(owner.gid)).expect("a new owner");
        }
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("setpriv");
        if let Some(Owner { uid, gid }) = self.owner {
            command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}")).arg("--clear-groups");
        }
        // Should the test be killed, its server does not outlive it.
        command.args(["--pdeathsig", "QUIT", "--"]).arg(self.bin.join(name)).stdin(Stdio::null());
        command
    }

    /// Puts a file into the directory of the data, readable by the server alone.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.data().join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("its mode");
        self.give(&path);
    }

    /// Adds a line to the configuration; it holds from the next start on.
    pub(crate) fn configure(&self, line: &str) {
        let path = self.data().join("postgresql.auto.conf");
        let text = std::fs::read_to_string(&path).expect("the configuration");
        std::fs::write(&path, format!("{text}{line}\n")).expect("the configuration");
    }

    pub(crate) async fn run(&mut self) {
        let server = self
            .program("postgres")
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port().to_string(), "-c", "listen_addresses=127.0.0.1", "-k"])
            .arg(self.data())
            .stdout(Stdio::null())
            .stderr(File::create(self.log()).expect("a log"))
            .spawn();
        let mut server = server.expect("postgres starts");
        for _ in 0..600 {
            if tokio_postgres::connect(&self.url(), NoTls).await.is_ok() {
                self.server = Some(server);
                return;
            }
            if server.try_wait().expect("its status").is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let _ = server.kill();
        panic!("the server does not answer: {}", std::fs::read_to_string(self.log()).expect("a log"));
    }

    /// As `pg_ctl stop -m immediate`: no last checkpoint, no goodbye.
    pub(crate) fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            let pid = i32::try_from(server.id()).ok().and_then(rustix::process::Pid::from_raw);
            let _ = rustix::process::kill_process(pid.expect("a process"), rustix::process::Signal::QUIT);
            let _ = server.wait();
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    pub(crate) fn url(&self) -> String {
        self.url_as("127.0.0.1", "sslmode=disable")
    }

    pub(crate) fn url_as(&self, host: &str, query: &str) -> String {
        format!("postgres://fernery@{host}:{}/postgres?{query}", self.port())
    }

    /// Where a test can keep files of its own.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill();
    }
}

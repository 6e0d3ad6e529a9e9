//! The real program, run as people run it: a server on a free port with a directory of its own, and commands beside it.
#![allow(dead_code, reason = "not every test binary needs all of it")]

pub(crate) mod at_once;
pub(crate) mod patience;

use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// The program with nothing of the tester's own environment that it would read.
pub(crate) fn fernery() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fernery"));
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|n| n.starts_with("FERNERY_")) {
            command.env_remove(name);
        }
    }
    // Nobody's own data folder: it cannot be made there either.
    command.env("XDG_DATA_HOME", "/dev/null").env_remove("SUDO_UID");
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// A tool that is to start the program, with the program's environment.
pub(crate) fn started_by(tool: &str) -> Command {
    let program = fernery();
    let mut command = Command::new(tool);
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null());
    command
}

/// The program where `mounts` has been run before: what it mounts is seen by the program alone and gone with it.
pub(crate) fn with_mounts(mounts: &str) -> Command {
    let program = fernery();
    let mut command = started_by("unshare");
    let needed = "this test mounts file systems: run it as root, or allow user namespaces to users";
    let script = format!("{{ {mounts}; }} || {{ echo '{needed}' >&2; exit 1; }}; exec \"$0\" \"$@\"");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script]).arg(program.get_program());
    command
}

/// Processes on this machine whose environment has this in it.
pub(crate) fn marked(part: &str) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let bears = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.windows(part.len().max(1)).any(|window| window == part.as_bytes())
    };
    pids.filter(bears).collect()
}

/// What a command answered with.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Answer {
    /// The one JSON document on stdout.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("stdout is no JSON ({e}): {self:?}"))
    }

    /// This answer, if it ended so.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        self
    }
}

/// Runs a command in `dir` and takes its answer.
pub(crate) fn run_in<S: AsRef<OsStr>>(dir: &Path, args: impl IntoIterator<Item = S>) -> Answer {
    fernery().current_dir(dir).args(args).output().expect("the program starts").into()
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// A server that is killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    log: Option<JoinHandle<String>>,
    data: PathBuf,
    pub(crate) url: String,
    pub(crate) dir: TempDir,
}

impl Server {
    /// Starts one on a free port, with a directory of its own, and waits until it serves.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), flags)
    }

    /// Starts one whose default azolla has text written by executors elsewhere: its tickets need no repository.
    pub(crate) fn start_for_text() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let blueprint = "extends = \"mec\"\nazolla_id = \"mec\"\ndiazotroph_type = \"TEXT_DIAZOTROPH\"\n\
                         [executors.TEXT_DIAZOTROPH]\nkind = \"remote\"\n";
        std::fs::write(dir.path().join("text.toml"), blueprint).unwrap();
        Self::start_in(dir, &["--azolla", "text.toml"])
    }

    /// Starts one in a directory that may hold what another has left.
    pub(crate) fn start_in(dir: TempDir, flags: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", dir, flags)
    }

    /// Starts one where another has listened, or anywhere.
    pub(crate) fn start_at(listen: &str, dir: TempDir, flags: &[&str]) -> Self {
        let mut command = fernery();
        command.current_dir(dir.path()).args(["up", "--listen", listen]).args(flags);
        Self::spawn(command, dir)
    }

    /// Starts one in a directory that may hold what another has left, with this in its environment.
    pub(crate) fn start_told(dir: TempDir, flags: &[&str], (name, value): (&str, &str)) -> Self {
        let mut command = fernery();
        command.current_dir(dir.path()).env(name, value).args(["up", "--listen", "127.0.0.1:0"]).args(flags);
        Self::spawn(command, dir)
    }

    /// Starts one whose data directory is a small disk of its own, which nobody else sees.
    pub(crate) fn start_on_disk(megabytes: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".fernery")).unwrap();
        let mut command = with_mounts(&format!("mount -t tmpfs -o size={megabytes}m tmpfs .fernery"));
        command.current_dir(dir.path()).args(["up", "--listen", "127.0.0.1:0"]);
        let mut server = Self::spawn(command, dir);
        let seen_by_it = format!("/proc/{}/root{}", server.pid(), server.dir.path().display());
        server.data = Path::new(&seen_by_it).join(".fernery");
        server
    }

    pub(crate) fn spawn(mut command: Command, dir: TempDir) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let Some(url) = line.strip_prefix("listening on ") else {
            let mut stderr = String::new();
            child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            panic!("the server did not start: {line}{stderr}");
        };
        // A full pipe must not stop the server.
        let mut stderr = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            stderr.read_to_string(&mut log).unwrap();
            log
        });
        let data = dir.path().join(".fernery");
        Self { url: url.trim_end().to_string(), child, stdout, log: Some(log), data, dir }
    }

    /// The same, where its configuration names another data directory.
    pub(crate) fn with_data(mut self, data: PathBuf) -> Self {
        self.data = data;
        self
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.data.clone()
    }

    /// Runs a command beside it.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Answer {
        run_in(self.dir.path(), args)
    }

    /// Runs a command with this on its stdin.
    pub(crate) fn run_with_stdin(&self, args: &[&str], stdin: &str) -> Answer {
        let mut command = fernery();
        command.current_dir(self.dir.path()).args(args).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It may refuse before it has read all.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        child.wait_with_output().unwrap().into()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for its end; also answers with what it logged.
    pub(crate) fn ended_with_log(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        (status, self.log.take().unwrap().join().unwrap())
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> (ExitStatus, TempDir) {
        let status = self.child.wait().unwrap();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "nothing but one line goes to stdout");
        let dir = std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap());
        (status, dir)
    }

    /// Calls the server as a worker or producer would, with the token in this file; status and body.
    pub(crate) fn post(&self, token_file: &str, path: &str, body: &Value) -> (u16, Value) {
        self.write("POST", token_file, path, body)
    }

    fn write(&self, method: &str, token_file: &str, path: &str, body: &Value) -> (u16, Value) {
        let token = std::fs::read_to_string(self.data().join(token_file)).unwrap();
        let body = body.to_string();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n",
            token.trim(),
            body.len()
        );
        let (status, reply) = self.exchange(&head, &body);
        (status, serde_json::from_str(&reply).unwrap_or_else(|e| panic!("{e}: {reply}")))
    }

    /// The same, for a call that changes a part of something.
    pub(crate) fn patch(&self, token_file: &str, path: &str, body: &Value) -> (u16, Value) {
        self.write("PATCH", token_file, path, body)
    }

    /// What the operator may read; status and body.
    pub(crate) fn read(&self, path: &str) -> (u16, Value) {
        let (head, reply) = self.read_raw(path);
        (status(&head), serde_json::from_str(&reply).unwrap_or_else(|e| panic!("{e}: {reply}")))
    }

    /// What the operator may read, as it comes: head and body.
    pub(crate) fn read_raw(&self, path: &str) -> (String, String) {
        let token = std::fs::read_to_string(self.data().join("operator.token")).unwrap();
        self.raw(&format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {}\r\n", token.trim()), "")
    }

    /// What anybody may read.
    pub(crate) fn get(&self, path: &str) -> String {
        self.exchange(&format!("GET {path} HTTP/1.1\r\n"), "").1
    }

    fn exchange(&self, head: &str, body: &str) -> (u16, String) {
        let (head, body) = self.raw(head, body);
        (status(&head), body)
    }

    fn raw(&self, head: &str, body: &str) -> (String, String) {
        let address = self.url.strip_prefix("http://").unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "{head}Host: {address}\r\nConnection: close\r\n\r\n{body}").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (format!("{head}\r\n"), body.to_string())
    }

    /// Claims one job; `None` if there is none.
    pub(crate) fn claim(&self, stream: &str) -> Option<Value> {
        let body = serde_json::json!({"worker_id": "w1", "streams": [stream], "max_wait_ms": 0});
        let (status, answer) = self.post("worker.token", "/internal/worker/claim", &body);
        assert_eq!(status, 200, "{answer}");
        (answer["claimed"] == true).then_some(answer)
    }

    /// Ends a claimed job with a failure that no retry can heal.
    pub(crate) fn bury(&self, claimed: &Value, code: &str) {
        let body = serde_json::json!({
            "worker_id": "w1", "job_id": claimed["job_id"], "attempt_id": claimed["attempt_id"],
            "lease_token": claimed["lease_token"], "stream": claimed["stream"],
            "message_id": claimed["message_id"],
            "error": {"code": code, "message": "no", "retryable": false},
        });
        let (status, answer) = self.post("worker.token", "/internal/worker/fail", &body);
        assert_eq!(status, 200, "{answer}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

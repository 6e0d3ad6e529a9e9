//! The real server under `strace`, which makes one of its calls on a file of its own fail, or kills it there.
//!
//! Only calls on the files of the data directory are counted: sockets and logs are left alone. `strace` counts for each
//! system call and each thread apart.

use crate::program::{fernery, started_by};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Nothing that is waited for takes longer unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What changes a file, or may fail before it is changed. Not every machine has those with a `?`.
const WATCHED: &str =
    "pwrite64,write,fsync,fdatasync,ftruncate,openat,?unlink,unlinkat,?rename,renameat,renameat2";

const FILES: [&str; 12] = [
    ".gitignore",
    "fernery.db",
    "fernery.db-wal",
    "fernery.db-shm",
    "fernery.db-journal",
    "fernery.db.lock",
    "operator.token",
    "operator.token.partial",
    "worker.token",
    "worker.token.partial",
    "url",
    "url.new",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `kill -9` instead of the call.
    Kill,
    /// The call fails once as on a dying disk.
    Eio,
    /// The call fails once as on a full disk.
    Enospc,
    /// This call and all later ones fail as on a full disk.
    EnospcFromThere,
}

/// What the server finds when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It makes every file, and the folder itself.
    Nothing,
    /// The files of a server that was killed. Before it serves it writes next to nothing, so that the first calls of the
    /// thread that writes are reached too.
    LeftBehind,
}

/// One fault: the nth call of its name that a thread makes.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) found: Found,
    pub(crate) syscall: String,
    pub(crate) nth: usize,
}

impl Fault {
    fn injection(&self) -> String {
        let Self { syscall, nth, .. } = self;
        match self.kind {
            Kind::Kill => format!("inject={syscall}:signal=KILL:when={nth}"),
            Kind::Eio => format!("inject={syscall}:error=EIO:when={nth}"),
            Kind::Enospc => format!("inject={syscall}:error=ENOSPC:when={nth}"),
            Kind::EnospcFromThere => format!("inject={syscall}:error=ENOSPC:when={nth}+"),
        }
    }
}

/// A server under `strace`; both end with it.
pub(crate) struct Traced {
    strace: Child,
    lines: Receiver<String>,
    dir: PathBuf,
    /// `None` if it ended before it served.
    pub(crate) url: Option<String>,
}

/// How a traced server ended.
pub(crate) struct Ending {
    pub(crate) status: ExitStatus,
    /// Whether the fault came to pass.
    pub(crate) hit: bool,
    /// Whether it did before the server was asked to end, on a file. SQLite passes over a folder that cannot be synced;
    /// the store has synced it itself before it serves.
    pub(crate) hit_file_before_term: bool,
    /// The first calls that failed by it, as `strace` tells them.
    pub(crate) injected: Vec<String>,
    pub(crate) log: String,
}

impl Traced {
    /// Starts one on `dir` and waits until it serves or has ended.
    pub(crate) fn start(dir: &Path, found: Found, fault: Option<&Fault>) -> Self {
        let data = dir.join(".fernery");
        let mut command = started_by("strace");
        command
            .args(["-f", "-qq", "-y", "-o"])
            .arg(dir.join("trace"))
            .args(["-e", &format!("trace={WATCHED}")]);
        for name in FILES {
            command.arg("-P").arg(data.join(name));
        }
        if found == Found::Nothing {
            command.arg("-P").arg(&data);
        }
        if let Some(fault) = fault {
            command.args(["-e", &fault.injection()]);
        }
        command.arg(fernery().get_program()).args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
        let log = std::fs::File::create(dir.join("log")).unwrap();
        let mut strace = command
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("strace; install it with `apt-get install strace`");
        let mut stdout = BufReader::new(strace.stdout.take().unwrap()).lines();
        let (said, lines) = channel();
        std::thread::spawn(move || {
            while let Some(Ok(line)) = stdout.next() {
                let _ = said.send(line);
            }
        });
        let url = match lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line.strip_prefix("listening on ").expect("its address").to_string()),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it neither serves nor ends: {fault:?}"),
        };
        Self { strace, lines, dir: dir.to_owned(), url }
    }

    /// Asks it to end, as an operator would.
    pub(crate) fn terminate(&self) {
        let holder = std::fs::read_to_string(self.dir.join(".fernery/fernery.db.lock")).unwrap();
        let pid = Pid::from_raw(holder.trim().parse().expect("its process id")).unwrap();
        // A fault may have ended it this very moment.
        let _ = kill_process(pid, Signal::TERM);
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> Ending {
        match self.lines.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Disconnected) => {}
            Ok(line) => panic!("nothing but one line goes to stdout: {line}"),
            Err(RecvTimeoutError::Timeout) => panic!("it does not end; {}", self.log()),
        }
        let status = self.strace.wait().unwrap();
        let trace = whole_calls(&self.trace());
        let is_injected = |line: &&String| line.contains("(INJECTED)");
        let hit =
            trace.iter().any(|line| is_injected(&line)) || status.signal() == Some(Signal::KILL.as_raw());
        let hit_file_before_term = trace
            .iter()
            .take_while(|line| !line.contains("--- SIGTERM"))
            .any(|line| is_injected(&line) && !line.contains("/.fernery>)"));
        let injected = trace.iter().filter(is_injected).take(3).cloned().collect();
        Ending { status, hit, hit_file_before_term, injected, log: self.log() }
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.join("log")).unwrap()).into_owned()
    }

    fn trace(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.join("trace")).unwrap()).into_owned()
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // The kernel ends whom strace has started with it.
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

/// The lines of a trace, each with the whole of its call. `strace` cuts a line in two where another thread makes a call
/// meanwhile, and only the first half names the file. The call stands where it ended.
fn whole_calls(trace: &str) -> Vec<String> {
    let mut begun = BTreeMap::new();
    let mut lines = Vec::new();
    for line in trace.lines() {
        let (thread, call) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(begin) = call.strip_suffix("<unfinished ...>") {
            begun.insert(thread, begin.trim());
            continue;
        }
        let end = call.trim_start().strip_prefix("<... ").and_then(|end| end.split_once(" resumed>"));
        lines.push(match end.and_then(|(_, end)| Some((begun.remove(thread)?, end))) {
            Some((begin, end)) => format!("{thread} {begin}{end}"),
            None => line.to_string(),
        });
    }
    lines
}

#[test]
fn a_call_that_another_thread_interrupted_in_the_trace_still_names_its_file() {
    let trace = "7 fsync(5</d/.fernery> <unfinished ...>\n8 openat(AT_FDCWD, \"url\") = 9\n\
        7 <... fsync resumed>) = -1 ENOSPC (No space left on device) (INJECTED)\n7 --- SIGTERM {} ---";
    assert_eq!(
        whole_calls(trace),
        [
            "8 openat(AT_FDCWD, \"url\") = 9",
            "7 fsync(5</d/.fernery>) = -1 ENOSPC (No space left on device) (INJECTED)",
            "7 --- SIGTERM {} ---",
        ]
    );
}

/// How many calls of each name each thread made, by the trace of a run without a fault; its first thread comes first.
pub(crate) fn counted(dir: &Path) -> Vec<BTreeMap<String, usize>> {
    let trace = String::from_utf8_lossy(&std::fs::read(dir.join("trace")).unwrap()).into_owned();
    let mut threads: Vec<(&str, BTreeMap<String, usize>)> = Vec::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        // Also left out: the second half of an interrupted line, and signals.
        let Some((name, _)) = call.trim_start().split_once('(') else { continue };
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let at = threads.iter().position(|(known, _)| *known == thread).unwrap_or_else(|| {
            threads.push((thread, BTreeMap::new()));
            threads.len() - 1
        });
        *threads[at].1.entry(name.to_string()).or_default() += 1;
    }
    assert!(
        !threads.is_empty(),
        "strace saw nothing. It needs ptrace: kernel.yama.ptrace_scope below 3, and in a container the capability \
         SYS_PTRACE. It said: {}",
        String::from_utf8_lossy(&std::fs::read(dir.join("log")).unwrap())
    );
    threads.into_iter().map(|(_, counts)| counts).collect()
}

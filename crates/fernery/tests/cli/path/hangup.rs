//! A terminal goes away: a server that was started to outlive it stays, another one ends.

use super::Detached;
use crate::program::{fernery, started_by};
use std::path::Path;
use std::process::Stdio;

/// Starts a shell command that leads a terminal of its own, waits until a server is announced in the folder, and takes the terminal
/// away. Says how the command ended, or that it did not.
const TERMINAL: &str = r#"
import fcntl, os, pty, sys, termios, time
line, url = sys.argv[1], ".fernery/url"
parent, child = pty.openpty()
leader = os.fork()
if leader == 0:
    os.setsid()
    fcntl.ioctl(child, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(child, fd)
    os.closerange(3, 100)
    os.execvp("sh", ["sh", "-c", line])
os.close(child)
by = time.monotonic() + 60
while not os.path.exists(url) and time.monotonic() < by:
    time.sleep(0.02)
os.close(parent)
wanted = sys.argv[2]
while time.monotonic() < by:
    ended, status = os.waitpid(leader, os.WNOHANG)
    if ended or wanted != "ends" and os.path.exists(wanted) and "reload: nothing has changed" in open(wanted).read():
        print("ended" if ended else "stays")
        break
    time.sleep(0.02)
"#;

fn on_lost_terminal(folder: &Path, before: &str, wanted: &str) -> String {
    let program = fernery().get_program().to_str().unwrap().to_string();
    let line = format!("{before} {program} up --listen 127.0.0.1:0");
    let mut command = started_by("python3");
    command.args(["-c", TERMINAL, &line, wanted]).current_dir(folder).stdin(Stdio::null());
    let output = command.output().expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

#[test]
fn a_server_ends_with_the_terminal_that_it_was_started_on() {
    let dir = tempfile::tempdir().unwrap();
    let server = Detached { folder: dir.path() };
    assert_eq!(on_lost_terminal(dir.path(), "exec", "ends"), "ended");
    server.run(["job", "list"]).exits(1);
}

#[test]
fn a_server_under_nohup_outlives_its_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let server = Detached { folder: dir.path() };
    // The hangup arrives, and is taken for the wish to read the blueprints again.
    assert_eq!(on_lost_terminal(dir.path(), "exec nohup", "nohup.out"), "stays");
    server.run(["ticket", "new", "--title", "still here"]).exits(0);
    server.run(["job", "list"]).exits(0);
}

#[test]
fn a_server_under_setsid_outlives_its_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let server = Detached { folder: dir.path() };
    assert_eq!(on_lost_terminal(dir.path(), "setsid", "ends"), "ended", "the shell has ended");
    // It still writes to the terminal that is gone.
    server.run(["ticket", "new", "--title", "still here"]).exits(0);
    server.run(["job", "list"]).exits(0);
}

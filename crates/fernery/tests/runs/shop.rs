//! A server that hosts one azolla, and an operator.

pub(crate) use crate::program::patience::eventually;
use crate::program::{Server, fernery};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use tempfile::TempDir;

pub(crate) struct Shop {
    pub(crate) server: Server,
}

/// The blueprint of an azolla `shop` whose executors are elsewhere and write text.
pub(crate) const REMOTE: &str = "extends = \"mec\"\nazolla_id = \"shop\"\ndiazotroph_type = \"TEXT_DIAZOTROPH\"\n\
                                 [executors.TEXT_DIAZOTROPH]\nkind = \"remote\"\n";

/// The blueprint of an azolla `shop` whose executor is this shell script, with more of it.
pub(crate) fn blueprint(script: &str, more: &str) -> String {
    format!(
        "extends = \"mec\"\nazolla_id = \"shop\"\ndiazotroph_type = \"SHELL_DIAZOTROPH\"\nbranch_prefix = \"\"\n{more}\n\
         [executors.SHELL_DIAZOTROPH]\nkind = \"command\"\nargv = [\"/bin/sh\", \"-c\", {}]\nsandbox = \"none\"\nenv = [\"PATH\"]\n",
        json!(script)
    )
}

impl Shop {
    pub(crate) fn open(blueprint: &str, flags: &[&str]) -> Self {
        Self::open_in(tempfile::tempdir().unwrap(), blueprint, flags)
    }

    pub(crate) fn open_in(dir: TempDir, blueprint: &str, flags: &[&str]) -> Self {
        write(dir.path(), blueprint);
        let mut all = vec!["--azolla", "shop.toml", "--lease-ttl", "2s"];
        all.extend(flags);
        Self { server: Server::start_in(dir, &all) }
    }

    /// As [`Self::open`], of one that has these in its environment.
    pub(crate) fn open_with_env(blueprint: &str, flags: &[&str], env: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), blueprint);
        let mut command = fernery();
        command.current_dir(dir.path()).envs(env.iter().copied()).args(["up", "--listen", "127.0.0.1:0"]);
        command.args(["--azolla", "shop.toml", "--lease-ttl", "2s"]).args(flags);
        Self { server: Server::spawn(command, dir) }
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.server.post("operator.token", path, &body)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, body) = self.server.read(path);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Writes a ticket down and approves it.
    pub(crate) fn ticket(&self, id: &str) {
        let (status, body) = self.post("/v1/objectives", new_ticket(id));
        assert!(matches!(status, 200 | 201), "{status} {body}");
        let digest = self.objective(id)["approval"]["digest"].clone();
        let (status, body) = self.post(&format!("/v1/objectives/{id}/approve"), json!({"digest": digest}));
        assert!(matches!(status, 200 | 201), "{status} {body}");
    }

    pub(crate) fn objective(&self, id: &str) -> Value {
        self.get(&format!("/v1/objectives/{id}"))
    }

    /// Waits until the objective is so.
    pub(crate) fn until(&self, id: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Value::Null;
        let so = eventually(|| {
            seen = self.objective(id);
            is_so(&seen)
        });
        assert!(so, "it never came to: {what}: {seen:#}");
        seen
    }

    /// As an operator calls it; what is refused is a failure.
    pub(crate) fn call(&self, method: &str, path: &str, body: Value) -> Option<Value> {
        if method == "GET" {
            return Some(self.get(path));
        }
        let (status, answer) = self.post(path, body);
        assert!(matches!(status, 200..=202), "{path}: {status} {answer}");
        Some(answer)
    }

    pub(crate) fn until_status(&self, id: &str, status: &str) -> Value {
        self.until(id, status, |objective| objective["objective"]["status"] == status)
    }
}

pub(crate) fn new_ticket(id: &str) -> Value {
    json!({"objective_id": id, "azolla_id": "shop", "title": "Do it", "acceptance_criteria": "It is done"})
}

fn try_call(address: &str, token: &str, method: &str, path: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nHost: {address}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

pub(crate) fn write(dir: &Path, blueprint: &str) {
    std::fs::write(dir.join("shop.toml"), blueprint).unwrap();
}

/// Starts a server that is to die at a failpoint, has a ticket approved there, and waits for its death.
pub(crate) fn dies_at(failpoint: &str, dir: &Path, flags: &[&str]) {
    dies_while(failpoint, dir, flags, |call| {
        call("POST", "/v1/objectives", new_ticket("t"))?;
        let digest = call("GET", "/v1/objectives/t", Value::Null)?["approval"]["digest"].clone();
        call("POST", "/v1/objectives/t/approve", json!({"digest": digest}))
    });
}

/// Calls a server that may be dead: method, path, body; `None`: it did not answer.
pub(crate) type Call<'a> = dyn Fn(&str, &str, Value) -> Option<Value> + 'a;

/// Starts a server that is to die at a failpoint while somebody does this to it, and waits for its death.
pub(crate) fn dies_while(
    failpoint: &str,
    dir: &Path,
    flags: &[&str],
    acts: impl FnOnce(&Call<'_>) -> Option<Value>,
) {
    let mut command = fernery();
    command.current_dir(dir).env("FERNERY_FAILPOINT", failpoint);
    command.args(["up", "--listen", "127.0.0.1:0", "--azolla", "shop.toml", "--lease-ttl", "2s"]).args(flags);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    // It may die before it serves, or while it answers.
    if let Some(url) = line.trim_end().strip_prefix("listening on http://") {
        let token = std::fs::read_to_string(dir.join(".fernery/operator.token")).unwrap();
        acts(&|method, path, body: Value| {
            let body = if body.is_null() { String::new() } else { body.to_string() };
            let answer = try_call(url, token.trim(), method, path, &body).ok()?;
            serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
        });
    }
    assert!(eventually(|| child.try_wait().unwrap().is_some()), "it never came to {failpoint}");
}

/// Asks again until the objective is so; `None`: the server is dead.
pub(crate) fn comes_to(call: &Call<'_>, id: &str, is_so: impl Fn(&Value) -> bool) -> Option<Value> {
    let mut seen = None;
    let so = eventually(|| {
        seen = call("GET", &format!("/v1/objectives/{id}"), Value::Null);
        seen.as_ref().is_none_or(&is_so)
    });
    assert!(so, "it never came to it: {seen:?}");
    seen
}

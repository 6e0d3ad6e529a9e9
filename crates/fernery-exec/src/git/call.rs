//! One call of git: independent of the environment and of any configuration, without questions to the user, and with a
//! time limit.

use super::owner::Owner;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// The longest that one call may take: a checkout of a large repository on a slow disk.
const CALL_WITHIN: Duration = Duration::from_secs(600);
/// Bytes of a call's output.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;
/// Bytes of a call's stderr that are kept.
const COMPLAINT_BYTES_MAX: u64 = 4 << 10;

/// Settings for every call, whatever the repository's own configuration says.
const ALWAYS: [&str; 15] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.quotePath=true",
    "core.fileMode=true",
    "protocol.allow=never",
    "submodule.recurse=false",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
    "diff.external=",
];

/// A git directory to call git on, and what it works with.
#[derive(Clone, Debug)]
pub struct Git {
    dir: PathBuf,
    tree: Option<PathBuf>,
    index: Option<PathBuf>,
    owner: Option<Owner>,
    /// Whether it writes in a repository that is not ours.
    writes: bool,
    settings: Vec<String>,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitError {
    /// There is no git, or it did not start.
    NotStarted(String),
    /// git exited with an error.
    Refused {
        /// The git subcommand.
        call: String,
        /// How it exited; `None`: by a signal.
        code: Option<i32>,
        /// The beginning of its stderr.
        said: String,
    },
    /// It was killed: it took too long, or wrote too much.
    Ended(String),
}

impl fmt::Display for GitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(why) => write!(f, "cannot run git: {why}"),
            Self::Refused { call, said, .. } if said.is_empty() => write!(f, "git {call} failed"),
            Self::Refused { call, said, .. } => write!(f, "git {call}: {said}"),
            Self::Ended(why) => f.write_str(why),
        }
    }
}

impl Git {
    /// Calls on this git directory.
    pub fn at(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            tree: None,
            index: None,
            owner: None,
            writes: false,
            settings: Vec::new(),
        }
    }

    /// With these files as its work tree.
    pub fn tree(mut self, tree: &Path) -> Self {
        self.tree = Some(tree.to_owned());
        self
    }

    /// With this index instead of its own.
    pub fn index(mut self, index: &Path) -> Self {
        self.index = Some(index.to_owned());
        self
    }

    /// Writes in a folder of somebody else's, as its owner would. Such a call is never ended from here: git that is killed
    /// leaves lock files behind, which keep others out.
    pub fn writing_in(mut self, folder: &Path) -> Self {
        self.owner = Owner::of(folder);
        self.writes = true;
        self
    }

    /// With these settings (`name=value`) beside those of every call.
    pub fn settings(mut self, settings: Vec<String>) -> Self {
        self.settings = settings;
        self
    }

    /// Calls git and answers what it wrote.
    pub async fn call<A: AsRef<OsStr>>(&self, args: &[A], stdin: &[u8]) -> Result<Vec<u8>, GitError> {
        self.call_with(args, stdin, &[]).await
    }

    /// Calls git with some more variables.
    pub async fn call_with<A: AsRef<OsStr>>(
        &self,
        args: &[A],
        stdin: &[u8],
        env: &[(&str, &str)],
    ) -> Result<Vec<u8>, GitError> {
        self.answered(args, stdin, env, &[0]).await.map(|(_, output)| output)
    }

    /// Calls git for an answer that is yes (exit 0) or no (exit 1).
    pub async fn asks<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<bool, GitError> {
        self.asked(args).await.map(|(yes, _)| yes)
    }

    /// Calls git and answers its exit code, which is one of `good`, with what it wrote.
    async fn answered<A: AsRef<OsStr>>(
        &self,
        args: &[A],
        stdin: &[u8],
        env: &[(&str, &str)],
        good: &[i32],
    ) -> Result<(i32, Vec<u8>), GitError> {
        let name = args.first().map(|word| word.as_ref().to_string_lossy().into_owned()).unwrap_or_default();
        let called = tokio::time::timeout(CALL_WITHIN, self.once(args, stdin, env));
        match called.await {
            Ok(Ok((Some(code), output, _))) if good.contains(&code) => {
                if output.len() as u64 > OUTPUT_BYTES_MAX {
                    return Err(GitError::Ended(format!(
                        "git {name} wrote more than {OUTPUT_BYTES_MAX} bytes"
                    )));
                }
                Ok((code, output))
            }
            Ok(Ok((code, _, said))) => Err(GitError::Refused { call: name, code, said }),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(GitError::NotStarted(format!("{error}; install the package git")))
            }
            Ok(Err(error)) => Err(GitError::NotStarted(error.to_string())),
            Err(_) => Err(GitError::Ended(format!("git {name} took longer than {CALL_WITHIN:?}"))),
        }
    }

    /// Calls git where exit code 1 is an answer too; answers whether it was 0, and what it wrote.
    pub async fn asked<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<(bool, Vec<u8>), GitError> {
        self.answered(args, b"", &[], &[0, 1]).await.map(|(code, output)| (code == 0, output))
    }

    /// Calls git for one line.
    pub async fn line<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<String, GitError> {
        let output = self.call(args, b"").await?;
        Ok(String::from_utf8_lossy(&output).trim_end_matches('\n').to_string())
    }

    async fn once<A: AsRef<OsStr>>(
        &self,
        args: &[A],
        stdin: &[u8],
        env: &[(&str, &str)],
    ) -> std::io::Result<(Option<i32>, Vec<u8>, String)> {
        let mut command = self.command();
        command.args(args).envs(env.iter().copied());
        let mut child = command.spawn()?;
        let mut feeding = child.stdin.take();
        let (mut output, mut complaints) = (Vec::new(), Vec::new());
        let feed = async move {
            if let Some(pipe) = &mut feeding {
                // git may end without reading all of its stdin.
                let _ = pipe.write_all(stdin).await;
            }
        };
        let stdout = child.stdout.take();
        let read = async {
            if let Some(pipe) = stdout {
                let _ = pipe.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut output).await;
            }
        };
        let stderr = child.stderr.take();
        let listen = async {
            if let Some(mut pipe) = stderr {
                let _ = (&mut pipe).take(COMPLAINT_BYTES_MAX).read_to_end(&mut complaints).await;
                let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
            }
        };
        tokio::join!(feed, read, listen);
        let status = child.wait().await?;
        let said = String::from_utf8_lossy(&complaints).trim().replace('\n', "; ");
        Ok((status.code(), output, fernery_core::names::showable(&said)))
    }

    fn command(&self) -> Command {
        let mut command = self.owner.as_ref().map_or_else(|| Command::new("git"), Owner::command);
        command.env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs([
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("HOME", "/dev/null"),
            ("LC_ALL", "C"),
        ]);
        command.env("GIT_DIR", &self.dir);
        if let Some(tree) = &self.tree {
            command.env("GIT_WORK_TREE", tree).current_dir(tree);
        }
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        for setting in ALWAYS.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(!self.writes);
        command
    }
}

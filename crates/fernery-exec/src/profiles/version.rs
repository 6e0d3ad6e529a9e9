//! What a program says is its version.

use fernery_core::calendar::duration;
use fernery_core::names::showable;
use rustix::process::{Pid, Signal, kill_process_group};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// How long a program may take to print its version.
pub const VERSION_WITHIN: Duration = Duration::from_secs(10);
/// Bytes of a version that are looked at.
const VERSION_BYTES_MAX: u64 = 4 << 10;
/// Characters of a version that are kept.
const VERSION_CHARS_MAX: usize = 100;
/// The variables that it sees: no keys.
const SEEN: [&str; 3] = ["PATH", "HOME", "LANG"];

/// The first line that a program prints when it is called so.
pub async fn printed(program: &Path, args: &[String], patience: Duration) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.env_clear().envs(SEEN.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    let mut child = command.process_group(0).kill_on_drop(true).spawn().map_err(|e| e.to_string())?;
    let group = child.id().and_then(|id| Pid::from_raw(id as i32));
    let mut out = child.stdout.take().ok_or("it has no output")?.take(VERSION_BYTES_MAX);
    let asked = async {
        let mut text = Vec::new();
        out.read_to_end(&mut text).await.map_err(|e| e.to_string())?;
        drop(out);
        let status = child.wait().await.map_err(|e| e.to_string())?;
        Ok::<_, String>((text, status))
    };
    let asked = tokio::time::timeout(patience, asked).await;
    if let (Some(group), Err(_)) = (group, &asked) {
        // What it has started goes with it.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let (text, status) = asked.map_err(|_| format!("it took longer than {}", duration::show(patience)))??;
    if !status.success() {
        return Err(format!("it ended with {status}"));
    }
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).ok_or("it printed nothing")?;
    Ok(showable(&line.chars().take(VERSION_CHARS_MAX).collect::<String>()))
}

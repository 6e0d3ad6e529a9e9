//! Finds processes by a mark in their environment, as an operator with `grep` in `/proc` would.

use std::fs;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often `/proc` is looked at; nobody tells when a process is there.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Nothing that a test waits for takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A variable with a value that nobody else has.
#[derive(Debug)]
pub(crate) struct Mark {
    name: String,
    value: String,
}

/// A process that bears a mark.
#[derive(Debug)]
pub(crate) struct Marked {
    pub(crate) command_line: String,
    state: char,
}

impl Mark {
    /// A new one under this name.
    pub(crate) fn new(name: &str) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { name: name.into(), value: format!("mark-{}-{count}", std::process::id()) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn value(&self) -> &str {
        &self.value
    }

    /// Everybody who bears it and has not ended.
    pub(crate) fn bearers(&self) -> Vec<Marked> {
        let wanted = format!("{}={}", self.name, self.value);
        pids()
            .filter(|pid| {
                fs::read(format!("/proc/{pid}/environ"))
                    .is_ok_and(|all| all.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
            })
            .filter_map(|pid| {
                let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                let state = stat.rsplit_once(") ")?.1.chars().next()?;
                Some(Marked { command_line: command_line(pid)?, state })
            })
            .filter(|process| !matches!(process.state, 'Z' | 'X'))
            .collect()
    }

    /// Waits until a bearer runs this program.
    pub(crate) async fn appears(&self, program: &str) {
        self.wait(PATIENCE, &format!("no {program} with {self:?}"), |all| {
            all.iter().any(|p| p.command_line.split(' ').next() == Some(program))
        })
        .await;
    }

    /// Waits until a bearer is stopped.
    pub(crate) async fn stopped(&self) {
        self.wait(PATIENCE, "nobody is stopped", |all| all.iter().any(|p| p.state == 'T')).await;
    }

    /// Waits until nobody bears it any more.
    pub(crate) async fn gone_within(&self, within: Duration) {
        self.wait(within, "somebody is left", |all| all.is_empty()).await;
    }

    async fn wait(&self, within: Duration, or: &str, done: impl Fn(&[Marked]) -> bool) {
        let until = Instant::now() + within;
        loop {
            let all = self.bearers();
            if done(&all) {
                return;
            }
            assert!(Instant::now() < until, "{or}: {all:?}");
            sleep(LOOK_EVERY).await;
        }
    }

    /// Nobody bears it at this moment.
    #[track_caller]
    pub(crate) fn assert_gone_now(&self) {
        let left = self.bearers();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

fn pids() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn command_line(pid: i32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end_matches('\0').replace('\0', " "))
}

/// Waits until exactly so many processes run that were called with this argument alone.
pub(crate) async fn with_argument(argument: &str, count: usize, within: Duration) {
    let until = Instant::now() + within;
    loop {
        let found: Vec<_> = pids()
            .filter_map(command_line)
            .filter(|line| line.ends_with(&format!("sleep {argument}")))
            .collect();
        if found.len() == count {
            return;
        }
        assert!(Instant::now() < until, "{count} expected: {found:?}");
        sleep(LOOK_EVERY).await;
    }
}

/// The machine's time in seconds, as a script reads it from the same file.
pub(crate) fn uptime() -> f64 {
    let text = fs::read_to_string("/proc/uptime").expect("the uptime");
    text.split(' ').next().expect("a number").parse().expect("seconds")
}

/// The most memory that a process has ever had.
pub(crate) fn peak_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

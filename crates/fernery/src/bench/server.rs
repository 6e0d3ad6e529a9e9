//! The measured servers: child processes of this program, on free loopback ports, ended with the bench.

use anyhow::{Context, Result, bail, ensure};
use fernery_engine::door::stop_watch;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A child that listens.
pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
    pub(super) data: PathBuf,
    pub(super) operator: String,
    pub(super) worker: String,
}

impl Server {
    /// `fernery up` on a database, with its data in `data`, and maybe with Redis as transport.
    pub(super) async fn up(data: &Path, database: &str, redis: Option<&str>) -> Result<Self> {
        Self::hosting(data, database, redis, &[]).await
    }

    /// As [`Self::up`], with the azollas of these files.
    pub(super) async fn hosting(
        data: &Path,
        database: &str,
        redis: Option<&str>,
        azollas: &[PathBuf],
    ) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["up", "--listen", "127.0.0.1:0", "--retention", "365d", "--log-level", "warn"]);
        command.args(["--database", database]);
        command.arg("--data").arg(data);
        for file in azollas {
            command.arg("--azolla").arg(file);
        }
        // Not as an argument: other processes could read the password.
        match redis {
            Some(url) => command.env("FERNERY_REDIS", url),
            None => command.env_remove("FERNERY_REDIS"),
        };
        let (child, address) = start(command).await?;
        let token = |name: &str| {
            let path = data.join(name);
            std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
        };
        let operator = token("operator.token")?.trim().to_owned();
        let worker = token("worker.token")?.trim().to_owned();
        Ok(Self { child, address, data: data.to_path_buf(), operator, worker })
    }

    pub(super) async fn echo() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "--serve-echo"]);
        let (child, address) = start(command).await?;
        Ok(Self { child, address, data: PathBuf::new(), operator: String::new(), worker: "none".into() })
    }

    /// How long a command takes as a person runs it, from its start to its end, in milliseconds.
    pub(super) async fn command_ms(&self, args: &[&str]) -> Result<f64> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(args).current_dir(&self.data).env("FERNERY_DATA", &self.data).stdin(Stdio::null());
        for other in ["FERNERY_CONFIG", "FERNERY_URL", "FERNERY_TOKEN"] {
            command.env_remove(other);
        }
        let began = stop_watch();
        let done = command.output().await.with_context(|| format!("running fernery {}", args.join(" ")))?;
        let took = began.elapsed().as_secs_f64() * 1_000.0;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "fernery {}: {}: {said}", args.join(" "), done.status);
        Ok(took)
    }

    /// Resident memory in bytes.
    pub(super) fn resident_bytes(&self) -> Result<u64> {
        let id = self.child.id().context("the server has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let kib = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok())
            .context("no VmRSS in /proc")?;
        Ok(kib * 1024)
    }

    /// How long it has used a core, in user code and in the kernel.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        /// Linux tells times of processes in hundredths of a second, whatever the machine.
        const TICK_MS: u64 = 10;
        let id = self.child.id().context("the server has ended")?;
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The name of the program, in brackets, may have spaces in it.
        let fields = stat.rsplit_once(") ").context("no fields in /proc")?.1;
        let ticks: u64 =
            fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * TICK_MS))
    }

    pub(super) async fn stop(mut self) -> Result<()> {
        self.child.kill().await.context("stopping the server")
    }
}

async fn start(mut command: Command) -> Result<(Child, SocketAddr)> {
    let mut child = command
        .env_remove("FERNERY_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("starting a server")?;
    let stdout = child.stdout.take().context("no output of the server")?;
    let mut lines = BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some((_, address)) = line.split_once("listening on http://") {
            let address = address.trim().trim_end_matches('/').parse()?;
            // Read on, or a full pipe would block the server.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok((child, address));
        }
    }
    bail!("the server ended before it listened")
}

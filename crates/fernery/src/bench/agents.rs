//! Tickets on a repository, with a scripted agent. Measures the time before the agent starts and after it ends, whether
//! a repository with a large history makes that time longer or copies more, and how long a merge takes.

use super::pipeline::approved_with;
use super::{Bench, quantile};
use crate::config::{Repos, repos};
use crate::workers::{Pipeline, Surroundings};
use anyhow::{Context, Result, anyhow, bail, ensure};
use fernery_core::artifact::{AzollaId, ObjectiveId, OutputBundle, RecordId, WorkorderId};
use fernery_core::blueprint::{Blueprint, MEC_TOML};
use fernery_core::pipeline::draft::Draft;
use fernery_core::pipeline::landing::LandingState;
use fernery_core::pipeline::membrane::{self, Outcome};
use fernery_engine::pipeline::acts::{Actor, Refusal};
use fernery_engine::pipeline::decisions::{self, Deciding};
use fernery_engine::pipeline::landing::{self, Landing, MergeOf};
use fernery_engine::pipeline::reading;
use fernery_engine::{Database, Engine, EngineSettings, door};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

const BLUEPRINT: &str = "extends = \"mec\"\nazolla_id = \"agents\"\n\
    gates = [{ kind = \"schema\" }, { kind = \"outcome\" }, { kind = \"patch\" }, { kind = \"applies\" }]\n\
    [executors.PATCH_DIAZOTROPH]\nkind = \"agent\"\nprofile = \"mock\"\n\
    [limits]\nconcurrency = 0\nreview_limit = 0\n";
/// The longest that `ticket merge` may take on a small repository, without its gates.
const MERGE_MS_MAX: f64 = 300.0;
/// Bytes of one object of the large repository.
const OBJECT_BYTES: usize = 4 << 20;
/// The longest that one ticket may take.
const TICKET_WITHIN: Duration = Duration::from_secs(60);

/// The times of one ticket in milliseconds, and how much was copied for it.
struct Taken {
    start_ms: f64,
    end_ms: f64,
    copied_bytes: f64,
}

struct Agents {
    engine: Engine,
    pipeline: Pipeline,
    trash: PathBuf,
}

impl Bench {
    pub(super) async fn agents(&mut self) -> Result<()> {
        let (folder, objects) = (self.folder.join("agents"), self.args.objects_mb);
        std::fs::create_dir_all(&folder)?;
        self.progress.step(&format!("{}: a repository with {objects} MB of objects", self.name("agents")));
        let made = folder.clone();
        tokio::task::spawn_blocking(move || -> Result<()> {
            repository(&made.join("small"), 0)?;
            if objects > 0 { repository(&made.join("large"), objects) } else { Ok(()) }
        })
        .await??;
        let mut names = vec!["small"];
        names.extend((objects > 0).then_some("large"));
        let agents = self.agents_at(&folder, &names).await?;
        self.progress.step(&format!("{}: {} tickets", self.name("agents"), self.args.tickets));
        agents.ticket("warm", "small").await?;
        // In turns, so that a noisy second hits both.
        let mut taken: Vec<Vec<Taken>> = names.iter().map(|_| Vec::new()).collect();
        let mut merged_ms = Vec::new();
        for n in 0..self.args.tickets.max(1) {
            for (repo, taken) in names.iter().zip(&mut taken) {
                taken.push(agents.ticket(&format!("{repo}-{n}"), repo).await?);
            }
            merged_ms.push(agents.merge(&format!("small-{n}")).await?);
        }
        agents.end().await;
        let of = |taken: &[Taken], what: fn(&Taken) -> f64, p| {
            quantile(&mut taken.iter().map(what).collect::<Vec<f64>>(), p)
        };
        let small = &taken[0];
        for (what, figure) in
            [("agent_start", (|t: &Taken| t.start_ms) as fn(&Taken) -> f64), ("agent_end", |t| t.end_ms)]
        {
            self.value(self.name(&format!("{what}_p50")), of(small, figure, 0.5), "ms")?;
            self.value(self.name(&format!("{what}_p95")), of(small, figure, 0.95), "ms")?;
        }
        self.value(self.name("agent_copied"), of(small, |t| t.copied_bytes, 1.0), "bytes")?;
        self.at_most("merge_p50", quantile(&mut merged_ms, 0.5), "ms", MERGE_MS_MAX)?;
        self.value(self.name("merge_p95"), quantile(&mut merged_ms, 0.95), "ms")?;
        let Some(large) = taken.get(1) else { return Ok(()) };
        self.value(self.name("agent_objects"), objects as f64, "MB")?;
        self.value(self.name("agent_start_large_p50"), of(large, |t| t.start_ms, 0.5), "ms")?;
        let ratio = of(large, |t| t.start_ms, 0.5) / of(small, |t| t.start_ms, 0.5);
        self.at_most("agent_start_flatness", ratio, "ratio", 1.25)?;
        let copied = of(large, |t| t.copied_bytes, 1.0) / of(small, |t| t.copied_bytes, 1.0);
        self.at_most("agent_copied_flatness", copied, "ratio", 1.25)
    }

    async fn agents_at(&self, folder: &Path, names: &[&str]) -> Result<Agents> {
        let data = folder.join("data");
        std::fs::create_dir_all(&data)?;
        let database = match &self.args.database {
            Some(url) => Database::Postgres(url.clone()),
            None => Database::Sqlite(data.join("bench.db")),
        };
        let engine = Engine::open(&database, EngineSettings::default()).await.map_err(|e| anyhow!("{e}"))?;
        let parsed = Blueprint::parse(BLUEPRINT, &|name| (name == "mec").then(|| MEC_TOML.to_string()));
        let blueprint = parsed.map_err(|flaws| anyhow!("{flaws:?}"))?;
        let texts: Vec<String> = names.iter().map(|name| format!("{name}={name}#main")).collect();
        let repos: Repos = repos::parse(&texts, folder).map_err(|why| anyhow!(why))?;
        let around = Surroundings { repos, ..Surroundings::default() };
        let pipeline = Pipeline::start(engine.clone(), vec![blueprint], data.clone(), around)
            .await
            .map_err(|e| anyhow!("{e}"))?;
        Ok(Agents { engine, pipeline, trash: data.join("trash") })
    }
}

impl Agents {
    /// One ticket from its approval to its verdict.
    async fn ticket(&self, id: &str, repo: &str) -> Result<Taken> {
        // The agent writes one file first and one last: their times say when it began and ended.
        let script = format!("mock: write began.txt {id}\nmock: write ended.txt {id}");
        let draft = Draft {
            title: "Change something".into(),
            acceptance_criteria: script,
            importance: 2,
            urgency: 2,
            metadata: [("repo_ref".to_string(), json!(repo))].into(),
        };
        let substrate = self.engine.substrate();
        let azolla = AzollaId::stored("agents");
        let approved_at = approved_with(&substrate, ObjectiveId::stored(id), azolla, draft).await?;
        let until = door::stop_watch() + TICKET_WITHIN;
        let (work, bundle, judged_at) = loop {
            if let Some((work, bundle)) = self.judged(id).await? {
                break (work, bundle, door::wall_clock().as_millis() as f64);
            }
            ensure!(door::stop_watch() < until, "ticket {id} gets no verdict");
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        let outcome = membrane::outcome(&bundle.metadata);
        if outcome != Outcome::Patch {
            bail!(
                "no agent can be measured: ticket {id} came to {outcome}: {} {}",
                bundle.title,
                bundle.notes
            );
        }
        // The agent's folder exists until its work is handed in; then it is in the trash.
        let run = loop {
            if let Some(run) = in_trash(&self.trash, &work) {
                break run;
            }
            ensure!(door::stop_watch() < until, "the folder of ticket {id} is not in the trash");
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        let written = |file: &str| -> Result<f64> {
            let file = run.join("tree").join(file);
            let meta = std::fs::metadata(&file).with_context(|| format!("reading {}", file.display()))?;
            millis(meta.modified()?)
        };
        Ok(Taken {
            start_ms: written("began.txt")? - approved_at.as_millis() as f64,
            end_ms: judged_at - written("ended.txt")?,
            copied_bytes: bytes_in(&run)? as f64,
        })
    }

    /// From an operator's wish until the branch and its working tree have the patch, in milliseconds. No gate runs a program.
    async fn merge(&self, id: &str) -> Result<f64> {
        let (substrate, objective_id, who) =
            (self.engine.substrate(), ObjectiveId::stored(id), Actor("bench".into()));
        let deciding = || Deciding {
            record_id: RecordId::stored(&door::artifact_id()),
            digest: None,
            note: None,
            premises: None,
            from_scratch: false,
        };
        let (of, confirming, wanting) = (objective_id.clone(), deciding(), deciding());
        let since = door::stop_watch();
        let asked = substrate.act(&objective_id, move |sql| {
            let Some(landing) = landing::of(sql, &of)? else {
                return Ok(Err(Refusal::Conflict("it has no patch to merge".into())));
            };
            if let Err(refusal) = decisions::confirm(sql, &who, (&of, &landing.run_id), &confirming)? {
                return Ok(Err(refusal));
            }
            let Landing { run_id, patch_sha256, base_commit: tip, .. } = landing;
            landing::merge(sql, &who, (&of, &MergeOf { run_id, patch_sha256, tip }), &wanting)
        });
        asked.await.map_err(|e| anyhow!("{e}"))?.map_err(|refusal| anyhow!("{refusal:?}"))?;
        loop {
            let of = objective_id.clone();
            let landing =
                substrate.read(move |sql| landing::of(sql, &of)).await.map_err(|e| anyhow!("{e}"))?;
            let landing = landing.context("the landing is gone")?;
            match landing.state {
                LandingState::Landed => return Ok(since.elapsed().as_secs_f64() * 1e3),
                LandingState::Wanted | LandingState::Moving => {}
                other => bail!("ticket {id} does not land: {other}: {:?}", landing.why),
            }
            ensure!(since.elapsed() < TICKET_WITHIN, "ticket {id} does not land");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The workorder of a ticket that has its verdict, and what came out.
    async fn judged(&self, id: &str) -> Result<Option<(String, OutputBundle)>> {
        let (id, substrate) = (id.to_string(), self.engine.substrate());
        let found = substrate.read(move |sql| {
            let rows = sql.query(
                "SELECT work_order_id FROM workorders WHERE objective_id = $1 AND judged LIMIT 1;",
                &[id.as_str().into()],
            )?;
            let Some(row) = rows.first() else { return Ok(None) };
            let work = row.text(0)?.to_string();
            Ok(reading::bundle(sql, &WorkorderId::stored(&work))?.map(|bundle| (work, bundle)))
        });
        found.await.map_err(|e| anyhow!("{e}"))
    }

    async fn end(self) {
        self.pipeline.stop().await;
        self.engine.close().await;
    }
}

fn millis(at: SystemTime) -> Result<f64> {
    Ok(at.duration_since(SystemTime::UNIX_EPOCH).context("a time before all times")?.as_secs_f64() * 1e3)
}

fn in_trash(trash: &Path, work_order_id: &str) -> Option<PathBuf> {
    let all = std::fs::read_dir(trash).ok()?.flatten();
    all.map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(work_order_id)))
}

/// Bytes of all files in a folder, without those that are only linked.
fn bytes_in(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        bytes += if meta.is_dir() { bytes_in(&entry.path())? } else { meta.len() };
    }
    Ok(bytes)
}

/// Makes a repository with this many megabytes of incompressible objects in one pack. The last commit contains none of them.
/// Without them it has a working tree, as that of a person.
fn repository(dir: &Path, megabytes: usize) -> Result<()> {
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").args(args);
        git
    };
    let named = dir.display().to_string();
    let bare: &[&str] = if megabytes > 0 { &["--bare"] } else { &[] };
    let init = [&["init", "--quiet", "--initial-branch", "main"], bare, &[named.as_str()]].concat();
    let made = git(&init).status();
    ensure!(made.context("git is needed")?.success(), "git made no repository at {named}");
    let mut import = git(&["-C", &named, "-c", "core.compression=0", "-c", "pack.compression=0"]);
    import.args(["-c", "fastimport.unpackLimit=0", "fast-import", "--quiet"]);
    let mut import = import.stdin(Stdio::piped()).spawn().context("git is needed")?;
    let mut to = std::io::BufWriter::new(import.stdin.take().context("git reads nothing")?);
    let commit = "commit refs/heads/main\ncommitter bench <bench@localhost> 1790000000 +0000\ndata 1\nc\n";
    write!(to, "{commit}")?;
    let (mut noise, mut object) = (Noise(0x9E37_79B9_7F4A_7C15), vec![0; OBJECT_BYTES]);
    for n in 0..(megabytes << 20).div_ceil(OBJECT_BYTES) {
        noise.fill(&mut object);
        write!(to, "M 100644 inline large-{n}\ndata {OBJECT_BYTES}\n")?;
        to.write_all(&object)?;
        writeln!(to)?;
    }
    write!(to, "{commit}deleteall\nM 100644 inline file.txt\ndata 6\nhello\n\ndone\n")?;
    to.into_inner().map_err(|error| anyhow!("{error}"))?.flush()?;
    if !import.wait()?.success() {
        bail!("git did not fill the repository at {named}");
    }
    if megabytes == 0 {
        let checked_out = git(&["-C", &named, "reset", "--quiet", "--hard", "main"]).status()?;
        ensure!(checked_out.success(), "git checked nothing out at {named}");
    }
    Ok(())
}

/// Incompressible bytes, the same in every run.
struct Noise(u64);

impl Noise {
    fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            word.copy_from_slice(&self.0.to_le_bytes()[..word.len()]);
        }
    }
}

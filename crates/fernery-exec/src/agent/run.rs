//! One run of an agent on a workorder: preflight, clone, the agent itself, its patch, and the bundle to hand in.
//!
//! However the run ends, the patch is taken before anything is cleaned up. If no patch can be taken, the folder stays
//! in the trash and the bundle says where.

use super::bundle::{Evidence, unready, without_work};
use super::listening::Listening;
use super::preflight::{self, Program};
use super::run_folder::RunFolder;
use super::trash::Content;
use crate::git::clone::Clone as PrivateClone;
use crate::git::repository::{Repository, is_branch_name, is_object_id};
use crate::git::start::{Started, start_from};
use crate::git::take_patch::{NoPatch, TakenPatch, take_patch};
use crate::guard::{ATTEMPT_VARIABLE, Guards, Input, NotRun, Ran, Stopped};
use crate::sandbox::{Cell, Tier, refusal};
use crate::stop::StopOrder;
use fernery_core::artifact::{ContextSnapshot, Workorder};
use fernery_core::calendar::duration::millis;
use fernery_core::pipeline::execution::notes_of_spent_budget;
use fernery_core::pipeline::membrane::Outcome;
use fernery_core::pipeline::patching::{Cut, Unready};
use fernery_core::pipeline::rework::EarlierPatch;
use fernery_core::profile::{Places, Profile, PromptBy};
use fernery_door as door;
use serde_json::Value;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, interval};

/// How long an agent may take to end on TERM.
const GRACE: Duration = Duration::from_secs(5);
/// How often it is looked at while it runs.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// All that one run needs.
pub struct AgentRun {
    pub workorder: Workorder,
    /// What the agent is told.
    pub snapshot: ContextSnapshot,
    /// Which agent, and how.
    pub profile: Profile,
    /// Further environment variables that it may see.
    pub env: Vec<String>,
    pub tier: Tier,
    /// The operator's repository, or why it cannot be used.
    pub repository: Result<Repository, String>,
    pub folder: RunFolder,
    /// If this process hangs for so long, the agent is killed.
    pub hang_max: Duration,
}

/// The result of a run.
#[derive(Debug)]
pub enum RunEnd {
    /// The parts of an output bundle.
    HandIn(Value),
    /// A failure that says nothing about the work: a code and a sentence.
    Infrastructure(&'static str, String),
    /// It was stopped for a reason outside the run; its work is in the trash.
    GivenUp,
}

impl RunEnd {
    /// It was told to stop before its agent began.
    fn unbegun(order: StopOrder) -> Self {
        match order.reason.cut() {
            Some(Cut::Cancelled) => {
                Self::HandIn(without_work(Outcome::Cancelled, "Cancelled before the run started", ""))
            }
            Some(_) => {
                let notes = notes_of_spent_budget(None, "nothing, because the agent had not started", "");
                Self::HandIn(without_work(
                    Outcome::Budget,
                    "The budget was spent before the run started",
                    &notes,
                ))
            }
            None => Self::GivenUp,
        }
    }
}

impl AgentRun {
    /// Runs it. `told` gets the progress.
    pub async fn carry_out(
        mut self,
        mut orders: UnboundedReceiver<StopOrder>,
        told: UnboundedSender<String>,
    ) -> RunEnd {
        let prepared = tokio::select! {
            prepared = self.prepare() => prepared,
            Some(order) = orders.recv() => Err(RunEnd::unbegun(order)),
        };
        // A stop order during the preparation counts too: do not start the agent then.
        let prepared = match orders.try_recv() {
            Ok(order) => Err(RunEnd::unbegun(order)),
            Err(_) => prepared,
        };
        let Prepared { program, clone, started } = match prepared {
            Ok(prepared) => prepared,
            Err(run_end) => {
                self.folder.remove();
                return run_end;
            }
        };
        door::failpoint("agent-cloned");
        let began = Instant::now();
        let listening = Listening::new(self.profile.dialect, &self.folder.log(), &self.secrets());
        let ran = self.run_agent(&program, &clone, &listening, &mut orders, &told).await;
        door::failpoint("agent-ended");
        let wall_ms = millis(began.elapsed());
        let told = listening.finish();
        let (ran, agent_end) = match ran {
            Ok(ran) => ran,
            Err(run_end) => {
                // The agent may have started all the same.
                let found = self.patch_of(&clone).await;
                self.discard(&found, &started, "the end of its agent could not be observed");
                return run_end;
            }
        };
        let found = self.patch_of(&clone).await;
        door::failpoint("agent-captured");
        match agent_end {
            AgentEnd::ByOthers => {
                self.discard(&found, &started, "its run was stopped early");
                RunEnd::GivenUp
            }
            AgentEnd::Hung => {
                self.folder.move_to_trash(Content::OnlyCopy, "this process hung");
                RunEnd::Infrastructure("host_hung", "this process hung for longer than its lease".into())
            }
            AgentEnd::With(cut) => {
                let unsaved = || self.folder.move_to_trash(Content::OnlyCopy, "its patch could not be taken");
                let in_trash = found.is_err().then(unsaved).flatten();
                let version = program.version;
                let seen = Evidence { ran, cut, told, found, wall_ms, in_trash, version, started };
                RunEnd::HandIn(self.parts(seen))
            }
        }
    }

    /// All checks that can fail before an agent starts.
    async fn prepare(&mut self) -> Result<Prepared, RunEnd> {
        let base = self.commit().to_string();
        let unready = |what| move |why: String| RunEnd::HandIn(unready(what, &why));
        let repository = self.repository.clone().map_err(unready(Unready::Repository))?;
        let branch = self.workorder.branch_name.clone().unwrap_or_else(|| "work".into());
        if !is_object_id(&base) || !is_branch_name(&branch) {
            let why = format!("{base:?} is not a commit, or {branch:?} is not a branch name");
            return Err(unready(Unready::Workorder)(why));
        }
        preflight::login(&self.profile).map_err(unready(Unready::Login))?;
        preflight::ground(&repository, &base).await.map_err(unready(Unready::Commit))?;
        self.folder.make(&base).map_err(|why| RunEnd::Infrastructure("no_folder", why.to_string()))?;
        preflight::disk(self.folder.path()).map_err(unready(Unready::Disk))?;
        let argv = self.argv().map_err(unready(Unready::Program))?;
        let hidden = [self.folder.data(), repository.dir.clone()];
        let program = preflight::program(&self.profile, &argv, &self.folder.fernery(), &hidden).await;
        let program = program.map_err(unready(Unready::Program))?;
        let of = (base.as_str(), base.as_str());
        let clone = PrivateClone::make(self.folder.path(), &repository, of, &branch, &[]).await;
        let clone = clone.map_err(|why| RunEnd::Infrastructure("no_clone", why.to_string()))?;
        let started = match &self.candidate() {
            Some(candidate) => start_from(&clone, &repository, candidate).await,
            None => Ok(Started::at_base()),
        };
        let started = started.map_err(|why| RunEnd::Infrastructure("no_candidate", why))?;
        door::failpoint("candidate-applied");
        // Only now is it known how its folder looks.
        self.snapshot.full_prompt_text.push_str(&started.start.instruction());
        Ok(Prepared { program, clone, started })
    }

    /// What the agent starts from, if not from its base.
    pub(super) fn candidate(&self) -> Option<EarlierPatch> {
        EarlierPatch::of_snapshot(&self.snapshot)
    }

    pub(super) fn commit(&self) -> &str {
        self.snapshot.metadata.get("commit_sha").and_then(Value::as_str).unwrap_or_default()
    }

    fn argv(&self) -> Result<Vec<String>, String> {
        let (fernery, file) = (self.folder.fernery(), self.folder.prompt_file().display().to_string());
        let places =
            Places { fernery: &fernery, prompt: &self.snapshot.full_prompt_text, prompt_file: &file };
        self.profile.command(&places).map_err(|why| why.to_string())
    }

    fn cell(&self, program: &Program, clone: &PrivateClone) -> Cell {
        let mut cell = Cell::new(&clone.tree, self.folder.home());
        cell.read = self.repository.iter().flat_map(|repository| repository.objects.clone()).collect();
        cell.read.extend(program.folders.clone());
        let home = std::env::home_dir().unwrap_or_default();
        let shown = self.profile.visible_files().map(|file| home.join(file));
        cell.login = shown.filter(|file| file.exists()).collect();
        cell.network = self.profile.network;
        cell.uid = Cell::spare_uid(self.folder.attempt_id());
        cell
    }

    /// Runs the agent to its end, and kills whatever it started.
    async fn run_agent(
        &self,
        program: &Program,
        clone: &PrivateClone,
        listening: &Listening,
        orders: &mut UnboundedReceiver<StopOrder>,
        told: &UnboundedSender<String>,
    ) -> Result<(Ran, AgentEnd), RunEnd> {
        let cell = self.cell(program, clone);
        let guards = self.guards(&cell, program, clone).map_err(cannot_start)?;
        let hear = |from, bytes: &[u8]| {
            listening.take(from, bytes);
            door::failpoint("agent-heard");
        };
        let by_stdin = self.profile.prompt == PromptBy::Stdin;
        let input = Input {
            env: self.environment(&cell, program),
            stdin: if by_stdin { self.snapshot.full_prompt_text.as_bytes() } else { b"" },
            ends_when_full: false,
            listener: Some(&hear),
            hang_max: self.hang_max,
        };
        let (ran, cut) = self.attend(&guards, input, listening, orders, told).await;
        guards.close().await;
        self.folder.settle().await;
        let ran = ran.map_err(|not_run| match not_run {
            NotRun::NoCommand(why) | NotRun::NotStarted(why) => cannot_start(why),
            NotRun::NoGuard(why) => RunEnd::Infrastructure("guard_died", why),
        })?;
        self.judge(&ran, cut).map(|agent_end| (ran, agent_end))
    }

    /// A guard for the agent's command in its cell. Writes the prompt and hands the agent's folders over.
    fn guards(&self, cell: &Cell, program: &Program, clone: &PrivateClone) -> Result<Guards, String> {
        let mut argv: Vec<OsString> = self.argv()?.into_iter().map(OsString::from).collect();
        argv[0] = program.file.clone().into_os_string();
        let in_cell = || {
            self.folder.write_prompt(&self.snapshot.full_prompt_text)?;
            if self.tier != Tier::Unconfined {
                cell.hand_over([&clone.tree, &self.folder.home()])?;
            }
            cell.wrap(self.tier, &argv)
        };
        let wrapped = in_cell().map_err(|error: io::Error| error.to_string())?;
        let names: Vec<String> =
            self.profile.visible_env().map(str::to_string).chain(self.env.clone()).collect();
        let fernery = PathBuf::from(self.folder.fernery());
        Ok(Guards::new(fernery, wrapped, GRACE).within(&clone.tree, &names))
    }

    /// Waits for the agent's end, reports its progress, and stops it when ordered to or when it exceeds a limit.
    /// Answers the first reason for a stop, if there was one; `Some(None)`: a reason that says nothing about its work.
    async fn attend(
        &self,
        guards: &Guards,
        input: Input<'_>,
        listening: &Listening,
        orders: &mut UnboundedReceiver<StopOrder>,
        told: &UnboundedSender<String>,
    ) -> (Result<Ran, NotRun>, Option<Option<Cut>>) {
        let (stop, stops) = mpsc::unbounded_channel();
        let run = guards.run(input, stops);
        tokio::pin!(run);
        let mut looks = interval(LOOK_EVERY);
        let (mut cut, mut note) = (None, None);
        loop {
            tokio::select! {
                ran = &mut run => return (ran, cut),
                Some(order) = orders.recv() => {
                    // The first reason counts; a later order may only shorten the grace.
                    cut.get_or_insert(order.reason.cut());
                    let _ = stop.send(order.grace);
                }
                _ = looks.tick() => {
                    let so_far = listening.so_far();
                    if let Some(why) = self.overdone(so_far.bytes, so_far.heard_at) && cut.is_none() {
                        cut = Some(Some(why));
                        let _ = stop.send(GRACE);
                    }
                    if so_far.note != note && let Some(line) = &so_far.note {
                        let _ = told.send(line.clone());
                    }
                    note = so_far.note;
                }
            }
        }
    }

    /// How an agent ended, from the evidence and the stop order. An error: its cell was refused, and it never started.
    fn judge(&self, ran: &Ran, cut: Option<Option<Cut>>) -> Result<AgentEnd, RunEnd> {
        if ran.stopped == Some(Stopped::Silence) {
            return Ok(AgentEnd::Hung);
        }
        // An agent could print the same; but if it printed anything else, it did start.
        let silent = self.tier != Tier::Unconfined && ran.seen.stdout.kept().is_empty();
        let refused = silent.then(|| refusal(ran.seen.exit.code(), &ran.seen.stderr.text())).flatten();
        match (refused, ran.stopped) {
            (Some(why), _) => Err(cannot_start(why)),
            // An agent that ended before the stop order was not stopped.
            (None, None) => Ok(AgentEnd::With(None)),
            (None, Some(_)) => Ok(cut.flatten().map_or(AgentEnd::ByOthers, |cut| AgentEnd::With(Some(cut)))),
        }
    }

    /// Takes the patch of the agent's work and writes it beside the clone. A patch that contains a secret is neither
    /// written nor handed in.
    async fn patch_of(&self, clone: &PrivateClone) -> Result<TakenPatch, NoPatch> {
        let found = take_patch(clone).await?;
        if self.secrets().iter().any(|secret| found.patch.contains(secret)) {
            return Err(NoPatch::Unfit("it contains a secret that was given to the agent".into()));
        }
        self.folder.write_patch(&found.patch);
        Ok(found)
    }

    /// Moves the folder of a run whose work was not handed in to the trash.
    fn discard(&self, found: &Result<TakenPatch, NoPatch>, started: &Started, why: &str) {
        let is_start =
            |found: &TakenPatch| found.patch.is_empty() || started.tree.as_ref() == Some(&found.tree);
        let unchanged = found.as_ref().is_ok_and(is_start);
        self.folder.move_to_trash(if unchanged { Content::Spare } else { Content::OnlyCopy }, why);
    }

    fn overdone(&self, bytes: u64, heard_at: Instant) -> Option<Cut> {
        let limits = &self.profile.limits;
        if bytes > limits.output_bytes {
            return Some(Cut::Flood);
        }
        limits.silence.filter(|silence| heard_at.elapsed() > *silence).map(|_| Cut::Silence)
    }

    fn environment(&self, cell: &Cell, program: &Program) -> Vec<(String, String)> {
        let mut env = cell.environment();
        if let Some(folder) = program.file.parent()
            && let Some((_, path)) = env.iter_mut().find(|(name, _)| name == "PATH")
        {
            *path = format!("{}:{path}", folder.display());
        }
        env.extend(self.profile.set.clone());
        env.push((ATTEMPT_VARIABLE.to_string(), self.folder.attempt_id().to_string()));
        env.push(("FERNERY_WORK_ORDER_ID".to_string(), self.workorder.work_order_id.to_string()));
        env
    }
}

fn cannot_start(why: String) -> RunEnd {
    RunEnd::Infrastructure("cannot_start", why)
}

/// All that an agent needs to begin.
struct Prepared {
    program: Program,
    clone: PrivateClone,
    started: Started,
}

/// How an agent that ran has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AgentEnd {
    /// By itself, or stopped for this reason.
    With(Option<Cut>),
    /// Stopped for a reason that says nothing about its work.
    ByOthers,
    /// Killed by its guard, because this process hung.
    Hung,
}

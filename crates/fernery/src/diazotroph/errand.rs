//! One run of an agent on a workorder, from a clone to a patch: preflight, clone, run, capture, and what came of it.
//!
//! Whatever ends it, what the agent left is captured before anything is cleaned up; what cannot be captured stays in the
//! trash, and the bundle says where.

use super::bundle::{Evidence, unready, without_work};
use super::listening::Listening;
use super::place::Place;
use super::preflight::{self, Program};
use crate::git::capture::{Captured, Uncaptured, capture};
use crate::git::clone::Clone as PrivateClone;
use crate::git::repository::{Repository, is_branch_name, is_object_id};
use crate::sandbox::{Cell, Tier, refusal};
use crate::worker::link::{Exit, Stopped};
use crate::worker::process::{ATTEMPT_VARIABLE, Guards, Input, NotRun, Ran};
use fernery_core::artifact::{ContextSnapshot, Workorder};
use fernery_core::pipeline::membrane::Outcome;
use fernery_core::pipeline::patching::{Cut, Unready};
use fernery_core::profile::{Places, Profile, PromptBy};
use fernery_engine::door;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, interval};

/// How long an agent may take to end on TERM.
const GRACE: Duration = Duration::from_secs(5);
/// How often it is looked at while it runs.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// All that one run needs.
pub(crate) struct Errand {
    /// What is asked for.
    pub(crate) workorder: Workorder,
    /// What the agent is told.
    pub(crate) snapshot: ContextSnapshot,
    /// Which agent, and how.
    pub(crate) profile: Profile,
    /// More names of the environment that it may see.
    pub(crate) env: Vec<String>,
    /// What contains it.
    pub(crate) tier: Tier,
    /// The operator's repository, or why it is not there.
    pub(crate) repository: Result<Repository, String>,
    /// Where it works.
    pub(crate) place: Place,
    /// If this process hangs for so long, the agent is killed.
    pub(crate) hang_max: Duration,
}

/// Why an agent is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndOrder {
    /// How long it may take on TERM.
    pub(crate) grace: Duration,
    /// Why; `None`: this process has no right to it any more, or is about to end.
    pub(crate) cut: Option<Cut>,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Done {
    /// The parts of an output bundle.
    HandIn(Value),
    /// Nothing that says anything about the work: the reason for a failure, in a word and a sentence.
    Infrastructure(&'static str, String),
    /// It was ended for a reason that is not its own; what it left is in the trash.
    GivenUp,
}

impl Done {
    /// It was told to end before its agent began.
    fn unbegun(order: EndOrder) -> Self {
        match order.cut {
            Some(Cut::Cancelled) => {
                Self::HandIn(without_work(Outcome::Cancelled, "Cancelled before it began", ""))
            }
            Some(_) => Self::HandIn(without_work(Outcome::Budget, "The budget is spent before it began", "")),
            None => Self::GivenUp,
        }
    }
}

impl Errand {
    /// Carries it out. `told` hears how far it is.
    pub(crate) async fn carry_out(
        mut self,
        mut orders: UnboundedReceiver<EndOrder>,
        told: UnboundedSender<String>,
    ) -> Done {
        let prepared = tokio::select! {
            prepared = self.prepare() => prepared,
            Some(order) = orders.recv() => Err(Done::unbegun(order)),
        };
        // What was told while it was prepared counts as well: nothing starts that is to end.
        let prepared = match orders.try_recv() {
            Ok(order) => Err(Done::unbegun(order)),
            Err(_) => prepared,
        };
        let (program, clone) = match prepared {
            Ok(prepared) => prepared,
            Err(done) => {
                self.place.remove();
                return done;
            }
        };
        door::failpoint("agent-cloned");
        let started = Instant::now();
        let listening = Listening::new(self.profile.dialect, &self.place.log(), &self.secrets());
        let ran = self.run(&program, &clone, &listening, &mut orders, &told).await;
        door::failpoint("agent-ended");
        let wall_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (ran, cut) = match ran {
            Ok(ran) => ran,
            Err(done) => {
                // It may have begun all the same.
                listening.finish();
                let found = capture(&clone).await;
                let is_empty = found.as_ref().is_ok_and(|found| found.patch.is_empty());
                if let Ok(found) = &found {
                    self.place.write_patch(&found.patch);
                }
                self.place.keep(is_empty, "its agent could not be run to an end that anybody saw");
                return done;
            }
        };
        let told = listening.finish();
        let found = capture(&clone).await.and_then(|found| {
            match self.secrets().iter().any(|s| found.patch.contains(s)) {
                true => Err(Uncaptured::Unfit("it holds a secret that the agent was given".into())),
                false => Ok(found),
            }
        });
        if let Ok(Captured { patch, .. }) = &found {
            self.place.write_patch(patch);
        }
        door::failpoint("agent-captured");
        match cut {
            Ended::ByOthers => {
                let captured = matches!(&found, Ok(found) if found.patch.is_empty());
                self.place.keep(captured, "its run was ended before it was done");
                Done::GivenUp
            }
            Ended::Hung => {
                self.place.keep(false, "this process hung");
                Done::Infrastructure("host_hung", "this process hung for longer than its lease".into())
            }
            Ended::With(cut) => {
                let kept = found
                    .is_err()
                    .then(|| self.place.keep(false, "what it left could not be captured"))
                    .flatten();
                let seen = Evidence { ran, cut, told, found, wall_ms, kept, version: program.version };
                Done::HandIn(self.parts(seen))
            }
        }
    }

    /// Everything that can be known to fail before an agent starts.
    async fn prepare(&mut self) -> Result<(Program, PrivateClone), Done> {
        let base = self.commit().to_string();
        let unready = |what| move |why: String| Done::HandIn(unready(what, &why));
        let repository = self.repository.clone().map_err(unready(Unready::Repository))?;
        let branch = self.workorder.branch_name.clone().unwrap_or_else(|| "work".into());
        if !is_object_id(&base) || !is_branch_name(&branch) {
            let why = format!("{base:?} is no commit, or {branch:?} no name of a branch");
            return Err(unready(Unready::Workorder)(why));
        }
        preflight::login(&self.profile).map_err(unready(Unready::Login))?;
        preflight::ground(&repository, &base).await.map_err(unready(Unready::Commit))?;
        self.place.make(&base).map_err(|why| Done::Infrastructure("no_folder", why.to_string()))?;
        preflight::disk(self.place.folder()).map_err(unready(Unready::Disk))?;
        let argv = self.argv().map_err(unready(Unready::Program))?;
        let hidden = [self.place.data(), repository.dir.clone()];
        let program = preflight::program(&self.profile, &argv, &self.place.fernery(), &hidden).await;
        let program = program.map_err(unready(Unready::Program))?;
        let of = (base.as_str(), base.as_str());
        let clone = PrivateClone::make(self.place.folder(), &repository, of, &branch, &[]).await;
        let clone = clone.map_err(|why| Done::Infrastructure("no_clone", why.to_string()))?;
        Ok((program, clone))
    }

    pub(super) fn commit(&self) -> &str {
        self.snapshot.metadata.get("commit_sha").and_then(Value::as_str).unwrap_or_default()
    }

    fn argv(&self) -> Result<Vec<String>, String> {
        let (fernery, file) = (self.place.fernery(), self.place.prompt_file().display().to_string());
        let places =
            Places { fernery: &fernery, prompt: &self.snapshot.full_prompt_text, prompt_file: &file };
        self.profile.command(&places).map_err(|why| why.to_string())
    }

    fn cell(&self, program: &Program, clone: &PrivateClone) -> Cell {
        let mut cell = Cell::new(&clone.tree, self.place.home());
        cell.read = self.repository.iter().flat_map(|repository| repository.objects.clone()).collect();
        cell.read.extend(program.folders.clone());
        let home = std::env::home_dir().unwrap_or_default();
        let shown = self.profile.visible_files().map(|file| home.join(file));
        cell.login = shown.filter(|file| file.exists()).collect();
        cell.network = self.profile.network;
        cell.uid = Cell::spare_uid(self.place.attempt_id());
        cell
    }

    async fn run(
        &self,
        program: &Program,
        clone: &PrivateClone,
        listening: &Listening,
        orders: &mut UnboundedReceiver<EndOrder>,
        told: &UnboundedSender<String>,
    ) -> Result<(Ran, Ended), Done> {
        let no = |why: String| Done::Infrastructure("cannot_start", why);
        let cell = self.cell(program, clone);
        let mut argv: Vec<OsString> = self.argv().map_err(no)?.into_iter().map(OsString::from).collect();
        argv[0] = program.file.clone().into_os_string();
        self.place.write_prompt(&self.snapshot.full_prompt_text).map_err(|why| no(why.to_string()))?;
        if self.tier != Tier::Unconfined {
            cell.hand_over([&clone.tree, &self.place.home()]).map_err(|why| no(why.to_string()))?;
        }
        let wrapped = cell.wrap(self.tier, &argv).map_err(|why| no(why.to_string()))?;
        let stdin = if self.profile.prompt == PromptBy::Stdin {
            self.snapshot.full_prompt_text.as_bytes()
        } else {
            b""
        };
        let names: Vec<String> =
            self.profile.visible_env().map(str::to_string).chain(self.env.clone()).collect();
        let guards =
            Guards::new(PathBuf::from(self.place.fernery()), wrapped, GRACE).within(&clone.tree, &names);
        let hear = |from, bytes: &[u8]| {
            listening.take(from, bytes);
            door::failpoint("agent-heard");
        };
        let input = Input {
            env: self.environment(&cell, program),
            stdin,
            ends_when_full: false,
            listener: Some(&hear),
            hang_max: self.hang_max,
        };
        let (stop, stops) = mpsc::unbounded_channel();
        let mut cut = None;
        let ran = {
            let run = guards.run(input, stops);
            tokio::pin!(run);
            let mut looks = interval(LOOK_EVERY);
            let mut note = None;
            loop {
                tokio::select! {
                    ran = &mut run => break ran,
                    Some(order) = orders.recv() => {
                        // The first reason stands; a later order may only hurry.
                        cut.get_or_insert(order.cut);
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
        };
        guards.close().await;
        match ran {
            Ok(ran) if ran.stopped == Some(Stopped::Silence) => Ok((ran, Ended::Hung)),
            Ok(ran) => {
                let exit = exit_code(&ran.seen.exit);
                // An agent could say the same; one that has said anything else has begun.
                let silent = self.tier != Tier::Unconfined && ran.seen.stdout.kept().is_empty();
                if let Some(why) = silent.then(|| refusal(exit, &ran.seen.stderr.text())).flatten() {
                    return Err(no(why));
                }
                // Who had the last word before it was told to end was not ended.
                let cut = if ran.stopped.is_some() {
                    cut.unwrap_or(None).map_or(Ended::ByOthers, |cut| Ended::With(Some(cut)))
                } else {
                    Ended::With(None)
                };
                Ok((ran, cut))
            }
            Err(NotRun::NoCommand(why) | NotRun::NotStarted(why)) => Err(no(why)),
            Err(NotRun::NoGuard(why)) => Err(Done::Infrastructure("guard_died", why)),
        }
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
        env.push((ATTEMPT_VARIABLE.to_string(), self.place.attempt_id().to_string()));
        env.push(("FERNERY_WORK_ORDER_ID".to_string(), self.workorder.work_order_id.to_string()));
        env
    }

    /// The run is over and handed in.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }
}

/// How a run ended that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// By itself, or for this reason.
    With(Option<Cut>),
    /// For a reason that says nothing about it.
    ByOthers,
    /// This process hung.
    Hung,
}

pub(super) fn exit_code(exit: &Exit) -> Option<i32> {
    match exit {
        Exit::Code(code) => Some(*code),
        Exit::Signal(_) => None,
    }
}

//! What a person sees: the ticket, the approval, each step, the patch, and where to look next. Everything goes over
//! HTTP, as with any other client.

use super::folder::Folder;
use crate::cli::export::{self, Exported};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::run::diff::painted;
use crate::cli::screen::{Paint, Screen, json_inert, plain};
use crate::cli::ticket::approve::UNAPPROVED;
use crate::cli::ticket::show::verdict;
use crate::cli::ticket::{brief, detail, path};
use crate::cli::{input, ticket};
use crate::demo;
use crate::ticket_words::{Moment, timeline};
use fernery_client::Client;
use fernery_client::client::Reply;
use fernery_client::wire::{
    ApproveRequest, DecisionResponse, NewObjectiveRequest, ObjectiveDetail, ObjectiveView,
};
use fernery_core::artifact::{AzollaId, ObjectiveId, ObjectiveStatus};
use fernery_core::pipeline::evidence::BRANCH;
use fernery_engine::door;
use fernery_exec::program;
use fernery_exec::sandbox::Tier;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::time::Duration;

/// How often it polls.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// It takes some seconds on a slow machine; after this long it has failed.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Story<'a> {
    pub(super) folder: &'a Folder,
    pub(super) tier: Tier,
    pub(super) yes: bool,
    pub(super) screen: Screen,
}

impl Story<'_> {
    /// From the ticket to what is left of it.
    pub(super) async fn tell(&self, url: &str) -> Outcome {
        let token = std::fs::read_to_string(self.folder.operator_token())?;
        let client = Client::new(url, Some(token.trim()), None)?;
        let shown = self.folder.shown();
        self.say(&format!("made  {shown}/repo, a repository with a test that fails"))?;
        self.say(&format!("up    {url}, with its data in {shown}/data"))?;
        self.say(&match self.tier {
            Tier::Unconfined => "open  no sandbox around the agent and the tests, as you said".to_string(),
            tier => {
                format!("cell  {tier}: the agent and the tests see only their folder, no network")
            }
        })?;
        let id = self.write_down(&client).await?;
        self.approve(&client, &id).await?;
        let whole = self.follow(&client, &id).await?;
        let exported = export::write(&self.folder.export(), &client).await?;
        if self.screen.json {
            self.screen.line(&json_inert(&self.summary(&whole, &exported).to_string()))?;
        } else {
            self.end(&whole, &exported)?;
        }
        match whole.view.objective.status {
            ObjectiveStatus::Done => Ok(()),
            _ if self.screen.json => Err(Failure::told()),
            status => Err(Failure::failed("not_done", format!("{id} is {status}, expected DONE"))),
        }
    }

    fn say(&self, line: &str) -> Outcome {
        if self.screen.json { Ok(()) } else { self.screen.say(&plain(line)) }
    }

    /// A command to paste: it is never broken into lines.
    fn command(&self, line: &str) -> Outcome {
        if self.screen.json { Ok(()) } else { self.screen.line(&plain(line)) }
    }

    fn headed(&self, head: &str) -> Outcome {
        self.say("")?;
        if self.screen.json {
            return Ok(());
        }
        self.screen.say_painted(&plain(&format!("── {head} ──")), Paint::Busy)
    }

    async fn write_down(&self, client: &Client) -> Outcome<ObjectiveId> {
        let metadata = [("repo_ref".to_string(), Value::from(demo::REPO_REF))];
        let request = NewObjectiveRequest {
            objective_id: Some(ObjectiveId::stored(demo::TICKET)),
            azolla_id: AzollaId::stored(demo::AZOLLA),
            title: demo::TITLE.to_string(),
            acceptance_criteria: demo::CRITERIA.to_string(),
            importance: 2,
            urgency: 2,
            metadata: metadata.into_iter().collect(),
            blocked_on: Vec::new(),
            after: Vec::new(),
        };
        let reply: Reply<ObjectiveView> = client.post("/v1/objectives", &request, Duration::ZERO).await?;
        Ok(reply.read()?.objective.objective_id)
    }

    /// Shows what would run, and approves exactly that once a person says so.
    async fn approve(&self, client: &Client, id: &ObjectiveId) -> Outcome {
        let read = brief(client, id).await?;
        let approval =
            read.approval.ok_or_else(|| Failure::conflict("the azolla does not exist any more"))?;
        if !self.screen.json {
            self.headed("a ticket: nothing runs before you approve exactly this")?;
            ticket::show::approval(self.screen, &approval, None)?;
        }
        if !self.yes {
            self.say("")?;
            let question = format!("approve {id} as shown? [y/N] ");
            // On its own thread, so that signals are handled while it waits for an answer.
            let asked = tokio::task::spawn_blocking(move || input::confirmed(&question, UNAPPROVED));
            let answer = asked.await.map_err(|error| Failure::failed("not_asked", error.to_string()))?;
            answer.map_err(|failure| {
                failure
                    .hint(format_args!("{} stays: delete it, or run `fernery up` in it", self.folder.shown()))
            })?;
        }
        let (digest, record_id) = (approval.digest, ticket::act::record());
        let request = ApproveRequest { digest, note: None, record_id, from_scratch: false };
        let _: Reply<DecisionResponse> = ticket::act::send(client, &path(id, "approve"), &request).await?;
        Ok(())
    }

    /// Tells each thing that happens, until nothing more will.
    async fn follow(&self, client: &Client, id: &ObjectiveId) -> Outcome<ObjectiveDetail> {
        self.headed("what happens")?;
        let (since, mut told) = (door::stop_watch(), HashSet::new());
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let now = detail(client, id).await?.read()?;
            let mut moments = timeline(&now);
            moments.sort_by_key(|moment| moment.at);
            // The scheduler reports the same as readiness.
            moments
                .retain(|moment| moment.who != "readiness" && told.insert((moment.at, moment.who.clone())));
            for moment in moments {
                self.step(&now, &moment)?;
            }
            let status = now.view.objective.status;
            if matches!(status, ObjectiveStatus::Done | ObjectiveStatus::Blocked) && !now.pauses.is_empty() {
                return Ok(now);
            }
            if since.elapsed() > PATIENCE {
                let why = format!("{id} is still {status} after {} seconds", PATIENCE.as_secs());
                return Err(Failure::failed("not_done", why)
                    .hint(format_args!("`fernery up` in {} continues it", self.folder.shown())));
            }
        }
    }

    /// One step, when it was taken and by whom.
    fn step(&self, now: &ObjectiveDetail, moment: &Moment) -> Outcome {
        let seconds = moment.at.since(now.view.objective.created_at).as_secs_f64();
        // An operator is shown as a token name and its id.
        let who = moment.who.split('.').next().unwrap_or_default();
        if self.screen.json {
            return Ok(());
        }
        let what = plain(&moment.what).replace('\n', " ");
        self.screen.hanging(&format!("{seconds:4.1} s  {:9}  ", plain(who)), &what, verdict(&what))?;
        let pause = now.pauses.iter().map(|of| &of.pause).find(|pause| pause.created_at == moment.at);
        let goes_on = pause.filter(|_| who == "fernery").and_then(|pause| pause.prioritized_actions.first());
        for line in moment.more.iter().chain(goes_on) {
            let line = plain(line).replace('\n', " ");
            self.screen.hanging(&" ".repeat(19), &line, verdict(&line))?;
        }
        Ok(())
    }

    /// The patch, where it stopped, and where to look on.
    fn end(&self, whole: &ObjectiveDetail, exported: &Exported) -> Outcome {
        if let Some(patch) = patch(whole) {
            self.headed("the patch")?;
            self.screen.line(&painted(patch.trim_end(), self.screen))?;
        }
        let (typed, fernery) = (|below: &str| self.folder.typed(below), program_name());
        let status = whole.view.objective.status;
        self.headed(&format!("{} is {status}; the server stops, and all files stay", demo::TICKET))?;
        if let Some(branch) = branch(whole) {
            self.command(&format!("git -C {} show {branch}", typed("repo")))?;
            self.say("    the patch, on its own branch; main is unchanged")?;
        }
        self.command(&format!("ls {}", typed("export")))?;
        self.say(&format!(
            "    the prompts, outputs, verdicts and decisions: {} files of JSON",
            exported.count()
        ))?;
        self.command(&format!("cd {} && {fernery} up", typed("")))?;
        self.say("    the same server again; then, in another terminal there:")?;
        for action in whole.last_pause().into_iter().flat_map(|pause| &pause.prioritized_actions) {
            self.say(&format!("    {}", scripted(action).replace("fernery ", &format!("{fernery} "))))?;
        }
        self.say(&format!("{fernery} init"))?;
        self.say("    in your own repository: set up an installed agent, and gates for your tests")
    }

    fn summary(&self, whole: &ObjectiveDetail, exported: &Exported) -> Value {
        json!({
            "dir": self.folder.shown(),
            "repo": self.folder.repo(),
            "sandbox": self.tier.as_str(),
            "objective_id": whole.view.objective.objective_id,
            "status": whole.view.objective.status,
            "runs": whole.runs,
            "patch": patch(whole),
            "branch": branch(whole),
            "pause": whole.last_pause(),
            "export": exported.to_json(),
        })
    }
}

/// A note is for an agent that reads; the scripted one needs one of its own lines.
fn scripted(action: &str) -> String {
    match action.contains("ticket reopen") {
        true => {
            format!("Something else, say: fernery ticket reopen {} --note '{}'", demo::TICKET, demo::NOTE)
        }
        false => action.to_string(),
    }
}

/// The patch of the last attempt.
fn patch(whole: &ObjectiveDetail) -> Option<&str> {
    whole.output_bundles.last()?["content"].as_str().filter(|patch| !patch.is_empty())
}

/// The branch of the patch, if it passed.
fn branch(whole: &ObjectiveDetail) -> Option<&str> {
    let mut evidence = whole.runs.last()?["evidence"].as_array()?.iter();
    let left = evidence.find(|found| found["gate"] == BRANCH && found["result"] == "PASS")?;
    left["log_tail"].as_str()?.split(' ').next()
}

/// The name to call this program by from elsewhere.
fn program_name() -> String {
    let found = program::find(OsStr::new("fernery"), std::env::var_os("PATH").as_deref()).is_ok();
    match std::env::current_exe() {
        Ok(own) if !found => own.display().to_string(),
        _ => "fernery".to_string(),
    }
}

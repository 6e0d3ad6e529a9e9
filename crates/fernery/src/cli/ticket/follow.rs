//! `fernery ticket show -f`: tells what happens to a ticket while it happens, until it comes to rest. A server that goes away
//! in between is waited for.

use super::show;
use super::under_way::UnderWay;
use super::{brief, detail};
use crate::cli::Global;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::ids;
use crate::cli::run::logs::dialect;
use crate::cli::screen::{Paint, Screen, json_inert, plain, remark};
use crate::ticket_words::{Moment, envelope, envelope_with, open_question, timeline};
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{ObjectiveDetail, WaitingView, WorkorderLog};
use fernery_core::Timestamp;
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus};
use fernery_core::pipeline::possible::SeenStatus;
use fernery_core::profile::Dialect;
use fernery_engine::door;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{self, Write};
use std::time::Duration;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(400);
/// How long a server that went away is waited for.
const AWAY_MAX: Duration = Duration::from_secs(600);

/// Follows a ticket to its rest. Succeeds where it is DONE.
pub(in crate::cli) async fn follow(
    id: &ObjectiveId,
    global: &Global,
    client: &Client,
    screen: Screen,
) -> Outcome {
    let mut named = id.clone();
    ids::ticket(client, &mut named).await?;
    let mut following = Following {
        id: named,
        screen,
        told: HashSet::new(),
        waiting: None,
        spent: None,
        log: None,
        under_way: UnderWay::default(),
        live: Live::new(screen),
        since: None,
    };
    let mut own = None;
    let (mut seen, mut away) = (None, None);
    loop {
        let client = own.as_ref().unwrap_or(client);
        match following.look(client, &mut seen).await {
            Ok(Some(end)) => return following.end(&end),
            Ok(None) => {
                if away.take().is_some() {
                    remark("the server is back");
                }
            }
            // Before the first answer there is nothing to go on with.
            Err(failure) if seen.is_none() || !failure.is_lost() && failure.status != Some(503) => {
                return Err(failure);
            }
            Err(failure) => {
                let since = *away.get_or_insert_with(|| {
                    following.live.clear();
                    remark("the server is away; waiting for it (Ctrl-C ends this, not the run)");
                    door::stop_watch()
                });
                if since.elapsed() > AWAY_MAX {
                    return Err(
                        failure.hint(format_args!("it was away for {} minutes", AWAY_MAX.as_secs() / 60))
                    );
                }
                // Started anew, it may listen elsewhere.
                own = global.now().server().ok().map(|server| server.client).or(own);
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

struct Following {
    id: ObjectiveId,
    screen: Screen,
    /// The moments that were told.
    told: HashSet<(Timestamp, String)>,
    /// What it waited for when that was last told.
    waiting: Option<String>,
    /// What was used of its envelope when that was last told.
    spent: Option<String>,
    log: Option<LogPlace>,
    under_way: UnderWay,
    live: Live,
    /// When the round began that is told: with the last approval.
    since: Option<Timestamp>,
}

/// How far the log of a workorder was read.
struct LogPlace {
    work_order_id: String,
    dialect: Option<Dialect>,
    from: u64,
    unfinished: String,
    last: Option<String>,
}

impl Following {
    /// Tells what is new; answers the ticket once nothing more will happen.
    async fn look(
        &mut self,
        client: &Client,
        seen: &mut Option<Vec<String>>,
    ) -> Outcome<Option<ObjectiveDetail>> {
        let mut now = brief(client, &self.id).await?;
        // The documents are large: they are read only when there is a new one.
        let news = marks(&now);
        if seen.as_ref() != Some(&news) {
            now = detail(client, &self.id).await?.read()?;
            self.moments(&now)?;
            *seen = Some(marks(&now));
        }
        self.output(client, &now).await?;
        let status = now.view.objective.status;
        let judged = now.workorders.last().is_none_or(|work| work["judged"] == true);
        if !matches!(status, ObjectiveStatus::Todo | ObjectiveStatus::InProgress) && judged {
            // What is told at the end is told of the same state.
            let whole = detail(client, &self.id).await?.read()?;
            self.moments(&whole)?;
            return Ok(Some(whole));
        }
        self.wait(&now)?;
        let doing = now.view.progress.as_ref().map(show::doing);
        let gates = now.view.waiting.as_ref().filter(|of| of.code == "gates").map(|of| of.why.clone());
        let more = self.under_way.time(&now, client).await;
        let spent = envelope_with(&now, more).unwrap_or_default();
        self.live.set(&[status.to_string(), spent, doing.or(gates).unwrap_or_default()]);
        Ok(None)
    }

    /// The steps that were not told yet, of this round.
    fn moments(&mut self, now: &ObjectiveDetail) -> Outcome {
        let approved = now.decisions.iter().rev().find(|decision| decision["kind"] != "CONFIRM");
        let approved = approved.and_then(|decision| decision["created_at"].as_str()?.parse().ok());
        let since = *self.since.get_or_insert(approved.unwrap_or(now.view.objective.created_at));
        let mut moments = timeline(now);
        moments.sort_by_key(|moment| moment.at);
        moments.retain(|moment| moment.who != "readiness" && moment.at >= since);
        for moment in moments {
            if self.told.insert((moment.at, moment.who.clone())) {
                self.step(since, &moment)?;
            }
        }
        self.tell_spent(now)
    }

    /// What is used of the envelope, whenever that changes.
    fn tell_spent(&mut self, now: &ObjectiveDetail) -> Outcome {
        let spent = envelope(now);
        if spent == self.spent {
            return Ok(());
        }
        self.spent = spent;
        let Some(spent) = &self.spent else { return Ok(()) };
        self.live.clear();
        match self.screen.json {
            true => self.screen.line(&json!({"spent": now.view.spent}).to_string()),
            false => self.screen.hanging(&format!("{:10}spent      ", ""), &plain(spent), Paint::Dim),
        }
    }

    fn step(&mut self, since: Timestamp, moment: &Moment) -> Outcome {
        self.live.clear();
        let who = moment.who.split([' ', '.']).next().unwrap_or_default();
        if self.screen.json {
            let more: Vec<&String> = moment.more.iter().collect();
            let line = json!({"at": moment.at, "who": moment.who, "what": moment.what, "more": more});
            return self.screen.line(&json_inert(&line.to_string()));
        }
        let seconds = moment.at.since(since).as_secs_f64();
        let what = plain(&moment.what).replace('\n', " ");
        self.screen.hanging(&format!("{seconds:6.1} s  {:9}  ", plain(who)), &what, show::verdict(&what))?;
        for line in &moment.more {
            let line = plain(line).replace('\n', " ");
            let margin = if line.starts_with(' ') { 23 } else { 21 };
            self.screen.hanging(&" ".repeat(margin), line.trim_start(), show::verdict(&line))?;
        }
        Ok(())
    }

    /// Why nothing happens, whenever that changes.
    fn wait(&mut self, now: &ObjectiveDetail) -> Outcome {
        // That somebody works on it is told by what they do; the gates say nothing before they have ended.
        let idle = |waiting: &&WaitingView| match waiting.code.as_str() {
            "held" | "turn" => false,
            "gates" => waiting.why.starts_with("gate "),
            _ => true,
        };
        let why = now.view.waiting.as_ref().filter(idle).map(|waiting| waiting.why.clone());
        if why != self.waiting
            && let Some(why) = &why
        {
            self.live.clear();
            match self.screen.json {
                true => self.screen.line(&json_inert(&json!({"waiting": why}).to_string()))?,
                false => self.screen.hanging(&format!("{:10}waiting    ", ""), &plain(why), Paint::Busy)?,
            }
        }
        self.waiting = why;
        Ok(())
    }

    /// What the executor of the last workorder writes.
    async fn output(&mut self, client: &Client, now: &ObjectiveDetail) -> Outcome {
        let Some(work) = now.workorders.last().filter(|work| work["judged"] != true) else { return Ok(()) };
        let id = work["work_order_id"].as_str().unwrap_or_default();
        if self.log.as_ref().is_none_or(|log| log.work_order_id != id) {
            let (work_order_id, dialect) = (id.to_string(), dialect(client, work).await?);
            self.log =
                Some(LogPlace { work_order_id, dialect, from: 0, unfinished: String::new(), last: None });
        }
        let Some(mut log) = self.log.take() else { return Ok(()) };
        let told = self.lines(client, &mut log).await;
        self.log = Some(log);
        told
    }

    async fn lines(&mut self, client: &Client, log: &mut LogPlace) -> Outcome {
        loop {
            let query = Query::new().with("from", Some(log.from));
            let path = format!("/v1/workorders/{}/log", log.work_order_id);
            let reply: Reply<WorkorderLog> = client.get(&path, &query, Duration::ZERO).await?;
            let part = reply.read()?;
            let is_all = part.next == log.from;
            log.from = part.next;
            log.unfinished.push_str(&part.text);
            let end = if part.ended {
                log.unfinished.len()
            } else {
                log.unfinished.rfind('\n').map_or(0, |at| at + 1)
            };
            let whole: String = log.unfinished.drain(..end).collect();
            for line in whole.lines() {
                self.said(log, line)?;
            }
            if is_all || part.ended {
                return Ok(());
            }
        }
    }

    fn said(&mut self, log: &mut LogPlace, line: &str) -> Outcome {
        let says = match log.dialect {
            Some(dialect) => dialect.last_line(line),
            None => Some(line.to_string()),
        };
        let Some(says) = says.filter(|says| !says.trim().is_empty() && log.last.as_ref() != Some(says))
        else {
            return Ok(());
        };
        self.live.clear();
        match self.screen.json {
            true => self.screen.line(&json_inert(&json!({"said": says}).to_string()))?,
            false => self.screen.hanging(&" ".repeat(21), &format!("| {}", plain(&says)), Paint::Dim)?,
        }
        log.last = Some(says);
        Ok(())
    }

    /// Where it stopped, and what to do next.
    fn end(&mut self, whole: &ObjectiveDetail) -> Outcome {
        self.live.clear();
        let (id, status) = (&self.id, whole.view.objective.status);
        let result = whole.runs.last().map_or(Value::Null, |run| run["gate_result"].clone());
        if self.screen.json {
            let next = &whole.next;
            let line = json!({"objective_id": id, "status": status, "gate_result": result, "next": next});
            self.screen.line(&json_inert(&line.to_string()))?;
        } else {
            let seen = SeenStatus::of(&whole.view.objective);
            self.screen.line(&format!("{id} is {seen}"))?;
            if let Some(asked) = open_question(whole) {
                self.screen.line("question:")?;
                show::quoted(self.screen, &asked.question)?;
            }
            for action in &whole.next {
                self.screen.say(&format!("  {}", plain(action)))?;
            }
        }
        match status {
            ObjectiveStatus::Done => Ok(()),
            ObjectiveStatus::New if whole.runs.is_empty() => {
                Err(Failure::conflict(format!("{id} is NEW: nothing runs before it is approved")))
            }
            _ => Err(Failure::told()),
        }
    }
}

/// What tells that there is something new in the documents.
fn marks(now: &ObjectiveDetail) -> Vec<String> {
    let outputs = now.workorders.iter().filter(|work| work["output_id"].is_string()).count();
    let counts = [
        now.decisions.len(),
        now.workorders.len(),
        outputs,
        now.runs.len(),
        now.pauses.len(),
        now.acts.len(),
    ];
    counts.iter().map(ToString::to_string).chain([now.view.objective.status.to_string()]).collect()
}

/// The last line of a terminal, which is written over; nothing elsewhere.
struct Live {
    width: Option<usize>,
    shown: bool,
}

impl Live {
    fn new(screen: Screen) -> Self {
        Self { width: screen.width().filter(|width| *width > 1), shown: false }
    }

    fn set(&mut self, parts: &[String]) {
        let Some(width) = self.width else { return };
        let parts: Vec<String> =
            parts.iter().filter(|part| !part.is_empty()).map(|part| plain(part)).collect();
        let line: String = parts.join(" · ").replace('\n', " ").chars().take(width - 1).collect();
        self.shown = true;
        let mut out = io::stdout().lock();
        let _ = write!(out, "\r\u{1b}[2K{line}").and_then(|()| out.flush());
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let mut out = io::stdout().lock();
            let _ = write!(out, "\r\u{1b}[2K").and_then(|()| out.flush());
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

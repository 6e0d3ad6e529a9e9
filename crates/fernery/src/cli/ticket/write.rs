//! `fernery ticket new` and `edit`: from flags, a file, stdin or the editor to the server.

use super::act::left_at;
use super::due;
use super::editor::{self, Draft};
use super::flags::{EditText, Text};
use super::home::{Home, Unsaid};
use super::text::{self, Mistake, Written};
use super::{brief, path};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::screen::{Screen, plain, remark};
use crate::cli::{ids, input};
use crate::http::made_up;
use fernery_client::Client;
use fernery_client::client::Reply;
use fernery_client::wire::{EditObjectiveRequest, NewObjectiveRequest, ObjectiveView};
use fernery_core::artifact::{AzollaId, Metadata, Objective, ObjectiveId, ObjectiveStatus};
use fernery_core::inbox::deadline::is_cancelled;
use fernery_core::inbox::label::{Label, is_same};
use fernery_core::inbox::marks;
use fernery_core::limits;
use fernery_core::pipeline::draft::{Draft as Content, DraftEdit, NewBlocker, first_blockers};
use fernery_core::pipeline::possible::Verb;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// A text, and what people call the place that it is in.
pub(in crate::cli) struct Page {
    pub(in crate::cli) name: String,
    pub(in crate::cli) text: String,
    /// The command that sends the same text again.
    again: String,
}

impl Page {
    /// The text of a file or of stdin.
    pub(in crate::cli) fn read(file: &Path) -> Outcome<Self> {
        let bytes_max = limits::CRITERIA_BYTES_MAX + limits::METADATA_BYTES_MAX;
        let text = input::read_text(file, bytes_max)?;
        let name = if file == Path::new("-") { "stdin".to_string() } else { file.display().to_string() };
        Ok(Self { name, text, again: input::typed() })
    }

    /// The text of a draft; `command` sends a file.
    pub(in crate::cli) fn of(draft: &Draft, command: &str) -> Outcome<Self> {
        let name = draft.path().display().to_string();
        let again = format!("{command} {}", input::shell_word(&name));
        Ok(Self { text: draft.text()?, name, again })
    }

    /// Flags alone.
    fn none() -> Self {
        Self { name: String::new(), text: String::new(), again: input::typed() }
    }

    /// Everything that is wrong, each with its place; `Ok` if nothing is.
    pub(in crate::cli) fn refuse(&self, mistakes: Vec<Mistake>) -> Outcome {
        let mut told: Vec<String> = mistakes
            .iter()
            .map(|mistake| if self.name.is_empty() { mistake.why.clone() } else { mistake.told(&self.name) })
            .collect();
        match told.len() {
            0 => Ok(()),
            1 => Err(Failure::usage(told.remove(0))),
            n => Err(Failure::usage(format!("{n} mistakes:\n{}", told.join("\n")))),
        }
    }
}

/// Where the text is, if flags do not say everything.
fn file_of<'a>(stdin: Option<&'a String>, file: Option<&'a Path>) -> Option<&'a Path> {
    file.or(stdin.map(Path::new))
}

/// Whether a person can be asked to write it; if not, `flags` says what to pass.
fn needs_editor(flags: &str) -> Outcome {
    match input::can_ask() {
        true => Ok(()),
        false => Err(Failure::usage(flags)),
    }
}

pub(super) async fn new(args: Text, client: &Client, screen: Screen) -> Outcome {
    const COMMAND: &str = "fernery ticket new --file";
    let reply = if let Some(file) = file_of(args.stdin.as_ref(), args.file.as_deref()) {
        let reply = create(&args, &Page::read(file)?, None, client).await?;
        if let Some(draft) = Draft::found(file) {
            draft.forget();
        }
        reply
    } else if args.title.is_some() {
        create(&args, &Page::none(), None, client).await?
    } else {
        needs_editor("give a title: --title TEXT, --file FILE, or - and the ticket on stdin")?;
        let home = Home::ask(client).await?;
        let names_repo = args.metadata.iter().any(|(key, _)| key == "repo_ref");
        let form = text::new_form(&home.lines(args.azolla.as_ref(), names_repo));
        let send = async |draft: &Draft| create(&args, &Page::of(draft, COMMAND)?, Some(draft), client).await;
        editor::until_taken(&form, COMMAND, send).await?
    };
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let objective = reply.read()?.objective;
    let id = objective.objective_id;
    screen.line(id.as_str())?;
    if objective.status == ObjectiveStatus::New {
        let read = brief(client, &id).await?;
        // What is refused now is not suggested.
        let refused = read.approval.as_ref().and_then(|approval| approval.refused.as_deref());
        remark(&match (read.allows(Verb::Done), refused) {
            (true, _) => format!("it is NEW; when you have done it: fernery done {id}"),
            (false, None) => format!("it is NEW; to let it run: fernery ticket approve {id}"),
            (false, Some(why)) => format!("it is NEW, and cannot be approved yet: {why}"),
        });
    }
    Ok(())
}

/// Checks everything that can be checked here, fills in what is known, and sends it.
async fn create(
    args: &Text,
    page: &Page,
    draft: Option<&Draft>,
    client: &Client,
) -> Outcome<Reply<ObjectiveView>> {
    let (written, mut mistakes) = text::read(&page.text);
    let mut metadata = written.metadata.clone();
    metadata.extend(args.metadata.iter().cloned());
    let named = metadata.clone();
    due::fill_in(&mut metadata, (args.due.as_deref(), &written), &named, &mut mistakes, client).await?;
    let title = args.title.clone().or(written.title.clone()).unwrap_or_default();
    label(&mut metadata, &args.labels, &title);
    let named = args.azolla.as_ref().or(written.azolla.as_ref());
    let azolla_id = match named {
        Some(azolla) if metadata.contains_key("repo_ref") && page.name.is_empty() => azolla.clone(),
        named => filled_in(named, &written, &mut metadata, page, &mut mistakes, client).await?,
    };
    let mut blocked_on = written.blocked_on.clone();
    blocked_on.extend(args.blocked_on.iter().cloned());
    let mut after = args.after.clone();
    for other in &mut after {
        ids::ticket(client, other).await?;
    }
    let mut request = NewObjectiveRequest {
        objective_id: args.id.clone().or(written.id.clone()),
        azolla_id,
        title,
        acceptance_criteria: args.criteria.clone().or(written.criteria.clone()).unwrap_or_default(),
        importance: args.importance.or(written.importance).unwrap_or(2),
        urgency: args.urgency.or(written.urgency).unwrap_or(2),
        metadata,
        blocked_on,
        after,
    };
    if request.title.trim().is_empty() {
        let line = written.line_of("title");
        let why = "a ticket needs a title: --title TEXT, or a first `# heading`".to_string();
        mistakes.push(Mistake { line, why });
    } else {
        mistakes.extend(written.mistakes(request.draft().violations()));
    }
    let blockers: Vec<NewBlocker> = request
        .blocked_on
        .iter()
        .cloned()
        .map(|of| NewBlocker { blocker_id: of.blocker_id, kind: of.kind, description: of.description })
        .collect();
    mistakes.extend(first_blockers(&blockers).err().map_or_else(Vec::new, |found| written.mistakes(found)));
    mistakes.sort();
    page.refuse(mistakes)?;
    if let Some(draft) = draft
        && request.objective_id.is_none()
    {
        // Sent a second time, because nobody knows what became of the first, it is the same ticket.
        let id = made_up(&request.azolla_id);
        draft.rewrite(&with_id(&page.text, &id))?;
        request.objective_id = Some(id);
    }
    Ok(client.post("/v1/objectives", &request, Duration::ZERO).await?)
}

/// The azolla; puts the repository into the metadata.
async fn filled_in(
    named: Option<&AzollaId>,
    written: &Written,
    metadata: &mut Metadata,
    page: &Page,
    mistakes: &mut Vec<Mistake>,
    client: &Client,
) -> Outcome<AzollaId> {
    let home = Home::ask(client).await?;
    let mut choose = |what: &str, flag: &str, names: &[String]| {
        let each: String = names.iter().map(|name| format!("\n  {} {flag}{name}", page.again)).collect();
        mistakes.push(Mistake { line: 0, why: format!("{what}; type one of these:{each}") });
    };
    let azolla_id = match named {
        Some(named) => named.clone(),
        None => match home.azolla(metadata.contains_key("repo_ref")) {
            Unsaid::Known(name) => AzollaId::stored(&name),
            Unsaid::Several(names) => {
                choose("several azollas take tickets here", "--azolla ", &names);
                return Ok(AzollaId::stored("mec"));
            }
            Unsaid::Open => AzollaId::stored("mec"),
        },
    };
    if !metadata.contains_key("repo_ref") {
        match home.repo(azolla_id.as_str()) {
            Unsaid::Known(name) => drop(metadata.insert("repo_ref".into(), name.into())),
            Unsaid::Several(names) => {
                choose("the server has several repositories", "--meta repo_ref=", &names);
            }
            Unsaid::Open => {}
        }
    }
    // Of a flag alone, the server says more.
    let unknown = home.lacks(&azolla_id).filter(|_| named.is_some() && !page.name.is_empty());
    mistakes.extend(unknown.map(|why| written.mistake("azolla", why)));
    Ok(azolla_id)
}

/// Adds the labels that were named, and those in the title, to metadata, each once.
fn label(metadata: &mut Metadata, named: &[Label], title: &str) {
    let known = metadata.get("labels").and_then(Value::as_array);
    let (mut all, before) = (known.cloned().unwrap_or_default(), known.map_or(0, Vec::len));
    for label in named.iter().cloned().map(Label::into_string).chain(marks::labels(title)) {
        if !all.iter().any(|known| known.as_str().is_some_and(|known| is_same(known, &label))) {
            all.push(label.into());
        }
    }
    if all.len() > before {
        metadata.insert("labels".to_string(), all.into());
    }
}

/// The same text with an id.
fn with_id(text: &str, id: &ObjectiveId) -> String {
    match text.split_once('\n').filter(|(first, _)| first.trim_end() == "---") {
        Some((first, rest)) => format!("{first}\nid: {id}\n{rest}"),
        None => format!("---\nid: {id}\n---\n{text}"),
    }
}

pub(super) async fn edit(id: &ObjectiveId, args: EditText, client: &Client, screen: Screen) -> Outcome {
    let flags = args.title.is_some()
        || args.criteria.is_some()
        || args.importance.is_some()
        || args.urgency.is_some()
        || args.due.is_some()
        || !args.metadata.is_empty()
        || !args.unset.is_empty()
        || !args.labels.is_empty();
    let before = brief(client, id).await?.view.objective;
    let reply = if let Some(file) = file_of(args.stdin.as_ref(), args.file.as_deref()) {
        let reply = change(&before, &args, &Page::read(file)?, client).await?;
        if let Some(draft) = Draft::found(file) {
            draft.forget();
        }
        reply
    } else if flags {
        change(&before, &args, &Page::none(), client).await?
    } else {
        needs_editor(
            "name a change: --title, --criteria, --importance, --urgency, --due, --meta, --unset or --file FILE",
        )?;
        let command = format!("fernery ticket edit {id} --file");
        let send = async |draft: &Draft| change(&before, &args, &Page::of(draft, &command)?, client).await;
        editor::until_taken(&text::as_text(&before), &command, send).await?
    };
    left_at(&reply, screen)?;
    if !screen.json && is_cancelled(&reply.read()?.objective) {
        remark("your change is kept");
        brief(client, id).await?.next.iter().for_each(|next| remark(&plain(next)));
    }
    Ok(())
}

async fn change(
    before: &Objective,
    args: &EditText,
    page: &Page,
    client: &Client,
) -> Outcome<Reply<ObjectiveView>> {
    let (written, mut mistakes) = text::read(&page.text);
    let only_new = |key: &str| {
        let why = match key {
            "blocked_on" => {
                "blocked_on works only for a new ticket; use `fernery ticket block` and `fernery ticket unblock` here"
                    .to_string()
            }
            key => format!("{key} cannot be changed; delete this line"),
        };
        written.mistake(key, why)
    };
    let is_other_id = written.id.as_ref().is_some_and(|id| *id != before.objective_id);
    let is_other_azolla = written.azolla.as_ref().is_some_and(|azolla| *azolla != before.azolla_id);
    let refused =
        [("blocked_on", !written.blocked_on.is_empty()), ("id", is_other_id), ("azolla", is_other_azolla)];
    mistakes.extend(refused.into_iter().filter(|(_, wrong)| *wrong).map(|(key, _)| only_new(key)));
    let mut metadata = before.metadata.clone();
    metadata.extend(written.metadata.clone());
    metadata.extend(args.metadata.iter().cloned());
    metadata.retain(|key, _| !args.unset.contains(key));
    let mut named = written.metadata.clone();
    named.extend(args.metadata.iter().cloned());
    due::fill_in(&mut metadata, (args.due.as_deref(), &written), &named, &mut mistakes, client).await?;
    let title = args.title.clone().or(written.title.clone());
    label(&mut metadata, &args.labels, title.as_deref().unwrap_or_default());
    let request = EditObjectiveRequest {
        title,
        acceptance_criteria: args.criteria.clone().or(written.criteria.clone()),
        importance: args.importance.or(written.importance),
        urgency: args.urgency.or(written.urgency),
        metadata: (metadata != before.metadata).then_some(metadata),
    };
    let after = DraftEdit::from(request.clone()).apply(Content::from(before));
    mistakes.extend(written.mistakes(after.violations()));
    mistakes.sort();
    page.refuse(mistakes)?;
    Ok(client.patch(&path(&before.objective_id, ""), &request).await?)
}

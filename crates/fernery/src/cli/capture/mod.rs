//! `fernery capture`: a line into the inbox, from wherever you are. It is on disk before it is sent, so it is never lost.

mod deliver;
mod lines;

use super::Global;
use super::failure::{Failure, Outcome};
use super::screen::{Screen, json_inert, remark};
use super::server::{Server, env_text};
use crate::block_on::block_on;
use crate::serve::data_dir;
use crate::spool::{self, Kept, Spool};
use clap::Args;
use deliver::Unstored;
use fernery_client::Client;
use fernery_client::wire::CaptureRequest;
use fernery_core::artifact::{AzollaId, CaptureId};
use fernery_core::limits;
use fernery_core::names::is_unprintable;
use fernery_engine::door;
use serde_json::json;
use std::ffi::OsString;
use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Put a note into the inbox; it starts no work
///
/// The note is stored unchanged, byte by byte. Triage makes a candidate from it, which waits for your decision
/// (`fernery triage`). If no server answers, the note is kept on disk, and the next capture or `fernery up` delivers it
/// once.
#[derive(Debug, Args)]
#[command(after_help = "\
Flags come before the text: everything from its first word on is text. Triage reads marks at the beginning or \
end of a line: (A) or p1, +project, @context, #label, due:fri, tomorrow 5pm; the rest is the title. When in doubt, words stay text.

Examples:
  fernery capture buy milk tomorrow
  fernery capture '(A) fix --verbose +cli-tool @me due:fri'
  fernery capture --source phone -- --help is out of date
  git log -1 | fernery capture                  all of stdin is one note
  fernery capture - < ideas.txt                 every line is one note")]
pub(super) struct Capture {
    /// The text; `-` makes a note of each line of stdin, no text makes one note of all of stdin
    #[arg(value_name = "TEXT", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
    /// Where the note came from, in one line
    #[arg(long, value_name = "LABEL", default_value = "cli", value_parser = label)]
    source: String,
    /// The azolla with the inbox [default: the only one that has one]
    #[arg(long, value_name = "ID")]
    azolla: Option<AzollaId>,
}

fn label(text: &str) -> Result<String, String> {
    let most = limits::SOURCE_LABEL_CHARS_MAX;
    match text.chars().count() <= most && !text.chars().any(is_unprintable) {
        true => Ok(text.to_string()),
        false => Err(format!("a label must be one line of at most {most} printable characters")),
    }
}

impl Capture {
    /// Its id and its time are given to it here, before anything else happens.
    fn request(&self, raw: Vec<u8>) -> CaptureRequest {
        CaptureRequest {
            capture_id: Some(CaptureId::stored(&door::artifact_id())),
            azolla_id: self.azolla.clone(),
            source_label: Some(self.source.clone()),
            captured_at: Some(door::wall_clock()),
            ..spool::carried(raw)
        }
    }

    /// The one thing that is to be captured.
    fn content(&self) -> Outcome<Vec<u8>> {
        const TEACH: &str =
            "give a text, as in `fernery capture buy milk`, pipe it in, or give - for one note per line";
        let raw = if !self.words.is_empty() {
            let words: Vec<Vec<u8>> = self.words.iter().map(|word| word.clone().into_vec()).collect();
            words.join(&b' ')
        } else if std::io::stdin().is_terminal() {
            return Err(Failure::usage(TEACH));
        } else {
            all_of_stdin()?
        };
        match raw.len() {
            bytes if bytes > limits::CAPTURE_BYTES_MAX => Err(too_large(bytes as u64)),
            _ if raw.trim_ascii().is_empty() => Err(Failure::usage(format!("the text is empty; {TEACH}"))),
            _ => Ok(raw),
        }
    }
}

/// Reads stdin to its end, but keeps only as much as a capture may have.
fn all_of_stdin() -> Outcome<Vec<u8>> {
    let refused = |error: std::io::Error| Failure::usage(format!("cannot read stdin: {error}"));
    let mut stdin = std::io::stdin().lock();
    let mut raw = Vec::new();
    (&mut stdin).take(limits::CAPTURE_BYTES_MAX as u64 + 1).read_to_end(&mut raw).map_err(refused)?;
    if raw.len() > limits::CAPTURE_BYTES_MAX {
        let rest = std::io::copy(&mut stdin, &mut std::io::sink()).map_err(refused)?;
        return Err(too_large(raw.len() as u64 + rest));
    }
    Ok(raw)
}

fn too_large(bytes: u64) -> Failure {
    let most = limits::CAPTURE_BYTES_MAX;
    Failure::usage(format!("not captured: the text has {bytes} bytes; the limit is {most}"))
}

/// The spool, and who delivers from it.
struct Place {
    spool: Spool,
    takers: String,
}

impl Place {
    /// The captures of the local instance are in its data directory; those for a server elsewhere in a place for that server.
    fn find(global: &Global) -> Outcome<Self> {
        let url = match &global.url {
            Some(url) => Some(url.clone()),
            None => env_text("FERNERY_URL")?,
        };
        // A relative path would be useless to whoever reads the message elsewhere.
        let data = std::path::absolute(global.data_dir()?)?;
        let Some(url) = url.filter(|url| !global.is_of(&data, url)) else {
            if !data.is_dir() {
                data_dir::prepare(&data).map_err(Failure::usage)?;
            }
            let takers = "the next `fernery capture` or `fernery up`".to_string();
            return Ok(Self { spool: Spool::at(data.join(spool::DIR)), takers });
        };
        let home = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let state = home("XDG_STATE_HOME").or_else(|| Some(home("HOME")?.join(".local/state")));
        let Some(state) = state else {
            return Err(Failure::usage("no directory to keep captures in: set XDG_STATE_HOME, or --data"));
        };
        let server: String = url
            .trim_end_matches('/')
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' })
            .collect();
        let spool = Spool::at(state.join("fernery").join(spool::DIR).join(server));
        Ok(Self { spool, takers: "the next `fernery capture` to that server".into() })
    }

    /// What to say of captures that stay here.
    fn says(&self, why: &Failure) -> String {
        let server = if why.is_unreachable() { "does not answer" } else { "did not accept it yet" };
        let dir = self.spool.dir().display();
        format!("captured; the server {server}: it is kept in {dir}, and {} delivers it", self.takers)
    }

    /// Makes captures durable.
    fn save(&self, requests: Vec<CaptureRequest>) -> Outcome<Vec<Kept>> {
        let kept = self.spool.save(requests).map_err(|error| {
            let dir = self.spool.dir().display();
            Failure::failed("not_kept", format!("not captured: cannot write to {dir}: {error}"))
        })?;
        door::failpoint("capture_kept");
        Ok(kept)
    }
}

/// The server, unless nobody serves now.
fn server(global: &Global) -> Result<Server, Unstored> {
    global.now().server().map_err(|failure| match failure.is_unreachable() {
        true => Unstored::Later(failure),
        false => Unstored::Blocked(failure),
    })
}

pub(super) fn run(capture: &Capture, global: &Global, screen: Screen) -> Outcome {
    if capture.words.len() > 1 && capture.words.last().is_some_and(|word| word == "--json") {
        remark("`--json` was taken as text: flags come before the text");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let global = &global.with_own_data()?;
    if capture.words == ["-"] {
        let place = Place::find(global)?;
        return block_on(&runtime, lines::run(&|raw| capture.request(raw), &place, global, screen));
    }
    let request = capture.request(capture.content()?);
    let place = Place::find(global)?;
    block_on(&runtime, one(request, &place, global, screen))
}

async fn one(request: CaptureRequest, place: &Place, global: &Global, screen: Screen) -> Outcome {
    let kept = place.save(vec![request])?;
    let [kept] = &kept[..] else { return Ok(()) };
    let id = kept.request.capture_id.as_ref().map_or("", CaptureId::as_str);
    let dir = place.spool.dir().display();
    let server = match server(global) {
        Ok(server) => server,
        Err(unstored) => return stays(id, &unstored, place, screen),
    };
    match deliver::send_one(&server.client, kept).await {
        Ok(reply) => {
            door::failpoint("capture_answered");
            place.spool.forget(kept);
            if screen.json {
                screen.json_body(&reply.body)?;
            } else {
                screen.line(id)?;
            }
            deliver_rest(&server.client, place).await;
            Ok(())
        }
        Err(Unstored::Never(why)) => {
            let there = place.spool.refuse(&kept.path).unwrap_or_else(|_| kept.path.clone());
            Err(why.context("refused").hint(format_args!("it is kept in {}", there.display())))
        }
        Err(Unstored::Blocked(why)) => Err(server
            .explain_refusal(why)
            .hint(format_args!("the capture is kept in {dir} until it is delivered"))),
        Err(later) => stays(id, &later, place, screen),
    }
}

/// Reports that a capture is safe, but not delivered yet.
fn stays(id: &str, unstored: &Unstored, place: &Place, screen: Screen) -> Outcome {
    let dir = place.spool.dir().display();
    match unstored {
        Unstored::Later(why) if screen.json => {
            let said = json!({ "capture_id": id, "kept_in": dir.to_string(), "why": why.message() });
            screen.line(&json_inert(&said.to_string()))
        }
        Unstored::Later(why) => {
            remark(&place.says(why));
            screen.line(id)
        }
        Unstored::Blocked(why) | Unstored::Never(why) => {
            Err(why.clone().hint(format_args!("the capture is kept in {dir} until it is delivered")))
        }
    }
}

/// Also delivers what earlier commands left.
async fn deliver_rest(client: &Client, place: &Place) {
    let found = match place.spool.left_behind(limits::CAPTURES_MAX) {
        Ok(found) => found,
        Err(error) => return remark(&format!("{} cannot be read: {error}", place.spool.dir().display())),
    };
    for path in &found.damaged {
        remark(&format!("{} is not a capture", path.display()));
    }
    if found.kept.is_empty() {
        return;
    }
    let tally = deliver::send_all(client, &place.spool, found.kept).await;
    match tally.stored {
        0 => {}
        1 => remark("also delivered one that was kept"),
        n => remark(&format!("also delivered {n} that were kept")),
    }
    for (path, why) in &tally.refused {
        remark(&format!("refused: {}; it is kept in {}", why.message(), path.display()));
    }
}

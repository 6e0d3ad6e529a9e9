//! `fernery triage` on a terminal: one candidate after the other, a key for each.

use super::Changes;
use super::keys::{Key, Keys};
use super::{act, find, show};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::screen::{Paint, Screen, plain};
use fernery_client::Client;
use fernery_client::wire::CandidateView;
use fernery_core::artifact::{AzollaId, CandidateId};
use fernery_core::inbox::likeness::alike;

/// Candidates of one sitting.
const SITTING_MAX: usize = 1_000;
/// Lines of one text that are shown; the rest is a command away.
const LINES_MAX: usize = 12;
/// Other candidates that can be chosen to be merged into one.
const OTHERS_MAX: usize = 9;
/// Candidates that say nearly the same, as they are pointed out.
const NEAR_SHOWN: usize = 3;

const KEYS: &str = "[p]romote [e]dit [m]erge [d]iscard [u]ndo [z] snooze [s]kip [q]uit [?]";
const HELP: &str = "\
p  promote: it becomes a NEW ticket; nothing runs before it is approved
e  edit: $EDITOR opens, or the title is asked for
m  merge: merge other waiting candidates into this one; it names them and asks
d  discard: drop it; its captures stay stored
u  undo: take back the last discard
z  snooze: ask until when, and hide it until then
s  skip, also with the space bar: it keeps waiting
q  quit, also with Ctrl-C";

/// Goes on with the next candidate, or stays.
enum Then {
    Next,
    Stay,
    Leave,
}

/// What was decided.
#[derive(Default)]
struct Sitting {
    promoted: usize,
    discarded: usize,
    merged: usize,
    snoozed: usize,
    /// The last one that was discarded.
    dropped: Option<CandidateId>,
}

pub(super) async fn run(azolla: Option<&AzollaId>, client: &Client, screen: Screen) -> Outcome {
    find::sorted_out(client, azolla).await?;
    let (mut waiting, more) = find::candidates(client, "WAITING", azolla, SITTING_MAX).await?;
    if let Some(held) = find::held(client, azolla).await? {
        screen.line(&held)?;
    }
    if waiting.is_empty() {
        return screen.line("Nothing is waiting in the inbox.");
    }
    let mut keys = Keys::take()?;
    let mut sitting = Sitting::default();
    let (all, mut nth) = (waiting.len(), 0);
    waiting.reverse();
    'all: while let Some(mut candidate) = waiting.pop() {
        nth += 1;
        loop {
            show(&candidate, &waiting, &format!("{nth} of {all}"), &keys, screen)?;
            let then = decide(&mut candidate, &mut waiting, &mut sitting, &mut keys, client, screen).await;
            match then {
                Ok(Then::Next) => break,
                Ok(Then::Stay) => {}
                Ok(Then::Leave) => break 'all,
                // A refusal is shown, and the next key may be another one.
                Err(lost) if lost.is_lost() => return Err(lost),
                Err(refused) => screen.line(&screen.painted(&plain(refused.message()), Paint::Bad))?,
            }
        }
    }
    drop(keys);
    let Sitting { promoted, discarded, merged, snoozed, .. } = sitting;
    let left = all - promoted - discarded - merged - snoozed;
    let more = if more { "; there are more" } else { "" };
    screen.line(&format!("{promoted} promoted, {merged} merged, {discarded} discarded, {left} left{more}"))
}

fn show(
    candidate: &CandidateView,
    others: &[CandidateView],
    place: &str,
    keys: &Keys,
    screen: Screen,
) -> Outcome {
    let width = keys.width();
    let rule = "─".repeat(width.saturating_sub(place.chars().count() + 2).clamp(2, 60));
    screen.line("")?;
    screen.line(&screen.painted(&format!("{place} {rule}"), Paint::Dim))?;
    show::card(candidate, Some(width), LINES_MAX).iter().try_for_each(|line| screen.line(line))?;
    for other in others.iter().filter(|other| alike(&other.title, &candidate.title)).take(NEAR_SHOWN) {
        let (id, title) = (show::short(other.candidate_id.as_str()), plain(&other.title));
        screen.line(&format!("  nearly the same: {id} {title}"))?;
    }
    screen.line(&screen.painted(KEYS, Paint::Dim))
}

async fn decide(
    candidate: &mut CandidateView,
    waiting: &mut Vec<CandidateView>,
    sitting: &mut Sitting,
    keys: &mut Keys,
    client: &Client,
    screen: Screen,
) -> Outcome<Then> {
    loop {
        return match keys.next().await? {
            Key::Char('p') => promote(candidate, sitting, keys, client, screen).await,
            Key::Char('e') => edit(candidate, keys, client).await,
            Key::Char('m') => merge(candidate, waiting, sitting, keys, client, screen).await,
            Key::Char('d') => {
                act::discard(client, &candidate.candidate_id, None).await?;
                sitting.discarded += 1;
                sitting.dropped = Some(candidate.candidate_id.clone());
                screen.line("discarded; u takes it back")?;
                Ok(Then::Next)
            }
            Key::Char('u') => {
                let Some(dropped) = sitting.dropped.take() else {
                    screen.line("nothing was discarded before")?;
                    continue;
                };
                let restored = act::restore(client, &dropped, None).await?.read()?;
                sitting.discarded -= 1;
                screen.line("taken back")?;
                // It comes now, and this one after it.
                waiting.push(std::mem::replace(candidate, restored));
                Ok(Then::Stay)
            }
            Key::Char('z') => snooze(candidate, sitting, keys, client, screen).await,
            Key::Char('s' | ' ') => Ok(Then::Next),
            Key::Char('q') | Key::Quit => Ok(Then::Leave),
            Key::Char('?' | 'h') => {
                screen.line(HELP)?;
                continue;
            }
            Key::Pasted => {
                screen.line("too many characters at once: nothing was done")?;
                continue;
            }
            Key::Char(_) | Key::Enter | Key::Other => continue,
        };
    }
}

/// Empty: the server chooses by what the candidate names.
async fn promote(
    candidate: &CandidateView,
    sitting: &mut Sitting,
    keys: &mut Keys,
    client: &Client,
    screen: Screen,
) -> Outcome<Then> {
    let there = find::ticket_azollas(client).await?;
    let named = there.iter().map(AzollaId::as_str).collect::<Vec<_>>().join(", ");
    let question = format!("to which azolla ({named})? [by what it names] ");
    let Some(answer) = keys.ask(&question).await? else { return Ok(Then::Stay) };
    let azolla = match answer.as_str() {
        "" => None,
        answer => {
            let id = answer.parse();
            Some(id.map_err(|_| Failure::usage(format!("{answer:?} is not the id of an azolla")))?)
        }
    };
    let reply = act::promote(client, &candidate.candidate_id, azolla, None).await?;
    let ticket = act::ticket_of(&reply)?;
    sitting.promoted += 1;
    screen.line(&format!("promoted: {ticket}: {}", act::what_next(&reply)?))?;
    Ok(Then::Next)
}

async fn snooze(
    candidate: &CandidateView,
    sitting: &mut Sitting,
    keys: &mut Keys,
    client: &Client,
    screen: Screen,
) -> Outcome<Then> {
    let Some(answer) = keys.ask("until when? [tomorrow] ").await? else { return Ok(Then::Stay) };
    let until = if answer.is_empty() { "tomorrow".to_string() } else { answer };
    act::snooze(client, &candidate.candidate_id, until).await?;
    sitting.snoozed += 1;
    screen.line("out of sight")?;
    Ok(Then::Next)
}

async fn edit(candidate: &mut CandidateView, keys: &mut Keys, client: &Client) -> Outcome<Then> {
    let has_editor = ["VISUAL", "EDITOR"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|editor| !editor.is_empty()));
    let changes = if has_editor {
        Changes::default()
    } else {
        let question = format!("title [{}]: ", plain(&candidate.title));
        match keys.ask(&question).await? {
            None => return Ok(Then::Stay),
            Some(title) if title.is_empty() => return Ok(Then::Stay),
            Some(title) => Changes { title: Some(title), ..Changes::default() },
        }
    };
    keys.restore();
    let edited = act::edit(client, candidate, changes).await;
    keys.single()?;
    *candidate = edited?.read()?;
    Ok(Then::Stay)
}

async fn merge(
    candidate: &mut CandidateView,
    waiting: &mut Vec<CandidateView>,
    sitting: &mut Sitting,
    keys: &mut Keys,
    client: &Client,
    screen: Screen,
) -> Outcome<Then> {
    if waiting.is_empty() {
        screen.line("no other candidate is waiting")?;
        return Ok(Then::Stay);
    }
    let room = keys.width().saturating_sub(6).max(10);
    // The next one is the last of them.
    for (n, other) in waiting.iter().rev().take(OTHERS_MAX).enumerate() {
        let title: String = plain(&other.title).replace('\n', " ").chars().take(room).collect();
        screen.line(&format!("  {} {title}", n + 1))?;
    }
    let Some(answer) = keys.ask("which ones should be merged into it, as in 1 3? [1] ").await? else {
        return Ok(Then::Stay);
    };
    let most = waiting.len().min(OTHERS_MAX);
    let chosen = chosen(&answer, most)
        .ok_or_else(|| Failure::usage(format!("{answer:?}: name numbers from 1 to {most}")))?;
    let places: Vec<usize> = chosen.iter().map(|n| waiting.len() - n).collect();
    let others: Vec<_> = places.iter().map(|at| waiting[*at].candidate_id.clone()).collect();
    for at in &places {
        screen.line(&format!("  merge  {}", plain(&waiting[*at].title)))?;
    }
    screen.line(&format!("  into   {}", plain(&candidate.title)))?;
    match keys.ask("merge? [y/N] ").await? {
        Some(answer) if matches!(answer.to_lowercase().as_str(), "y" | "yes") => {}
        _ => return Ok(Then::Stay),
    }
    let merged = act::merge(client, &candidate.candidate_id, others.clone()).await?;
    waiting.retain(|other| !others.contains(&other.candidate_id));
    sitting.merged += others.len();
    *candidate = merged.read()?;
    Ok(Then::Stay)
}

/// Numbers from 1 to `most`, each once; nothing means the first.
fn chosen(answer: &str, most: usize) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for word in answer.split([' ', ',']).filter(|word| !word.is_empty()) {
        let number = word.parse().ok().filter(|n| (1..=most).contains(n))?;
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    Some(if numbers.is_empty() { vec![1] } else { numbers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_chosen_by_number() {
        assert_eq!(chosen("", 3), Some(vec![1]));
        assert_eq!(chosen("3, 1 3", 3), Some(vec![3, 1]));
        for bad in ["0", "4", "x", "1 x", "-1"] {
            assert_eq!(chosen(bad, 3), None, "{bad}");
        }
    }

    #[test]
    fn every_key_is_named_in_the_help_of_the_command() {
        let mut program = <crate::cli::Cli as clap::CommandFactory>::command();
        let triage = program.find_subcommand_mut("triage").expect("a command");
        let help = triage.render_long_help().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        for line in HELP.lines() {
            let (key, rest) = line.split_once("  ").expect("a key");
            let word = rest.split([':', ',']).next().expect("a word");
            assert!(help.contains(&format!(" {key} {word}")), "{key} {word}: {help}");
        }
    }
}

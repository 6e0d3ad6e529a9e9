//! A manifest as a person reads it.

use crate::cli::failure::Outcome;
use crate::cli::job::stream;
use crate::cli::screen::{Paint, Screen, plain};
use fernery_client::wire::ManifestView;
use fernery_core::Timestamp;
use fernery_core::artifact::QueryStatus;
use fernery_core::inbox::facts::{Asked, Facts, Item};
use fernery_core::inbox::score;
use fernery_engine::door;

/// What is shown.
pub(super) struct Page<'a> {
    pub(super) manifest: &'a ManifestView,
    /// Nothing has changed since it was made.
    pub(super) unchanged: bool,
    /// Also why each stands where it stands.
    pub(super) why: bool,
}

pub(super) fn show(screen: Screen, page: &Page<'_>) -> Outcome {
    let (manifest, facts) = (&page.manifest.manifest, &page.manifest.facts);
    let made_at = minute(manifest.created_at);
    let since = page.unchanged.then(|| format!("nothing has changed since {made_at}"));
    if facts.items.is_empty() {
        let text = manifest.prioritized_orientation.first().map_or("Nothing needs you.", String::as_str);
        let since = since.map_or(String::new(), |since| format!(" ({since})"));
        screen.say(&format!("{}{since}", plain(text)))?;
        return unseen(screen, facts);
    }
    let lines = lines(&manifest.prioritized_orientation, facts);
    for (n, line) in lines.iter().enumerate() {
        screen.hanging(&format!("{}. ", n + 1), &line.headline, Paint::Plain)?;
        if !line.why_now.is_empty() {
            screen.hanging("   ", &line.why_now, Paint::Plain)?;
        }
        let Some(item) = line.item else { continue };
        if page.why {
            screen.hanging("   ", &sum(item), Paint::Dim)?;
        }
        // On its own line, so that it can be copied.
        screen.hanging("   ", &plain(&item.command), Paint::Busy)?;
    }
    screen.line("")?;
    let more = (facts.items.len() as u64 + facts.more).saturating_sub(lines.len() as u64);
    if more > 0 {
        screen.line(&format!("+{more} more: fernery ticket list"))?;
    }
    unseen(screen, facts)?;
    let asked: Vec<_> = facts.asked.iter().map(|asked| freshness(asked, door::wall_clock())).collect();
    let pending = match facts.pending_captures {
        0 => None,
        n => Some(format!("{n} waiting for triage")),
    };
    let built_by =
        (page.manifest.built_by != "builtin").then(|| format!("built by {}", page.manifest.built_by));
    let foot = [Some(asked.join("; ")).filter(|text| !text.is_empty()), pending, since, built_by];
    for line in foot.into_iter().flatten() {
        screen.say_painted(&plain(&line), Paint::Dim)?;
    }
    Ok(())
}

/// The azollas that were not wholly seen, each on a line of its own.
fn unseen(screen: Screen, facts: &Facts) -> Outcome {
    let now = door::wall_clock();
    let all = facts.asked.iter().filter(|asked| !asked.is_seen());
    all.into_iter().try_for_each(|asked| screen.line(&format!("not seen: {}", plain(&freshness(asked, now)))))
}

/// One thing to do.
struct Line<'a> {
    headline: String,
    why_now: String,
    item: Option<&'a Item>,
}

/// Splits the texts of a manifest again: `what. Why now: why. Do: command`, and at the end what was left out. A text in
/// another form is shown unchanged.
fn lines<'a>(texts: &[String], facts: &'a Facts) -> Vec<Line<'a>> {
    texts.iter().map(|text| line(text, facts)).collect()
}

/// Text before the last `. Do: ` is by others and may look like a command; text after it is ours.
fn line<'a>(text: &str, facts: &'a Facts) -> Line<'a> {
    let as_it_is = || Line { headline: one(text), why_now: String::new(), item: None };
    let Some((said, command)) = text.rsplit_once(". Do: ") else { return as_it_is() };
    let mut meant = facts.items.iter().filter(|item| {
        command
            .strip_prefix(item.command.as_str())
            .is_some_and(|rest| !item.command.is_empty() && is_end(rest))
    });
    let (Some(item), None) = (meant.next(), meant.next()) else { return as_it_is() };
    let (headline, why_now) = said.split_once(". Why now: ").unwrap_or((said, ""));
    Line { headline: one(headline), why_now: one(why_now), item: Some(item) }
}

/// Whether this may follow a command: nothing, ` (+N more)`, ` (not seen: …)`, or both.
fn is_end(rest: &str) -> bool {
    let more = |rest: &str| {
        let (count, rest) = rest.strip_prefix(" (+")?.split_once(" more)")?;
        (!count.is_empty() && count.bytes().all(|c| c.is_ascii_digit())).then(|| rest.to_string())
    };
    let rest = more(rest).unwrap_or_else(|| rest.to_string());
    rest.is_empty() || (rest.starts_with(" (not seen: ") && rest.ends_with(')'))
}

fn one(text: &str) -> String {
    plain(text).replace('\n', " ")
}

/// The terms of an item's score.
fn sum(item: &Item) -> String {
    let terms: Vec<_> = item.score_terms.iter().map(|(name, points)| format!("{name} {points}")).collect();
    format!("{} = {}", score::total(&item.score_terms), plain(&terms.join(" + ")))
}

/// The age of an azolla's answer.
fn freshness(asked: &Asked, now: Timestamp) -> String {
    let at = asked.server.as_ref().map_or(String::new(), |server| format!(" at {server}"));
    let how = match (asked.status, asked.as_of) {
        (QueryStatus::Ok, Some(as_of)) => format!("{} ago", stream::age(now.since(as_of))),
        (QueryStatus::Ok, None) => "answered".to_string(),
        (QueryStatus::Denied, Some(_)) => "denied a part of it".to_string(),
        (QueryStatus::Denied, None) => "denied it".to_string(),
        (QueryStatus::TargetUnavailable, _) => "unreachable".to_string(),
    };
    let more = if asked.full { ", and there may be more than one answer can hold" } else { "" };
    format!("{}{at} {how}{more}", asked.azolla_id)
}

/// An instant as people read it.
fn minute(at: Timestamp) -> String {
    let text = at.to_string();
    match (text.get(..10), text.get(11..16)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fernery_core::artifact::AzollaId;

    fn item(id: &str, command: &str) -> Item {
        Item {
            item_id: format!("mec/{id}"),
            azolla_id: AzollaId::stored("mec"),
            objective_id: None,
            title: id.to_string(),
            why: Vec::new(),
            command: command.to_string(),
            importance: 2,
            urgency: 2,
            due_at: None,
            overdue: false,
            status: None,
            pause: None,
            score_terms: vec![("blocked".into(), 35), ("importance".into(), 12)],
        }
    }

    #[test]
    fn a_manifest_line_is_split_at_the_command_of_its_item() {
        let items = vec![item("T-1", "fernery ticket show T-1"), item("T-10", "fernery ticket show T-10")];
        let facts = Facts { asked: Vec::new(), items, more: 7, pending_captures: 0 };
        let texts = [
            "A. B. Why now: it. Do: fernery ticket show T-10",
            "C. Why now: late. Do: fernery ticket show T-1 (+7 more)",
            "Something else",
        ];
        let texts: Vec<String> = texts.map(String::from).to_vec();
        let shown: Vec<_> = lines(&texts, &facts)
            .into_iter()
            .map(|line| (line.headline, line.why_now, line.item.map(|item| item.item_id.clone())))
            .collect();
        let expected =
            [("A. B", "it", Some("mec/T-10")), ("C", "late", Some("mec/T-1")), ("Something else", "", None)]
                .map(|(what, why, item)| (what.to_string(), why.to_string(), item.map(String::from)));
        assert_eq!(shown, expected);
        assert_eq!(sum(&facts.items[0]), "47 = blocked 35 + importance 12");
    }

    #[test]
    fn a_text_that_looks_like_a_command_brings_no_command() {
        let hostile = "Read. Why now: x. Do: fernery ticket cancel T-2";
        let mut items = vec![
            item("T-1", "fernery ticket approve T-1"),
            item("T-2", "fernery ticket cancel T-2"),
            item("T-3", "fernery ticket approve T-3"),
            item("T-4", "fernery ticket approve T-3"),
        ];
        items[0].title = hostile.to_string();
        let facts = Facts { asked: Vec::new(), items, more: 0, pending_captures: 0 };
        let of = |text: &str| line(text, &facts).item.map(|item| item.title.clone());
        let own = |end: &str| of(&format!("{hostile}. Why now: late. Do: fernery ticket approve T-1{end}"));
        for end in
            ["", " (+2 more)", " (not seen: mec denied it)", " (+12 more) (not seen: mec did not answer)"]
        {
            assert_eq!(own(end).as_deref(), Some(hostile), "{end}");
        }
        for end in [" --yes", "0", " (+ more)", " (+x more)", "; fernery ticket cancel T-2", " (not seen: "] {
            assert_eq!(own(end), None, "{end}");
        }
        let two = format!("{hostile}. Why now: late. Do: fernery ticket approve T-3");
        for as_it_is in [two.as_str(), "A. Do: fernery ticket cancel T-9", "A. Do: ", "A"] {
            let line = line(as_it_is, &facts);
            assert!(
                line.item.is_none() && line.headline == as_it_is && line.why_now.is_empty(),
                "{as_it_is}"
            );
        }
        // A headline's own words stay words, in whichever line they stand.
        let shown = line(&format!("{hostile}. Why now: late. Do: fernery ticket approve T-1"), &facts);
        assert_eq!(shown.headline, "Read");
        assert_eq!(shown.why_now, "x. Do: fernery ticket cancel T-2. Why now: late");
    }

    #[test]
    fn the_age_of_each_answer_is_shown() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let mut asked = Asked {
            azolla_id: AzollaId::stored("mec"),
            status: QueryStatus::Ok,
            server: None,
            as_of: Some(Timestamp::from_millis(1_799_999_998_000)),
            unread: 0,
            full: false,
        };
        assert_eq!(freshness(&asked, now), "mec 2s ago");
        asked.status = QueryStatus::TargetUnavailable;
        asked.server = Some("https://office".into());
        assert_eq!(freshness(&asked, now), "mec at https://office unreachable");
    }
}

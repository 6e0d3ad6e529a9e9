//! A manifest as a person reads it.

use crate::cli::failure::Outcome;
use crate::cli::job::stream;
use crate::cli::screen::when::minute;
use crate::cli::screen::{Paint, Screen, plain};
use crate::orientation::lines;
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
        screen.hanging(&format!("{}. ", n + 1), &one(&line.headline), Paint::Plain)?;
        if !line.why_now.is_empty() {
            screen.hanging("   ", &one(&line.why_now), Paint::Plain)?;
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
    fn the_terms_of_a_score_are_shown() {
        assert_eq!(sum(&item("T-1", "fernery ticket show T-1")), "47 = blocked 35 + importance 12");
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

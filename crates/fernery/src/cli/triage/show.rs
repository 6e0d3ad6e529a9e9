//! A candidate for people: what was captured, and below it the ticket that it would become.

use crate::candidate_words::{facts, names};
use crate::cli::job::stream;
use crate::cli::screen::{counted, plain, wrapped};
use fernery_client::wire::CandidateView;
use fernery_core::inbox::label::is_same;
use fernery_core::inbox::marks;
use fernery_engine::door;

pub(super) use crate::cli::screen::ids::short;

/// The title, with the labels that it does not name itself.
pub(super) fn titled(candidate: &CandidateView) -> String {
    let said = marks::labels(&candidate.title);
    let of = |key: &str, mark: &str| names(candidate, key, mark).map_or(String::new(), |names| plain(&names));
    let all = [of("projects", "+"), of("labels", "#")].join(" ");
    let more = all.split_whitespace().filter(|label| !said.iter().any(|known| is_same(known, &label[1..])));
    std::iter::once(candidate.title.as_str()).chain(more).collect::<Vec<_>>().join(" ")
}

/// The lines of a candidate, wrapped to `width` if known; a text of more than `lines_max` lines is cut.
pub(super) fn card(candidate: &CandidateView, width: Option<usize>, lines_max: usize) -> Vec<String> {
    let now = door::wall_clock();
    let id = short(candidate.candidate_id.as_str());
    let mut lines = Vec::new();
    for capture in &candidate.captures {
        let captured = &capture.capture;
        let ago = stream::age(now.since(captured.created_at));
        lines.push(format!("captured {ago} ago from {}:", plain(&captured.source_label)));
        let mut text = indented(&captured.raw_content, width);
        if text.len() > lines_max {
            let more = counted(text.len() - lines_max, "more line");
            text.truncate(lines_max);
            text.push(format!("  … {more}: fernery triage show {id}"));
        }
        lines.extend(text);
    }
    lines.push(String::new());
    let title = indented(&candidate.title, width);
    lines.extend(title.into_iter().map(|line| line.trim_start().to_string()));
    lines.extend(facts(candidate).into_iter().map(|(name, value)| format!("  {name:<11} {}", plain(&value))));
    lines.push(format!("  {:<11} {}", "id", candidate.candidate_id));
    if !candidate.acceptance_criteria.trim().is_empty() {
        let mut criteria = indented(&candidate.acceptance_criteria, width);
        if criteria.len() > lines_max {
            criteria.truncate(lines_max);
            criteria.push("  …".to_string());
        }
        lines.extend(criteria);
    }
    lines
}

/// Foreign text, without control characters, indented by two and wrapped.
fn indented(text: &str, width: Option<usize>) -> Vec<String> {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(3).max(10));
    let mut lines = Vec::new();
    for line in plain(text).trim_end().lines() {
        lines.extend(wrapped(line, room).into_iter().map(|line| format!("  {line}").trim_end().to_string()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_words_and_moves_no_terminal() {
        let four = "one two three four five six";
        assert_eq!(indented(four, Some(25)), ["  one two three four", "  five six"]);
        let columns = |text: &str| {
            indented(&text.repeat(25), Some(25))
                .iter()
                .map(|line| line.trim().chars().count())
                .collect::<Vec<_>>()
        };
        assert_eq!(columns("x"), [22, 3]);
        assert_eq!(columns("字"), [11, 11, 3], "each takes two columns");
        assert_eq!(indented("a\n\nb\u{1b}[2J\u{202e}", None), ["  a", "", "  b\\u{1b}[2J\\u{202e}"]);
    }
}

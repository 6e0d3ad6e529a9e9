//! What was sent in a form that was not carried out: shown whole, to be copied, and sent again where that may help.

use super::fields::Fields;
use super::show::Line;
use super::trouble::page_of;
use askama::Template;
use askama::filters::HtmlSafe;
use fernery_core::percent::decode;

/// Fields that nobody types: what a form proves, what it is about, and how it finds its way back.
const OF_THE_FORM: &[&str] = &[
    "form_key",
    "act_id",
    "confirm_id",
    "token_id",
    "run_id",
    "comment_id",
    "digest",
    "comments_digest",
    "patch_sha256",
    "tip",
    "cursor",
    "then",
    "due_was",
    "labels_was",
    "repo_was",
    "act",
    "all",
    "before",
    "ended",
    "everywhere",
    "force",
    "job",
    "next",
    "other",
    "range",
    "viewed",
    "wake",
];
/// Fields that are never shown, and never sent by a page.
const SECRET: &[&str] = &["token"];
/// Lines of a field that is shown.
const ROWS_MAX: usize = 12;
/// Characters of a line, as it is broken on a page of middling width.
const LINE_CHARS: usize = 60;

#[derive(Template)]
#[template(path = "kept.html")]
pub(super) struct KeptForm {
    sent: Vec<Sent>,
    again: Option<Again>,
}

/// A field as it was sent.
struct Sent {
    name: Line,
    value: String,
    rows: usize,
}

/// The form that sends it once more.
struct Again {
    path: String,
    /// What it does and to what, and the page of that.
    act: Line,
    page: String,
    fields: Fields,
    button: &'static str,
}

impl HtmlSafe for KeptForm {}

impl KeptForm {
    pub(super) fn of(fields: &Fields) -> Self {
        let told = fields.pairs().filter(|(name, value)| {
            !OF_THE_FORM.contains(&name.as_str())
                && !SECRET.contains(&name.as_str())
                && !value.trim().is_empty()
        });
        let sent = told.map(|(name, value)| Sent {
            name: Line(name.replace('_', " ")),
            rows: value
                .lines()
                .map(|line| 1 + line.chars().count() / LINE_CHARS)
                .sum::<usize>()
                .min(ROWS_MAX),
            value: value.clone(),
        });
        Self { sent: sent.collect(), again: None }
    }

    /// With a button that sends all of it once more, under this key.
    pub(super) fn again(self, path: &str, fields: &Fields, form_key: &str, button: &'static str) -> Self {
        let fields =
            SECRET.iter().fold(fields.with("form_key", form_key), |fields, secret| fields.without(secret));
        let again = Again {
            path: path.to_string(),
            act: Line::of(act_of(path, &fields)),
            page: page_of(path).to_string(),
            fields,
            button,
        };
        Self { again: Some(again), ..self }
    }
}

/// Whether a form has what is never shown and never sent by a page.
pub(super) fn has_secret(fields: &Fields) -> bool {
    SECRET.iter().any(|secret| fields.has(secret))
}

/// An act and its subject in words, by where its form goes: a page is shown to many subjects, and a person sends to one.
fn act_of(path: &str, fields: &Fields) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<String> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| decode(part).unwrap_or_else(|| part.to_string()))
        .collect();
    let words = |name: &str| name.replace('-', " ");
    match parts.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tokens"] => "make a token".to_string(),
        ["jobs"] => format!("{} jobs", fields.text("act")),
        ["bulk"] => format!("{} all jobs that match", fields.text("verb")),
        [thing, "reload" | "redrive"] => format!("{} {thing}", parts[1]),
        [act] => words(act),
        [act, id] => format!("{} {id}", words(act)),
        [thing, id, act] => format!("{} {} {id}", words(act), words(thing)),
        _ => path.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_act_that_would_be_sent_is_named_with_its_subject() {
        let act = |path: &str| act_of(path, &Fields::read("act=cancel&verb=purge").unwrap());
        assert_eq!(act("/approve/T-1"), "approve T-1");
        assert_eq!(act("/review/r%201/comment-edit?file=2"), "comment edit review r 1");
        assert_eq!(act("/token/ab/revoke"), "revoke token ab");
        assert_eq!(act("/capture"), "capture");
        assert_eq!(act("/dead/redrive"), "redrive dead");
        assert_eq!((act("/jobs"), act("/bulk")), ("cancel jobs".into(), "purge all jobs that match".into()));
        let html =
            KeptForm::of(&Fields::default()).again("/token/ab/revoke", &Fields::default(), "k", "Send it");
        assert!(html.to_string().contains("<a href=\"/tokens\"><bdi>revoke token ab</bdi></a>"), "{html}");
    }

    #[test]
    fn what_nobody_types_is_sent_again_and_not_shown() {
        let fields =
            Fields::read("job=1&job=2&ended=1&act=cancel&next=%2F&viewed=yes&all=yes&wake=yes").unwrap();
        let html = KeptForm::of(&fields).again("/jobs", &fields, "k", "Send it").to_string();
        assert!(!html.contains("<textarea") && !html.contains("What you sent"), "{html}");
        assert_eq!(html.matches("name=\"job\"").count(), 2, "{html}");
    }

    #[test]
    fn what_was_typed_is_shown_and_sent_again_and_a_secret_never_is() {
        let fields = Fields::read("form_key=k1&note=%3Cb%3E+%26%0A%0Aso&token=fern_secret&empty=+").unwrap();
        let html = KeptForm::of(&fields).again("/x", &fields, "k2", "Send it").to_string();
        assert!(html.contains("&#60;b&#62; &#38;\n\nso</textarea>"), "{html}");
        assert!(html.contains("name=\"note\"") && html.contains("name=\"form_key\" value=\"k2\""), "{html}");
        assert!(!html.contains("fern_secret") && !html.contains("k1"), "{html}");
        assert_eq!(html.matches("<textarea").count(), 1, "{html}");
        assert!(!KeptForm::of(&fields).to_string().contains("<form"));
    }
}

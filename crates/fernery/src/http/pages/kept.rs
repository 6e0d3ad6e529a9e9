//! What was sent in a form that was not carried out: shown whole, to be copied, and sent again where that may help.

use super::fields::Fields;
use super::show::Line;
use askama::Template;
use askama::filters::HtmlSafe;

/// Fields that nobody types: what a form proves, and how it finds its way back.
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
        Self { again: Some(Again { path: path.to_string(), fields, button }), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

//! From an approved objective to a judged run: every decision of the pipeline, as pure functions over what was read.
//!
//! * [`draft`]: what an operator may write down
//! * [`approval`]: what they are shown, and what they decide
//! * [`lifecycle`]: the only transitions of an objective there are
//! * [`ground`]: the repository and commit that work starts from
//! * [`scheduling`]: what becomes of an event
//! * [`prompt`]: what the executor is told, perhaps by a [`template`]
//! * [`rework`]: what an attempt starts from, if not from the base
//! * [`question`]: what an executor asks, and what it is answered
//! * [`membrane`]: what an executor may hand in
//! * [`execution`]: the bundle of a workorder, however its job ended
//! * [`envelope`]: what an objective may cost over all its attempts
//! * [`exhibits`]: what a verdict is over
//! * [`protection`]: what of a gate's command a patch touches
//! * [`repetition`]: whether an attempt does what the one before did
//! * [`evidence`]: what a gate found
//! * [`judging`]: evidence to verdict, and where the objective goes from there
//! * [`landing`]: how a patch that passed comes home
//! * [`waiting`]: why nothing happens
//! * [`possible`]: what a person can do with a ticket now, and what is suggested

pub mod approval;
pub mod dependency;
pub mod draft;
pub mod envelope;
pub mod evidence;
pub mod execution;
pub mod exhibits;
pub mod ground;
pub mod happened;
pub mod judging;
pub mod landing;
pub mod lifecycle;
pub mod membrane;
pub mod patching;
pub mod possible;
pub mod prompt;
pub mod protection;
pub mod question;
pub mod repetition;
pub mod rework;
pub mod scheduling;
pub mod template;
pub mod waiting;

/// What is wrong with a part of a document.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    /// Where, as a JSON pointer.
    pub path: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Violation {
    pub(crate) fn new(path: &str, message: impl Into<String>) -> Self {
        Self { path: path.to_string(), message: message.into() }
    }
}

impl std::fmt::Display for Violation {
    /// The field as people write it: `metadata.allow`, not `/metadata/allow`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.trim_start_matches('/') {
            "" => f.write_str(&self.message),
            field => write!(f, "{}: {}", field.replace('/', "."), self.message),
        }
    }
}

/// Text that is safe to show: lines and tabs, but nothing that moves the cursor or hides text.
pub(crate) fn is_showable(text: &str) -> bool {
    !crate::names::unprintable_in(text).any(|(_, c)| !matches!(c, '\n' | '\t' | '\r'))
}

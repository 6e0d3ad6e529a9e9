//! How a handler reports that an attempt did not succeed.

use crate::wire::ErrorReport;
use std::fmt;

/// What a handler answers instead of a result: a failure to report, or the wish to hand the job back.
///
/// `?` turns every [`std::error::Error`] into one, with the code `failed`, its causes in the message, and retryable. It does
/// not implement `Error` itself: otherwise `?` could not convert all other errors.
#[derive(Clone, Debug)]
pub struct Failure {
    pub(crate) what: Ending,
}

#[derive(Clone, Debug)]
pub(crate) enum Ending {
    Failed(ErrorReport),
    Released,
}

impl Failure {
    /// The code of failures made by `?`.
    pub const CODE: &'static str = "failed";

    /// A failure with a short code to filter by and a sentence for people; another attempt may help.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { what: Ending::Failed(ErrorReport { code, message, stack: None, retryable: true }) }
    }

    /// The same failure, and no further attempt will help: the job goes to the dead-letter queue.
    #[must_use]
    pub fn permanent(self) -> Self {
        self.retryable(false)
    }

    /// Whether another attempt may help.
    #[must_use]
    pub fn retryable(self, retryable: bool) -> Self {
        self.with(|error| error.retryable = retryable)
    }

    /// Where it went wrong: a stack trace, the end of a log.
    #[must_use]
    pub fn stack(self, stack: impl Into<String>) -> Self {
        self.with(|error| error.stack = Some(stack.into()))
    }

    /// Not a failure: the job is handed back as it was and may be claimed again at once, here or elsewhere. It costs no
    /// attempt, but a job that is handed back twenty times goes to the dead-letter queue.
    pub fn release() -> Self {
        Self { what: Ending::Released }
    }

    /// What will be reported; `None` for a job that is handed back.
    pub fn report(&self) -> Option<&ErrorReport> {
        match &self.what {
            Ending::Failed(error) => Some(error),
            Ending::Released => None,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut ErrorReport)) -> Self {
        if let Ending::Failed(error) = &mut self.what {
            change(error);
        }
        self
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(Self::CODE, with_causes(&error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Ending::Failed(error) => write!(f, "{}: {}", error.code, error.message),
            Ending::Released => f.write_str("handed back"),
        }
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some errors repeat their cause in their own text.
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads_a_number(text: &str) -> Result<u8, Failure> {
        Ok(text.parse::<u8>()?)
    }

    #[test]
    fn any_error_becomes_a_failure_that_may_be_tried_again() {
        let failure = reads_a_number("x").unwrap_err();
        let report = failure.report().unwrap();
        assert_eq!((&*report.code, &*report.message), ("failed", "invalid digit found in string"));
        assert!(report.retryable);
        assert!(!failure.permanent().report().unwrap().retryable);
    }

    #[test]
    fn causes_are_told_once() {
        #[derive(Debug)]
        struct Outer(std::num::ParseIntError, &'static str);
        impl fmt::Display for Outer {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.1)
            }
        }
        impl std::error::Error for Outer {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                Some(&self.0)
            }
        }
        let inner = || "x".parse::<u8>().unwrap_err();
        let message = |outer: Outer| Failure::from(outer).report().unwrap().message.clone();
        assert_eq!(message(Outer(inner(), "bad port")), "bad port: invalid digit found in string");
        let told = "bad port: invalid digit found in string";
        assert_eq!(message(Outer(inner(), told)), told);
    }

    #[test]
    fn handing_back_reports_no_error() {
        assert!(Failure::release().permanent().report().is_none());
    }
}

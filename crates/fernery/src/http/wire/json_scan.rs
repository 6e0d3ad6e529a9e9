//! One pass over a body before anything is read from it; maps refusals to problem codes.

use crate::http::problem::{Code, Refusal, Refused};
use fernery_core::json_strict::{self, Flaw};

pub use fernery_core::json_strict::place;

/// Checks a whole document; afterwards any JSON parser accepts it.
pub fn scan(text: &str, depth_max: usize) -> Result<(), Refused> {
    json_strict::scan(text, depth_max).map_err(|bad| {
        let code = match bad.flaw {
            Flaw::Malformed => Code::BadJson,
            Flaw::TooDeep => Code::TooDeep,
            Flaw::DuplicateKey => Code::DuplicateKey,
        };
        Refusal::new(code, bad.detail)
    })
}

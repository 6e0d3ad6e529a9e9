//! The artifact that the path of a call names.

use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::Call;
use fernery_core::BadName;
use fernery_core::names::showable;
use std::fmt::Display;
use std::str::FromStr;

/// The id in the path. A text that cannot be an id names nothing.
pub(in crate::http) fn named<T: FromStr<Err = BadName>>(call: &Call) -> Result<T, Refused> {
    call.param.parse().map_err(|bad: BadName| Refusal::new(Code::NotFound, bad.to_string()))
}

/// The refusal where nothing has the id in the path.
pub(in crate::http) fn unknown(call: &Call, what: &str) -> impl FnOnce() -> Refused {
    let refused = missing(what, &call.param);
    move || refused
}

/// The refusal where nothing has this id.
pub(in crate::http) fn missing(what: &str, id: &impl Display) -> Refused {
    Refusal::new(Code::NotFound, format!("there is no {what} with the id {}", showable(&id.to_string())))
}

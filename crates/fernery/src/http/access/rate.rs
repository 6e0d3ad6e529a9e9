//! How many requests a second a token may make.
//!
//! A token may save up one second's worth. Reports of a worker about its job are never counted: if they were refused, a
//! healthy worker would look dead, and finished work would be done again.

use super::auth::Caller;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::routes::Route;
use fernery_engine::door;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::Instant;

/// The limiter's clock, from the door.
#[derive(Clone, Debug)]
struct StopWatch;

impl Clock for StopWatch {
    type Instant = Instant;

    fn now(&self) -> Instant {
        door::stop_watch()
    }
}

/// By token id; never more than rows in the token table.
type ByToken = RateLimiter<String, HashMapStateStore<String>, StopWatch, NoOpMiddleware<Instant>>;

/// The limit in force, if there is one.
#[derive(Debug)]
pub struct RateLimit(Option<ByToken>);

impl RateLimit {
    /// So many requests a second for each token; `None` is no limit.
    pub fn new(requests_per_second: Option<NonZeroU32>) -> Self {
        let limiter =
            requests_per_second.map(|n| RateLimiter::hashmap_with_clock(Quota::per_second(n), StopWatch));
        Self(limiter)
    }

    /// Counts a request, or refuses it.
    pub fn admit(&self, route: &Route, caller: &Caller) -> Result<(), Refused> {
        let (Some(limiter), Some(token)) = (&self.0, &caller.0) else { return Ok(()) };
        if route.reports || limiter.check_key(&token.row.token_id).is_ok() {
            return Ok(());
        }
        Err(Refusal::new(Code::RateLimited, Code::RateLimited.title()))
    }
}

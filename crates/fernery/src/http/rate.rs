//! How many requests a second a token may make.
//!
//! A token may save up one second of them. What a holder reports about its job is never counted: refused, a healthy
//! worker would look like a dead one, and finished work would be done again.

use super::auth::Caller;
use super::problem::{Code, Refusal, Refused};
use super::routes::Route;
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

/// By the id of a token; there are no more of them than rows in the token table.
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

//! How many requests a second a token may make.
//!
//! A token may save up one second's worth. Reports of a worker about its job are never counted: if they were refused, a
//! healthy worker would look dead, and finished work would be done again.

use super::auth::Caller;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::route::Route;
use fernery_engine::door;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

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
        if route.reports { Ok(()) } else { self.admit_page(caller) }
    }

    /// The same for a page, which counts as one request whatever it reads.
    pub fn admit_page(&self, caller: &Caller) -> Result<(), Refused> {
        let (Some(limiter), Some(token)) = (&self.0, &caller.0) else { return Ok(()) };
        if limiter.check_key(&token.row.token_id).is_ok() {
            return Ok(());
        }
        Err(Refusal::new(Code::RateLimited, Code::RateLimited.title()))
    }
}

/// How often somebody may try to sign in: ten times at once, then once every two seconds. Each token has a count of its own, and
/// all that is unknown shares one, so that nobody can lock out the owner of a token by guessing.
#[derive(Debug)]
pub struct SignInRate(ByToken);

/// Tries at once.
pub(crate) const SIGN_IN_BURST: NonZeroU32 = NonZeroU32::new(10).expect("not zero");
/// How long until there is another one.
const SIGN_IN_EVERY: Duration = Duration::from_secs(2);

impl Default for SignInRate {
    fn default() -> Self {
        let quota = Quota::with_period(SIGN_IN_EVERY).unwrap_or(Quota::per_second(NonZeroU32::MIN));
        Self(RateLimiter::hashmap_with_clock(quota.allow_burst(SIGN_IN_BURST), StopWatch))
    }
}

impl SignInRate {
    /// Counts a try with the token of this id, or with something unknown; or refuses it.
    pub fn admit(&self, token_id: Option<&str>) -> Result<(), Refused> {
        let detail = "too many tries to sign in; wait a few seconds";
        let admitted = self.0.check_key(&token_id.unwrap_or_default().to_string());
        admitted.map_err(|_| Refusal::new(Code::RateLimited, detail))
    }
}

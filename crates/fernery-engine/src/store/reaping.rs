//! Ends many attempts without a report; skips leases whose rows are corrupt.
//!
//! Leases are processed in the order of their ids, each step in its own transaction. A lease that cannot be settled
//! fails its transaction: then the leases of that batch are processed one by one, and the bad one is skipped for a
//! person to check. However many of them there are, the others do not wait for them.

use super::Pass;
use crate::error::{StoreError, StoreResult};
use std::fmt;
use std::future::Future;

/// What one step did.
pub(super) struct Step<P> {
    /// The last lease that was looked at.
    pub(super) last: Option<P>,
    /// Leases that were looked at.
    pub(super) seen: usize,
    /// Attempts that were ended.
    pub(super) moved: usize,
    /// Why none was, though they are due.
    pub(super) spoiled: Option<StoreError>,
}

impl<P> Default for Step<P> {
    fn default() -> Self {
        Self { last: None, seen: 0, moved: 0, spoiled: None }
    }
}

/// Ends up to `limit` attempts. `step` looks at up to so many leases after a place.
pub(super) async fn go_through<P, F>(
    limit: usize,
    batch: usize,
    mut step: impl FnMut(Option<P>, usize) -> F,
) -> StoreResult<Pass>
where
    P: Clone + PartialOrd + fmt::Display,
    F: Future<Output = StoreResult<Step<P>>>,
{
    let (mut moved, mut place, mut singly_to) = (0, None::<P>, None::<P>);
    while moved < limit {
        let size = if place < singly_to { 1 } else { batch.min(limit - moved) };
        let done = step(place.clone(), size).await?;
        match (done.spoiled, &done.last) {
            (None, _) => moved += done.moved,
            (Some(error), None) => return Err(error),
            (Some(_), Some(last)) if done.seen > 1 => {
                singly_to = Some(last.clone());
                continue;
            }
            (Some(error), Some(lease)) => {
                tracing::error!(%lease, %error, "skipped a lease whose row is corrupt");
            }
        }
        if done.seen < size {
            break;
        }
        place = done.last;
    }
    Ok(Pass { moved, full: moved == limit })
}

//! A batch in which one item may be at fault.

use fernery_engine::StoreError;

/// Works on all items together. If that fails and one item may be the cause, works on each alone, so that it does not
/// hold up the others. Answers the result of each call, and the last error.
pub(super) async fn alone_if_failed<T: Clone, R, F>(
    all: Vec<T>,
    mut work: impl FnMut(Vec<T>) -> F,
) -> (Vec<R>, Option<StoreError>)
where
    F: Future<Output = Result<R, StoreError>>,
{
    match work(all.clone()).await {
        Ok(done) => (vec![done], None),
        Err(error) if all.len() > 1 && error.is_of_one_call() => {
            let (mut out, mut failed) = (Vec::new(), None);
            for one in all {
                match work(vec![one]).await {
                    Ok(done) => out.push(done),
                    Err(error) => failed = Some(error),
                }
            }
            (out, failed)
        }
        Err(error) => (Vec::new(), Some(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_that_fails_keeps_nobody_else_waiting() {
        let mut calls = Vec::new();
        let work = |some: Vec<i32>| {
            calls.push(some.clone());
            async move {
                match some.contains(&2) {
                    true => Err(StoreError::Corrupt("two".into())),
                    false => Ok(some),
                }
            }
        };
        let (done, failed) = alone_if_failed(vec![1, 2, 3], work).await;
        assert_eq!((done, calls), (vec![vec![1], vec![3]], vec![vec![1, 2, 3], vec![1], vec![2], vec![3]]));
        assert!(matches!(failed, Some(StoreError::Corrupt(_))));
    }

    #[tokio::test]
    async fn nothing_is_tried_alone_where_none_of_them_is_to_blame() {
        let errors = [StoreError::Unavailable("away".into()), StoreError::Busy("locked".into())];
        for (all, error) in [vec![1, 2], vec![1]].into_iter().zip(errors) {
            let mut calls = 0;
            let work = |_: Vec<i32>| {
                calls += 1;
                std::future::ready(Err::<(), _>(error.clone()))
            };
            let (done, failed) = alone_if_failed(all, work).await;
            assert_eq!((done.len(), calls, failed.is_some()), (0, 1, true));
        }
    }
}

//! One-time links and the sessions of browsers.

use crate::support::backend::{Backend, settings};
use fernery_engine::store::{BrowserSession, NewSignIn};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

on_both_backends!(a_link_is_spent_once, a_session_ends_in_time_or_when_it_is_told_to);

fn new(id: &str, life: Duration) -> NewSignIn {
    NewSignIn { id: id.to_string(), secret_hash: [7; 32], life }
}

fn ids(all: Vec<BrowserSession>) -> Vec<String> {
    all.into_iter().map(|session| session.session_id).collect()
}

async fn a_link_is_spent_once<B: Backend>() {
    let mut backend = B::open(settings()).await;
    let store = backend.store();
    let link = |id: &str, hash: u8| (id.to_string(), [hash; 32]);
    assert_eq!(store.add_link(new("l1", MINUTE), "t".into()).await, Ok(true));
    assert_eq!(store.add_link(new("l1", MINUTE), "other".into()).await, Ok(false), "its id is taken");
    assert_eq!(store.add_link(new("l2", MINUTE), "t".into()).await, Ok(true));
    assert_eq!(store.spend_link(link("l1", 8), new("s0", HOUR)).await, Ok(None), "another secret");
    assert_eq!(store.spend_link(link("l1", 7), new("s1", HOUR)).await, Ok(Some("t".to_string())));
    assert_eq!(store.spend_link(link("l1", 7), new("s2", HOUR)).await, Ok(None), "spent");
    assert_eq!(store.session("s2".into()).await, Ok(None), "a link that was spent opens nothing");
    assert_eq!(store.session("l2".into()).await, Ok(None), "a link is no session");
    drop(store);
    backend.crash().await;
    backend.advance(MINUTE).await;
    let store = backend.store();
    assert_eq!(store.spend_link(link("l2", 7), new("s3", HOUR)).await, Ok(None), "too old");
    let session = store.session("s1".into()).await.expect("read").expect("a session");
    assert_eq!((session.token_id.as_str(), session.age), ("t", MINUTE));
}

async fn a_session_ends_in_time_or_when_it_is_told_to<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = backend.store();
    for (id, token) in [("a", "t"), ("b", "t"), ("c", "u"), ("d", "u")] {
        assert_eq!(store.add_session(new(id, HOUR), token.into()).await, Ok(true));
        backend.advance(Duration::from_secs(1)).await;
    }
    assert_eq!(ids(store.sessions(3).await.expect("read")), ["d", "c", "b"], "newest first");
    assert_eq!(store.end_session("c".into()).await, Ok(true));
    assert_eq!(store.end_session("c".into()).await, Ok(false));
    assert_eq!(store.end_sign_ins_of("t".into()).await, Ok(2));
    assert_eq!(ids(store.sessions(3).await.expect("read")), ["d"]);
    backend.advance(HOUR).await;
    assert_eq!(store.session("d".into()).await, Ok(None));
    assert_eq!(ids(store.sessions(3).await.expect("read")), [""; 0]);
    assert_eq!(store.add_session(new("d", HOUR), "t".into()).await, Ok(true), "what has ended is forgotten");
}

//! How many streams there may be, how they are listed, and when an empty one is forgotten.

use crate::support::backend::{Backend, settings};
use crate::support::singly::*;
use fernery_core::StreamName;
use fernery_engine::Substrate;
use fernery_engine::pipeline::acts::Actor;
use fernery_engine::pipeline::{journal, streams};
use fernery_engine::store::{Pass, Store, StreamChange, StreamCounts, StreamLimits, StreamsOpened};
use serde_json::json;
use std::time::Duration;

on_every_backend!(streams_are_listed_in_pages_by_name);
// The model lets everything in and forgets nothing.
on_backend!(
    limited_on_sqlite,
    Sqlite,
    no_more_streams_are_opened_than_there_may_be,
    streams_that_are_opened_at_once_are_counted_once_each,
    an_empty_stream_is_forgotten_and_no_other,
    a_setting_is_there_before_the_first_job_and_stays_until_it_is_changed,
    a_setting_leaves_a_trace_and_what_was_so_already_leaves_none,
    a_stream_that_hides_its_jobs_is_not_forgotten
);
on_backend!(
    limited_on_postgres,
    Postgres,
    no_more_streams_are_opened_than_there_may_be,
    streams_that_are_opened_at_once_are_counted_once_each,
    an_empty_stream_is_forgotten_and_no_other,
    a_setting_is_there_before_the_first_job_and_stays_until_it_is_changed,
    a_setting_leaves_a_trace_and_what_was_so_already_leaves_none,
    a_stream_that_hides_its_jobs_is_not_forgotten
);

async fn names(store: &dyn Store, after: Option<&str>, limit: usize) -> Vec<String> {
    let page = store.streams(after.map(stream), limit).await.expect("a page");
    page.into_iter().map(|view| view.name.to_string()).collect()
}

async fn streams_are_listed_in_pages_by_name<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    for name in ["b", "a/1", "B", "a"] {
        enqueue(store, job_on(name)).await;
    }
    // Some counts are folded where they are folded at all, and some are not.
    store.tidy().await.expect("tidied");
    enqueue(store, job_on("c")).await;
    enqueue(store, job_on("b")).await;
    assert_eq!(names(store, None, usize::MAX).await, ["B", "a", "a/1", "b", "c"]);
    assert_eq!(names(store, None, 2).await, ["B", "a"]);
    assert_eq!(names(store, Some("a"), 2).await, ["a/1", "b"]);
    assert_eq!(names(store, Some("aa"), 2).await, ["b", "c"], "the place need not be a stream");
    assert_eq!(names(store, Some("c"), 2).await, [""; 0]);
    let sums = |ready| StreamCounts { ready, ..StreamCounts::default() };
    assert_eq!(store.streams_beyond(None).await, Ok((5, sums(6))));
    assert_eq!(store.streams_beyond(Some(stream("a/1"))).await, Ok((2, sums(3))));
    assert_eq!(store.streams_beyond(Some(stream("c"))).await, Ok((0, sums(0))));
}

const LIMITS: StreamLimits = StreamLimits { in_all: 6, of_token: 3 };

async fn open(store: &dyn Store, by: Option<&str>, names: &[&str]) -> StreamsOpened {
    let names = names.iter().map(|name| stream(name)).collect();
    store.open_streams(names, by.map(str::to_string), LIMITS).await.expect("answered")
}

async fn no_more_streams_are_opened_than_there_may_be<B: Backend>() {
    use StreamsOpened::{TooManyInAll, TooManyOfToken, Yes};
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    // One that came another way counts in all, and as nobody's; it is known before its counts are folded.
    enqueue(store, job_on("inbox")).await;
    assert_eq!(open(store, Some("a"), &["inbox", "a1", "a2", "a2"]).await, Yes);
    assert_eq!(open(store, Some("a"), &["a3", "a4"]).await, TooManyOfToken(stream("a3")));
    assert_eq!(store.stream(stream("a3")).await, Ok(None), "none of a call that is refused");
    assert_eq!(open(store, Some("a"), &["a3"]).await, Yes);
    assert_eq!(open(store, Some("a"), &["a1", "a2", "a3", "inbox"]).await, Yes, "what is there goes on");
    assert_eq!(open(store, Some("a"), &["a4"]).await, TooManyOfToken(stream("a4")));
    store.tidy().await.expect("tidied");
    assert_eq!(open(store, Some("b"), &["b1", "b2", "b3"]).await, TooManyInAll(stream("b1")));
    assert_eq!(open(store, Some("b"), &["b1", "a4"]).await, Yes, "of another token");
    assert_eq!(open(store, None, &["c1"]).await, TooManyInAll(stream("c1")));
    assert_eq!(open(store, None, &["b1", "a1"]).await, Yes);
    enqueue(store, job_on("a1")).await;
    assert_eq!(counts(store, "a1").await, StreamCounts { ready: 1, ..StreamCounts::default() });
    assert_eq!(claim(store, "a1").await.stream, stream("a1"));
    assert_eq!(names(store, None, 10).await, ["a1", "a2", "a3", "a4", "b1", "inbox"]);
}

async fn streams_that_are_opened_at_once_are_counted_once_each<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = backend.store();
    let mut asking = tokio::task::JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        let names: Vec<StreamName> = vec![stream(&format!("s{n}"))];
        asking.spawn(async move { store.open_streams(names, Some(format!("t{}", n % 4)), LIMITS).await });
    }
    let answers = asking.join_all().await;
    let opened = answers.into_iter().filter(|answer| *answer == Ok(StreamsOpened::Yes)).count();
    assert_eq!((opened, names(&*store, None, 30).await.len()), (LIMITS.in_all, LIMITS.in_all));
}

async fn an_empty_stream_is_forgotten_and_no_other<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let age = Duration::from_secs(5);
    enqueue(store, job_on("ready")).await;
    enqueue(store, delayed("scheduled", Duration::from_secs(3600))).await;
    enqueue_and_claim(store, job_on("running")).await;
    bury(store, job_on("dead")).await;
    // Another's stream may look like one of the pipeline's: names differ by case.
    for name in ["done", "paused", "diazotroph:x", "DIAZOTROPH:x"] {
        let claimed = enqueue_and_claim(store, job_on(name)).await;
        complete(store, proof(&claimed)).await;
    }
    assert_eq!(store.set_paused(stream("paused"), true).await, Ok(true));
    let opened = store.open_streams(vec![stream("opened")], None, StreamLimits::default()).await;
    assert_eq!(opened, Ok(StreamsOpened::Yes));
    store.tidy().await.expect("tidied");
    assert_eq!(store.forget_streams(age, 10).await, Ok(Pass { moved: 0, full: false }), "too early");
    backend.advance(Duration::from_secs(10)).await;
    let again = enqueue_and_claim(store, job_on("again")).await;
    complete(store, proof(&again)).await;
    // Its counts may not be folded yet.
    assert_eq!(store.forget_streams(age, 1).await, Ok(Pass { moved: 1, full: true }));
    assert_eq!(store.forget_streams(age, 10).await, Ok(Pass { moved: 2, full: false }));
    let left = ["again", "dead", "diazotroph:x", "paused", "ready", "running", "scheduled"];
    assert_eq!(names(store, None, 20).await, left);
    store.tidy().await.expect("tidied");
    assert_eq!(store.forget_streams(age, 10).await, Ok(Pass { moved: 0, full: false }), "it was just used");
    assert_eq!(store.stream(stream("done")).await, Ok(None));
    enqueue(store, job_on("done")).await;
    assert_eq!(counts(store, "done").await, StreamCounts { ready: 1, ..StreamCounts::default() });
}

const HIDDEN: StreamChange = StreamChange { redact: Some(true) };
const SHOWN: StreamChange = StreamChange { redact: Some(false) };

async fn set<B: Backend>(backend: &B, name: &str, change: StreamChange) {
    let (name, who) = (stream(name), Actor("operator".to_string()));
    let substrate = Substrate::new(backend.store(), backend.signals());
    substrate.transact(move |sql| streams::set(sql, &who, &name, change)).await.expect("set");
}

async fn redacts(store: &dyn Store, name: &str) -> Option<bool> {
    store.stream(stream(name)).await.expect("read").map(|view| view.redact)
}

async fn a_setting_is_there_before_the_first_job_and_stays_until_it_is_changed<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    enqueue(store, job_on("plain")).await;
    for _ in 0..2 {
        set(&backend, "new", HIDDEN).await;
    }
    assert_eq!((redacts(store, "new").await, redacts(store, "plain").await), (Some(true), Some(false)));
    assert_eq!(counts(store, "new").await, StreamCounts::default());
    // Neither jobs nor another setting change it.
    enqueue(store, job_on("new")).await;
    store.tidy().await.expect("tidied");
    assert_eq!(store.set_paused(stream("new"), true).await, Ok(true));
    set(&backend, "new", StreamChange::default()).await;
    let view = store.stream(stream("new")).await.expect("read").expect("there");
    assert!((view.redact, view.paused, view.counts.ready) == (true, true, 1), "{view:?}");
    // Of one that has jobs already, folded or not.
    set(&backend, "plain", HIDDEN).await;
    assert_eq!(counts(store, "plain").await, StreamCounts { ready: 1, ..StreamCounts::default() });
    let asked = ["unknown", "plain", "new"].map(stream).to_vec();
    let mut found = store.redacting(asked.clone()).await.expect("read");
    found.sort();
    assert_eq!(found, ["new", "plain"].map(stream));
    set(&backend, "plain", SHOWN).await;
    assert_eq!(store.redacting(asked).await, Ok(vec![stream("new")]));
    assert_eq!(store.redacting(Vec::new()).await, Ok(Vec::new()));
}

async fn a_setting_leaves_a_trace_and_what_was_so_already_leaves_none<B: Backend>() {
    let backend = B::open(settings()).await;
    for change in [SHOWN, HIDDEN, HIDDEN, StreamChange::default(), SHOWN] {
        set(&backend, "s", change).await;
    }
    let substrate = Substrate::new(backend.store(), backend.signals());
    let entries = substrate.read(|sql| journal::of_subject(sql, "s")).await.expect("read");
    let mut told: Vec<_> = entries.into_iter().map(|e| (e.actor, e.act, e.why)).collect();
    told.sort_by_key(|(.., why)| why["redact"] == false);
    let entry =
        |redact: bool| ("operator".to_string(), "stream_set".to_string(), json!({ "redact": redact }));
    assert_eq!(told, [entry(true), entry(false)]);
}

/// A forgotten setting would show its next job.
async fn a_stream_that_hides_its_jobs_is_not_forgotten<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    set(&backend, "hidden", HIDDEN).await;
    let done = enqueue_and_claim(store, job_on("hidden")).await;
    complete(store, proof(&done)).await;
    store.tidy().await.expect("tidied");
    backend.advance(Duration::from_secs(10)).await;
    let age = Duration::from_secs(5);
    assert_eq!(store.forget_streams(age, 10).await, Ok(Pass { moved: 0, full: false }));
    assert_eq!(redacts(store, "hidden").await, Some(true));
    set(&backend, "hidden", SHOWN).await;
    assert_eq!(store.forget_streams(age, 10).await, Ok(Pass { moved: 1, full: false }));
    assert_eq!(redacts(store, "hidden").await, None);
}

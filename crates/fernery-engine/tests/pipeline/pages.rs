//! Lists and sweeps cost what they show, not what there is.

use crate::pipeline::acts::block;
use crate::pipeline::world::{World, record};
use crate::support::backend::Backend;
use fernery_core::artifact::BlockerKind;
use fernery_core::limits;
use fernery_core::pipeline::membrane::Parts;
use fernery_core::{JobId, Timestamp};
use fernery_engine::StoreError;
use fernery_engine::pipeline::acts::Refusal;
use fernery_engine::pipeline::blockers::{self, Resolved};
use fernery_engine::pipeline::reading::{self, Below, ObjectiveFilter};
use fernery_engine::pipeline::{Cell, Row, Sql, Stage};
use fernery_engine::store::NewJob;

on_both_backends!(
    a_page_of_tickets_takes_as_many_statements_as_an_empty_one,
    all_that_is_cancelled_is_found_however_much_there_is,
    only_open_blockers_count_against_their_limit,
);

/// Counts the statements.
struct Counted<'a> {
    inner: &'a mut dyn Sql,
    statements: usize,
}

impl Sql for Counted<'_> {
    fn query(&mut self, statement: &'static str, cells: &[Cell<'_>]) -> Result<Vec<Row>, StoreError> {
        self.statements += 1;
        self.inner.query(statement, cells)
    }

    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    fn enqueue(&mut self, job: NewJob) -> Result<(), StoreError> {
        self.inner.enqueue(job)
    }

    fn hand_in(&mut self, job_id: JobId, by: &str, output: &Parts) -> Result<bool, StoreError> {
        self.inner.hand_in(job_id, by, output)
    }

    fn wakes(&mut self, stage: Stage) {
        self.inner.wakes(stage);
    }
}

async fn a_page_of_tickets_takes_as_many_statements_as_an_empty_one<B: Backend>() {
    let world = World::<B>::new("").await;
    for n in 0..8 {
        let ticket = world.create(&format!("t{n}")).await;
        for blocker in ["one", "two"] {
            block(&world, &ticket, Some(blocker)).await.expect("blocked");
        }
    }
    for filter in [
        ObjectiveFilter::default(),
        ObjectiveFilter {
            azolla_id: Some(world.azolla.clone()),
            status: Some("BLOCKED".parse().expect("one")),
        },
    ] {
        let (found, statements) = world
            .substrate
            .read(move |sql| {
                let mut counted = Counted { inner: sql, statements: 0 };
                let found = reading::objectives(&mut counted, &filter, &Below::newest(), 5)?;
                Ok((found, counted.statements))
            })
            .await
            .expect("read");
        assert_eq!((found.len(), statements), (5, 2));
        for row in found {
            let names: Vec<_> = row.objective.blocked_on.iter().map(|b| b.blocker_id.to_string()).collect();
            assert_eq!(names, ["one", "two"]);
            let whole = world.row(&row.objective.objective_id).await;
            assert_eq!(row, whole);
        }
    }
}

async fn all_that_is_cancelled_is_found_however_much_there_is<B: Backend>() {
    let world = World::<B>::new("[limits]\nconcurrency = 0\nreview_limit = 0\n").await;
    for n in 0..5 {
        let ticket = world.create(&format!("t{n}")).await;
        world.approve(&ticket).await.expect("approved");
        world.pass().await;
        // In the hands of somebody who does not end it, so that its cancel has not arrived.
        world.claim().await.expect("its job");
        world.cancel(&ticket).await.expect("cancelled");
    }
    let (mut after, mut found) = (String::new(), Vec::new());
    loop {
        let from = after.clone();
        let page = world.substrate.read(move |sql| reading::to_cancel(sql, &from, 2)).await.expect("read");
        let Some(last) = page.last() else { break };
        after = last.to_string();
        found.extend(page);
    }
    assert_eq!(found.len(), 5);
}

async fn only_open_blockers_count_against_their_limit<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    let of = ticket.clone();
    let full = world.act(move |sql, who| {
        let mut last = None;
        for round in 0..2 {
            for n in 0..limits::BLOCKERS_MAX {
                let (name, kind) = (format!("b-{round}-{n}").parse().ok(), BlockerKind::UserInput);
                let said = blockers::block(sql, who, (&of, &record()), name, kind, &format!("{n}"))?;
                if let Err(refusal) = said {
                    return Ok(Err(refusal));
                }
            }
            if round == 0 {
                last = blockers::unblock(sql, who, (&of, &record()), &Resolved::All)?.ok();
            }
        }
        Ok(last.ok_or(Refusal::Unknown))
    });
    full.await.expect("resolved ones do not count");
    let refused = block(&world, &ticket, Some("one-more")).await;
    assert!(matches!(refused, Err(Refusal::Conflict(_))), "{refused:?}");
    world.unblock(&ticket).await.expect("unblocked");
}

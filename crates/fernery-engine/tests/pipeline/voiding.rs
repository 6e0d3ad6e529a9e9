//! Which approvals a new blueprint would void: as many as are looked at, and whether there may be more.

use crate::pipeline::world::{World, blueprint};
use crate::support::backend::Backend;
use fernery_engine::pipeline::voiding::voided;

on_both_backends!(approvals_beyond_those_that_are_looked_at_are_told_of);

async fn approvals_beyond_those_that_are_looked_at_are_told_of<B: Backend>() {
    let world = World::<B>::new("").await;
    for name in ["one", "two", "three"] {
        let ticket = world.create(name).await;
        world.approve(&ticket).await.expect("approved");
    }
    let look = async |limit: i64| {
        let (before, after) = (blueprint(""), blueprint("gates = [{ kind = \"outcome\" }]\n"));
        let found = world.substrate.read(move |sql| voided(sql, &before, &after, limit)).await.expect("read");
        (found.0.len(), found.1)
    };
    assert_eq!(look(2).await, (2, true));
    assert_eq!(look(3).await, (3, false));
    let same = blueprint("");
    let found = world.substrate.read(move |sql| voided(sql, &same, &same, 2)).await.expect("read");
    assert_eq!(found, (Vec::new(), false), "the same blueprint voids nothing");
}

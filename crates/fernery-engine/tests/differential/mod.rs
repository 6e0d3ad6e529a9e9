//! Invariant 18: a list of operations gives the same answers on the model and on every database.
//!
//! A seed makes a list of operations; the list runs on the model and on a database side by side. After each operation the
//! answers are compared, at the end the whole of both stores, through every read there is. Ids are compared as ordinals,
//! instants as what they are: all clocks are stepped by the tests.
//!
//! A difference is reported with its seed and the shortest list that still shows it.

mod operation;
mod world;

use crate::support::backend::{Backend, Model, Postgres, Sqlite, settings};
use crate::support::dump::dump_named;
use crate::support::seed::{seeds, seeds_from};
use crate::support::seeded::Seeded;
use operation::Operation;
use world::World;

/// Operations of one case.
const OPERATIONS: usize = 120;
/// The variable that says how many seeds a campaign runs.
const CASES: &str = "FERNERY_DIFFERENTIAL_CASES";
/// How many lists are tried to make a failing one shorter.
const SHRINKING_RUNS_MAX: usize = 150;

fn operations_of(seed: u64) -> Vec<Operation> {
    let mut random = Seeded::new(seed);
    (0..OPERATIONS).map(|_| Operation::random(&mut random)).collect()
}

/// Runs one list on the model and on `B`; the error says where they first differ.
async fn compare<B: Backend>(operations: Vec<Operation>) -> Result<(), String> {
    let case = tokio::spawn(async move {
        let mut model = World::new(Model::open(settings()).await);
        let mut tested = World::new(B::open(settings()).await);
        for (n, operation) in operations.iter().enumerate() {
            let (expected, answered) = (model.apply(operation).await, tested.apply(operation).await);
            if expected != answered {
                return Err(format!("operation {n} {operation:?}\n{}", difference(&expected, &answered)));
            }
        }
        let expected = dump_named(&*model.store(), &model).await;
        let answered = dump_named(&*tested.store(), &tested).await;
        tested.close().await;
        if expected != answered {
            return Err(format!("the whole store at the end\n{}", difference(&expected, &answered)));
        }
        Ok(())
    });
    case.await.unwrap_or_else(|panic| Err(format!("{panic}")))
}

/// The lines that only one of the two has.
fn difference(expected: &str, answered: &str) -> String {
    let only = |these: &str, those: &str, mark: &str| {
        let lines = these.lines().filter(|line| !those.lines().any(|other| other == *line));
        lines.map(|line| format!("  {mark} {line}\n")).collect::<String>()
    };
    let lines = only(expected, answered, "model:   ") + &only(answered, expected, "database:");
    if lines.is_empty() { format!("  the same lines in another order:\n{answered}") } else { lines }
}

/// Leaves out what the failure does not need: halves first, then ever smaller pieces.
async fn shrunk<B: Backend>(mut operations: Vec<Operation>) -> (Vec<Operation>, String) {
    let mut why = String::new();
    let mut runs = 0;
    let mut piece = operations.len().div_ceil(2);
    loop {
        let mut start = 0;
        while start < operations.len() && runs < SHRINKING_RUNS_MAX {
            let mut shorter = operations.clone();
            shorter.drain(start..(start + piece).min(shorter.len()));
            runs += 1;
            match compare::<B>(shorter.clone()).await {
                Err(difference) => (operations, why) = (shorter, difference),
                Ok(()) => start += piece,
            }
        }
        if piece == 1 || runs >= SHRINKING_RUNS_MAX {
            return (operations, why);
        }
        piece = piece.div_ceil(2);
    }
}

async fn same_answers<B: Backend>(seeds: impl Iterator<Item = u64>) {
    for seed in seeds {
        if let Err(first) = compare::<B>(operations_of(seed)).await {
            let (operations, why) = shrunk::<B>(operations_of(seed)).await;
            let why = if why.is_empty() { first } else { why };
            let list: Vec<_> = operations.iter().map(|operation| format!("  {operation:?}\n")).collect();
            panic!("FERNERY_SEED={seed} differs at {why}\nshortest list:\n{}", list.concat());
        }
    }
}

/// What differs between two runs of the model would be the fault of this test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_answers_as_itself() {
    same_answers::<Model>(seeds_from(1, 50)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_sqlite_answers_as_the_model() {
    same_answers::<Sqlite>(seeds(CASES, 50)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_answers_as_the_model_on_a_few_seeds() {
    same_answers::<Sqlite>(seeds_from(1, 8)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_postgres_answers_as_the_model() {
    same_answers::<Postgres>(seeds(CASES, 6)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_answers_as_the_model_on_a_few_seeds() {
    same_answers::<Postgres>(seeds_from(1, 2)).await;
}

//! The seed of a campaign: a new one in every run, printed with the command that repeats it.
//!
//! `FERNERY_SEED=17` runs that seed alone. Where a campaign runs several, a variable of its own says how many.
//!
//! A seed that failed stays as a test of its own, with a sentence for a name, once the cause is mended.

use fernery_engine::door::random_bytes;

/// The seed of a campaign that runs once.
pub(crate) fn seed() -> u64 {
    let seed = number("FERNERY_SEED").unwrap_or_else(new_seed);
    say(seed);
    seed
}

/// The seeds of a campaign that runs as many as this variable says, or `count`; each is said when its turn comes.
pub(crate) fn seeds(variable: &str, count: u64) -> impl Iterator<Item = u64> {
    seeds_from(new_seed(), number(variable).unwrap_or(count))
}

/// As [`seeds`], but the same ones in every run: for tests that are to tell a change of the code from chance.
pub(crate) fn seeds_from(first: u64, count: u64) -> impl Iterator<Item = u64> {
    let seeds = match number("FERNERY_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + count,
    };
    seeds.inspect(|seed| say(*seed))
}

/// Short enough to be typed.
fn new_seed() -> u64 {
    u64::from(u32::from_ne_bytes(random_bytes()))
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}

fn say(seed: u64) {
    // The first argument that is no flag says which test runs; without one all of the binary do.
    let test = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let package = env!("CARGO_PKG_NAME");
    println!(
        "to repeat this run: FERNERY_SEED={seed} scripts/with-services cargo nextest run -p {package} {test}"
    );
}

//! The sandbox: which tiers work here, which programs run without one, and which open servers a program could reach.

use super::super::finding::{Finding, Level};
use fernery_exec::sandbox::{Obstacle, Probe, Tier};

const CHECK: &str = "sandbox";

/// A program that a blueprint names.
pub(crate) struct Program {
    /// Which executor or gate it belongs to.
    pub(crate) name: String,
    /// The tier that the blueprint asks for; `None`: the best that works here.
    pub(crate) wanted: Option<Tier>,
    /// Whether it may use the network.
    pub(crate) network: bool,
}

/// Which tiers work here, and whether they are enough for these programs.
pub(crate) fn tiers(probe: &Probe, programs: &[Program]) -> Finding {
    let refused = programs.iter().find_map(|program| {
        let why = probe.choose(program.wanted).err()?;
        Some(format!("{} cannot run in a sandbox: {why}", program.name))
    });
    let (bubblewrap, landlock) = (probe.of(Tier::Bubblewrap).err(), probe.of(Tier::Landlock).err());
    let (found, level) = match (&bubblewrap, &landlock) {
        (None, None) => ("bubblewrap and landlock work here".to_string(), Level::Ok),
        (None, Some(of)) => (format!("bubblewrap works here; landlock does not: {}", of.why), Level::Ok),
        (Some(of), None) => (
            format!(
                "programs are contained by landlock, which is weaker: bubblewrap does not work: {}",
                of.why
            ),
            Level::Warning,
        ),
        (Some(one), Some(other)) => (
            format!("no sandbox works here: bubblewrap: {}; landlock: {}", one.why, other.why),
            Level::Warning,
        ),
    };
    let remedies: Vec<String> =
        [bubblewrap, landlock].into_iter().flatten().map(|Obstacle { remedy, .. }| remedy).collect();
    let remedy = remedies.join("; or: ");
    match refused {
        Some(found) => Finding::problem(CHECK, found, remedy),
        None => Finding::at(level, CHECK, found, remedy),
    }
}

/// Programs whose blueprint says that they run without containment.
pub(crate) fn uncontained(programs: &[Program]) -> Vec<Finding> {
    let said = |tier: Tier, could: &str| {
        let free = programs.iter().filter(|program| program.wanted == Some(tier));
        let free: Vec<&str> = free.map(|program| program.name.as_str()).collect();
        (!free.is_empty()).then(|| {
            Finding::warning(
                "containment",
                format!(
                    "not contained, because of sandbox = \"{tier}\": {}: it can {could}",
                    free.join(", ")
                ),
                "remove `sandbox` from the blueprint: then the best tier that works here is used",
            )
        })
    };
    let nothing = said(Tier::Unconfined, "read operator.token and approve its own work");
    let partial = said(
        Tier::LandlockPartial,
        "make operator.token and the data directory readable for every user of this machine, if it runs as \
        the server's user",
    );
    nothing.into_iter().chain(partial).collect()
}

/// A database or Redis server that needs no password and that a program can reach.
pub(crate) fn open(server: &str, program: &str) -> Finding {
    Finding::problem(
        "open_server",
        format!(
            "{server} needs no password, and {program} can reach it: the program could approve its own work"
        ),
        "set a password (PostgreSQL: scram-sha-256 instead of trust in pg_hba.conf; Redis: requirepass), or \
        run the program without network",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(wanted: Option<Tier>) -> Program {
        Program { name: "azolla x: gate t".into(), wanted, network: false }
    }

    fn broken(why: &str) -> Result<(), Obstacle> {
        Err(Obstacle { why: why.into(), remedy: format!("mend {why}") })
    }

    #[test]
    fn a_sandbox_that_does_not_work_is_a_problem_only_if_it_is_asked_for() {
        let probe = Probe::found(broken("b"), broken("l"));
        let nobody_asks = tiers(&probe, &[program(Some(Tier::Unconfined))]);
        assert_eq!(
            (nobody_asks.level, nobody_asks.remedy.as_deref()),
            (Level::Warning, Some("mend b; or: mend l"))
        );
        assert_eq!(tiers(&probe, &[program(None)]).level, Level::Problem);
        let probe = Probe::found(broken("b"), Ok(()));
        assert_eq!(tiers(&probe, &[program(None)]).level, Level::Warning);
        assert_eq!(tiers(&probe, &[program(Some(Tier::Bubblewrap))]).level, Level::Problem);
        assert_eq!(tiers(&Probe::found(Ok(()), broken("l")), &[program(None)]).level, Level::Ok);
    }

    #[test]
    fn uncontained_programs_are_named() {
        assert!(uncontained(&[program(None), program(Some(Tier::Landlock))]).is_empty());
        for tier in [Tier::Unconfined, Tier::LandlockPartial] {
            let findings = uncontained(&[program(Some(tier))]);
            let named = |word: &str| findings.len() == 1 && findings[0].found.contains(word);
            assert!(
                named("azolla x: gate t") && named(tier.as_str()) && named("operator.token"),
                "{findings:?}"
            );
        }
    }
}

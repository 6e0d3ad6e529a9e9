//! Looks at the sandbox: the tiers that work here, the blueprints that ask for them, and the servers without a password that a
//! program with a network could use.

use super::finding::Finding;
use super::judge::sandbox as judge;
use crate::config::{Settings, database};
use crate::redis::health as redis_health;
use crate::workers;
use fernery_core::blueprint::{Blueprint, Gate};
use fernery_engine::Database;
use fernery_engine::store::postgres::health as server_health;
use fernery_exec::sandbox::{Probe, Tier};

/// Findings about the sandbox.
pub(super) async fn examine(settings: &Settings) -> Vec<Finding> {
    let blueprints = match workers::blueprints::read(&settings.azollas) {
        Ok(blueprints) => blueprints,
        Err(why) => {
            let remedy = "correct the file; `fernery azolla check` lists all mistakes at once";
            return vec![Finding::problem("azollas", why, remedy)];
        }
    };
    let programs: Vec<judge::Program> = blueprints.iter().flat_map(programs).collect();
    let probe = Probe::look().await;
    let mut findings = vec![judge::tiers(&probe, &programs)];
    findings.extend(judge::uncontained(&programs));
    if let Some(program) = programs.iter().find(|program| program.network) {
        let open = open_servers(settings).await;
        findings.extend(open.iter().map(|server| judge::open(server, &program.name)));
    }
    findings
}

/// The programs that this process would start for a blueprint.
fn programs(blueprint: &Blueprint) -> Vec<judge::Program> {
    let id = &blueprint.azolla_id;
    let used = blueprint.used_executors().into_iter().filter(|(_, executor)| executor.kind.starts_program());
    let executors = used.map(|(of, executor)| judge::Program {
        name: format!("azolla {id}: the executor of {of}"),
        wanted: executor.sandbox,
        network: executor.network || executor.sandbox == Some(Tier::Unconfined),
    });
    let gates = blueprint.gates.iter().filter_map(|gate| match gate {
        Gate::Command { name, sandbox, .. } => Some(judge::Program {
            name: format!("azolla {id}: gate {name}"),
            wanted: *sandbox,
            network: *sandbox == Some(Tier::Unconfined),
        }),
        _ => None,
    });
    executors.chain(gates).collect()
}

/// Servers that Fernery uses and that accept connections without a password.
async fn open_servers(settings: &Settings) -> Vec<String> {
    let mut open = Vec::new();
    if let Database::Postgres(url) = &settings.database
        && server_health::look(&database::without_password(url)).await.is_ok()
    {
        open.push(database::mask(url));
    }
    if let Some(transport) = &settings.transport
        && redis_health::look(&database::without_password(&transport.url)).await.is_ok()
    {
        open.push(database::mask(&transport.url));
    }
    open
}

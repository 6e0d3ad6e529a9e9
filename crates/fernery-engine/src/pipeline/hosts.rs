//! Which processes host an azolla, and with which repositories: whose workers run, and who could land a patch.

use super::{Cell, Sql};
use crate::error::StoreResult;
use fernery_core::artifact::{AzollaId, Metadata};
use fernery_core::blueprint::Blueprint;
use fernery_core::canonical;
use fernery_core::limits;
use fernery_core::pipeline::Violation;
use fernery_core::pipeline::waiting::{HOSTED_FOR, Waiting};
use serde_json::Value;
use std::collections::BTreeSet;

/// A process says which azollas it hosts, and which repositories it has. It counts for [`HOSTED_FOR`]. What it said before is
/// forgotten at once, and so is what a process said that has been silent for long.
pub fn say(sql: &mut dyn Sql, owner: &str, hosted: &[AzollaId], repos: &[String]) -> StoreResult<()> {
    let now = sql.now();
    let repos = canonical::text_of(&repos);
    let cells = [owner.into(), now.before(limits::PROCESS_FORGOTTEN).into()];
    sql.touched(include_str!("sql/hosts_forget.sql"), &cells)?;
    for azolla_id in hosted {
        let cells: [Cell<'_>; 4] = [owner.into(), azolla_id.as_str().into(), (&repos).into(), now.into()];
        sql.touched(include_str!("sql/host_say.sql"), &cells)?;
        sql.touched(include_str!("sql/azolla_hosted.sql"), &[azolla_id.as_str().into(), now.into()])?;
    }
    Ok(())
}

/// A process ends. `alone`: no other can serve this database, so whatever is left of others is forgotten, too.
pub fn leave(sql: &mut dyn Sql, owner: &str, alone: bool) -> StoreResult<()> {
    sql.touched(include_str!("sql/hosts_leave.sql"), &[owner.into(), alone.into()])?;
    Ok(())
}

/// The repositories of all processes that host an azolla.
fn repositories(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<BTreeSet<String>> {
    let cells = [azolla_id.as_str().into(), sql.now().before(HOSTED_FOR).into()];
    let hosts = sql.query(include_str!("sql/hosts_of_azolla.sql"), &cells)?;
    let named = hosts.iter().map(|host| host.json::<Vec<String>>(0)).collect::<StoreResult<Vec<_>>>()?;
    Ok(named.into_iter().flatten().collect())
}

/// Whether a process other than `owner` hosts an azolla and has this repository.
pub(super) fn others_have(
    sql: &mut dyn Sql,
    owner: &str,
    azolla_id: &AzollaId,
    repo_ref: &str,
) -> StoreResult<bool> {
    let cells = [azolla_id.as_str().into(), sql.now().before(HOSTED_FOR).into()];
    for host in sql.query(include_str!("sql/hosts_of_azolla.sql"), &cells)? {
        let repos: Vec<String> = host.json(0)?;
        if host.text(1)? != owner && repos.iter().any(|name| name == repo_ref) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What is wrong with the repository that a ticket names: it is none of those that the hosts of its azolla have. `None`: nothing,
/// or nobody knows them.
pub(super) fn wrong_repository(
    sql: &mut dyn Sql,
    blueprint: &Blueprint,
    metadata: &Metadata,
) -> StoreResult<Option<Violation>> {
    let named = metadata.get("repo_ref").and_then(Value::as_str);
    let Some(named) = named.filter(|_| blueprint.needs_repository()) else { return Ok(None) };
    let known = repositories(sql, &blueprint.azolla_id)?;
    if known.is_empty() || known.contains(named) {
        return Ok(None);
    }
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    let message = format!(
        "no server that hosts azolla {} has repository {named} in its [repos]; name one of: {known}",
        blueprint.azolla_id
    );
    Ok(Some(Violation { path: "/metadata/repo_ref".into(), message }))
}

/// Why nobody could land a patch of this azolla on a branch of this repository; `None`: somebody could.
pub fn lacks(sql: &mut dyn Sql, azolla_id: &AzollaId, repo: (&str, &str)) -> StoreResult<Option<Waiting>> {
    let cells = [azolla_id.as_str().into(), sql.now().before(HOSTED_FOR).into()];
    let hosts = sql.query(include_str!("sql/hosts_of_azolla.sql"), &cells)?;
    let azolla_id = azolla_id.clone();
    if hosts.is_empty() {
        let since = super::azollas::hosting(sql)?.last(&azolla_id);
        return Ok(Some(Waiting::NotHosted { azolla_id, since }));
    }
    let (repo_ref, base_branch) = repo;
    for host in &hosts {
        if host.json::<Vec<String>>(0)?.iter().any(|name| name == repo_ref) {
            return Ok(None);
        }
    }
    let (repo_ref, base_branch) = (repo_ref.to_string(), base_branch.to_string());
    Ok(Some(Waiting::NoRepository { azolla_id, repo_ref, base_branch }))
}

//! Which processes host an azolla, and with which repositories: who could land a patch.

use super::{Cell, Sql};
use crate::error::StoreResult;
use fernery_core::artifact::AzollaId;
use fernery_core::canonical;
use fernery_core::limits;
use fernery_core::pipeline::waiting::{HOSTED_FOR, Waiting};

/// A process says which azollas it hosts, and which repositories it has. What it said before is forgotten, and so is what a
/// process said that has been silent for long.
pub fn say(sql: &mut dyn Sql, owner: &str, hosted: &[AzollaId], repos: &[String]) -> StoreResult<()> {
    let now = sql.now();
    let repos = canonical::text_of(&repos);
    for azolla_id in hosted {
        let cells: [Cell<'_>; 4] = [owner.into(), azolla_id.as_str().into(), (&repos).into(), now.into()];
        sql.touched(include_str!("sql/host_say.sql"), &cells)?;
    }
    let cells = [owner.into(), now.into(), now.before(limits::PROCESS_FORGOTTEN).into()];
    sql.touched(include_str!("sql/hosts_forget.sql"), &cells)?;
    Ok(())
}

/// A process ends. `alone`: no other can serve this database, so whatever is left of others is forgotten, too.
pub fn leave(sql: &mut dyn Sql, owner: &str, alone: bool) -> StoreResult<()> {
    sql.touched(include_str!("sql/hosts_leave.sql"), &[owner.into(), alone.into()])?;
    Ok(())
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

//! Brings the schema to this program's version, once, however many processes start together.

use super::connection::pool::Session;
use super::connection::retry::Trouble;
use crate::door::failpoint;
use crate::error::{StoreError, StoreResult};
use tracing::info;

/// In order; the first is version 1.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_jobs.sql"),
    include_str!("migrations/0002_progress.sql"),
    include_str!("migrations/0003_inbox.sql"),
    include_str!("migrations/0004_transport.sql"),
    include_str!("migrations/0005_processes.sql"),
    include_str!("migrations/0006_pipeline.sql"),
    include_str!("migrations/0007_steadiness.sql"),
    include_str!("migrations/0008_captures.sql"),
    include_str!("migrations/0009_clock.sql"),
    include_str!("migrations/0010_orientation.sql"),
    include_str!("migrations/0011_imported.sql"),
    include_str!("migrations/0012_streams.sql"),
    include_str!("migrations/0013_landings.sql"),
    include_str!("migrations/0014_people.sql"),
    include_str!("migrations/0015_dead_letters.sql"),
    include_str!("migrations/0016_sign_ins.sql"),
    include_str!("migrations/0017_outcomes.sql"),
    include_str!("migrations/0018_stream_stats.sql"),
    include_str!("migrations/0019_review.sql"),
    include_str!("migrations/0020_bulk.sql"),
    include_str!("migrations/0021_stream_settings.sql"),
    include_str!("migrations/0022_patch_sizes.sql"),
];

/// PostgreSQL 14: the oldest that all statements run on.
pub(super) const SERVER_VERSION_MIN: i32 = 140_000;

pub(super) async fn migrate(session: &Session<'_>) -> StoreResult<()> {
    migrate_or_trouble(session).await.map_err(Trouble::into_error)
}

async fn migrate_or_trouble(session: &Session<'_>) -> Result<(), Trouble> {
    let wanted = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    // Without the lock first: whoever finds the schema in place needs no right to change it.
    if let Some(version) = version(session).await? {
        refuse_future(version, wanted)?;
        if version == wanted {
            return Ok(());
        }
    }
    session.wait_patiently();
    session.run(include_str!("sql/migrate_begin.sql")).await?;
    failpoint("migrate-begin");
    let found = version(session).await?.unwrap_or(0);
    refuse_future(found, wanted)?;
    for (step, version) in MIGRATIONS.iter().zip(1..).filter(|(_, version)| *version > found) {
        session.run(step).await?;
        failpoint("migrate-step");
        session.query(include_str!("sql/migrate_mark.sql"), &[&version]).await?;
        failpoint("migrate-marked");
        info!(version, "migrated the database");
    }
    session.run("COMMIT").await?;
    failpoint("migrate-committed");
    Ok(())
}

async fn version(session: &Session<'_>) -> Result<Option<i32>, Trouble> {
    let rows = session.query(include_str!("sql/migrate_look.sql"), &[]).await?;
    let row =
        rows.first().ok_or_else(|| StoreError::Corrupt("the database does not report its version".into()))?;
    let server: i32 = super::rows::cell(row, "version_num")?;
    if server < SERVER_VERSION_MIN {
        let why = format!("Fernery needs PostgreSQL 14 or later; this server is {}", server / 10_000);
        return Err(StoreError::Refused(why).into());
    }
    let made: bool = super::rows::cell(row, "made")?;
    if !made {
        return Ok(None);
    }
    let rows = session.query(include_str!("sql/migrate_version.sql"), &[]).await?;
    Ok(rows.first().map(|row| super::rows::cell(row, 0)).transpose()?)
}

fn refuse_future(found: i32, wanted: i32) -> StoreResult<()> {
    if found > wanted {
        return Err(StoreError::Refused(format!(
            "the database has schema version {found}, this program supports versions up to {wanted}: a \
            newer fernery has used it; use that version or a newer one"
        )));
    }
    Ok(())
}

//! Work folders that earlier processes left when they were killed. One goes once nobody holds its workorder: until then
//! somebody may still be at work in it.

use fernery_engine::substrate::claims;
use fernery_engine::{Engine, StoreError};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Holders that are looked up; where there are more, nobody knows whose a folder is, and all stay.
const HOLDERS_MAX: usize = 10_000;
/// Characters of a workorder's id.
const ID_CHARS: usize = 36;

/// The work folder of an attempt at a workorder.
pub(super) fn run_folder(work: &Path, work_order_id: &str, attempt_id: &str) -> PathBuf {
    work.join(format!("run-{work_order_id}-{attempt_id}"))
}

/// The work folder of one gate over a workorder, under one claim.
pub(super) fn gate_folder(work: &Path, work_order_id: &str, gate: &str, claim_version: i64) -> PathBuf {
    work.join(format!("gate-{work_order_id}-{claim_version}-{gate}"))
}

/// The workorder that a folder was made for; `None`: it is none of ours.
fn workorder_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("run-").or_else(|| name.strip_prefix("gate-"))?;
    rest.get(..ID_CHARS).filter(|_| rest[ID_CHARS..].starts_with('-'))
}

/// What was there when this process started.
pub(super) struct Leftovers(Vec<(String, PathBuf)>);

impl Leftovers {
    pub(super) fn of(work: &Path) -> Self {
        let Ok(entries) = std::fs::read_dir(work) else { return Self(Vec::new()) };
        let found = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|of| of.is_dir()));
        let ours = found.filter_map(|entry| {
            let id = workorder_of(entry.file_name().to_str()?)?.to_string();
            Some((id, entry.path()))
        });
        Self(ours.collect())
    }

    /// Removes those whose workorder nobody holds; answers how many.
    pub(super) async fn remove(&mut self, engine: &Engine) -> Result<u64, StoreError> {
        if self.0.is_empty() {
            return Ok(0);
        }
        let mut claims = engine.substrate().read(|sql| claims::all(sql, HOLDERS_MAX as i64)).await?;
        let leases = engine.store().workorder_leases(HOLDERS_MAX).await?;
        if claims.len().max(leases.len()) >= HOLDERS_MAX {
            return Ok(0);
        }
        claims.extend(leases);
        let held: HashSet<String> = claims.into_iter().map(|claim| claim.resource_id).collect();
        let (kept, free): (Vec<_>, Vec<_>) = self.0.drain(..).partition(|(id, _)| held.contains(id));
        self.0 = kept;
        let mut removed = 0;
        for (_, path) in free {
            match std::fs::remove_dir_all(&path) {
                Ok(()) => removed += 1,
                Err(error) => {
                    let path = path.display();
                    tracing::warn!(%error, %path, "a work folder that nobody needs could not be removed");
                }
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_says_whose_it_is_and_others_are_none_of_ours() {
        let id = "01a1e3e2-734c-733e-bc35-21863cbd72e5";
        let work = Path::new("/work");
        for folder in [run_folder(work, id, id), gate_folder(work, id, "my-tests", 7)] {
            assert_eq!(workorder_of(folder.file_name().unwrap().to_str().unwrap()), Some(id));
        }
        for other in ["notes", "run-", "run-short-x", &format!("run-{id}"), &format!("gate-{id}x-y")] {
            assert_eq!(workorder_of(other), None, "{other}");
        }
    }
}

//! Patches that passed and are not on their base branch: those that conflict or did not land, and those that nobody has merged.

use super::inbox::of_inbox;
use super::{Item, Own, minute};
use crate::Timestamp;
use crate::artifact::ObjectiveId;
use crate::inbox::score::{self, PatchWaits, Weighed};
use crate::pipeline::possible::{PatchState, TicketState};
use serde::{Deserialize, Serialize};

/// The patch of a finished ticket that conflicts with its base branch, or did not land.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlanded {
    pub patch: PatchState,
    /// A person has confirmed its run.
    pub confirmed: bool,
}

/// Tickets whose patch a person has confirmed, and that merges with its base branch as far as anybody knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmerged {
    /// The first of them, those that wait longest first.
    pub first: Vec<ObjectiveId>,
    /// How many there are.
    pub count: u64,
    /// Since when the first of them waits.
    pub since: Timestamp,
}

/// Why a finished ticket needs a person.
pub(super) fn finished(standing: &TicketState<'_>) -> Vec<String> {
    let conflicts = standing.patch.as_ref().is_some_and(PatchState::conflicts);
    let since = minute(standing.objective.updated_at);
    let confirm = format!("passed its gates and waits to be confirmed since {since}");
    let stopped = standing.patch.as_ref().map(|patch| {
        let what = if conflicts { "its patch conflicts" } else { "its patch did not land" };
        match &patch.why {
            Some(why) => format!("{what}: {why}"),
            None => what.to_string(),
        }
    });
    // Whoever confirmed what conflicts could not merge it.
    let confirm = (standing.unconfirmed && !conflicts).then_some(confirm);
    confirm.into_iter().chain(stopped).collect()
}

/// The patches that wait for nothing but their merge, as one item.
pub(super) fn unmerged(own: &Own, now: Timestamp) -> Option<Item> {
    let Unmerged { first, count, since } = own.unmerged.as_ref()?;
    let oldest = first.first()?;
    let named = first.iter().map(ObjectiveId::as_str).collect::<Vec<_>>().join(", ");
    let more = match count.saturating_sub(first.len() as u64) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let title = format!("Confirmed and not merged: {named}{more}");
    let why = format!(
        "what is confirmed comes to its branch when somebody merges it; it waits since {}",
        minute(*since)
    );
    let mut item = of_inbox(own, "unmerged", title, why, now);
    item.command = format!("fernery ticket merge {oldest}");
    let weighed =
        Weighed { patch: Some(PatchWaits::NotMerged), ..Weighed::plain(item.importance, item.urgency) };
    item.score_terms = score::terms(&weighed, now);
    Some(item)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{URGENCY, now, objective, own, told};
    use super::super::{AzollaAnswer, facts};
    use super::*;
    use crate::artifact::ObjectiveStatus;
    use crate::pipeline::landing::{Fit, LandingState};

    #[test]
    fn a_patch_that_conflicts_or_did_not_land_says_so_with_the_command_that_helps() {
        let page = |confirmed, fit, why: &str| {
            let patch = PatchState { state: LandingState::Open, fit, why: Some(why.into()), waiting: None };
            let done = objective("T-1", ObjectiveStatus::Done);
            let patches = [(done.objective_id.clone(), Unlanded { patch, confirmed })].into();
            let item =
                facts(&[AzollaAnswer { patches, ..told(vec![done], vec![]) }], &own(0), &URGENCY, now())
                    .items;
            (item[0].command.clone(), item[0].why.join(" | "))
        };
        let reopen = "fernery ticket reopen T-1 --note 'main changed a.txt'".to_string();
        for confirmed in [false, true] {
            let conflict = page(confirmed, Some(Fit::Conflicts), "main changed a.txt");
            assert_eq!(
                conflict,
                (reopen.clone(), "its patch conflicts: main changed a.txt".into()),
                "{confirmed}"
            );
        }
        let why = "its patch did not land: no branch main";
        let (command, said) = page(true, Some(Fit::Merges), "no branch main");
        assert_eq!((command.as_str(), said.as_str()), ("fernery ticket merge T-1", why));
        let (command, said) = page(false, None, "no branch main");
        assert_eq!(command, "fernery ticket confirm T-1");
        assert!(
            said.starts_with("passed its gates and waits to be confirmed") && said.ends_with(why),
            "{said}"
        );
    }

    #[test]
    fn confirmed_patches_that_nobody_has_merged_are_one_item_that_counts_all_of_them() {
        let unmerged = |first: &[&str], count| {
            let first = first.iter().map(|id| ObjectiveId::stored(id)).collect();
            let own = Own { unmerged: Some(Unmerged { first, count, since: now() }), ..own(0) };
            facts(&[], &own, &URGENCY, now()).items.remove(0)
        };
        let one = unmerged(&["T-1"], 1);
        assert_eq!(
            (one.title.as_str(), one.command.as_str()),
            ("Confirmed and not merged: T-1", "fernery ticket merge T-1")
        );
        let many = unmerged(&["T-1", "T-2", "T-3"], 60);
        assert_eq!(many.title, "Confirmed and not merged: T-1, T-2, T-3 and 57 more");
        assert!(many.score_terms.contains(&("to be merged".to_string(), 20)), "{:?}", many.score_terms);
    }
}

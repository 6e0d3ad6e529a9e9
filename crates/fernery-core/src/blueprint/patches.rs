//! What holds where executors make patches: for every azolla of the type `PATCH_DIAZOTROPH`, whatever else its file says, and for
//! every azolla whose executor is an agent.

use super::{Blueprint, Executor, ExecutorKind, Gate, PATCH};
use crate::artifact::DiazotrophType;
use crate::patch::policy::PatchPolicy;

/// Where the branches of a `PATCH_DIAZOTROPH` start unless its file says otherwise.
pub(super) const BRANCH_PREFIX_DEFAULT: &str = "azolla/";

/// The names of the gates that judge a patch.
const OF_PATCHES: [&str; 2] = ["patch", "applies"];

pub(super) fn makes_patches(of: Option<&DiazotrophType>) -> bool {
    of.is_some_and(|of| of.as_str() == PATCH)
}

/// Adds what judges a patch to the gates that a file names: `patch`, which then also asks for a branch and a description,
/// and `applies`. They come before the first command, because that command may run code of the patch.
pub(super) fn judged_as_patches(gates: &mut Vec<Gate>, branch_prefix: Option<&str>) {
    let first =
        |gates: &[Gate], is_it: fn(&Gate) -> bool| gates.iter().position(is_it).unwrap_or(gates.len());
    let is_patch = |gate: &Gate| matches!(gate, Gate::Patch(_));
    if !gates.iter().any(is_patch) {
        let place = first(gates, |gate| matches!(gate, Gate::Applies | Gate::Command { .. }));
        gates.insert(place, Gate::Patch(PatchPolicy::default()));
    }
    if !gates.contains(&Gate::Applies) {
        let place = first(gates, |gate| matches!(gate, Gate::Command { .. }));
        gates.insert(place, Gate::Applies);
    }
    for gate in gates {
        if let Gate::Patch(policy) = gate {
            policy.branch_prefix = branch_prefix.map(str::to_string);
        }
    }
}

impl Blueprint {
    /// The blueprint with the gates for patches added; `None`: it has them, or makes no patches. A blueprint that an
    /// earlier version stored may make patches and lack these gates.
    pub fn judging_patches(&self) -> Option<Self> {
        let names = |gate: &str| self.gates.iter().any(|one| one.name() == gate);
        if !makes_patches(Some(&self.diazotroph_type)) || OF_PATCHES.into_iter().all(names) {
            return None;
        }
        let mut own = self.clone();
        judged_as_patches(&mut own.gates, self.branch_prefix.as_deref());
        Some(own)
    }

    /// The gates that made these findings: with the added ones of [`Self::judging_patches`] if such a gate is among the
    /// findings, otherwise the blueprint's own. Earlier versions judged by those.
    pub fn gates_of<'a>(&self, found: impl IntoIterator<Item = &'a str>) -> Vec<Gate> {
        let added =
            |gate: &str| OF_PATCHES.contains(&gate) && !self.gates.iter().any(|own| own.name() == gate);
        let now = found.into_iter().any(added).then(|| self.judging_patches()).flatten();
        now.map_or_else(|| self.gates.clone(), |now| now.gates)
    }

    /// Whether its workorders start from a commit of a repository that their objective names.
    pub fn needs_repository(&self) -> bool {
        self.gates.contains(&Gate::Applies) || self.executor().is_some_and(is_agent)
    }

    /// What is wrong with its gates if it makes patches: the patch must be checked before a command runs its content.
    pub fn unguarded(&self) -> Option<&'static str> {
        if !makes_patches(Some(&self.diazotroph_type)) && !self.executor().is_some_and(is_agent) {
            return None;
        }
        let place = |is_it: fn(&Gate) -> bool| self.gates.iter().position(is_it);
        let (Some(patch), Some(applies)) =
            (place(|gate| matches!(gate, Gate::Patch(_))), place(|gate| *gate == Gate::Applies))
        else {
            return Some("the output is a patch: add the gates `patch` and `applies`");
        };
        let command = place(|gate| matches!(gate, Gate::Command { .. })).unwrap_or(usize::MAX);
        (patch > applies || applies > command)
            .then_some("commands run on the patched files: put the gate `patch` first, then `applies`, then the commands")
    }
}

fn is_agent(executor: &Executor) -> bool {
    executor.kind == ExecutorKind::Agent
}

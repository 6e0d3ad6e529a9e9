//! A blueprint's own prompts, by executor type.

use super::Executor;
use crate::artifact::DiazotrophType;
use crate::limits;
use crate::pipeline::template;
use crate::toml_file::{Fields, Found, Reader};
use std::collections::BTreeMap;

impl Reader {
    pub(super) fn prompts(
        &mut self,
        file: &mut Fields,
        executors: &BTreeMap<DiazotrophType, Executor>,
        is_standing: bool,
    ) -> BTreeMap<DiazotrophType, String> {
        let mut prompts = BTreeMap::new();
        let at = file.place("prompts").unwrap_or_default();
        let Some(mut table) = self.table(file, "prompts") else { return prompts };
        if is_standing {
            self.flaw(
                at,
                "prompts",
                "is only for an azolla of tickets: triage and manifests have prompts of their own",
            );
        }
        for (name, entry) in table.entries() {
            let path = table.path(&name);
            let of =
                self.parsed::<DiazotrophType>(Found { value: name, at: entry.key_at, path: path.clone() });
            let (Some(of), Some(text)) = (of, self.text_of(&path, entry.node)) else { continue };
            if !executors.contains_key(&of.value) {
                let known = executors.keys().map(DiazotrophType::as_str);
                self.unknown(of.at, &path, "executor", of.value.as_str(), known);
            }
            if text.value.len() > limits::PROMPT_BYTES_MAX {
                let why = format!("may have at most {} bytes", limits::PROMPT_BYTES_MAX);
                self.flaw(text.at, &path, why);
            }
            for fault in template::faults(&text.value) {
                self.flaw(text.at, &path, fault);
            }
            prompts.insert(of.value, text.value);
        }
        prompts
    }
}

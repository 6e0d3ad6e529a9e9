//! The part of the form that names agents: a profile, and what a blueprint may add to it.

use super::{Executor, ExecutorKind, Neighbours, Sandbox};
use crate::artifact::check_id;
use crate::limits;
use crate::profile::Profile;
use crate::toml_file::{Fields, Found, Reader};

impl Reader {
    pub(super) fn agent(&mut self, fields: &mut Fields, beside: &Neighbours<'_>) -> Option<Executor> {
        let named = self.required(fields, "profile", "which agent it is, like \"claude\"");
        let profile = named.and_then(|found| self.profile_of(found, beside));
        let args = self.list(fields, "args");
        let env = self.env(fields, "env");
        let network = self.flag(fields, "network");
        let sandbox = self.text(fields, "sandbox");
        let sandbox = sandbox.and_then(|found| self.word(found, Sandbox::ALL, Sandbox::as_str));
        let parallel = self.small(fields, "parallel", 1..=limits::EXECUTOR_PARALLEL_MAX).unwrap_or(1);
        for key in ["argv", "input"] {
            if let Some((at, path)) = fields.drop(key) {
                self.flaw(at, &path, "is set by the agent's profile; `args` adds arguments");
            }
        }
        let args_at = args.as_ref().map(|list| (list.at, list.path.clone()));
        let args: Vec<_> = args.map(|list| self.arguments(list)).unwrap_or_default();
        let profile = profile?;
        if let (Some(needed), Some(given)) = (profile.sandbox, &sandbox)
            && strength(given.value) < strength(needed)
        {
            let why = format!("the profile `{}` needs {needed} or stronger", profile.name);
            self.flaw(given.at, &given.path, why);
        }
        let words: Vec<String> = args.iter().map(|word| word.value.clone()).collect();
        let mut agent = match profile.with_args(&words) {
            Ok(agent) => agent,
            Err(refused) => {
                match (refused.nth.and_then(|nth| args.get(nth)), args_at) {
                    (Some(word), _) => self.flaw(word.at, &word.path, refused.why),
                    (None, Some((at, path))) => self.flaw(at, &path, refused.why),
                    (None, None) => self.missing(fields, "args", &refused.why),
                }
                return None;
            }
        };
        for name in env {
            if !agent.visible_env().any(|known| known == name) {
                agent.env.push(name);
            }
        }
        agent.network = network.unwrap_or(agent.network);
        Some(Executor {
            kind: ExecutorKind::Agent,
            argv: Vec::new(),
            env: Vec::new(),
            sandbox: sandbox.map(|found| found.value).or(agent.sandbox),
            network: agent.network,
            parallel,
            agent: Some(agent),
            endpoint: None,
        })
    }

    fn profile_of(&mut self, named: Found<String>, beside: &Neighbours<'_>) -> Option<Profile> {
        // A name must not be a path: a foreign blueprint must not read files of its choice.
        let is_name = check_id(&named.value).is_ok();
        let text = match if is_name { (beside.profile)(&named.value) } else { Ok(None) } {
            Ok(Some(text)) => text,
            Ok(None) => {
                let builtin = Profile::builtin(&named.value);
                if builtin.is_none() {
                    self.unknown(named.at, &named.path, "profile", &named.value, Profile::names());
                }
                return builtin;
            }
            Err(why) => {
                self.flaw(named.at, &named.path, format!("its file cannot be read: {why}"));
                return None;
            }
        };
        match Profile::parse(&text) {
            Ok(profile) if profile.name == named.value => Some(profile),
            Ok(profile) => {
                let why = format!("the `name` in its file is `{}`", profile.name);
                self.flaw(named.at, &named.path, why);
                None
            }
            Err(flaws) => {
                for flaw in flaws {
                    self.flaw(named.at, &named.path, format!("in the profile `{}` at {flaw}", named.value));
                }
                None
            }
        }
    }
}

fn strength(sandbox: Sandbox) -> u8 {
    match sandbox {
        Sandbox::Unconfined => 0,
        Sandbox::LandlockPartial => 1,
        Sandbox::Landlock => 2,
        Sandbox::Bubblewrap => 3,
    }
}

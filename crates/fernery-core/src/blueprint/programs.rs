//! The parts of the form that name programs: executors, and gates that are commands.

use super::{Endpoint, Executor, ExecutorKind, Gate, Neighbours, Sandbox};
use crate::artifact::{DiazotrophType, check_id};
use crate::limits;
use crate::patch::policy::PatchPolicy;
use crate::patch::protects::pattern_fault;
use crate::toml_file::{Fields, Found, Reader};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const MODEL_TOKENS_DEFAULT: u32 = 4_000;
const GATE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10 * 60);
const GATE_KINDS: [&str; 7] = ["schema", "outcome", "size", "patch", "applies", "answers", "command"];

impl Executor {
    /// An executor of this kind without further settings.
    pub(super) fn plain(kind: ExecutorKind) -> Self {
        let (argv, env) = (Vec::new(), Vec::new());
        Self { kind, argv, env, sandbox: None, network: false, parallel: 1, agent: None, endpoint: None }
    }

    /// Everything but the number that run at once.
    pub(super) fn decisive(&self) -> Value {
        let mut decisive = json!({ "kind": self.kind });
        if self.kind == ExecutorKind::Command {
            decisive["argv"] = json!(self.argv);
            decisive["env"] = json!(self.env);
        }
        if let Some(sandbox) = self.sandbox {
            decisive["sandbox"] = json!(sandbox);
        }
        if let Some(agent) = &self.agent {
            decisive["agent"] = agent.decisive();
        }
        if self.network {
            decisive["network"] = json!(true);
        }
        if let Some(endpoint) = &self.endpoint {
            decisive["endpoint"] = json!(endpoint);
        }
        decisive
    }
}

impl Reader {
    pub(super) fn executors(
        &mut self,
        file: &mut Fields,
        needed: &[Found<DiazotrophType>],
        beside: &Neighbours<'_>,
    ) -> BTreeMap<DiazotrophType, Executor> {
        let mut executors = BTreeMap::new();
        let mut named = Vec::new();
        if let Some(mut table) = self.table(file, "executors") {
            for (name, entry) in table.entries() {
                let path = table.path(&name);
                let found = Found { value: name.clone(), at: entry.key_at, path: path.clone() };
                named.push(name);
                let of = self.parsed::<DiazotrophType>(found);
                let key_at = entry.key_at;
                let Some(fields) = self.fields(&path, entry.node) else { continue };
                let executor = self.executor(fields, beside);
                if let (Some(of), Some(executor)) = (of, executor) {
                    self.check_builtin(key_at, &path, executor.kind, of.value.as_str());
                    executors.insert(of.value, executor);
                }
            }
        }
        for needed in needed.iter().filter(|needed| !named.iter().any(|n| n == needed.value.as_str())) {
            if named.is_empty() {
                let why = format!("it has no executor; add [executors.{}]", needed.value);
                self.flaw(needed.at, &needed.path, why);
            } else {
                let named = named.iter().map(String::as_str);
                self.unknown(needed.at, &needed.path, "executor", needed.value.as_str(), named);
            }
        }
        executors
    }

    fn executor(&mut self, mut fields: Fields, beside: &Neighbours<'_>) -> Option<Executor> {
        let kind = self.required(&mut fields, "kind", "agent, command, remote, person, builtin or llm");
        let kind = kind.and_then(|found| self.word(found, ExecutorKind::ALL, ExecutorKind::as_str));
        let executor = match &kind {
            Some(Found { value: ExecutorKind::Command, .. }) => Some(self.command(&mut fields)),
            Some(Found { value: ExecutorKind::Agent, .. }) => self.agent(&mut fields, beside),
            Some(Found { value: ExecutorKind::Remote, .. }) => {
                for key in ["argv", "env", "sandbox", "parallel", "input", "profile", "args", "network"] {
                    if let Some((at, path)) = fields.drop(key) {
                        self.flaw(
                            at,
                            &path,
                            "is only for a command or an agent; a remote executor decides this where it runs",
                        );
                    }
                }
                Some(Executor::plain(ExecutorKind::Remote))
            }
            Some(Found { value: ExecutorKind::Person, .. }) => {
                for key in ["argv", "env", "sandbox", "parallel", "input", "profile", "args", "network"] {
                    if let Some((at, path)) = fields.drop(key) {
                        self.flaw(at, &path, "is only for a program; a person has no settings");
                    }
                }
                Some(Executor::plain(ExecutorKind::Person))
            }
            Some(Found { value: ExecutorKind::Builtin, .. }) => Some(Executor::plain(ExecutorKind::Builtin)),
            Some(Found { value: ExecutorKind::Llm, .. }) => self.endpoint(&mut fields),
            None => {
                fields.entries();
                None
            }
        };
        self.end(fields);
        executor
    }

    fn command(&mut self, fields: &mut Fields) -> Executor {
        let argv = self.argv(fields);
        let env = self.env(fields, "env");
        let sandbox = self.text(fields, "sandbox");
        let sandbox = sandbox.and_then(|found| self.word(found, Sandbox::ALL, Sandbox::as_str));
        let network = self.flag(fields, "network").unwrap_or(false);
        let parallel = self.small(fields, "parallel", 1..=limits::EXECUTOR_PARALLEL_MAX).unwrap_or(1);
        if let Some(input) = self.text(fields, "input") {
            self.word(input, &["stdin"], |word| word);
        }
        Executor {
            kind: ExecutorKind::Command,
            argv,
            env,
            sandbox: sandbox.map(|found| found.value),
            network,
            parallel,
            agent: None,
            endpoint: None,
        }
    }

    fn endpoint(&mut self, fields: &mut Fields) -> Option<Executor> {
        let base_url =
            self.required(fields, "base_url", "the address of the model, like http://127.0.0.1:11434/v1");
        let model = self.required(fields, "model", "the name of the model there");
        let key_env = self.line(fields, "key_env", 200);
        let max_tokens = self.small(fields, "max_tokens", 1..=limits::MODEL_TOKENS_MAX);
        if let Some(url) = &base_url {
            let rest = url.value.strip_prefix("https://").or_else(|| url.value.strip_prefix("http://"));
            if rest.is_none_or(|rest| rest.is_empty() || rest.contains(['@', ' ', '?', '#'])) {
                self.flaw(
                    url.at,
                    &url.path,
                    "must be an address like https://api.example.com/v1, without a user or a query",
                );
            }
        }
        let endpoint = Endpoint {
            base_url: base_url?.value.trim_end_matches('/').to_string(),
            model: model?.value,
            key_env: key_env.map(|found| found.value),
            max_tokens: max_tokens.unwrap_or(MODEL_TOKENS_DEFAULT),
        };
        Some(Executor { endpoint: Some(endpoint), ..Executor::plain(ExecutorKind::Llm) })
    }

    /// `patches`: the type is always judged by `applies`, whatever the file names.
    pub(super) fn gates(&mut self, file: &mut Fields, patches: bool) -> Vec<Gate> {
        if !file.has("gates") {
            self.missing(file, "gates", "an azolla without gates would let everything pass; add [[gates]]");
        }
        let Some(list) = self.list(file, "gates") else { return Vec::new() };
        if !(1..=limits::GATES_MAX).contains(&list.value.len()) {
            self.flaw(list.at, &list.path, format!("must have 1 to {} gates", limits::GATES_MAX));
        }
        let mut gates: Vec<Gate> = Vec::new();
        let mut early = Vec::new();
        for (nth, node) in list.value.into_iter().take(limits::GATES_MAX).enumerate() {
            let (at, path) = (node.at, format!("{}[{nth}]", list.path));
            let Some(fields) = self.fields(&path, node) else { continue };
            let Some(gate) = self.gate(fields) else { continue };
            if gates.iter().any(|earlier| earlier.name() == gate.name()) {
                self.flaw(at, &path, format!("two gates have the name `{}`", gate.name()));
            }
            if matches!(&gate, Gate::Command { protects: Some(_), .. }) && !gates.contains(&Gate::Applies) {
                early.push((at, format!("{path}.protects")));
            }
            gates.push(gate);
        }
        // If the type adds `applies`, it comes before every command.
        if !patches || gates.contains(&Gate::Applies) {
            let why = "is about files of a repository: put the gate `applies` before this one";
            early.into_iter().for_each(|(at, path)| self.flaw(at, &path, why));
        }
        gates
    }

    fn patch_policy(&mut self, fields: &mut Fields) -> PatchPolicy {
        let mut policy = PatchPolicy::default();
        if let Some(most) = self.small(fields, "max_files", 1..=limits::PATCH_FILES_MAX) {
            policy.max_files = most;
        }
        policy.symlinks = self.flag(fields, "symlinks").unwrap_or(policy.symlinks);
        policy.executables = self.flag(fields, "executables").unwrap_or(policy.executables);
        policy.allow = self.patterns(fields, "allow", limits::PATCH_ALLOWED_MAX).unwrap_or_default();
        policy
    }

    /// Names of files and folders of a repository.
    fn patterns(&mut self, fields: &mut Fields, key: &'static str, most: usize) -> Option<Vec<String>> {
        let list = self.list(fields, key)?;
        if list.value.len() > most {
            self.flaw(list.at, &list.path, format!("may have at most {most} names"));
        }
        let mut patterns = Vec::new();
        for (at, path, name) in self.texts(list) {
            if let Some(why) = pattern_fault(&name) {
                self.flaw(at, &path, why);
            }
            patterns.push(name);
        }
        Some(patterns)
    }

    fn gate(&mut self, mut fields: Fields) -> Option<Gate> {
        let kind =
            self.required(&mut fields, "kind", "schema, outcome, size, patch, applies, answers or command");
        let gate = match kind.as_ref().map(|found| found.value.as_str()) {
            Some("schema") => Some(Gate::Schema),
            Some("outcome") => Some(Gate::Outcome),
            Some("size") => {
                let bounds = 1..=limits::CONTENT_BYTES_MAX as u64;
                if !fields.has("max_content_bytes") {
                    self.missing(&fields, "max_content_bytes", "how large the content may be");
                }
                let most = self.number(&mut fields, "max_content_bytes", bounds);
                most.map(|found| Gate::Size { max_content_bytes: found.value })
            }
            Some("patch") => Some(Gate::Patch(self.patch_policy(&mut fields))),
            Some("applies") => Some(Gate::Applies),
            Some("answers") => Some(Gate::Answers),
            Some("command") => {
                let name = self.required(&mut fields, "name", "the name of the gate in a verdict");
                if let Some(name) = &name
                    && check_id(&name.value).is_err()
                {
                    let why =
                        "must have 1 to 64 characters of A-Z a-z 0-9 _ - and start with a letter or digit";
                    self.flaw(name.at, &name.path, why);
                }
                let argv = self.argv(&mut fields);
                let timeout = self.duration(&mut fields, "timeout", limits::BUDGET_MIN..=limits::TIMEOUT_MAX);
                let timeout = timeout.map_or(GATE_TIMEOUT_DEFAULT, |found| found.value);
                let env = self.env(&mut fields, "env");
                let sandbox = self.text(&mut fields, "sandbox");
                let sandbox = sandbox.and_then(|found| self.word(found, Sandbox::ALL, Sandbox::as_str));
                let sandbox = sandbox.map(|found| found.value);
                let protects = self.patterns(&mut fields, "protects", limits::PROTECTS_MAX);
                name.map(|name| Gate::Command { name: name.value, argv, timeout, env, sandbox, protects })
            }
            Some(other) => {
                let kind = kind.as_ref().expect("it was just looked at");
                self.unknown(kind.at, &kind.path, "gate", other, GATE_KINDS.into_iter());
                fields.entries();
                None
            }
            None => {
                fields.entries();
                None
            }
        };
        self.end(fields);
        gate
    }
}

//! Whether the program that an azolla's executor starts can be used on this machine. Starts nothing.

use fernery_core::blueprint::{Blueprint, ExecutorKind};
use fernery_core::pipeline::waiting::Waiting;
use fernery_exec::profiles::{Machine, looked_at};
use fernery_exec::program;

/// Why the executor of its tickets could not work; `None`: it could, as far as can be seen without starting it.
pub(crate) fn unusable(blueprint: &Blueprint) -> Option<Waiting> {
    let executor = blueprint.executor()?;
    match (&executor.agent, executor.kind) {
        (Some(agent), _) => {
            // Without the program, a login is no matter yet.
            let lack = looked_at(agent, &Machine::here().ok()?).lacks.into_iter().next()?;
            let program = format!("agent {}", agent.name);
            Some(Waiting::Unusable { program, missing: lack.missing, remedy: lack.remedy })
        }
        (None, ExecutorKind::Command) => {
            let word = executor.argv.first()?;
            let missing = program::find(word.as_ref(), std::env::var_os("PATH").as_deref()).err()?;
            let remedy = "install it, or change argv in the blueprint".to_string();
            Some(Waiting::Unusable { program: format!("command {word}"), missing, remedy })
        }
        (None, _) => None,
    }
}

//! Everything that starts other people's programs, and nothing else: no database, no server, no job engine. Whoever wants to
//! know what an agent, a gate or a job's command can do on this machine reads this crate.
//!
//! * [`guard`]: one program at a time under a guard, a process that leaves nothing of it behind
//! * [`sandbox`]: what a program may see and do, and how the kernel holds it to that
//! * [`command`]: guard and sandbox together, for programs that a blueprint names
//! * [`git`]: the operator's repository, private clones, patches and the branch of a patch that passed
//! * [`agent`]: one run of a coding agent, from preflight to what it hands in
//! * [`profiles`]: which agents can be used here
//! * [`mock_agent`]: an agent that follows a script
//! * [`program`]: where a command's program is
//! * [`stop`]: why a program is told to stop
//!
//! Guard and sandbox start this very program again, under a name of its own (`GUARD_COMMAND`, `sandbox::COMMAND`): whoever
//! links this crate has to hand those calls to [`guard::main`] and [`sandbox::confine::main`].

pub mod agent;
pub mod command;
#[cfg(test)]
mod dependencies;
pub mod git;
pub mod guard;
pub mod mock_agent;
pub mod profiles;
pub mod program;
pub mod sandbox;
pub mod stop;

//! `fernery mock-agent`: the scripted agent of the profile `mock`.

use super::failure::{Failure, Outcome};
use clap::Args;
use fernery_exec::mock_agent::{self, BEHAVIOURS, MOCK_ENV};

/// A scripted agent: reads a prompt on stdin and does what it says
///
/// The profile `mock` starts it, to try and test everything around agents without a model. It works in the current directory
/// and writes JSON lines.
#[derive(Debug, Args)]
#[command(after_help = steps())]
pub(super) struct MockAgent {
    /// What to do, each word one step [default: the lines of the prompt that start with `mock:`]
    #[arg(value_name = "STEP", allow_hyphen_values = true)]
    steps: Vec<String>,
}

/// Every step that it knows.
fn steps() -> String {
    let mut text = String::from("Steps, each on a line of the prompt like `mock: write hello.txt Hello`:\n");
    for (name, takes, does) in BEHAVIOURS {
        text.push_str(&format!("  {:34}{does}\n", format!("{name} {takes}")));
    }
    text.push_str(&format!(
        "\n`first STEP` is done in the first attempt, `again STEP` after a failed attempt.\n\
         {MOCK_ENV} may hold steps too, apart by `;`.\n\n\
         Examples:\n  echo 'mock: write hello.txt Hello' | fernery mock-agent\n  \
         fernery mock-agent 'write hello.txt Hello' commit < /dev/null"
    ));
    text
}

pub(super) fn run(agent: &MockAgent) -> Outcome {
    match mock_agent::main(&agent.steps) {
        0 => Ok(()),
        code => Err(Failure::exited(code)),
    }
}

//! `fernery mock-agent`: the scripted agent of the profile `mock`.

use super::failure::{Failure, Outcome};
use super::screen::wrapped;
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

/// Columns of a line, and those before what a step does.
const WIDTH: usize = 80;
const MARGIN: usize = 30;

/// Every step that it knows.
fn steps() -> String {
    let mut text = String::from("Steps, each on a line of the prompt like `mock: write hello.txt Hello`:\n");
    for (name, takes, does) in BEHAVIOURS {
        // Long names have their meaning below them.
        let named = format!("{name} {takes}");
        let begin = if named.len() < MARGIN - 3 {
            format!("  {named:w$}", w = MARGIN - 2)
        } else {
            format!("  {named}\n{:MARGIN$}", "")
        };
        let lines = wrapped(does, WIDTH - MARGIN);
        text.push_str(&format!("{begin}{}\n", lines.join(&format!("\n{:MARGIN$}", ""))));
    }
    text.push_str(&format!(
        "\n`first STEP` is done in the first attempt, `again STEP` in those after it.\n\
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

//! Runs a program of a blueprint under a guard and in a cell: with its own process group, an environment of named
//! variables only, its own folder and home, and a certain end.

use crate::guard::{Guards, Input, NotRun, Ran};
use crate::sandbox::{self, Cell, Tier};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// How long a program may take to end on TERM.
pub const GRACE: Duration = Duration::from_secs(5);
/// Variables that a blueprint may name to pass on the operator's value instead of the cell's.
const OPERATORS_OWN: [&str; 4] = ["PATH", "LANG", "TERM", "NO_COLOR"];

pub struct Command {
    guards: Guards,
    tier: Tier,
    env: Vec<(String, String)>,
}

/// The cell of a program in a folder of its own, which is removed afterwards: no network, no login.
pub fn cell(place: &Path, run: &str) -> Cell {
    let place = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
    Cell { uid: Cell::spare_uid(run), ..Cell::new(place.join("work"), place.join("home")) }
}

impl Command {
    /// Starts nothing yet. `env` names the variables that it may see.
    pub fn new(argv: &[String], env: &[String], cell: &Cell, tier: Tier) -> io::Result<Self> {
        std::fs::create_dir_all(&cell.folder)?;
        let mut argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        let mut own = Vec::new();
        if tier != Tier::Unconfined {
            cell.hand_over([&cell.folder])?;
            argv = cell.wrap(tier, &argv)?;
            own = cell.environment();
            own.retain(|(name, _)| !OPERATORS_OWN.contains(&name.as_str()) || !env.contains(name));
        }
        let guards = Guards::new(std::env::current_exe()?, argv, GRACE).within(&cell.folder, env);
        Ok(Self { guards, tier, env: own })
    }

    /// Runs it with this input, and the cell's own variables beside those of the input.
    pub async fn run(&self, input: Input<'_>, stops: UnboundedReceiver<Duration>) -> Result<Ran, NotRun> {
        let env = self.env.iter().cloned().chain(input.env).collect();
        let ran = self.guards.run(Input { env, ..input }, stops).await?;
        let refusal = match self.tier {
            Tier::Unconfined => None,
            _ => sandbox::refusal(ran.seen.exit.code(), &ran.seen.stderr.text()),
        };
        refusal.map_or(Ok(ran), |why| Err(NotRun::NoCommand(why)))
    }

    /// Waits until all that it started has ended.
    pub async fn close(&self) {
        self.guards.close().await;
    }
}

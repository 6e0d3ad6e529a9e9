//! Shows what is being measured: a bar on a terminal, otherwise a line per step. All of it goes to stderr, because stdout is
//! for figures.

use fernery_engine::door::stop_watch;
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// The reader of stdout is gone.
#[derive(Debug)]
pub(crate) struct ReaderLeft;

impl fmt::Display for ReaderLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads the output")
    }
}

impl std::error::Error for ReaderLeft {}

/// The steps of a bench.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    begun: usize,
    steps: usize,
}

impl Progress {
    /// None is begun yet.
    pub(super) fn new(steps: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let template = "{bar:30} {pos}/{len} {elapsed} {wide_msg}";
            let style = ProgressStyle::with_template(template);
            let bar = ProgressBar::new(steps as u64)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            // Often enough to look alive, too rarely to disturb the measurement.
            bar.enable_steady_tick(Duration::from_secs(1));
            bar
        });
        Self { bar, started: stop_watch(), begun: 0, steps }
    }

    /// Begins the next step, for this figure.
    pub(super) fn step(&mut self, figure: &str) {
        self.begun += 1;
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.begun as u64);
                bar.set_message(figure.to_string());
            }
            None => {
                let (begun, steps, elapsed) = (self.begun, self.steps, self.started.elapsed().as_secs());
                eprintln!("[{begun}/{steps}, {elapsed}s] {figure}");
            }
        }
    }

    /// Prints a line of the result; the bar is redrawn below it.
    pub(super) fn print(&self, line: &str) -> Result<(), ReaderLeft> {
        let print = || writeln!(std::io::stdout(), "{line}").map_err(|_| ReaderLeft);
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

//! Where the value of each setting comes from: the command line, the environment, the configuration file, or the default.

use super::table::{Form, SETTINGS, Setting};
use super::{ConfigError, Given, Source, file, found};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The sources of settings.
pub struct Inputs<'a> {
    /// Settings from the command line.
    pub flags: Vec<Given>,
    /// The configuration file that the command line names.
    pub config: Option<PathBuf>,
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// Where to look for what nobody names, and from there upward; `None`: nowhere.
    pub here: Option<PathBuf>,
}

/// The value of every setting, with its source; not checked yet.
#[derive(Debug)]
pub struct InForce {
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// One row per setting, in the order of the table.
    pub rows: Vec<Given>,
    /// Files and folders that would have been used if they did not belong to others.
    pub foreign: Vec<PathBuf>,
}

impl Inputs<'_> {
    fn env_text(&self, name: &str) -> Result<Option<String>, ConfigError> {
        match (self.env)(name).filter(|value| !value.is_empty()) {
            None => Ok(None),
            Some(value) => {
                value.into_string().map(Some).map_err(|_| ConfigError(format!("{name}: not UTF-8")))
            }
        }
    }

    fn file(&self, found: Option<&Path>) -> Result<Option<file::ConfigFile>, ConfigError> {
        let named = match &self.config {
            Some(path) => Some((path.clone(), "--config")),
            None => self.env_text("FERNERY_CONFIG")?.map(|path| (PathBuf::from(path), "FERNERY_CONFIG")),
        };
        let lookup = |name: &str| (self.env)(name).and_then(|v| v.into_string().ok());
        match named {
            Some((path, by)) => {
                file::read(&path, &lookup).map(Some).map_err(|e| ConfigError(format!("{by}: {e}")))
            }
            None => found.map(|path| file::read(path, &lookup)).transpose(),
        }
    }

    /// Picks the value of every setting. Only the form of the file is checked here.
    pub fn resolve(mut self) -> Result<InForce, ConfigError> {
        let found = self.here.as_deref().map(|here| found::look(here, self.env));
        let file = self.file(found.as_ref().and_then(|found| found.config.as_deref()))?;
        let path = file.as_ref().map(|f| f.path.clone());
        let mut from_file = file.map(|f| f.given).unwrap_or_default();
        let mut rows = Vec::new();
        for setting in SETTINGS {
            let take = |from: &mut Vec<Given>| {
                from.iter().position(|g| g.setting == setting).map(|i| from.swap_remove(i))
            };
            let in_file = take(&mut from_file);
            rows.push(match take(&mut self.flags) {
                Some(given) => given,
                None => match self.env_text(&setting.env())? {
                    Some(text) => {
                        Given { setting, values: split(setting, &text), source: Source::Environment }
                    }
                    None => match (in_file, &found) {
                        (Some(given), _) => given,
                        (None, Some(found)) if setting.key == "data" => Given::found(setting, found)?,
                        (None, _) => Given::fallback(setting),
                    },
                },
            });
        }
        Ok(InForce { file: path, rows, foreign: found.map_or_else(Vec::new, |found| found.foreign) })
    }
}

fn split(setting: &Setting, text: &str) -> Vec<String> {
    match setting.form {
        Form::Many => {
            text.split(',').map(|part| part.trim().to_string()).filter(|part| !part.is_empty()).collect()
        }
        Form::One | Form::Switch => vec![text.to_string()],
    }
}

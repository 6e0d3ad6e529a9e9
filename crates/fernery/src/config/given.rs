//! A value as it was given: text with its source, so that a refusal can name both.

use super::found::{DATA_NAME, DataPlace, Discovery};
use super::table::{Fallback, Setting};
use super::{ConfigError, duration};
use std::fmt;
use std::time::Duration;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Flag,
    Environment,
    /// The file, at this line and column.
    File {
        /// `path:line:column`.
        place: String,
    },
    /// It was not set, and found: in these words.
    Found {
        how: String,
    },
    /// It was not set.
    Default,
}

/// A value as it was given, not checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    pub setting: &'static Setting,
    /// One text; several if the setting is a list; none if it is not set.
    pub values: Vec<String>,
    pub source: Source,
}

impl Given {
    /// The source as people name it.
    pub fn origin(&self) -> String {
        match &self.source {
            Source::Flag => format!("--{}", self.setting.flag()),
            Source::Environment => self.setting.env(),
            Source::File { place } => place.clone(),
            Source::Found { how } => how.clone(),
            Source::Default => match self.setting.fallback {
                Fallback::Follows(rule) => format!("default: {rule}"),
                _ => "default".into(),
            },
        }
    }

    pub(super) fn refused(&self, why: impl fmt::Display) -> ConfigError {
        ConfigError(match &self.source {
            Source::File { place } => format!("{place}: {}: {why}", self.setting.key),
            _ => format!("{}: {why}", self.origin()),
        })
    }

    pub(super) fn text(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }

    pub(super) fn fallback(setting: &'static Setting) -> Self {
        let values = match setting.fallback {
            Fallback::Value(text) => vec![text.to_string()],
            Fallback::Follows(_) | Fallback::Unset => Vec::new(),
        };
        Self { setting, values, source: Source::Default }
    }

    /// The data directory, where nobody names it.
    pub(super) fn found(setting: &'static Setting, found: &Discovery) -> Result<Self, ConfigError> {
        let place = &found.place;
        let how = match place {
            DataPlace::Here if found.foreign_here() => {
                let why = format!(
                    "{DATA_NAME} in this folder belongs to another user; if you trust it, name it with --data"
                );
                return Err(ConfigError(why));
            }
            DataPlace::Here => return Ok(Self::fallback(setting)),
            DataPlace::Above(folder) => format!("found upward, in {}", folder.display()),
            DataPlace::Own(_) => "the user's own data folder".to_string(),
        };
        let values = vec![place.data().to_string_lossy().into_owned()];
        Ok(Self { setting, values, source: Source::Found { how } })
    }

    pub(super) fn duration(&self) -> Result<Duration, ConfigError> {
        duration::parse(self.text()).map_err(|why| self.refused(why))
    }

    /// `None`: the setting is not set.
    pub(super) fn maybe_duration(&self) -> Result<Option<Duration>, ConfigError> {
        if self.values.is_empty() { Ok(None) } else { self.duration().map(Some) }
    }

    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, ConfigError> {
        choices.iter().find(|(name, _)| *name == self.text()).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            self.refused(format_args!("expected {}, not {:?}", names.join(" or "), self.text()))
        })
    }
}

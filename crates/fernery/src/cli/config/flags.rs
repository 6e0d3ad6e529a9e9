//! The flags of all settings, made from the table.

use crate::config::table::{Fallback, Form, SETTINGS, Setting};
use crate::config::{Given, Source};
use clap::{Arg, ArgAction, ArgMatches, Command};

/// What the command line sets.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct SettingFlags(Vec<Given>);

/// What the command line sets where nothing but the database matters.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct DatabaseFlag(Vec<Given>);

impl From<SettingFlags> for Vec<Given> {
    fn from(flags: SettingFlags) -> Self {
        flags.0
    }
}

impl From<DatabaseFlag> for Vec<Given> {
    fn from(flag: DatabaseFlag) -> Self {
        flag.0
    }
}

/// `--data` is a flag of every command, so it is not among these.
fn own_flags() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|s| s.key != "data")
}

fn database_flag() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|s| s.key == "database")
}

fn flag(setting: &'static Setting) -> Arg {
    let fallback = match setting.fallback {
        Fallback::Value(value) => format!(" [default: {value}]"),
        Fallback::Follows(rule) => format!(" [default: {rule}]"),
        Fallback::Unset => String::new(),
    };
    let arg = Arg::new(setting.key).long(setting.flag()).help(format!(
        "{}{fallback} [env: {}]",
        setting.help,
        setting.env()
    ));
    match setting.form {
        Form::One => arg.value_name(setting.value_name),
        Form::Many => arg.value_name(setting.value_name).action(ArgAction::Append),
        Form::Switch => arg.action(ArgAction::SetTrue),
    }
}

/// What was given of these settings.
fn given(settings: impl Iterator<Item = &'static Setting>, matches: &ArgMatches) -> Vec<Given> {
    let given = |setting: &'static Setting| {
        let values: Vec<String> = match setting.form {
            Form::Switch if matches.get_flag(setting.key) => vec!["true".into()],
            Form::Switch => Vec::new(),
            Form::One | Form::Many => {
                matches.get_many::<String>(setting.key).into_iter().flatten().cloned().collect()
            }
        };
        (!values.is_empty()).then_some(Given { setting, values, source: Source::Flag })
    };
    settings.filter_map(given).collect()
}

macro_rules! flags_of {
    ($name:ident, $settings:ident) => {
        impl clap::Args for $name {
            fn augment_args(command: Command) -> Command {
                command.next_help_heading("Settings").args($settings().map(flag))
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }

        impl clap::FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self(given($settings(), matches)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                self.0 = given($settings(), matches);
                Ok(())
            }
        }
    };
}

flags_of!(SettingFlags, own_flags);
flags_of!(DatabaseFlag, database_flag);

//! The flags of all settings, made from the table.

use crate::config::table::{Fallback, Form, SETTINGS, Setting};
use crate::config::{Given, Source};
use clap::{Arg, ArgAction, ArgMatches, Command};

/// What the command line sets.
#[derive(Clone, Debug, Default)]
pub(super) struct SettingFlags(pub(super) Vec<Given>);

/// `--data` is a flag of every command, so it is not among these.
fn own_flags() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|s| s.key != "data")
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

impl clap::Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        command.next_help_heading("Settings").args(own_flags().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.clear();
        for setting in own_flags() {
            let values: Vec<String> = match setting.form {
                Form::Switch if matches.get_flag(setting.key) => vec!["true".into()],
                Form::Switch => continue,
                Form::One | Form::Many => {
                    matches.get_many::<String>(setting.key).into_iter().flatten().cloned().collect()
                }
            };
            if !values.is_empty() {
                self.0.push(Given { setting, values, source: Source::Flag });
            }
        }
        Ok(())
    }
}

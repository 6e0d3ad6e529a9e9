//! The configuration file: TOML whose every mistake is answered with its place.

use super::table::{Form, SETTINGS, Setting, nearest, setting};
use super::{ConfigError, Given, Source, registry, repos};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Bytes of a configuration file at most: more is another file by mistake.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// A file that was read.
#[derive(Debug)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it sets.
    pub given: Vec<Given>,
}

/// Reads a file. `lookup` answers `${NAME}`.
pub fn read(path: &Path, lookup: &dyn Fn(&str) -> Option<String>) -> Result<ConfigFile, ConfigError> {
    let text = read_text(path)?;
    Ok(ConfigFile { path: path.to_path_buf(), given: parse(path, &text, lookup)? })
}

fn read_text(path: &Path) -> Result<String, ConfigError> {
    let refuse = |why: String| ConfigError(format!("cannot read {}: {why}", path.display()));
    let meta = std::fs::metadata(path).map_err(|e| refuse(e.to_string()))?;
    // Opening a pipe would wait for a writer for ever.
    if !meta.is_file() {
        return Err(refuse(if meta.is_dir() {
            "it is a directory".into()
        } else {
            "it is not a regular file".into()
        }));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|e| refuse(e.to_string()))?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|e| refuse(e.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(refuse("it is larger than 1 MiB".into()));
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        ConfigError(format!("{}:{line}: not UTF-8", path.display()))
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

/// Reads the text of a file that is at `path`.
pub fn parse(
    path: &Path,
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Given>, ConfigError> {
    let at = |offset: usize, why: String| ConfigError(format!("{}: {why}", place(path, text, offset)));
    let table = DeTable::parse(text).map_err(|error| {
        at(error.span().map_or(0, |span| span.start), error.message().replace('\n', "; "))
    })?;
    let mut given = Vec::new();
    for Entry { name, offset, value } in entries(table.get_ref()) {
        let Some(setting) = setting(&name) else {
            return Err(at(offset, unknown_key(&name)));
        };
        let texts = texts_of(setting, value).map_err(|why| at(value.span().start, why))?;
        let values = texts
            .into_iter()
            .map(|text| expand(&text, lookup))
            .collect::<Result<_, _>>()
            .map_err(|why| at(value.span().start, why))?;
        let source = Source::File { place: place(path, text, offset) };
        given.push(Given { setting, values, source });
    }
    Ok(given)
}

/// A key and its value, wherever in the file they stand.
struct Entry<'a, 'text> {
    name: String,
    offset: usize,
    value: &'a Spanned<DeValue<'text>>,
}

/// All entries; those of a table that settings belong to by their dotted names.
fn entries<'a, 'text>(table: &'a DeTable<'text>) -> Vec<Entry<'a, 'text>> {
    let mut entries = Vec::new();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let is_table = SETTINGS.iter().any(|s| s.key.split_once('.').is_some_and(|(table, _)| table == name));
        match value.get_ref() {
            DeValue::Table(inner) if is_table => entries.extend(inner.iter().map(|(key, value)| Entry {
                name: format!("{name}.{}", key.get_ref()),
                offset: key.span().start,
                value,
            })),
            _ => entries.push(Entry { name: name.to_string(), offset: key.span().start, value }),
        }
    }
    entries
}

fn unknown_key(name: &str) -> String {
    let name = name.escape_debug();
    match nearest(&name.to_string(), SETTINGS.iter().map(|s| s.key)) {
        Some(near) => format!("unknown key `{name}`; did you mean `{near}`?"),
        None => format!("unknown key `{name}`; `fernery config --default` shows all there are"),
    }
}

fn texts_of(setting: &Setting, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, String> {
    let expected =
        |what: &str| Err(format!("`{}` is {what}, not {}", setting.key, described(value.get_ref())));
    match (setting.form, value.get_ref()) {
        (Form::Switch, DeValue::Boolean(on)) => Ok(vec![on.to_string()]),
        (Form::Switch, _) => expected("true or false"),
        (Form::Many, DeValue::Array(items)) => items
            .iter()
            .map(|item| match item.get_ref().as_str() {
                Some(text) => Ok(text.to_string()),
                None => Err(format!(
                    "`{}` is a list of texts; it holds {}",
                    setting.key,
                    described(item.get_ref())
                )),
            })
            .collect(),
        (Form::One | Form::Many, DeValue::String(text)) => Ok(vec![text.to_string()]),
        (Form::Many, DeValue::Table(table)) if setting.key == "repos" => repos::texts_of(table),
        (Form::Many, DeValue::Table(table)) if ["registry", "visitors"].contains(&setting.key) => {
            registry::texts_of(setting.key, table)
        }
        (Form::Many, _) => expected("a list of texts"),
        (Form::One, DeValue::Integer(number)) if setting.value_name == "DURATION" => {
            super::duration::parse(number.as_str())
                .map(|_| Vec::new())
                .map_err(|why| format!("`{}`: {why}", setting.key))
        }
        (Form::One, DeValue::Integer(number)) if setting.value_name == "NUMBER" => {
            Ok(vec![number.to_string()])
        }
        (Form::One, _) if setting.value_name == "NUMBER" => expected("a whole number"),
        (Form::One, _) => expected("a text in quotes"),
    }
}

pub(super) fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Puts the environment's values for `${NAME}`; `$$` is a dollar sign. The value itself never reaches an error.
fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        let (before, from) = rest.split_at(dollar);
        out.push_str(before);
        if let Some(after) = from.strip_prefix("$$") {
            out.push('$');
            rest = after;
        } else if let Some(after) = from.strip_prefix("${") {
            let Some((name, after)) = after.split_once('}') else {
                return Err("`${` is not closed; write $$ for a dollar sign".into());
            };
            let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            if name.is_empty() || !name.bytes().all(plain) {
                return Err("`${…}` holds no name of the environment; write $$ for a dollar sign".into());
            }
            out.push_str(&lookup(name).ok_or_else(|| format!("${{{name}}} is not set in the environment"))?);
            rest = after;
        } else {
            out.push('$');
            rest = &from[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// `path:line:column`, both from one, the column in characters.
fn place(path: &Path, text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    format!("{}:{line}:{column}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        (name == "SECRET").then(|| "s3cret".to_string())
    }

    fn parsed(text: &str) -> Result<Vec<Given>, String> {
        parse(Path::new("f.toml"), text, &lookup).map_err(|e| e.0)
    }

    #[test]
    fn every_mistake_has_its_place() {
        for (text, place, why) in [
            ("listen = ", "f.toml:1:", "string"),
            ("\r\nlease_ttl = \"60s\"\r\nlisten 5\r\n", "f.toml:3:", "key"),
            ("leese_ttl = \"60s\"", "f.toml:1:1:", "did you mean `lease_ttl`?"),
            ("qqq = 1", "f.toml:1:1:", "fernery config --default"),
            ("lease_ttl = 60", "f.toml:1:13:", "500ms, 60s, 5m, 2h or 7d"),
            ("listen = 8080", "f.toml:1:10:", "a text in quotes"),
            ("insecure_http = \"yes\"", "f.toml:1:17:", "true or false"),
            ("allowed_host = [1]", "f.toml:1:16:", "a list of texts"),
            ("listen = \"a\"\nlisten = \"b\"", "f.toml:2:", "duplicate"),
            ("[listen]", "f.toml:1:", "a text in quotes"),
            ("transport = \"worker\"", "f.toml:1:1:", "unknown key `transport`"),
            ("transport_ack = \"worker\"", "f.toml:1:1:", "did you mean `transport.ack`?"),
            ("[transport]\n\"lease_ttl\" = \"60s\"", "f.toml:2:1:", "unknown key `transport.lease_ttl`"),
            ("[transport]\nack = 1", "f.toml:2:7:", "`transport.ack` is a text in quotes"),
            ("database = \"${NOT_THERE}\"", "f.toml:1:12:", "${NOT_THERE} is not set"),
            ("database = \"${\"", "f.toml:1:12:", "not closed"),
            ("listen = \"a\0b\"", "f.toml:1:", ""),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.starts_with(place) && error.contains(why), "{text:?} gave {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn the_environment_fills_in_names() {
        let given = parsed("database = \"postgres://u:${SECRET}@db/x$$y$z\"").unwrap();
        assert_eq!(given[0].values, ["postgres://u:s3cret@db/x$y$z"]);
    }

    #[test]
    fn a_table_and_dotted_keys_are_the_same() {
        for text in [
            "transport.ack = \"worker\"\n",
            "[transport]\nack = \"worker\"\n",
            "transport = { ack = \"worker\" }\n",
        ] {
            let given = parsed(text).unwrap();
            assert_eq!((given[0].setting.key, given[0].text()), ("transport.ack", "worker"), "{text}");
        }
    }

    #[test]
    fn lists_and_switches_are_read() {
        let given = parsed("allowed_host = [\"a\", \"b\"]\ninsecure_http = true\n").unwrap();
        assert_eq!(given[0].values, ["a", "b"]);
        assert_eq!(given[1].values, ["true"]);
    }
}

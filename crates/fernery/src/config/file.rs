//! Reads the configuration file (TOML). Every mistake is reported with its line and column.

use super::table::{Form, SETTINGS, Setting, nearest};
use super::{ConfigError, Given, Source, duration, registry, repos};
use fernery_core::toml_file::{self, Entry, Fields, Flaw, Found, Node, Reader, Shape};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a configuration file; a larger file was named by mistake.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// A file that was read.
#[derive(Debug)]
pub struct ConfigFile {
    pub path: PathBuf,
    /// The settings in it.
    pub given: Vec<Given>,
}

/// Reads a file. `lookup` gives the values for `${NAME}`.
pub fn read(path: &Path, lookup: &dyn Fn(&str) -> Option<String>) -> Result<ConfigFile, ConfigError> {
    let text = read_text(path)?;
    Ok(ConfigFile { path: path.to_path_buf(), given: parse(path, &text, lookup)? })
}

fn read_text(path: &Path) -> Result<String, ConfigError> {
    let refuse = |why: String| ConfigError(format!("cannot read {}: {why}", path.display()));
    let meta = std::fs::metadata(path).map_err(|e| refuse(e.to_string()))?;
    // Opening a pipe would wait for a writer forever.
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

/// Reads the text of the file at `path`. Reports every mistake in its form, not only the first.
pub fn parse(
    path: &Path,
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Given>, ConfigError> {
    let (mut reader, mut file) = toml_file::open(text).map_err(|mut flaws| {
        // A syntax error causes follow-up errors on the same line: keep the first.
        flaws.dedup_by_key(|flaw| flaw.line);
        refused(path, &flaws)
    })?;
    let mut tables = BTreeMap::new();
    for table in SETTINGS.iter().filter_map(|setting| setting.table()) {
        if !tables.contains_key(table)
            && let Some(fields) = reader.table(&mut file, table)
        {
            tables.insert(table, fields);
        }
    }
    let mut given = Vec::new();
    for setting in SETTINGS {
        let entry = match setting.table() {
            None => file.entry(setting.key),
            Some(table) => {
                let in_table = tables.get_mut(table).and_then(|fields| fields.entry(setting.key_in_table()));
                // TOML also accepts a quoted key with a dot: `"transport.ack" = …`.
                in_table.or_else(|| file.entry(setting.key))
            }
        };
        let Some(Entry { key_at, node }) = entry else { continue };
        let at = node.at;
        let Some(texts) = texts_of(&mut reader, setting, node) else { continue };
        let mut values = Vec::new();
        for text in texts {
            match expand(&text, lookup) {
                Ok(value) => values.push(value),
                Err(why) => reader.flaw(at, setting.key, why),
            }
        }
        let (line, column) = reader.position(key_at);
        let source = Source::File { place: place(path, line, column) };
        given.push(Given { setting, values, source });
    }
    for mut fields in tables.into_values().chain([file]) {
        for (key, entry) in fields.entries() {
            reader.flaw(entry.key_at, "", unknown_key(&fields.path(&key)));
        }
    }
    let flaws = reader.flaws();
    if flaws.is_empty() { Ok(given) } else { Err(refused(path, &flaws)) }
}

/// One line for each mistake.
fn refused(path: &Path, flaws: &[Flaw]) -> ConfigError {
    let told = flaws.iter().map(|flaw| {
        let place = place(path, flaw.line, flaw.column);
        match flaw.path.as_str() {
            "" => format!("{place}: {}", flaw.message),
            key => format!("{place}: {key}: {}", flaw.message),
        }
    });
    ConfigError(told.collect::<Vec<_>>().join("\n"))
}

fn unknown_key(name: &str) -> String {
    match nearest(name, SETTINGS.iter().map(|s| s.key)) {
        Some(near) => format!("unknown key `{name}`; did you mean `{near}`?"),
        None => format!("unknown key `{name}`; `fernery config --default` shows all there are"),
    }
}

/// The value in the form of flags and variables; `None`: it has a flaw, which the reader has noted.
fn texts_of(reader: &mut Reader, setting: &Setting, node: Node) -> Option<Vec<String>> {
    let Node { at, value } = node;
    let expected = |reader: &mut Reader, what: &str, value: &Shape| {
        reader.flaw(at, setting.key, format!("must be {what}, not {}", value.described()));
        None
    };
    match (setting.form, value) {
        (Form::Switch, Shape::Switch(on)) => Some(vec![on.to_string()]),
        (Form::Switch, other) => expected(reader, "true or false", &other),
        (Form::One | Form::Many, Shape::Text(text)) => Some(vec![text]),
        (Form::Many, Shape::List(items)) => words_of(reader, setting.key, items),
        (Form::Many, value @ Shape::Table(_)) if setting.key == "repos" => {
            repos::texts_of(reader, Node { at, value })
        }
        (Form::Many, value @ Shape::Table(_)) if setting.key == "registry" => {
            registry::texts_of(reader, Node { at, value })
        }
        (Form::Many, value @ Shape::Table(_)) if setting.key == "visitors" => {
            registry::visitor_texts_of(reader, Node { at, value })
        }
        (Form::Many, other) => expected(reader, "a list of strings", &other),
        (Form::One, Shape::Whole(Some(number))) if setting.value_name == "NUMBER" => {
            Some(vec![number.to_string()])
        }
        // A bare number is refused like a text without a unit: that message lists the units.
        (Form::One, Shape::Whole(Some(number))) if setting.value_name == "DURATION" => {
            let text = number.to_string();
            let flaw = duration::parse(&text).map_err(|why| reader.flaw(at, setting.key, why));
            flaw.ok().map(|_| vec![text])
        }
        (Form::One, other) if setting.value_name == "NUMBER" => expected(reader, "a whole number", &other),
        (Form::One, other) => expected(reader, "a string in quotes", &other),
    }
}

/// The texts of a list; `None`: one of them has a flaw, which the reader has noted.
pub(super) fn words_of(reader: &mut Reader, key: &str, items: Vec<Node>) -> Option<Vec<String>> {
    let texts =
        items.into_iter().enumerate().map(|(nth, item)| text_of(reader, format!("{key}[{nth}]"), item));
    // Collected first, so that the reader notes every flaw.
    let texts: Vec<_> = texts.collect();
    texts.into_iter().map(|text| Some(text?.value)).collect()
}

/// Any text, also with invisible characters: a path may contain them. A blueprint may not, because a person approves what is
/// visible.
pub(super) fn text_of(reader: &mut Reader, path: String, Node { at, value }: Node) -> Option<Found<String>> {
    match value {
        Shape::Text(value) => Some(Found { value, at, path }),
        other => {
            reader.flaw(at, &path, format!("must be a string in quotes, not {}", other.described()));
            None
        }
    }
}

/// A text, if the key is there.
pub(super) fn text(reader: &mut Reader, fields: &mut Fields, key: &'static str) -> Option<Found<String>> {
    let path = fields.path(key);
    fields.entry(key).and_then(|entry| text_of(reader, path, entry.node))
}

/// A text that must be there; `what` describes it in the error.
pub(super) fn required(
    reader: &mut Reader,
    fields: &mut Fields,
    key: &'static str,
    what: &str,
) -> Option<Found<String>> {
    let path = fields.path(key);
    match fields.entry(key) {
        Some(entry) => text_of(reader, path, entry.node),
        None => {
            reader.missing(fields, key, what);
            None
        }
    }
}

/// Replaces `${NAME}` by the value from the environment, and `$$` by a dollar sign. No value is ever part of an error.
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
                return Err(
                    "`${…}` must contain the name of an environment variable; write $$ for a dollar \
                    sign"
                        .into(),
                );
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

fn place(path: &Path, line: usize, column: usize) -> String {
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
            ("listen = 8080", "f.toml:1:10:", "a string in quotes"),
            ("insecure_http = \"yes\"", "f.toml:1:17:", "true or false"),
            ("allowed_host = [1]", "f.toml:1:17:", "allowed_host[0]: must be a string in quotes"),
            ("allowed_host = 1", "f.toml:1:16:", "allowed_host: must be a list of strings"),
            ("listen = \"a\"\nlisten = \"b\"", "f.toml:2:", "duplicate"),
            ("[listen]", "f.toml:1:", "a string in quotes"),
            ("transport = \"worker\"", "f.toml:1:13:", "transport: must be a table, not a string"),
            ("transport_ack = \"worker\"", "f.toml:1:1:", "did you mean `transport.ack`?"),
            ("[transport]\n\"lease_ttl\" = \"60s\"", "f.toml:2:1:", "unknown key `transport.lease_ttl`"),
            ("[transport]\nack = 1", "f.toml:2:7:", "transport.ack: must be a string in quotes"),
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
    fn all_mistakes_are_told_at_once_in_the_order_of_the_file() {
        let text = "listen = 8080\nleese_ttl = \"60s\"\n[transport]\nack = 1\n[repos.web]\nbase = \"main\"\nbranch = \"x\"\n\
                    [registry.far]\nurl = 5\n[visitors.laptop]\nazollas = [1]\nartifact_types = \"objective\"\n";
        let error = parsed(text).unwrap_err();
        let places: Vec<&str> = error.lines().map(|line| line.split(": ").next().unwrap()).collect();
        let lines = ["1:10", "2:1", "4:7", "5:1", "7:1", "9:7", "11:12"];
        assert_eq!(places, lines.map(|line| format!("f.toml:{line}")), "{error}");
    }

    #[test]
    fn tables_of_the_file_say_what_flags_say() {
        let given = parsed(
            "[repos]\nweb = \"../web\"\napi = { path = \"/srv/api.git\", base = \"release\" }\n\
             [registry.far]\nurl = \"https://h\"\ntoken_env = \"T\"\n\
             [visitors.laptop]\nazollas = [\"mec\", \"docs\"]\nartifact_types = \"objective\"\n",
        );
        let given = given.unwrap();
        let values = |key: &str| given.iter().find(|given| given.setting.key == key).unwrap().values.clone();
        assert_eq!(values("repos"), ["api=/srv/api.git#release", "web=../web"]);
        assert_eq!(values("registry"), ["far=https://h;token_env=T"]);
        assert_eq!(values("visitors"), ["laptop=mec+docs:objective"]);
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

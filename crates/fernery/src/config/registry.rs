//! Azollas of other servers: those that this server queries (`registry`), and those that may query this server (`visitors`).
//! Each is a table in the file; as a flag or variable it is `NAME=URL;azolla_id=…;token_env=…` or
//! `SOURCE=AZOLLA+AZOLLA:ARTIFACT+ARTIFACT`.

use super::file::{required, text, text_of, words_of};
use crate::outgoing::Target;
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::{ReadableArtifact, Reads};
use fernery_core::toml_file::{Entry, Fields, Found, Node, Reader, Shape};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An azolla of another server that this server may query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteAzolla {
    /// Its name on this server.
    pub name: AzollaId,
    /// The URL of its server.
    pub url: String,
    /// Its id on its own server.
    pub azolla_id: AzollaId,
    /// Where to read its token; `None`: it needs no token.
    pub token: Option<TokenAt>,
}

/// Where a token is read from, each time it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenAt {
    Env(String),
    File(PathBuf),
}

impl TokenAt {
    /// The token, or why there is none.
    pub fn read(&self) -> Result<String, String> {
        let (text, place) = match self {
            Self::Env(name) => {
                (std::env::var(name).map_err(|_| "not set".to_string()), format!("the environment's {name}"))
            }
            Self::File(path) => {
                (std::fs::read_to_string(path).map_err(|error| error.to_string()), path.display().to_string())
            }
        };
        match text.map(|text| text.trim().to_string()) {
            Ok(token) if !token.is_empty() => Ok(token),
            Ok(_) => Err(format!("no token in {place}: it is empty")),
            Err(why) => Err(format!("no token in {place}: {why}")),
        }
    }
}

/// Azollas of other servers, by their names on this server.
pub type Registry = BTreeMap<AzollaId, RemoteAzolla>;
/// What azollas of other servers may read here, by their own names.
pub type Visitors = BTreeMap<AzollaId, Reads>;

/// Reads `NAME=URL;azolla_id=ID;token_env=NAME;token_file=PATH`; relative paths start at `from`.
pub fn parse(texts: &[String], from: &Path) -> Result<Registry, String> {
    let mut all = Registry::new();
    for text in texts {
        let Some((name, rest)) = text.split_once('=') else {
            return Err(format!("expected NAME=URL;token_env=VARIABLE, not {text:?}"));
        };
        let name: AzollaId =
            name.parse().map_err(|why| format!("{name:?} is not a valid name of an azolla: {why}"))?;
        let mut parts = rest.split(';');
        let url = parts.next().unwrap_or("").trim_end_matches('/').to_string();
        let server = Target::parse(&url).map_err(|why| {
            format!("azolla {name}: expected the URL of a server, like https://host:8080, not {url:?}: {why}")
        })?;
        let (mut azolla_id, mut token) = (name.clone(), None);
        for part in parts {
            match part.split_once('=') {
                Some(("azolla_id", id)) => {
                    azolla_id = id.parse().map_err(|why| format!("azolla {name}: {id:?}: {why}"))?;
                }
                Some(("token_env", variable)) if !variable.is_empty() => {
                    token = Some(TokenAt::Env(variable.into()))
                }
                Some(("token_file", path)) if !path.is_empty() => {
                    token = Some(TokenAt::File(from.join(path)))
                }
                _ => {
                    let known = "azolla_id, token_env and token_file";
                    return Err(format!("azolla {name}: unknown part {part:?}; there are {known}"));
                }
            }
        }
        if token.is_some() && !server.secure && !server.is_this_machine() {
            return Err(format!("azolla {name}: its token would be sent over plain HTTP; use https://"));
        }
        let remote = RemoteAzolla { name: name.clone(), url, azolla_id, token };
        if all.insert(name.clone(), remote).is_some() {
            return Err(format!("azolla {name} is given twice"));
        }
    }
    Ok(all)
}

/// Reads `SOURCE=AZOLLA+AZOLLA:ARTIFACT+ARTIFACT`; `*` is every azolla.
pub fn parse_visitors(texts: &[String]) -> Result<Visitors, String> {
    let mut all = Visitors::new();
    for text in texts {
        let parts = text.split_once('=').and_then(|(source, rest)| Some((source, rest.split_once(':')?)));
        let Some((source, (azollas, artifacts))) = parts else {
            return Err(format!(
                "expected SOURCE=AZOLLA:ARTIFACT+ARTIFACT, as in laptop=mec:objective+pause_state, not {text:?}"
            ));
        };
        let source: AzollaId =
            source.parse().map_err(|why| format!("{source:?} is not a valid name of an azolla: {why}"))?;
        let mut reads = Reads::default();
        for azolla in azollas.split('+') {
            match azolla {
                "*" => reads.every_azolla = true,
                named => reads
                    .azollas
                    .push(named.parse().map_err(|why| format!("visitor {source}: {named:?}: {why}"))?),
            }
        }
        for artifact in artifacts.split('+') {
            let artifact: ReadableArtifact =
                artifact.parse().map_err(|why| format!("visitor {source}: {why}"))?;
            reads.artifact_types.push(artifact);
        }
        if all.insert(source.clone(), reads).is_some() {
            return Err(format!("visitor {source} is given twice"));
        }
    }
    Ok(all)
}

/// The table `registry` of the file, written as flags are; `None`: it has a flaw.
pub(super) fn texts_of(reader: &mut Reader, table: Node) -> Option<Vec<String>> {
    let mut registry = reader.fields("registry", table)?;
    let mut texts = Vec::new();
    for (name, Entry { node, .. }) in registry.entries() {
        texts.push(reader.fields(&registry.path(&name), node).and_then(|mut fields| {
            let url = required(reader, &mut fields, "url", "the server that has the azolla");
            let url = url.and_then(|url| without_semicolon(reader, url));
            let mut written = url.map(|url| format!("{name}={url}"));
            for key in ["azolla_id", "token_env", "token_file"] {
                let Some(found) = text(reader, &mut fields, key) else { continue };
                if let (Some(part), Some(written)) = (without_semicolon(reader, found), &mut written) {
                    written.push_str(&format!(";{key}={part}"));
                }
            }
            reader.end(fields);
            written
        }));
    }
    texts.into_iter().collect()
}

/// Refuses a semicolon: in flags and variables it separates the fields.
fn without_semicolon(reader: &mut Reader, found: Found<String>) -> Option<String> {
    if found.value.contains(';') {
        reader.flaw(found.at, &found.path, "must not contain a semicolon");
        return None;
    }
    Some(found.value)
}

/// The table `visitors` of the file, written as flags are; `None`: it has a flaw.
pub(super) fn visitor_texts_of(reader: &mut Reader, table: Node) -> Option<Vec<String>> {
    let mut visitors = reader.fields("visitors", table)?;
    let mut texts = Vec::new();
    for (name, Entry { node, .. }) in visitors.entries() {
        texts.push(reader.fields(&visitors.path(&name), node).and_then(|mut fields| {
            let azollas =
                one_or_many(reader, &mut fields, "azollas", "the azollas that it may read, or \"*\"");
            let types = one_or_many(reader, &mut fields, "artifact_types", "what it may read of them");
            reader.end(fields);
            Some(format!("{name}={}:{}", azollas?, types?))
        }));
    }
    texts.into_iter().collect()
}

/// A required text or list of texts, joined with `+` as in flags.
fn one_or_many(reader: &mut Reader, fields: &mut Fields, key: &'static str, what: &str) -> Option<String> {
    let path = fields.path(key);
    match fields.entry(key) {
        Some(Entry { node: Node { value: Shape::List(items), .. }, .. }) => {
            words_of(reader, &path, items).map(|words| words.join("+"))
        }
        Some(Entry { node, .. }) => text_of(reader, path, node).map(|found| found.value),
        None => {
            reader.missing(fields, key, what);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(of: &[&str]) -> Vec<String> {
        of.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_azolla_elsewhere_has_a_url_a_name_there_and_a_token() {
        let all = parse(
            &texts(&["office=https://host:8080/;azolla_id=mec;token_file=t"]),
            Path::new("/etc/fernery"),
        );
        let all = all.expect("it is right");
        let office = all.values().next().expect("one");
        assert_eq!((office.url.as_str(), office.azolla_id.as_str()), ("https://host:8080", "mec"));
        assert_eq!(office.token, Some(TokenAt::File("/etc/fernery/t".into())));
        for (bad, why) in [
            ("office", "NAME=URL"),
            ("../x=http://h", "not a valid name"),
            ("a=ftp://h", "URL of a server"),
            ("a=http://u:p@h", "URL of a server"),
            ("a=http://h;x=1", "unknown part"),
            ("a=http://h;token_env=T", "plain HTTP"),
        ] {
            let error = parse(&texts(&[bad]), Path::new("/")).expect_err(bad);
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn a_token_goes_over_plain_http_to_this_machine_alone() {
        for here in [
            "localhost",
            "LocalHost:8080",
            "127.0.0.1",
            "127.8.9.1:80",
            "[::1]",
            "[::1]:8080",
            "[0:0:0:0:0:0:0:1]",
        ] {
            let text = format!("a=http://{here};token_env=T");
            assert!(parse(&texts(&[&text]), Path::new("/")).is_ok(), "{here}");
        }
        for elsewhere in [
            "localhost.evil.example",
            "localhost.",
            "localhostevil.example",
            "localhost@evil.example",
            "localhost:80@evil.example",
            "127.0.0.1.evil.example",
            "127.evil.example",
            "127.1",
            "127.0.0.1@evil.example",
            "2130706433",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "128.0.0.1",
            "0.0.0.0",
            "[::]",
            "[::2]",
            "[::ffff:127.0.0.1]",
            "[::1].evil.example",
            "[::1]evil.example",
            "[::1%25eth0]",
            "host",
            "",
        ] {
            let text = format!("a=http://{elsewhere};token_env=T");
            assert!(parse(&texts(&[&text]), Path::new("/")).is_err(), "{elsewhere}");
        }
        assert!(parse(&texts(&["a=https://localhost.evil.example;token_env=T"]), Path::new("/")).is_ok());
    }

    #[test]
    fn a_visitor_says_what_it_may_read() {
        let all = parse_visitors(&texts(&["laptop=mec+docs:objective", "all=*:pause_state"]))
            .expect("both are right");
        let (mec, laptop) = ("mec".parse().unwrap(), &all[&"laptop".parse().unwrap()]);
        assert!(laptop.allows(&mec, ReadableArtifact::Objective));
        assert!(!laptop.allows(&mec, ReadableArtifact::PauseState));
        assert!(all[&"all".parse().unwrap()].allows(&mec, ReadableArtifact::PauseState));
        for bad in ["laptop", "laptop=mec", "laptop=mec:secrets", "l/p=mec:objective"] {
            assert!(parse_visitors(&texts(&[bad])).is_err(), "{bad}");
        }
    }
}

//! Azollas of other instances: which ones this instance asks, and which ones may ask here. In the file a table each, elsewhere
//! `NAME=URL;azolla_id=…;token_env=…` and `SOURCE=AZOLLA+AZOLLA:ARTIFACT+ARTIFACT`.

use super::file::described;
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::{ReadableArtifact, Reads};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// An azolla elsewhere that may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteAzolla {
    /// What it is called here.
    pub name: AzollaId,
    /// The server that has it.
    pub url: String,
    /// What it is called there.
    pub azolla_id: AzollaId,
    /// Where its token is; `None`: it asks for none.
    pub token: Option<TokenAt>,
}

/// Where a token is read from, each time it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenAt {
    /// This variable of the environment.
    Env(String),
    /// This file.
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

/// Azollas elsewhere, by what they are called here.
pub type Registry = BTreeMap<AzollaId, RemoteAzolla>;
/// What azollas of other instances may read here, by what they call themselves.
pub type Visitors = BTreeMap<AzollaId, Reads>;

/// Reads `NAME=URL;azolla_id=ID;token_env=NAME;token_file=PATH`; relative paths start at `from`.
pub fn parse(texts: &[String], from: &Path) -> Result<Registry, String> {
    let mut all = Registry::new();
    for text in texts {
        let Some((name, rest)) = text.split_once('=') else {
            return Err(format!("expected NAME=URL;token_env=VARIABLE, not {text:?}"));
        };
        let name: AzollaId =
            name.parse().map_err(|why| format!("{name:?} is no name for an azolla: {why}"))?;
        let mut parts = rest.split(';');
        let url = parts.next().unwrap_or("").trim_end_matches('/').to_string();
        if !(url.starts_with("http://") || url.starts_with("https://")) || url.contains('@') {
            return Err(format!(
                "azolla {name}: expected the URL of a server, like https://host:8080, not {url:?}"
            ));
        }
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
        let authority = url.trim_start_matches("http://");
        let here = ["127.", "localhost", "[::1]"].iter().any(|start| authority.starts_with(start));
        if token.is_some() && url.starts_with("http://") && !here {
            return Err(format!("azolla {name}: its token would go over plain HTTP; use https://"));
        }
        let remote = RemoteAzolla { name: name.clone(), url, azolla_id, token };
        if all.insert(name.clone(), remote).is_some() {
            return Err(format!("azolla {name} is there twice"));
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
            source.parse().map_err(|why| format!("{source:?} is no name for an azolla: {why}"))?;
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
            return Err(format!("visitor {source} is there twice"));
        }
    }
    Ok(all)
}

/// The table of the file in the form of the others.
pub(super) fn texts_of(key: &str, table: &DeTable<'_>) -> Result<Vec<String>, String> {
    let mut texts = Vec::new();
    for (name, value) in table {
        let name = name.get_ref();
        let fields = match value.get_ref() {
            DeValue::Table(fields) => fields,
            other => return Err(format!("`{key}.{name}` is a table, not {}", described(other))),
        };
        let mut text = String::new();
        let known: &[&str] = if key == "registry" {
            &["url", "azolla_id", "token_env", "token_file"]
        } else {
            &["azollas", "artifact_types"]
        };
        if let Some(other) = fields.keys().find(|field| !known.contains(&field.get_ref().as_ref())) {
            return Err(format!(
                "unknown key `{key}.{name}.{}`; there are {}",
                other.get_ref(),
                known.join(", ")
            ));
        }
        for field in known {
            let written = match fields.get(*field).map(|value| value.get_ref()) {
                None if matches!(*field, "url" | "azollas" | "artifact_types") => {
                    return Err(format!("`{key}.{name}` has no {field}"));
                }
                None => continue,
                Some(DeValue::String(text)) => text.to_string(),
                Some(DeValue::Array(items)) if key == "visitors" => {
                    let words = items.iter().map(|item| item.get_ref().as_str());
                    let words: Option<Vec<&str>> = words.collect();
                    words.ok_or_else(|| format!("`{key}.{name}.{field}` is a list of texts"))?.join("+")
                }
                Some(other) => {
                    return Err(format!(
                        "`{key}.{name}.{field}` is a text in quotes, not {}",
                        described(other)
                    ));
                }
            };
            if written.contains(';') {
                return Err(format!("`{key}.{name}.{field}` has no semicolon"));
            }
            text.push_str(&match *field {
                "url" | "azollas" => format!("{name}={written}"),
                "artifact_types" => format!(":{written}"),
                other => format!(";{other}={written}"),
            });
        }
        texts.push(text);
    }
    Ok(texts)
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
            ("../x=http://h", "no name"),
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

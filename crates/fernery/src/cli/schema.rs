//! `fernery schema`: the JSON Schemas of the artifacts, and checks of documents against them.

use super::documents::{self, Unread};
use super::failure::{Failure, Outcome};
use super::screen::{Cell, Screen, json_inert, plain};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use fernery_core::json_strict::scan;
use fernery_core::{Schema as ArtifactSchema, Violation, limits};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum Schema {
    Check(Check),
    List(List),
    Show(Show),
}

/// Check files against the schemas of the artifacts
///
/// A file has one artifact, or a list of them. The type of the artifact is found by its fields, or given with --as.
/// Every wrong field is listed with its place (a JSON Pointer) and the reason.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 all are valid, 1 one is not, 2 a file cannot be read.

With --json: file, schema, valid and violations of each file.

Examples:
  fernery schema check objective.json
  fernery schema check exported/    every .json file in a folder and below
  my-executor | fernery schema check --as output_bundle -
  fernery schema check exported/ --json | jq '.[] | select(.valid | not)'")]
pub(super) struct Check {
    /// Files to check, or folders to look for .json files in; - is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The type of the artifacts [default: found by their fields]
    #[arg(long = "as", value_name = "NAME", value_parser = names())]
    name: Option<String>,
}

/// List the types of artifacts that have a schema
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fernery schema list")]
pub(super) struct List {}

/// Print the schema of an artifact
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fernery schema show run_record > run_record.schema.json")]
pub(super) struct Show {
    /// The artifact
    #[arg(value_name = "NAME", value_parser = names(), hide_possible_values = true)]
    name: String,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(ArtifactSchema::all().iter().map(ArtifactSchema::name))
}

pub(super) fn run(command: Schema, screen: Screen) -> Outcome {
    match command {
        Schema::Check(args) => check(&args, screen),
        Schema::List(List {}) => list(screen),
        Schema::Show(show) => {
            let schema = ArtifactSchema::named(&show.name);
            let schema = schema.ok_or_else(|| Failure::not_found(format!("no schema {}", show.name)))?;
            // The file is JSON as it is, for people and programs alike.
            screen.line(schema.text().trim_end())
        }
    }
}

fn list(screen: Screen) -> Outcome {
    let schemas = ArtifactSchema::all();
    if screen.json {
        let rows: Vec<_> = schemas.iter().map(|s| json!({"name": s.name(), "about": s.about()})).collect();
        return screen.line(&Value::from(rows).to_string());
    }
    let rows: Vec<Vec<Cell>> = schemas.iter().map(|s| vec![s.name().into(), s.about().into()]).collect();
    screen.table(&["SCHEMA", "WHAT IT IS"], rows)
}

/// What is told of one file.
struct Verdict {
    schemas: Vec<&'static str>,
    violations: Vec<Violation>,
}

/// The file that marks an exported folder.
const EXPORT_MANIFEST: &str = "manifest.json";
/// Folders of an export without artifacts.
const BESIDE: [&str; 7] =
    ["beside", "blueprints", "decisions", "dependencies", "journal", "recurrences", "snoozes"];

fn is_artifact(file: &Path) -> bool {
    file != Path::new(EXPORT_MANIFEST) && !BESIDE.iter().any(|folder| file.starts_with(folder))
}

fn check(args: &Check, screen: Screen) -> Outcome {
    let told = args.name.as_deref().and_then(ArtifactSchema::named);
    let mut files = documents::found(&args.files, "json")?;
    // The artifacts of an exported folder; the other files have no schema, and `fernery import` checks them.
    for folder in args.files.iter().filter(|named| named.join(EXPORT_MANIFEST).is_file()) {
        files.retain(|file| file.strip_prefix(folder).map_or(true, is_artifact));
    }
    let (mut failed, mut unreadable, mut rows) = (0, 0, Vec::new());
    for path in &files {
        let file = documents::shown(path);
        let verdict = match documents::read(path, limits::BODY_BYTES_MAX) {
            Ok(text) => judged(&text, told),
            Err(Unread { why, is_usage, .. }) => {
                unreadable += usize::from(is_usage);
                Verdict::refused(why)
            }
        };
        failed += usize::from(!verdict.violations.is_empty());
        let schema = match verdict.schemas.as_slice() {
            [] => None,
            [one] => Some((*one).to_string()),
            many => Some(format!("{} documents", many.len())),
        };
        if screen.json {
            let valid = verdict.violations.is_empty();
            rows.push(
                json!({"file": file, "schema": schema, "valid": valid, "violations": verdict.violations}),
            );
            continue;
        }
        for violation in &verdict.violations {
            screen.line(&plain(&format!("{file}: {violation}")).replace('\n', " "))?;
        }
        if verdict.violations.is_empty() {
            screen.line(&plain(&format!("{file}: ok, {}", schema.unwrap_or_default())).replace('\n', " "))?;
        }
    }
    if screen.json {
        screen.line(&json_inert(&Value::from(rows).to_string()))?;
    } else if files.len() > 1 {
        screen.line(&format!("{} files: {} valid, {failed} invalid", files.len(), files.len() - failed))?;
    }
    documents::ended(failed, unreadable)
}

fn judged(text: &str, told: Option<&'static ArtifactSchema>) -> Verdict {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Err(bad) = scan(text, limits::JSON_DEPTH_MAX) {
        return Verdict::refused(bad.to_string());
    }
    let document: Value = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(error) => return Verdict::refused(error.to_string()),
    };
    let mut verdict = Verdict { schemas: Vec::new(), violations: Vec::new() };
    match &document {
        Value::Array(items) if items.is_empty() => return Verdict::refused("the list is empty".to_string()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(nth, item)| verdict.add(item, told, &format!("/{nth}")))
        }
        one => verdict.add(one, told, ""),
    }
    verdict
}

impl Verdict {
    fn refused(message: String) -> Self {
        Self { schemas: Vec::new(), violations: vec![Violation { pointer: String::new(), message }] }
    }

    fn add(&mut self, document: &Value, told: Option<&'static ArtifactSchema>, pointer: &str) {
        let Some(schema) = told.or_else(|| ArtifactSchema::of(document)) else {
            let message = match document {
                Value::Object(_) => {
                    "the type of the artifact cannot be found by its fields; give it with --as".to_string()
                }
                _ => "an artifact must be an object".to_string(),
            };
            return self.violations.push(Violation { pointer: pointer.to_string(), message });
        };
        self.schemas.push(schema.name());
        for Violation { pointer: below, message } in schema.validate(document) {
            self.violations.push(Violation { pointer: format!("{pointer}{below}"), message });
        }
    }
}

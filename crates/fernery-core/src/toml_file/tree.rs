//! The tree of a file with the place of everything in it, merged with those it extends.

use super::Flaw;
use crate::limits;
use crate::names::nearest;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file: the one that was given, and after it the ones it extends.
struct Source {
    /// What `extends` calls it; the one that was given has no name.
    name: Option<String>,
    text: String,
}

/// All files that one value comes from.
pub(crate) struct Sources {
    sources: Vec<Source>,
    /// Where the given file says what it extends: flaws in the others are told there.
    extends: Place,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    source: usize,
    offset: usize,
}

/// A value and its place.
#[derive(Debug)]
pub struct Node {
    pub at: Place,
    pub value: Shape,
}

/// What a value is.
#[derive(Debug)]
pub enum Shape {
    Text(String),
    /// A whole number; `None` if it is larger than any number that a file may have.
    Whole(Option<i64>),
    /// A fraction, as it is written.
    Fraction(String),
    Switch(bool),
    /// A date or a time.
    Date,
    List(Vec<Node>),
    Table(Table),
}

/// A table by its keys.
pub type Table = BTreeMap<String, Entry>;

/// A key and its value.
#[derive(Debug)]
pub struct Entry {
    /// Where the key is written.
    pub key_at: Place,
    pub node: Node,
}

impl Shape {
    /// What it is, in words.
    pub fn described(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Whole(_) => "a number",
            Self::Fraction(_) => "a fraction",
            Self::Switch(_) => "true or false",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl Sources {
    /// A flaw at this place. In a file that the given one extends: at its `extends`, naming the other place.
    pub(crate) fn flaw(&self, at: Place, path: &str, message: String) -> Flaw {
        let Some(name) = &self.sources[at.source].name else {
            let (line, column) = self.position(at);
            return Flaw { line, column, path: path.to_string(), message };
        };
        let (line, column) = self.position(at);
        let message = format!("in `{}` at {line}:{column}: {message}", name.escape_debug());
        let (line, column) = self.position(self.extends);
        Flaw { line, column, path: path.to_string(), message }
    }

    pub(crate) fn position(&self, at: Place) -> (usize, usize) {
        let text = &self.sources[at.source].text;
        let before = &text[..text.floor_char_boundary(at.offset)];
        let line = before.matches('\n').count() + 1;
        let column =
            before.rsplit('\n').next().unwrap_or("").trim_start_matches('\u{feff}').chars().count() + 1;
        (line, column)
    }
}

/// What a kind of file is, so far as it matters for reading it.
pub(crate) struct Kind {
    /// What people call it, like `blueprint`.
    pub(crate) what: &'static str,
    /// What it may extend by name though no file has it; none if such a file extends nothing.
    pub(crate) builtin: &'static [(&'static str, &'static str)],
    /// What each file says of itself and leaves to no other.
    pub(crate) own: &'static str,
}

/// Reads a file and all that it extends, nearest last, into one table.
pub(crate) fn read(
    kind: &Kind,
    text: &str,
    others: &dyn Fn(&str) -> Option<String>,
) -> Result<(Table, Sources), Vec<Flaw>> {
    let mut sources = Sources { sources: Vec::new(), extends: Place::default() };
    let mut tables = vec![read_one(kind, None, text.to_string(), &mut sources)?];
    while !kind.builtin.is_empty()
        && let Some(parent) = tables.last_mut().and_then(|table| table.remove("extends"))
    {
        if sources.sources.len() == 1 {
            sources.extends = parent.node.at;
        }
        let refused =
            |sources: &Sources, why: String| Err(vec![sources.flaw(parent.node.at, "extends", why)]);
        let Shape::Text(name) = &parent.node.value else {
            let why = format!(
                "must be the name of one {} in quotes, not {}",
                kind.what,
                parent.node.value.described()
            );
            return refused(&sources, why);
        };
        let chain = sources.sources.iter().filter_map(|source| source.name.as_deref());
        if chain.clone().any(|earlier| earlier == name) {
            let round: Vec<_> = chain.skip_while(|earlier| earlier != name).chain([name.as_str()]).collect();
            return refused(&sources, format!("is circular: {}", round.join(" → ").escape_debug()));
        }
        if sources.sources.len() > limits::BLUEPRINT_PARENTS_MAX {
            let why = format!(
                "the chain of `extends` has more than {} {}s",
                limits::BLUEPRINT_PARENTS_MAX,
                kind.what
            );
            return refused(&sources, why);
        }
        let builtin = || kind.builtin.iter().find(|(builtin, _)| name == builtin);
        let known = || others(name).or_else(|| builtin().map(|(_, text)| text.to_string()));
        let Some(text) = known() else {
            let near =
                nearest(name, kind.builtin.iter().map(|(builtin, _)| *builtin)).filter(|near| near != name);
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return refused(&sources, format!("there is no {} `{}`{hint}", kind.what, name.escape_debug()));
        };
        let mut table = read_one(kind, Some(name.clone()), text, &mut sources)?;
        // Each file says whose it is: two of one name would be an accident.
        table.remove(kind.own);
        tables.push(table);
    }
    let merged = tables.into_iter().rev().reduce(merge).unwrap_or_default();
    Ok((merged, sources))
}

fn read_one(
    kind: &Kind,
    name: Option<String>,
    text: String,
    sources: &mut Sources,
) -> Result<Table, Vec<Flaw>> {
    let source = sources.sources.len();
    let large = text.len() > limits::BLUEPRINT_BYTES_MAX;
    sources.sources.push(Source { name, text: text.clone() });
    let at = |offset| Place { source, offset };
    if large {
        let why = format!("a {} may have at most {} bytes", kind.what, limits::BLUEPRINT_BYTES_MAX);
        return Err(vec![sources.flaw(at(0), "", why)]);
    }
    parse(source, &text, sources)
}

/// Reads one file that extends no other.
pub(crate) fn read_alone(text: &str) -> Result<(Table, Sources), Vec<Flaw>> {
    let source = Source { name: None, text: text.to_string() };
    let sources = Sources { sources: vec![source], extends: Place::default() };
    Ok((parse(0, text, &sources)?, sources))
}

fn parse(source: usize, text: &str, sources: &Sources) -> Result<Table, Vec<Flaw>> {
    let at = |offset| Place { source, offset };
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(table_of(table.into_inner(), source));
    }
    // What is left of a file with such mistakes is a guess: what it lacks may only be unreadable.
    let mut flaws = Vec::new();
    for error in errors.iter().take(limits::BLUEPRINT_FLAWS_MAX) {
        let offset = error.span().map_or(0, |span| span.start);
        let flaw = sources.flaw(at(offset), "", error.message().replace('\n', "; "));
        if !flaws.contains(&flaw) {
            flaws.push(flaw);
        }
    }
    flaws.sort_by_key(|flaw| (flaw.line, flaw.column));
    Err(flaws)
}

fn table_of(table: DeTable<'_>, source: usize) -> Table {
    let entry = |(key, value): (Spanned<std::borrow::Cow<'_, str>>, _)| {
        let key_at = Place { source, offset: key.span().start };
        (key.into_inner().into_owned(), Entry { key_at, node: node_of(value, source) })
    };
    table.into_iter().map(entry).collect()
}

fn node_of(value: Spanned<DeValue<'_>>, source: usize) -> Node {
    let at = Place { source, offset: value.span().start };
    let value = match value.into_inner() {
        DeValue::String(text) => Shape::Text(text.into_owned()),
        DeValue::Integer(number) => Shape::Whole(i64::from_str_radix(number.as_str(), number.radix()).ok()),
        DeValue::Float(number) => Shape::Fraction(number.as_str().to_string()),
        DeValue::Boolean(on) => Shape::Switch(on),
        DeValue::Datetime(_) => Shape::Date,
        DeValue::Array(items) => Shape::List(items.into_iter().map(|item| node_of(item, source)).collect()),
        DeValue::Table(table) => Shape::Table(table_of(table, source)),
    };
    Node { at, value }
}

/// What `child` says, and where it says nothing what `parent` says.
fn merge(mut parent: Table, child: Table) -> Table {
    for (key, mut entry) in child {
        if let Shape::Table(ours) = &mut entry.node.value
            && let Some(Entry { node: Node { value: Shape::Table(theirs), .. }, .. }) = parent.get_mut(&key)
            && !of_another_kind(theirs, ours)
        {
            *ours = merge(std::mem::take(theirs), std::mem::take(ours));
        }
        parent.insert(key, entry);
    }
    parent
}

/// A command has keys that a remote executor must not have: one takes the place of the other whole.
fn of_another_kind(theirs: &Table, ours: &Table) -> bool {
    match (theirs.get("kind").map(|e| &e.node.value), ours.get("kind").map(|e| &e.node.value)) {
        (Some(Shape::Text(theirs)), Some(Shape::Text(ours))) => theirs != ours,
        _ => false,
    }
}

//! What stands around every page: its head, the way to the other pages, and who is signed in.

use super::visit::Visit;
use super::{Sees, assets};
use fernery_client::wire::Role;
use fernery_engine::door;
use http::Method;

/// A page that every page leads to.
struct Place {
    name: &'static str,
    path: &'static str,
    /// After `g` it leads there.
    key: char,
    sees: Sees,
}

const fn place(name: &'static str, path: &'static str, key: char) -> Place {
    Place { name, path, key, sees: Sees::Readers }
}

/// The pages that every page leads to, in groups. The first group stands open, each other one is a menu.
const NAV: &[(&str, &[Place])] = &[
    (
        "",
        &[
            place("Now", "/", 'n'),
            place("Board", "/board", 'b'),
            place("Triage", "/triage", 't'),
            place("Runs", "/runs", 'r'),
        ],
    ),
    (
        "Queue",
        &[
            place("Streams", "/streams", 's'),
            place("Jobs", "/jobs", 'j'),
            place("Dead letters", "/dead", 'd'),
            place("Workers", "/workers", 'w'),
        ],
    ),
    (
        "Server",
        &[
            place("Manifests", "/manifests", 'm'),
            place("Azollas", "/azollas", 'a'),
            place("Journal", "/journal", 'l'),
            Place { name: "Tokens and sessions", path: "/tokens", key: 'o', sees: Sees::Operators },
        ],
    ),
];

/// A page that the navigation shows.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    pub(super) key: char,
    pub(super) here: bool,
}

/// Doors that stand together.
#[derive(Clone, Debug)]
pub(super) struct Doors {
    /// What the menu is called; empty: they stand open.
    pub(super) name: &'static str,
    pub(super) doors: Vec<Door>,
}

impl Doors {
    /// Whether one of them leads to this very page.
    pub(super) fn here(&self) -> bool {
        self.doors.iter().any(|door| door.here)
    }
}

/// Who is signed in.
#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) name: String,
    pub(super) role: Role,
}

#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) title: String,
    pub(super) nav: Vec<Doors>,
    pub(super) person: Option<Person>,
    /// Whether buttons that act are shown.
    pub(super) operator: bool,
    /// How far everything had come before this page was made: its stream of changes begins there.
    pub(super) before: String,
    /// It answers a form: it cannot be loaded again without sending the form again.
    pub(super) answers: bool,
    /// Only what is in the middle: the script asks for it to bring a page up to date.
    pub(super) alone: bool,
    /// What every form sends: it proves that the form is one of ours.
    pub(super) form_key: String,
    pub(super) style: &'static str,
    pub(super) scripts: [&'static str; 2],
    pub(super) icon: &'static str,
}

/// Whether only what is in the middle of a page is asked for.
pub(super) fn is_alone(visit: &Visit) -> bool {
    visit.query.text("part") == "main"
}

impl Frame {
    pub(super) fn of(visit: &Visit, title: String) -> Self {
        let path = visit.asked.split('?').next().unwrap_or_default();
        let operator = visit.is_operator();
        let doors = |(name, places): &(&'static str, &'static [Place])| {
            let seen = places.iter().filter(|of| operator || of.sees != Sees::Operators);
            let door = |of: &Place| Door { name: of.name, path: of.path, key: of.key, here: path == of.path };
            Doors { name, doors: seen.map(door).collect() }
        };
        let person = visit.caller().0.map(|token| Person { name: token.row.name.clone(), role: token.role });
        Self {
            title,
            nav: if person.is_some() { NAV.iter().map(doors).collect() } else { Vec::new() },
            operator,
            before: visit.before.clone(),
            answers: visit.page.method == Method::POST,
            alone: is_alone(visit),
            form_key: visit.signed_in.as_ref().map_or(String::new(), |it| it.form_key.clone()),
            person,
            style: assets::STYLE.path(),
            scripts: [assets::SCRIPT.path(), assets::LIVE.path()],
            icon: assets::ICON.path(),
        }
    }

    /// Every page that the navigation leads to.
    pub(super) fn doors(&self) -> impl Iterator<Item = &Door> {
        self.nav.iter().flat_map(|group| &group.doors)
    }

    /// An id for the act that a form stands for.
    pub(super) fn act_id(&self) -> String {
        door::artifact_id()
    }
}

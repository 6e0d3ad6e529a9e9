//! What stands around every page: its head, the way to the other pages, and who is signed in.

use super::assets;
use super::visit::Visit;
use fernery_client::wire::Role;
use fernery_engine::door;

/// The pages that every page leads to: a name and a path. The script has their keys (`PLACES`).
const NAV: &[(&str, &str)] = &[
    ("Now", "/"),
    ("Board", "/board"),
    ("Runs", "/runs"),
    ("Streams", "/streams"),
    ("Jobs", "/jobs"),
    ("Dead letters", "/dead"),
    ("Workers", "/workers"),
];

/// A page that the navigation shows.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    pub(super) here: bool,
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
    pub(super) nav: Vec<Door>,
    pub(super) person: Option<Person>,
    /// Whether buttons that act are shown.
    pub(super) operator: bool,
    /// Only what is in the middle: the script asks for it to bring a page up to date.
    pub(super) alone: bool,
    /// What every form sends: it proves that the form is one of ours.
    pub(super) form_key: String,
    pub(super) style: &'static str,
    pub(super) script: &'static str,
    pub(super) icon: &'static str,
}

impl Frame {
    pub(super) fn of(visit: &Visit, title: String) -> Self {
        let path = visit.asked.split('?').next().unwrap_or_default();
        let door = |&(name, path_of): &(&'static str, &'static str)| Door {
            name,
            path: path_of,
            here: path == path_of,
        };
        let person = visit.caller().0.map(|token| Person { name: token.row.name.clone(), role: token.role });
        Self {
            title,
            nav: if person.is_some() { NAV.iter().map(door).collect() } else { Vec::new() },
            operator: visit.is_operator(),
            alone: visit.query.text("part") == "main",
            form_key: visit.signed_in.as_ref().map_or(String::new(), |it| it.form_key.clone()),
            person,
            style: assets::STYLE.path(),
            script: assets::SCRIPT.path(),
            icon: assets::ICON.path(),
        }
    }

    /// An id for the act that a form stands for.
    pub(super) fn act_id(&self) -> String {
        door::artifact_id()
    }
}

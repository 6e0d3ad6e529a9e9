//! What stands around every page: its head, the way to the other pages, and who is signed in.

use super::show::Ways;
use super::visit::{Visit, api};
use super::{Sees, assets};
use fernery_client::wire::Role;
use fernery_engine::door;
use http::Method;

/// A page that every page leads to.
struct NavPage {
    name: &'static str,
    path: &'static str,
    /// After `g` it leads there.
    key: char,
    sees: Sees,
}

const fn nav_page(name: &'static str, path: &'static str, key: char) -> NavPage {
    NavPage { name, path, key, sees: Sees::Readers }
}

/// The pages that every page leads to, in groups. The first group stands open, each other one is a menu.
const NAV: &[(&str, &[NavPage])] = &[
    (
        "",
        &[
            nav_page("Now", "/", 'n'),
            nav_page("Board", "/board", 'b'),
            nav_page("Triage", "/triage", 't'),
            nav_page("Runs", "/runs", 'r'),
        ],
    ),
    (
        "Queue",
        &[
            nav_page("Streams", "/streams", 's'),
            nav_page("Jobs", "/jobs", 'j'),
            nav_page("Dead letters", "/dead", 'd'),
            nav_page("Workers", "/workers", 'w'),
        ],
    ),
    (
        "Server",
        &[
            nav_page("Manifests", "/manifests", 'm'),
            nav_page("Azollas", "/azollas", 'a'),
            nav_page("Journal", "/journal", 'l'),
            NavPage { name: "Tokens and sessions", path: "/tokens", key: 'o', sees: Sees::Operators },
        ],
    ),
];

/// A page that the navigation shows.
#[derive(Clone, Debug)]
pub(super) struct NavLink {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    pub(super) key: char,
    pub(super) here: bool,
}

/// Links that stand together.
#[derive(Clone, Debug)]
pub(super) struct NavGroup {
    /// What the menu is called; empty: they stand open.
    pub(super) name: &'static str,
    pub(super) links: Vec<NavLink>,
}

impl NavGroup {
    /// Whether one of them leads to this very page.
    pub(super) fn here(&self) -> bool {
        self.links.iter().any(|link| link.here)
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
    pub(super) nav: Vec<NavGroup>,
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
    /// Signing out from elsewhere, which only operators can.
    pub(super) sign_out: Option<Ways>,
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
        let group = |(name, pages): &(&'static str, &'static [NavPage])| {
            let seen = pages.iter().filter(|of| operator || of.sees != Sees::Operators);
            let link =
                |of: &NavPage| NavLink { name: of.name, path: of.path, key: of.key, here: path == of.path };
            NavGroup { name, links: seen.map(link).collect() }
        };
        let person = visit.caller().0.map(|token| Person { name: token.row.name.clone(), role: token.role });
        Self {
            title,
            nav: if person.is_some() { NAV.iter().map(group).collect() } else { Vec::new() },
            operator,
            before: visit.before.clone(),
            answers: visit.page.method == Method::POST,
            alone: is_alone(visit),
            form_key: visit.signed_in.as_ref().map_or(String::new(), |it| it.form_key.clone()),
            sign_out: visit.signed_in.as_ref().filter(|_| operator).map(|signed_in| {
                Ways::call("DELETE", &api("/v1/sessions/", &signed_in.session.session_id, ""), None)
            }),
            person,
            style: assets::STYLE.path(),
            scripts: [assets::SCRIPT.path(), assets::LIVE.path()],
            icon: assets::ICON.path(),
        }
    }

    /// Every page that the navigation leads to.
    pub(super) fn links(&self) -> impl Iterator<Item = &NavLink> {
        self.nav.iter().flat_map(|group| &group.links)
    }

    /// An id for the act that a form stands for.
    pub(super) fn act_id(&self) -> String {
        door::artifact_id()
    }
}

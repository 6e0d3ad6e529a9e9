//! `?bare=true`: artifacts alone. A view over HTTP has an artifact and the control plane's own fields; `bare` leaves
//! the latter out, so that the answer fits the artifact's schema.
//!
//! This is done here, on the answer of any route that says what it [`Holds`]; the schema tells which fields belong to
//! the artifact.

use super::answer::Reply;
use crate::http::problem::{Code, Refusal, Refused};
use fernery_core::schema::Schema;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// The name of the parameter.
pub const BARE: &str = "bare";

/// Which part of a route's answer is an artifact, by the name of its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Nothing,
    /// The answer holds one.
    One(&'static str),
    /// The answer holds a list of them under this field.
    Rows(&'static str, &'static str),
}

/// The fields of each artifact, in the order of their names.
static FIELDS: LazyLock<HashMap<&'static str, Vec<String>>> = LazyLock::new(|| {
    let fields = |schema: &'static Schema| {
        let document: Value = serde_json::from_str(schema.text()).unwrap_or_default();
        let mut names: Vec<String> =
            document["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        (schema.name(), names)
    };
    Schema::all().iter().map(fields).collect()
});

fn fields(artifact: &str) -> &'static [String] {
    FIELDS.get(artifact).map_or(&[], Vec::as_slice)
}

type Fields<'a> = BTreeMap<String, &'a RawValue>;

impl Holds {
    pub fn artifact(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::One(artifact) | Self::Rows(artifact, _) => Some(artifact),
        }
    }

    /// The answer with artifacts only, each value unchanged.
    pub fn bare(self, reply: Reply) -> Result<Reply, Refused> {
        let unread = |_| Refusal::new(Code::Internal, Code::Internal.title());
        let body = match self {
            Self::Nothing => return Ok(reply),
            Self::One(artifact) => alone(artifact, &reply.body).map_err(unread)?,
            Self::Rows(artifact, under) => {
                let mut page: Fields<'_> = serde_json::from_slice(&reply.body).map_err(unread)?;
                let rows: Vec<&RawValue> = page
                    .get(under)
                    .map_or(Ok(Vec::new()), |rows| serde_json::from_str(rows.get()))
                    .map_err(unread)?;
                let bare: Result<Vec<_>, _> =
                    rows.iter().map(|row| alone(artifact, row.get().as_bytes())).collect();
                let bare = serde_json::value::to_raw_value(&bare.map_err(unread)?).map_err(unread)?;
                page.insert(under.to_string(), &bare);
                serde_json::value::to_raw_value(&page).map_err(unread)?
            }
        };
        Ok(Reply { body: String::from(Box::<str>::from(body)).into(), ..reply })
    }

    /// What the OpenAPI document says of it.
    pub fn description(self) -> Option<String> {
        let artifact = self.artifact()?;
        let beside =
            "The other fields are kept beside it by the control plane; `?bare=true` leaves them out.";
        Some(format!("The artifact `{artifact}` is in the fields {}. {beside}", fields(artifact).join(", ")))
    }

    /// The form of an answer that has artifacts alone.
    pub fn shape(self) -> Option<Value> {
        let of = |artifact: &str| {
            let properties: serde_json::Map<String, Value> =
                fields(artifact).iter().map(|name| (name.clone(), json!(true))).collect();
            json!({
                "type": "object", "title": artifact, "additionalProperties": false,
                "required": fields(artifact), "properties": properties,
                "description": format!("With `?bare=true`: exactly as in schemas/{artifact}.schema.json."),
            })
        };
        match self {
            Self::Nothing => None,
            Self::One(artifact) => Some(of(artifact)),
            Self::Rows(artifact, under) => Some(json!({
                "type": "object", "required": [under],
                "properties": { under: { "type": "array", "items": of(artifact) }, "next_cursor": { "type": ["string", "null"] } },
            })),
        }
    }
}

/// Extracts one artifact: under its own name, or from among other fields.
fn alone(artifact: &str, view: &[u8]) -> serde_json::Result<Box<RawValue>> {
    let mut view: Fields<'_> = serde_json::from_slice(view)?;
    let own_name = if artifact == "substrate_query" { "query" } else { artifact };
    if let Some(inner) = view.get(own_name) {
        view = serde_json::from_str(inner.get())?;
    }
    let known = fields(artifact);
    view.retain(|name, _| known.binary_search(name).is_ok());
    serde_json::value::to_raw_value(&view)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(holds: Holds, body: &str) -> String {
        let reply = Reply { status: 200, content_type: "", body: body.to_string().into() };
        String::from_utf8(holds.bare(reply).expect("JSON").body.to_vec()).expect("text")
    }

    #[test]
    fn an_artifact_is_taken_out_of_its_view_to_the_byte() {
        let objective =
            r#"{"unconfirmed":true,"objective":{"title":"\u0061","metadata":{"n":1.10e2},"x":1}}"#;
        let alone = r#"{"metadata":{"n":1.10e2},"title":"\u0061"}"#;
        assert_eq!(bare(Holds::One("objective"), objective), alone);
        let page = format!(r#"{{"objectives":[{objective},{{"objective":{{}}}}],"next_cursor":null}}"#);
        let expected = format!(r#"{{"next_cursor":null,"objectives":[{alone},{{}}]}}"#);
        assert_eq!(bare(Holds::Rows("objective", "objectives"), &page), expected);
        let event = r#"{"event_id":"e","entry":1,"reason":null}"#;
        assert_eq!(bare(Holds::One("event"), event), r#"{"event_id":"e"}"#);
        assert_eq!(bare(Holds::Nothing, event), event);
        let asked = r#"{"event_id":"e","query":{"query_id":"q"},"response":{"query_id":"q"}}"#;
        assert_eq!(bare(Holds::One("substrate_query"), asked), r#"{"query_id":"q"}"#);
    }

    #[test]
    fn every_artifact_that_a_route_holds_has_a_schema() {
        let held: Vec<_> =
            crate::http::routes::ROUTES.iter().filter_map(|route| route.holds.artifact()).collect();
        assert!(held.iter().all(|artifact| !fields(artifact).is_empty()), "{held:?}");
        assert!(held.len() > 10, "{held:?}");
    }
}

//! The OpenAPI document, from the route table and the wire types. A test compares it with the copy in the repository.

mod links;

use super::problem::Code;
use super::route::{BodyRule, Route, Who};
use super::routes::ROUTES;
use super::wire::bare::BARE;
use fernery_client::wire::{Problem, Role};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The refusals that every route has.
const ALWAYS: &[Code] = &[
    Code::BadRequest,
    Code::TokenInQuery,
    Code::UriTooLong,
    Code::Misdirected,
    Code::UnknownField,
    Code::HeadersTooLarge,
    Code::Internal,
    Code::Busy,
    Code::Unavailable,
    Code::StoreCorrupt,
    Code::StoreBroken,
];
const WITH_TOKEN: &[Code] = &[Code::Unauthorized, Code::Forbidden];
const WITH_BODY: &[Code] = &[
    Code::EmptyBody,
    Code::BadJson,
    Code::TooDeep,
    Code::DuplicateKey,
    Code::CrossSite,
    Code::BodyTimeout,
    Code::TooLarge,
    Code::UnsupportedMediaType,
    Code::Invalid,
    Code::Refused,
    Code::NoSpace,
];

/// The document as text.
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(&document()).unwrap_or_default();
    text.push('\n');
    text
}

fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.as_str().to_ascii_lowercase()] = operation(route, &mut generator);
    }
    let problem = generator.subschema_for::<Problem>();
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Fernery",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A durable control plane: jobs that workers claim over HTTP under a lease, and \
                tickets, runs and an inbox on top of them.",
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" }
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": {
                "Problem": {
                    "description": format!("Error. `code` is one of: {}.", codes.join(", ")),
                    "content": { "application/problem+json": { "schema": problem } }
                }
            }
        }
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = route
        .query
        .iter()
        .map(|(name, meaning, accepts)| {
            json!({ "name": name, "in": "query", "description": meaning, "schema": accepts() })
        })
        .collect();
    if route.holds.artifact().is_some() {
        let meaning = "true: only the artifacts, exactly as in their schemas.";
        parameters.push(
            json!({ "name": BARE, "in": "query", "description": meaning, "schema": { "type": "boolean" } }),
        );
    }
    if let Some((name, _)) = route.path.split_once('{').and_then(|(_, rest)| rest.split_once('}')) {
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": (route.param)() }));
    }
    let mut responses = Map::new();
    for (status, shape) in route.answers {
        let content_type = if route.who == Who::Metrics { "text/plain" } else { "application/json" };
        let mut schema = json!(shape(generator));
        if let Some(bare) = route.holds.shape() {
            schema = json!({ "anyOf": [schema, bare] });
        }
        let mut answer =
            json!({ "description": route.summary, "content": { content_type: { "schema": schema } } });
        let links = links::of(route, *status);
        if !links.is_empty() {
            answer["links"] = links.into();
        }
        responses.insert(status.to_string(), answer);
    }
    let mut by_status: std::collections::BTreeMap<u16, Vec<&str>> = std::collections::BTreeMap::new();
    for code in refusals(route) {
        by_status.entry(code.status()).or_default().push(code.as_str());
    }
    for (status, codes) in by_status {
        let problem = json!({
            "$ref": "#/components/responses/Problem",
            "description": format!("`{}`", codes.join("`, `"))
        });
        responses.insert(status.to_string(), problem);
    }
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "x-roles": roles(route),
        "responses": responses,
    });
    if let Some(description) = route.holds.description() {
        operation["description"] = description.into();
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    let body = match route.body {
        BodyRule::None => None,
        BodyRule::Optional(shape) => Some((false, shape)),
        BodyRule::Json(shape) => Some((true, shape)),
    };
    if let Some((required, shape)) = body {
        let schema = shape(generator);
        operation["requestBody"] =
            json!({ "required": required, "content": { "application/json": { "schema": schema } } });
    }
    match route.who {
        Who::Open => {}
        // On loopback a token may not be needed; the document cannot say that.
        Who::Metrics => operation["security"] = json!([{ "token": [] }, {}]),
        _ => operation["security"] = json!([{ "token": [] }]),
    }
    operation
}

fn refusals(route: &Route) -> Vec<Code> {
    let mut codes: Vec<Code> = ALWAYS.iter().chain(route.errors).copied().collect();
    if route.who != Who::Open {
        codes.extend(WITH_TOKEN);
    }
    if route.who != Who::Open && !route.reports {
        codes.push(Code::RateLimited);
    }
    if !route.query.is_empty() || route.holds.artifact().is_some() {
        codes.push(Code::Invalid);
    }
    if !matches!(route.body, BodyRule::None) {
        codes.extend(WITH_BODY);
    }
    codes.sort_unstable();
    codes.dedup();
    codes
}

fn roles(route: &Route) -> Vec<&'static str> {
    Role::ALL.iter().filter(|role| route.who.allows(**role)).map(|role| role.as_str()).collect()
}

pub(super) fn operation_id(route: &Route) -> String {
    let words = route.path.split('/').filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(|word| word.trim_matches(['{', '}']).replace('.', "_")).collect();
    format!("{}_{}", route.method.as_str().to_ascii_lowercase(), words.join("_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_in_the_repository_is_generated_from_the_code() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi.json");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, text()).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == text(), "run the test with UPDATE=1 to rewrite openapi.json");
    }

    #[test]
    fn every_link_leads_to_an_operation_and_gives_what_it_needs() {
        let document = document();
        let operations = || {
            document["paths"]
                .as_object()
                .unwrap()
                .values()
                .flat_map(|path| path.as_object().unwrap().values())
        };
        let mut links = 0;
        for response in
            operations().flat_map(|operation| operation["responses"].as_object().unwrap().values())
        {
            for link in response["links"].as_object().into_iter().flat_map(Map::values) {
                links += 1;
                let target = operations().find(|operation| operation["operationId"] == link["operationId"]);
                let target = target.unwrap_or_else(|| panic!("{link}"));
                let given = link["parameters"].as_object().unwrap();
                for parameter in target["parameters"].as_array().into_iter().flatten() {
                    let name = parameter["name"].as_str().unwrap();
                    assert!(parameter["in"] != "path" || given.contains_key(name), "{link}");
                }
            }
        }
        assert!(links >= links::LINKS.len(), "{links}");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)), "{name}");
        }
    }
}

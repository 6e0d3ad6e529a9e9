//! The OpenAPI document, from the route table and the wire types. The copy in the repository is kept equal by a test.

use super::problem::Code;
use super::routes::{BodyRule, ROUTES, Route, Who};
use fernery_client::wire::{Problem, Role};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// How every route may refuse.
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
            "description": "A durable job engine: jobs in, leased to workers that pull, finished once in the books.",
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" }
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": {
                "Problem": {
                    "description": format!("Refused. `code` is one of: {}.", codes.join(", ")),
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
        .map(|(name, meaning)| {
            json!({ "name": name, "in": "query", "description": meaning, "schema": { "type": "string" } })
        })
        .collect();
    if let Some((name, _)) = route.path.split_once('{').and_then(|(_, rest)| rest.split_once('}')) {
        parameters
            .push(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    let mut responses = Map::new();
    for (status, shape) in route.answers {
        let content_type = if route.who == Who::Metrics { "text/plain" } else { "application/json" };
        let schema = shape(generator);
        let answer =
            json!({ "description": route.summary, "content": { content_type: { "schema": schema } } });
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
    if route.who != Who::Open {
        operation["security"] = json!([{ "token": [] }]);
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
    if !route.query.is_empty() {
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

fn operation_id(route: &Route) -> String {
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

//! The server does what its OpenAPI document says, and counts what it does.

use super::none;
use crate::server::{Answer, TestServer};
use fernery_core::blueprint::Blueprint;
use fernery_engine::pipeline::azollas;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One of these is demanded though neither is: a schema's `required` has no word for that.
const EITHER: &[(&str, &str)] = &[
    ("/v1/captures", "/raw_content"),
    ("/v1/dlq/purge", "/filter"),
    ("/v1/dlq/redrive", "/filter"),
    ("/v1/jobs", "/stream"),
    ("/v1/objectives/{id}/unblock", "/blockers"),
];

/// An operation of the document.
struct Operation {
    method: String,
    path: String,
    about: Value,
}

/// A server, its document, and the statuses of its answers so far.
struct Asked {
    server: TestServer,
    document: Value,
    answers: BTreeMap<u16, u64>,
}

impl Asked {
    async fn new() -> Self {
        let server = TestServer::start().await;
        for blueprint in [Blueprint::mec(), Blueprint::task_management()] {
            let done =
                server.engine.substrate().transact(move |sql| azollas::register(sql, &blueprint)).await;
            done.expect("registered");
        }
        let document = server.get("/openapi.json").await;
        let answers = BTreeMap::from([(document.status, 1)]);
        Self { document: document.json(), server, answers }
    }

    fn operations(&self) -> Vec<Operation> {
        let mut found = Vec::new();
        for (path, methods) in self.document["paths"].as_object().expect("paths") {
            for (method, about) in methods.as_object().expect("methods") {
                if about.get("operationId").is_some() {
                    let (method, path) = (method.to_ascii_uppercase(), path.clone());
                    found.push(Operation { method, path, about: about.clone() });
                }
            }
        }
        assert!(found.len() > 50, "{}", found.len());
        found
    }

    async fn call(&mut self, method: &str, path: &str, body: &str) -> Answer {
        // An id that any kind of thing could have, and nothing has.
        let path = path.replace("{id}", "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f").replace("{name}", "s");
        let answer = self.server.call(&self.server.operator, method, &path, body).await;
        *self.answers.entry(answer.status).or_default() += 1;
        answer
    }

    /// What a `$ref` stands for.
    fn meant<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|name| name.strip_prefix('#')) {
            Some(pointer) => self.meant(self.document.pointer(pointer).expect("a schema")),
            None => schema,
        }
    }

    /// The object that an operation takes, or the first of those that it takes.
    fn body_schema(&self, operation: &Operation) -> Option<&Value> {
        let content = operation.about.pointer("/requestBody/content/application~1json/schema")?;
        let reference = content["$ref"].as_str().or(content["oneOf"][0]["$ref"].as_str());
        let pointer = reference.and_then(|name| name.strip_prefix('#'));
        pointer.map(|pointer| self.document.pointer(pointer).expect("a schema"))
    }

    /// The least that fits a schema.
    fn least(&self, schema: &Value) -> Value {
        let schema = self.meant(schema);
        if let Some(only) = schema.get("const").or(schema["enum"].get(0)) {
            return only.clone();
        }
        if let Some(first) = schema["oneOf"].get(0).or(schema["anyOf"].get(0)) {
            return self.least(first);
        }
        let kind = schema["type"].as_str().or(schema["type"][0].as_str()).unwrap_or("object");
        match (kind, schema["format"].as_str().or(schema["pattern"].as_str())) {
            ("string", Some("uuid")) => json!("019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f"),
            ("string", Some("date-time")) => json!("2026-01-01T00:00:00Z"),
            ("string", Some("^[0-9a-f]{64}$")) => json!("0".repeat(64)),
            ("string", _) => json!("x"),
            ("integer" | "number", _) => schema.get("minimum").cloned().unwrap_or(json!(1)),
            ("boolean", _) => json!(false),
            ("array", _) => json!([self.least(&schema["items"])]),
            _ => {
                let field = |name: &Value| {
                    let name = name.as_str().expect("a name");
                    (name.to_string(), self.least(&schema["properties"][name]))
                };
                let required = schema["required"].as_array().into_iter().flatten();
                Value::Object(required.map(field).collect::<Map<_, _>>())
            }
        }
    }

    /// The pointers of all fields that a schema requires in `body`, at any depth.
    fn required(&self, schema: &Value, body: &Value, at: &str, found: &mut Vec<String>) {
        let schema = self.meant(schema);
        for (name, value) in body.as_object().into_iter().flatten() {
            found.push(format!("{at}/{name}"));
            self.required(&schema["properties"][name], value, &format!("{at}/{name}"), found);
        }
        for (n, value) in body.as_array().into_iter().flatten().enumerate() {
            self.required(&schema["items"], value, &format!("{at}/{n}"), found);
        }
    }
}

fn without(body: &Value, pointer: &str) -> Value {
    let mut less = body.clone();
    let (around, name) = pointer.rsplit_once('/').expect("a pointer");
    let around = less.pointer_mut(around).and_then(Value::as_object_mut).expect("an object");
    around.remove(name).expect("a field");
    less
}

#[tokio::test]
async fn a_body_is_required_where_the_document_says_so_and_nowhere_else() {
    let mut asked = Asked::new().await;
    let mut broken = Vec::new();
    let mut bodies = 0;
    for operation in asked.operations() {
        let Some(body) = operation.about.get("requestBody") else { continue };
        bodies += 1;
        let required = body["required"].as_bool().expect("it says so");
        let answer = asked.call(&operation.method, &operation.path, "").await;
        let refused = [400, 415, 422].contains(&answer.status);
        if refused != required {
            let Operation { method, path, .. } = operation;
            broken.push(format!(
                "{method} {path}: required: {required}, answered {} without one",
                answer.status
            ));
        }
    }
    assert!(bodies > 20, "{bodies}");
    none(&broken, "the document and the handler disagree:");
    asked.server.stop().await;
}

#[tokio::test]
async fn a_field_is_required_where_the_document_says_so_and_nowhere_else() {
    let mut asked = Asked::new().await;
    let mut broken = Vec::new();
    let mut fields = 0;
    let mut either = EITHER.to_vec();
    for operation in asked.operations() {
        let Some(schema) = asked.body_schema(&operation).cloned() else { continue };
        let Operation { method, path, .. } = &operation;
        let least = asked.least(&schema);
        let mut required = Vec::new();
        asked.required(&schema, &least, "", &mut required);
        for field in required {
            fields += 1;
            let answer = asked.call(method, path, &without(&least, &field).to_string()).await;
            if ![400, 422].contains(&answer.status) || answer.pointers() != [field.as_str()] {
                broken.push(format!("{method} {path}: {field} is required, yet without it: {}", answer.body));
            }
        }
        let mut sent = least.clone();
        if !schema["properties"]["max_wait_ms"].is_null() {
            sent["max_wait_ms"] = json!(0);
        }
        let answer = asked.call(method, path, &sent.to_string()).await;
        if answer.status < 400 {
            continue;
        }
        for pointer in answer.pointers().iter().filter(|pointer| sent.pointer(pointer).is_none()) {
            match either.iter().position(|known| *known == (path.as_str(), pointer.as_str())) {
                Some(known) => drop(either.remove(known)),
                None => broken.push(format!("{method} {path}: {pointer} is demanded: {}", answer.body)),
            }
        }
    }
    assert!(fields > 30, "{fields}");
    broken.extend(either.iter().map(|(path, pointer)| format!("{path}: {pointer} is not demanded any more")));
    none(&broken, "the document and the handler disagree:");
    asked.server.stop().await;
}

#[tokio::test]
async fn every_answer_is_in_the_document_and_in_the_metrics() {
    let mut asked = Asked::new().await;
    let mut broken = Vec::new();
    for operation in asked.operations() {
        let Operation { method, path, about } = &operation;
        for path in [path.clone(), path.replace("{id}", "task_management")] {
            let answer = asked.call(method, &path, "").await;
            if about["responses"].get(answer.status.to_string()).is_none() {
                broken.push(format!("{method} {path} answered {}", answer.status));
            }
        }
    }
    none(&broken, "these answers are not in the document:");
    let made = asked.call("POST", "/v1/jobs", r#"{"stream":"s","payload":{}}"#).await;
    assert_eq!(made.status, 201, "{made:?}");
    asked.call("POST", "/v1/jobs", "no JSON").await;
    asked.call("GET", "/nowhere", "").await;
    asked.call("PUT", "/v1/jobs", "{}").await;
    let text = asked.server.get("/metrics").await.body;
    let mut counted: BTreeMap<u16, u64> = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("fernery_http_requests_total{")) {
        let (labels, count) = line.rsplit_once("\"} ").expect("a count");
        let (_, status) = labels.rsplit_once("status=\"").expect("a status");
        *counted.entry(status.parse().expect("a number")).or_default() +=
            count.parse::<u64>().expect("a number");
    }
    assert!(asked.answers.contains_key(&202) && asked.answers.len() > 5, "{:?}", asked.answers);
    assert_eq!(counted, asked.answers, "what is counted is what was answered");
    asked.server.stop().await;
}

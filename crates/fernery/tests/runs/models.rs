//! A model in the place of the built-in triage, behind a server that misbehaves in every way it can: whatever it does, each
//! capture comes to one candidate, and a person is told who made it.

use crate::inbox::blueprint;
use crate::shop::{Shop, eventually};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a model that does what it is asked says about these captures.
fn good(prompt: &str) -> Value {
    let ids: std::collections::BTreeSet<&str> = prompt
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .filter(|word| word.starts_with("cap-"))
        .collect();
    let of = |id: &&str| json!({"capture_ids": [id], "title": format!("By the model: {id}"), "acceptance_criteria": "done", "importance": 1, "urgency": 2, "metadata": {}});
    json!({"candidates": ids.iter().map(of).collect::<Vec<_>>(), "left": []})
}

/// Serves answers: `how` gets the number of the call and the prompt, and answers status, headers and content, or nothing at all.
fn model(how: impl Fn(usize, &str) -> Option<(u16, &'static str, String)> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (how, calls) = (Arc::new(how), Arc::new(AtomicUsize::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (how, nth) = (how.clone(), calls.fetch_add(1, Ordering::SeqCst));
            std::thread::spawn(move || answer(stream, |prompt| how(nth, prompt)));
        }
    });
    url
}

fn answer(mut stream: TcpStream, how: impl Fn(&str) -> Option<(u16, &'static str, String)>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let request: Value = serde_json::from_slice(&body).unwrap();
    let prompt =
        request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_string();
    match how(&prompt) {
        None => {
            // Until the other side gives up.
            let _ = reader.read(&mut [0; 1]);
        }
        Some((status, headers, body)) => {
            let _ = write!(
                stream,
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    }
}

fn said(content: &str) -> (u16, &'static str, String) {
    let body = json!({"model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
        "usage": {"total_tokens": 42}});
    (200, "", body.to_string())
}

fn triaged_by(url: &str, more: &str) -> Vec<Value> {
    let executor = format!(
        "[executors.TRIAGE_DIAZOTROPH]\nkind = \"llm\"\nbase_url = {}\nmodel = \"tiny\"\n\
         [retry]\ngate_failures = 0\ninfrastructure = 1\n{more}",
        json!(url)
    );
    let shop = Shop::open(&blueprint(&executor), &[]);
    for n in 0..2 {
        let body = json!({"capture_id": format!("cap-{n}"), "raw_content": format!("thing {n}")});
        shop.call("POST", "/v1/captures", body);
    }
    let mut found = Vec::new();
    let so = eventually(|| {
        found = shop.get("/v1/candidates")["candidates"].as_array().unwrap().clone();
        found.len() == 2
    });
    assert!(so, "{found:#?}");
    found
}

fn makers(found: &[Value]) -> Vec<&str> {
    found.iter().map(|one| one["made_by"].as_str().unwrap()).collect()
}

#[test]
fn a_model_looks_through_captures_and_says_who_it_is() {
    let found = triaged_by(&model(|_, prompt| Some(said(&good(prompt).to_string()))), "");
    assert_eq!(makers(&found), ["llm tiny", "llm tiny"]);
    assert!(found[0]["title"].as_str().unwrap().starts_with("By the model"), "{found:#?}");
}

#[test]
fn prose_around_the_answer_and_a_server_that_is_busy_first_are_borne() {
    let found = triaged_by(
        &model(|nth, prompt| match nth {
            0 => Some((429, "retry-after: 0\r\n", "{}".into())),
            1 => Some((500, "", "oops".into())),
            _ => Some(said(&format!("Sure! Here it is:\n```json\n{}\n```\nAnything else?", good(prompt)))),
        }),
        "",
    );
    assert_eq!(makers(&found), ["llm tiny", "llm tiny"]);
}

#[test]
fn built_in_rules_replace_a_failing_model() {
    type How = fn(usize, &str) -> Option<(u16, &'static str, String)>;
    let ways: [(&str, How); 7] = [
        ("always 500", |_, _| Some((500, "", "oops".into()))),
        ("not JSON", |_, _| Some(said("I would rather not."))),
        ("no body", |_, _| Some((200, "", "{\"choices\": []}".into()))),
        ("unknown ids", |_, prompt| Some(said(&good(&format!("{prompt} cap-99")).to_string()))),
        ("one capture is missing", |_, _| Some(said(&good("cap-0").to_string()))),
        ("a repository", |_, prompt| {
            let mut answer = good(prompt);
            answer["candidates"][0]["metadata"] = json!({"repo_ref": "web"});
            Some(said(&answer.to_string()))
        }),
        ("no key", |_, _| Some((401, "", "{\"error\": {\"message\": \"who are you?\"}}".into()))),
    ];
    for (way, how) in ways {
        let found = triaged_by(&model(how), "");
        let all = makers(&found);
        assert!(all.iter().all(|by| by.starts_with("builtin, standing in for llm tiny")), "{way}: {all:?}");
        assert!(found[0]["title"].as_str().unwrap().starts_with("thing"), "{way}: {found:#?}");
    }
}

#[test]
fn a_model_that_never_answers_is_ended_by_its_budget() {
    let found = triaged_by(&model(|_, _| None), "[budget]\nworkorder = \"3s\"\n");
    assert!(makers(&found).iter().all(|by| by.contains("standing in")), "{found:#?}");
}

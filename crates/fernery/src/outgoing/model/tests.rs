use super::*;
use crate::outgoing::scripted::{Act, Asked, Scripted, answer};

const KEY: &str = "sk-fern-0123456789";
/// Nothing here takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

fn endpoint(base_url: String) -> Endpoint {
    Endpoint { base_url, model: "small".into(), key_env: Some("FERN_KEY".into()), max_tokens: 64 }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
}

fn chat(content: &str, finish_reason: &str) -> Act {
    let choice = json!({"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish_reason});
    let reply = json!({"model": "small-2", "choices": [choice], "usage": {"total_tokens": 12}});
    answer(200, "content-type: application/json\r\n", &reply.to_string())
}

/// Asks a server that follows the script.
async fn asked(script: Vec<Act>, deadline: Duration) -> (Result<Answer, Trouble>, Vec<Asked>) {
    let mut server = Scripted::start(script).await;
    let endpoint = endpoint(server.url("/v1/"));
    let answer = ask(&endpoint, Some(KEY), "Be brief.", "What is a?", &schema(), deadline).await;
    (answer, server.requests())
}

/// The trouble with a server that acts so, which is asked once.
async fn trouble(act: Act) -> Trouble {
    let (answer, requests) = asked(vec![act, chat("{\"a\":1}", "stop")], PATIENCE).await;
    let trouble = answer.expect_err("no answer");
    assert_eq!(requests.len(), 1, "asked again after: {trouble}");
    assert!(!trouble.is_transient(), "{trouble}");
    trouble
}

fn body_of(asked: &Asked) -> Value {
    serde_json::from_slice(&asked.body).expect("JSON")
}

#[tokio::test]
async fn a_question_asks_for_the_schema_and_carries_the_key_in_one_place() {
    let (answer, requests) = asked(vec![chat("{\"a\":1}", "stop")], PATIENCE).await;
    let expected = Answer { content: "{\"a\":1}".into(), tokens: Some(12), model: "small-2".into() };
    assert_eq!(answer, Ok(expected));
    let [asked] = &requests[..] else { panic!("one question: {requests:?}") };
    assert!(asked.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", asked.head);
    assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(asked.head.matches(KEY).count(), 1);
    assert_eq!(
        body_of(asked),
        json!({
            "model": "small",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is a?"}],
            "stream": false,
            "max_tokens": 64,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": true, "schema": schema()},
            },
        })
    );
}

#[tokio::test]
async fn without_a_key_none_is_sent() {
    let mut server = Scripted::start(vec![chat("{}", "stop")]).await;
    let endpoint = Endpoint { key_env: None, ..endpoint(server.url("/v1")) };
    ask(&endpoint, None, "s", "u", &schema(), PATIENCE).await.expect("an answer");
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn an_endpoint_that_does_not_know_the_form_is_asked_more_simply() {
    let unknown = |kind: &str| {
        let said =
            json!({"error": {"message": format!("'{kind}' is not supported"), "param": "response_format"}});
        answer(400, "", &said.to_string())
    };
    let script = vec![unknown("json_schema"), unknown("json_object"), chat("Well: {\"a\":1}.", "stop")];
    let (answer, requests) = asked(script, PATIENCE).await;
    assert_eq!(json_of(&answer.expect("an answer").content), Ok(json!({"a": 1})));
    let forms: Vec<Value> =
        requests.iter().map(|asked| body_of(asked)["response_format"]["type"].clone()).collect();
    assert_eq!(forms, [json!("json_schema"), json!("json_object"), json!(null)]);
    let prompts: Vec<String> =
        requests.iter().map(|asked| body_of(asked)["messages"][0]["content"].to_string()).collect();
    let has_schema: Vec<bool> = prompts.iter().map(|prompt| prompt.contains("JSON schema")).collect();
    assert_eq!(has_schema, [false, true, true], "{prompts:?}");

    let (answer, requests) = asked(vec![unknown("response_format")], PATIENCE).await;
    assert!(matches!(answer, Err(Trouble::Rejected { status: 400, .. })), "{answer:?}");
    assert_eq!(requests.len(), 3, "one question for each form");
}

#[tokio::test]
async fn the_token_limit_is_sent_under_the_name_that_the_endpoint_knows() {
    let said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
    let refusal = answer(400, "", &json!({"error": {"message": said}}).to_string());
    let (answer, requests) = asked(vec![refusal, chat("{}", "stop")], PATIENCE).await;
    answer.expect("an answer");
    let body = body_of(&requests[1]);
    assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(64), &json!(null)));
    assert_eq!(body["response_format"]["type"], "json_schema");
}

#[tokio::test]
async fn a_refusal_that_is_not_about_the_form_is_final() {
    let trouble = trouble(answer(400, "", "{\"error\":\"context length exceeded\"}")).await;
    assert!(trouble.to_string().ends_with("(400): context length exceeded"), "{trouble}");
}

#[tokio::test]
async fn a_limit_is_waited_for_as_long_as_it_says() {
    let limited = answer(429, "retry-after: 1\r\n", "slow down");
    let started = Instant::now();
    let (answer, requests) = asked(vec![limited, chat("{}", "stop")], PATIENCE).await;
    answer.expect("an answer");
    assert_eq!(requests.len(), 2);
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_limit_beyond_the_deadline_is_told_at_once() {
    for wait in ["3600", "1e300", "99999999999"] {
        let limited = answer(429, &format!("retry-after: {wait}\r\n"), "{\"message\":\"slow down\"}");
        let (answer, requests) = asked(vec![limited], PATIENCE).await;
        let trouble = answer.expect_err("no answer");
        if wait == "3600" {
            assert_eq!(trouble.retry_after(), Some(Duration::from_secs(3_600)));
            assert_eq!(requests.len(), 1);
        }
        assert!(trouble.is_transient() && trouble.to_string().contains("slow down"), "{trouble}");
    }
}

#[tokio::test]
async fn transient_failures_are_tried_three_times() {
    let cut = b"HTTP/1.1 200 X\r\ncontent-length: 1000\r\n\r\n{\"choices\": [".to_vec();
    for act in [answer(500, "", ""), answer(503, "", "busy"), Act::Say(cut), Act::Say(Vec::new())] {
        let (answer, requests) = asked(vec![act.clone()], PATIENCE).await;
        let trouble = answer.expect_err("no answer");
        assert!(trouble.is_transient(), "{trouble}");
        assert_eq!(requests.len(), 3, "{trouble}");
        let (answer, _) = asked(vec![act, chat("{}", "stop")], PATIENCE).await;
        assert!(answer.is_ok(), "{answer:?}");
    }
}

#[tokio::test]
async fn a_model_is_not_waited_for_beyond_the_deadline() {
    let deadline = Duration::from_secs(1);
    let (answer, requests) = asked(vec![Act::Silence], deadline).await;
    assert_eq!(answer, Err(Trouble::TimedOut { after: deadline, before: None }));
    assert!(answer.expect_err("no answer").is_transient());
    assert_eq!(requests.len(), 1);
    let half = Act::Say(b"HTTP/1.1 200 X\r\n".to_vec());
    let (answer, _) = asked(vec![half, Act::Silence], Duration::from_secs(2)).await;
    let Err(Trouble::TimedOut { before: Some(before), .. }) = answer else { panic!("{answer:?}") };
    assert!(before.contains("broke"), "{before}");
}

#[tokio::test]
async fn permanent_errors_say_what_to_do() {
    for (act, words) in [
        (
            answer(401, "", "{\"error\":{\"message\":\"bad key\"}}"),
            "(401): bad key; check the key in FERN_KEY",
        ),
        (answer(403, "", ""), "refuses the key (403)"),
        (answer(404, "", "{\"error\":\"no such model\"}"), "no model small"),
        (answer(302, "location: http://127.0.0.1:1/\r\n", ""), "not followed"),
        (answer(200, "", "<html>hello</html>"), "begins: <html>hello"),
        (answer(200, "", ""), "not that of a chat endpoint"),
        (answer(200, "", "{\"choices\": []}"), "no choices"),
        (chat("{\"a\":", "length"), "cut off at 64 tokens"),
    ] {
        let told = trouble(act).await.to_string();
        assert!(told.contains(words), "{told}");
    }
}

#[tokio::test]
async fn a_redirect_does_not_take_the_key_along() {
    let mut elsewhere = Scripted::start(vec![chat("{}", "stop")]).await;
    for status in [301, 307, 308] {
        let location = format!("location: {}\r\n", elsewhere.url("/v1/chat/completions"));
        assert_eq!(trouble(answer(status, &location, "")).await, Trouble::Redirected { status });
    }
    assert_eq!(elsewhere.requests().len(), 0);
}

#[tokio::test]
async fn a_reply_without_end_is_not_read_to_the_end() {
    let huge = chat(&"x".repeat(REPLY_BYTES_MAX), "stop");
    assert_eq!(trouble(huge).await, Trouble::TooLarge { max: REPLY_BYTES_MAX });
    let chunks = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20)).repeat(4);
    let chunked = format!("HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
    assert_eq!(trouble(Act::Say(chunked.into())).await, Trouble::TooLarge { max: REPLY_BYTES_MAX });
}

#[tokio::test]
async fn the_key_is_in_no_error_even_if_the_endpoint_says_it() {
    let echo = json!({"error": {"message": format!("Incorrect API key provided: {KEY}")}}).to_string();
    for status in [400, 401, 404, 429, 500, 200] {
        let headers = format!("retry-after: 3600\r\nx-key: {KEY}\r\n");
        let (answer, _) = asked(vec![answer(status, &headers, &echo)], PATIENCE).await;
        let trouble = answer.expect_err("no answer");
        let told = format!("{trouble} {trouble:?}");
        assert!(!told.contains(KEY) && told.contains("[key]"), "{told}");
    }
    let endpoint = endpoint("http://127.0.0.1:1/v1".into());
    let broken = format!("{KEY}\n");
    let trouble = ask(&endpoint, Some(&broken), "s", "u", &schema(), PATIENCE).await.expect_err("no answer");
    assert!(matches!(trouble, Trouble::BadEndpoint(_)) && !format!("{trouble:?}").contains(KEY), "{trouble}");
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_asked_says_why() {
    for (base_url, words) in [
        ("localhost:11434/v1", "neither https:// nor http://"),
        ("https://user:pw@model.example/v1", "user or a password"),
        ("https://model.example/v1?key=1", "query"),
        ("http://8.8.8.8/v1", "use https for it"),
        ("http://0.0.0.0:1/v1", "use https for it"),
    ] {
        let trouble = ask(&endpoint(base_url.into()), Some(KEY), "s", "u", &schema(), PATIENCE).await;
        let trouble = trouble.expect_err(base_url);
        assert!(
            matches!(trouble, Trouble::BadEndpoint(_)) && trouble.to_string().contains(words),
            "{trouble}"
        );
    }
    let closed = Scripted::start(vec![Act::Silence]).await.address;
    let endpoint = endpoint(format!("http://{closed}/v1"));
    let trouble = ask(&endpoint, None, "s", "u", &schema(), PATIENCE).await.expect_err("nobody there");
    assert!(matches!(trouble, Trouble::Unreachable(_)) && trouble.is_transient(), "{trouble}");
}

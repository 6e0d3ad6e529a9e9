//! A client of a language model behind a chat endpoint of the form that OpenAI has made common: one question, one JSON
//! answer.
//!
//! Nothing that comes back is trusted. The reply is bounded, a redirect is not followed (it would take the key along), and
//! what the model says is text until [`json_of`] and then a schema have looked at it. The key is in one header and nowhere
//! else: what an endpoint says is cleared of it before anybody sees it.
//!
//! Endpoints differ in how an answer of a certain form is asked for. The strictest way is tried first; one that an endpoint
//! does not know is replaced by the next weaker, and the prompt then has the schema. All of it, and every repetition, has
//! one deadline.

mod content;
mod reply;
mod trouble;

pub use content::json_of;
pub use trouble::Trouble;

use crate::outgoing::address::{Reach, reach};
use crate::outgoing::{Broken, Target};
use bytes::Bytes;
pub use fernery_core::blueprint::Endpoint;
use fernery_engine::door::Chance;
use http::{HeaderName, HeaderValue, header};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// How often a question is sent if the failure is transient.
const TRIES_MAX: u32 = 3;
/// The first wait between two tries; it doubles, with jitter.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Upper bound of every deadline.
const DEADLINE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes of a reply.
const REPLY_BYTES_MAX: usize = 2 << 20;

/// The answer of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub content: String,
    /// Tokens used by question and answer; `None` if the endpoint does not say.
    pub tokens: Option<u64>,
    /// The model that answered, as the endpoint names it.
    pub model: String,
}

/// How the endpoint is asked for an answer in a certain form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Schema,
    Object,
    /// By the prompt alone.
    Words,
}

/// How a question is written for an endpoint, given what it turned out not to support.
#[derive(Clone, Copy, Debug)]
struct Manner {
    form: Form,
    /// The name of the token limit: newer models accept one name, older servers only the other.
    limit: &'static str,
}

impl Manner {
    /// What to try next after a request was refused with this message.
    fn after(self, said: &str) -> Option<Self> {
        let said = said.to_lowercase();
        if self.limit == "max_tokens" && said.contains("max_completion_tokens") {
            return Some(Self { limit: "max_completion_tokens", ..self });
        }
        let about_form =
            ["response_format", "response format", "json_schema", "json_object", "structured output"];
        if !about_form.iter().any(|words| said.contains(words)) {
            return None;
        }
        match self.form {
            Form::Schema => Some(Self { form: Form::Object, ..self }),
            Form::Object => Some(Self { form: Form::Words, ..self }),
            Form::Words => None,
        }
    }
}

/// Asks a model for JSON that fits `schema`. The answer may have another form: the caller has to check it.
pub async fn ask(
    endpoint: &Endpoint,
    key: Option<&str>,
    system: &str,
    user: &str,
    schema: &Value,
    deadline: Duration,
) -> Result<Answer, Trouble> {
    let question = Question { endpoint, key, system, user, schema, target: target(endpoint)? };
    let deadline = deadline.min(DEADLINE_MAX);
    let ends_at = Instant::now() + deadline;
    let mut manner = Manner { form: Form::Schema, limit: "max_tokens" };
    let (mut tries, mut wait, mut before) = (0, FIRST_WAIT, None);
    loop {
        let Ok(answer) = timeout_at(ends_at, question.put(manner)).await else {
            return Err(Trouble::TimedOut { after: deadline, before });
        };
        let trouble = match answer {
            Ok(answer) => return Ok(answer),
            Err(trouble) => trouble,
        };
        if let Trouble::Rejected { status: 400 | 422, said } = &trouble
            && let Some(weaker) = manner.after(said)
        {
            manner = weaker;
            continue;
        }
        tries += 1;
        let asked = trouble.retry_after().unwrap_or_default().min(DEADLINE_MAX);
        let next_at = Instant::now() + Chance::default().jittered(wait).max(asked);
        // No time is left for another try: return the known failure, which says more than a time-out.
        if !trouble.is_transient() || tries == TRIES_MAX || next_at >= ends_at {
            return Err(trouble);
        }
        before = Some(trouble.to_string());
        wait *= 2;
        sleep_until(next_at).await;
    }
}

fn target(endpoint: &Endpoint) -> Result<Target, Trouble> {
    let unusable = |why: &str| Trouble::BadEndpoint(format!("its base_url cannot be used: {why}"));
    if endpoint.base_url.contains('?') {
        return Err(unusable("it carries a query"));
    }
    let base = endpoint.base_url.trim_end_matches('/');
    Target::parse(&format!("{base}/chat/completions")).map_err(unusable)
}

struct Question<'a> {
    endpoint: &'a Endpoint,
    key: Option<&'a str>,
    system: &'a str,
    user: &'a str,
    schema: &'a Value,
    target: Target,
}

impl Question<'_> {
    /// Sends the question once.
    async fn put(&self, manner: Manner) -> Result<Answer, Trouble> {
        let addresses = self.target.addresses().await.map_err(Trouble::Unreachable)?;
        let far = |ip| !matches!(reach(ip), Reach::Nearby(_));
        if let (false, Some(far)) = (self.target.secure, addresses.iter().find(|address| far(address.ip()))) {
            let (host, far) = (&self.target.host, far.ip());
            return Err(Trouble::BadEndpoint(format!(
                "{host} resolves to {far}, outside of this network; use https for it"
            )));
        }
        let body = Bytes::from(self.body(manner).to_string());
        let call = self.target.post(&addresses, None, self.headers()?, body).await;
        let mut call = call.map_err(|broken| self.broken(broken))?;
        let status = call.response.status().as_u16();
        let retry_after = reply::retry_after(call.response.headers());
        let body = call.body(REPLY_BYTES_MAX).await.map_err(|broken| self.broken(broken))?;
        // Parsing even a bounded reply may take long, so not on a thread that serves connections.
        let (endpoint, key) = (self.endpoint.clone(), self.key.map(str::to_string));
        let read = move || match status {
            200..=299 => {
                let body = body.ok_or(Trouble::TooLarge { max: REPLY_BYTES_MAX })?;
                reply::read(&body, &endpoint, key.as_deref())
            }
            _ => {
                let said = reply::said(&body.unwrap_or_default(), key.as_deref());
                Err(Trouble::of_status(status, said, retry_after, &endpoint))
            }
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|error| Err(Trouble::BadAnswer(error.to_string())))
    }

    fn broken(&self, broken: Broken) -> Trouble {
        match broken {
            Broken::Unreachable(why) => Trouble::Unreachable(reply::cleared(&why, self.key)),
            Broken::Lost(why) => Trouble::Lost(reply::cleared(&why, self.key)),
        }
    }

    fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, Trouble> {
        let mut headers = vec![(header::ACCEPT, HeaderValue::from_static("application/json"))];
        if let Some(key) = self.key {
            let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
                Trouble::BadEndpoint(
                    "the key contains invalid characters; does it end with a line break?".into(),
                )
            })?;
            value.set_sensitive(true);
            headers.push((header::AUTHORIZATION, value));
        }
        Ok(headers)
    }

    fn body(&self, manner: Manner) -> Value {
        let mut system = self.system.to_string();
        if manner.form != Form::Schema {
            let schema = self.schema;
            system.push_str(&format!(
                "\n\nAnswer with one JSON object and nothing else. It fits this JSON schema:\n{schema}"
            ));
        }
        let mut body = json!({
            "model": self.endpoint.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": self.user}],
            "stream": false,
        });
        body[manner.limit] = self.endpoint.max_tokens.into();
        match manner.form {
            Form::Schema => {
                let schema = json!({"name": "answer", "strict": true, "schema": self.schema});
                body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
            }
            Form::Object => body["response_format"] = json!({"type": "json_object"}),
            Form::Words => {}
        }
        body
    }
}

#[cfg(test)]
mod tests;

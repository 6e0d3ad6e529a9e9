//! Reading a body: plain JSON of bounded size in bounded time, counted against what all requests may hold at once.

use super::answer::JSON;
use crate::http::Server;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::route::{BodyRule, Route};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::timeout;

/// Bytes and requests that count against a limit while this lives.
#[derive(Debug)]
pub struct Weight {
    server: Arc<Server>,
    counter: fn(&Server) -> &AtomicUsize,
    amount: usize,
}

impl Weight {
    /// Counts `amount` unless that passes `max`.
    pub fn take(
        server: &Arc<Server>,
        counter: fn(&Server) -> &AtomicUsize,
        amount: usize,
        max: usize,
    ) -> Option<Self> {
        let mut weight = Self { server: server.clone(), counter, amount: 0 };
        weight.grow(amount, max).then_some(weight)
    }

    /// Counts `more` on top unless all together pass `max`; then nothing changes.
    fn grow(&mut self, more: usize, max: usize) -> bool {
        let counter = (self.counter)(&self.server);
        let fits = counter.fetch_add(more, Ordering::Relaxed) + more <= max;
        if fits {
            self.amount += more;
        } else {
            counter.fetch_sub(more, Ordering::Relaxed);
        }
        fits
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        (self.counter)(&self.server).fetch_sub(self.amount, Ordering::Relaxed);
    }
}

/// What a form without files is sent as.
const FORM: &str = "application/x-www-form-urlencoded";
/// Bytes of a form. Percent-encoding makes three of one.
const FORM_BYTES_MAX: usize = 4 << 20;

/// Bodies up to this size are not counted: the cap on connections bounds them.
const SMALL_BODY_BYTES: usize = 64 << 10;

/// Reads the body if the route takes one, within its limits.
pub(in crate::http) async fn read_body(
    server: &Arc<Server>,
    route: &Route,
    headers: &HeaderMap,
    incoming: Incoming,
) -> Result<(Bytes, Option<Weight>), Refused> {
    match route.body {
        BodyRule::None => return Ok((Bytes::new(), None)),
        BodyRule::Optional(_) if incoming.is_end_stream() => return Ok((Bytes::new(), None)),
        _ if incoming.is_end_stream() => {
            return Err(Refusal::new(Code::EmptyBody, "the request has no body; it needs a JSON document"));
        }
        _ => plain_body(headers, JSON, "send the body as Content-Type: application/json")?,
    }
    within(server, route.body_max, incoming).await
}

/// Reads the body of a form of a page.
pub(in crate::http) async fn read_form(
    server: &Arc<Server>,
    headers: &HeaderMap,
    incoming: Incoming,
) -> Result<(Bytes, Option<Weight>), Refused> {
    if incoming.is_end_stream() {
        return Ok((Bytes::new(), None));
    }
    plain_body(headers, FORM, "send the form as Content-Type: application/x-www-form-urlencoded")?;
    within(server, FORM_BYTES_MAX, incoming).await
}

async fn within(
    server: &Arc<Server>,
    bytes_max: usize,
    incoming: Incoming,
) -> Result<(Bytes, Option<Weight>), Refused> {
    if incoming.size_hint().lower() > bytes_max as u64 {
        return Err(body_too_large(bytes_max));
    }
    match timeout(server.settings.pace.body, collect(server, bytes_max, incoming)).await {
        Ok(read) => read,
        Err(_) => Err(Refusal::new(Code::BodyTimeout, Code::BodyTimeout.title())),
    }
}

fn body_too_large(bytes_max: usize) -> Refused {
    Refusal::new(Code::TooLarge, format!("a body has at most {bytes_max} bytes"))
}

/// The whole body, counted as it comes.
async fn collect(
    server: &Arc<Server>,
    bytes_max: usize,
    mut incoming: Incoming,
) -> Result<(Bytes, Option<Weight>), Refused> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let mut weight = None;
    while let Some(frame) = incoming.frame().await {
        let frame = frame
            .map_err(|_| Refusal::new(Code::BadRequest, "the body ended before its announced length"))?;
        let Ok(data) = frame.into_data() else { continue };
        let bytes = first.len() + all.len() + data.len();
        if bytes > bytes_max {
            return Err(body_too_large(bytes_max));
        }
        if bytes > SMALL_BODY_BYTES {
            let max = server.settings.body_bytes_max;
            let fits = match &mut weight {
                None => {
                    weight = Weight::take(server, |server| &server.body_bytes, bytes, max);
                    weight.is_some()
                }
                Some(weight) => weight.grow(data.len(), max),
            };
            if !fits {
                return Err(Refusal::new(
                    Code::Busy,
                    "too many large requests are being read at once; try again",
                ));
            }
        }
        // Nearly every body comes in one piece, which needs no copy.
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    Ok((if all.is_empty() { first } else { all.freeze() }, weight))
}

/// Refuses a body of another type than the one that is read, or an encoded one.
fn plain_body(headers: &HeaderMap, wanted: &str, instead: &str) -> Result<(), Refused> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let essence = text(CONTENT_TYPE).map(|value| value.split(';').next().unwrap_or_default().trim());
    if !essence.is_some_and(|essence| essence.eq_ignore_ascii_case(wanted)) {
        return Err(Refusal::new(Code::UnsupportedMediaType, instead));
    }
    if !text(CONTENT_ENCODING).is_none_or(|encoding| encoding.eq_ignore_ascii_case("identity")) {
        return Err(Refusal::new(Code::UnsupportedMediaType, "send the body without Content-Encoding"));
    }
    Ok(())
}

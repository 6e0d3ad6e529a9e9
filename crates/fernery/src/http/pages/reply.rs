//! What a page answers, and the headers that every page has.

use crate::http::wire::answer::AnswerBody;
use crate::http::wire::paced::Progress;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    LOCATION, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, Response, StatusCode};
use std::io::Write;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Nothing comes from elsewhere, and nothing in a page runs but our own file.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
/// No other site learns an address of ours. Under `no-referrer` a browser would also hide from this server where a form comes from
/// (`Origin: null`), and every form would be refused.
const REFERRER: &str = "same-origin";
/// Smaller answers are sent as they are.
const GZIP_FROM_BYTES: usize = 1 << 10;

/// What a page answers.
#[derive(Debug)]
pub(in crate::http) struct PageReply {
    status: u16,
    content_type: &'static str,
    content: Content,
    location: Option<String>,
    cookie: Option<String>,
    /// It is kept as a file and not shown.
    disposition: Option<String>,
    retry_after: Option<&'static str>,
    /// It never changes under this path.
    immutable: bool,
}

#[derive(Debug)]
enum Content {
    Whole(Bytes),
    Stream(mpsc::Receiver<Bytes>),
}

impl PageReply {
    fn new(status: u16, content_type: &'static str, content: Content) -> Self {
        Self {
            status,
            content_type,
            content,
            location: None,
            cookie: None,
            disposition: None,
            retry_after: None,
            immutable: false,
        }
    }

    pub(super) fn html(status: u16, text: String) -> Self {
        Self::new(status, "text/html; charset=utf-8", Content::Whole(text.into()))
    }

    /// A document that the browser keeps under this name, and never shows.
    pub(super) fn json_file(name: String, json: String) -> Self {
        let reply = Self::new(200, "application/json", Content::Whole(json.into()));
        Self { disposition: Some(format!("attachment; filename=\"{name}\"")), ..reply }
    }

    /// Leads to another page of this server, which the browser asks for by GET.
    pub(super) fn see_other(path: impl Into<String>) -> Self {
        let reply = Self::new(303, "text/plain; charset=utf-8", Content::Whole(Bytes::new()));
        Self { location: Some(path.into()), ..reply }
    }

    /// A file that never changes under its path.
    pub(super) fn asset(content_type: &'static str, body: &'static [u8]) -> Self {
        let reply = Self::new(200, content_type, Content::Whole(Bytes::from_static(body)));
        Self { immutable: true, ..reply }
    }

    pub(super) fn events(chunks: mpsc::Receiver<Bytes>) -> Self {
        Self::new(200, "text/event-stream; charset=utf-8", Content::Stream(chunks))
    }

    pub(super) fn with_cookie(self, cookie: String) -> Self {
        Self { cookie: Some(cookie), ..self }
    }

    pub(super) fn retry_after(self, retry_after: Option<&'static str>) -> Self {
        Self { retry_after, ..self }
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    pub(super) fn respond(self, gzip: bool, progress: Arc<Progress>) -> Response<AnswerBody> {
        let (body, zipped) = match self.content {
            Content::Whole(body) if gzip && body.len() >= GZIP_FROM_BYTES => match zip(&body) {
                Some(zipped) => (AnswerBody::whole(zipped, progress), true),
                None => (AnswerBody::whole(body, progress), false),
            },
            Content::Whole(body) => (AnswerBody::whole(body, progress), false),
            Content::Stream(chunks) => (AnswerBody::stream(chunks, progress), false),
        };
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        let cache = if self.immutable { "public, max-age=31536000, immutable" } else { "no-store" };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static(REFERRER));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if zipped {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if let Some(after) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(after));
        }
        for (name, text) in
            [(LOCATION, self.location), (SET_COOKIE, self.cookie), (CONTENT_DISPOSITION, self.disposition)]
        {
            if let Some(value) = text.and_then(|text| HeaderValue::from_str(&text).ok()) {
                headers.insert(name, value);
            }
        }
        response
    }
}

/// Whether the browser takes compressed answers.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let encodings = headers.get("accept-encoding").and_then(|value| value.to_str().ok()).unwrap_or_default();
    encodings.split(',').any(|encoding| {
        let mut parts = encoding.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
    })
}

fn zip(body: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

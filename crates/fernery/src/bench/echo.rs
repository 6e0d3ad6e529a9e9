//! HTTP with nothing behind it: JSON in, the same JSON out. This is the best that the machine can do per request.

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use tokio::net::TcpListener;

/// Serves until it is killed; prints its address once it listens.
pub(super) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let service = service_fn(answer);
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let echoed =
        serde_json::from_slice::<serde_json::Value>(&body).and_then(|value| serde_json::to_vec(&value));
    let mut response = Response::new(Full::new(Bytes::from(echoed.unwrap_or_default())));
    response
        .headers_mut()
        .insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    Ok(response)
}

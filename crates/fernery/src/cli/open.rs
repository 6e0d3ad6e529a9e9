//! `fernery open`: the pages of the server in a browser, by a link that signs it in.

use super::failure::{Failure, Outcome};
use super::screen::{Screen, remark};
use crate::outgoing::Target;
use clap::Args;
use fernery_client::Client;
use fernery_client::wire::SignInLink;
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Open the pages of the server in a browser
///
/// It asks the server for a link that signs in one browser, prints it, and opens it if this machine has a desktop. The link works
/// once, for five minutes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fernery open
  fernery open --print    only print the link")]
pub(super) struct Open {
    /// Only print the link
    #[arg(long)]
    print: bool,
}

pub(super) async fn run(open: Open, client: &Client, screen: Screen) -> Outcome {
    let (url, link) = link(client).await?;
    if screen.json {
        return screen.line(&json!({ "url": url, "expires_at": link.expires_at }).to_string());
    }
    screen.line(&url)?;
    remark("the link works once, for five minutes");
    if !open.print && has_desktop() {
        let opened = Command::new("xdg-open")
            .arg(&url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if opened.is_err() {
            remark("no browser was found here: open the link yourself");
        }
    }
    Ok(())
}

/// Asks the server for a link.
pub(super) async fn link(client: &Client) -> Outcome<(String, SignInLink)> {
    let reply = client.post::<SignInLink>("/v1/sign-in-links", &json!({}), Duration::ZERO).await?;
    let link = reply.read()?;
    Ok((whole(client.url(), &link)?, link))
}

/// The link as a browser opens it. A server of this machine shows its pages under a name that no other server here has.
fn whole(server: &str, link: &SignInLink) -> Outcome<String> {
    let bad = |_| Failure::usage(format!("{server} is no URL of a server"));
    let target = Target::parse(server).map_err(bad)?;
    if !target.is_this_machine() {
        return Ok(format!("{}{}", server.trim_end_matches('/'), link.path));
    }
    let (scheme, rest) = server.split_once("://").unwrap_or(("http", server));
    let authority = rest.split('/').next().unwrap_or_default();
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    let port = port.filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    Ok(format!("{scheme}://{}{port}{}", link.host, link.path))
}

fn has_desktop() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fernery_core::Timestamp;

    #[test]
    fn a_server_of_this_machine_is_opened_under_its_own_name() {
        let link = SignInLink {
            path: "/open/fernl_x".into(),
            host: "fabc.localhost".into(),
            expires_at: Timestamp::from_millis(0),
        };
        for (server, url) in [
            ("http://127.0.0.1:8080", "http://fabc.localhost:8080/open/fernl_x"),
            ("http://[::1]:8080", "http://fabc.localhost:8080/open/fernl_x"),
            ("http://localhost", "http://fabc.localhost/open/fernl_x"),
            ("https://fern.example:8443/", "https://fern.example:8443/open/fernl_x"),
        ] {
            assert_eq!(whole(server, &link).unwrap(), url);
        }
    }
}

//! `fernery token`: who may call the server.

use super::failure::{Failure, Outcome};
use super::input;
use super::screen::{Cell, Screen, remark};
use clap::Subcommand;
use fernery_client::Client;
use fernery_client::wire::{NewTokenRequest, Role, TokenInfo};
use fernery_core::artifact::AzollaId;
use fernery_engine::door;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(super) enum Token {
    /// Create a token; its secret is printed only once
    #[command(after_help = "\
Roles: operator (everything), worker (claims and reports jobs), producer (enqueues, reads its own jobs), viewer \
(reads), visitor (another server's azolla, which may read only what the setting `visitors` allows it).

Examples:
  fernery token new --role worker --name ci --streams 'build,deploy:*'
  fernery token new --role viewer --expires 30d
  fernery token new --role visitor --azolla task_management
  FERNERY_TOKEN=$(fernery token new --role producer)")]
    New {
        /// operator, worker, producer, viewer or visitor
        #[arg(long)]
        role: Role,
        /// A name for people [default: the role]
        #[arg(long)]
        name: Option<String>,
        /// worker only: the streams it may use; names, or prefixes that end in *
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        streams: Vec<String>,
        /// visitor only: the azolla of the other server
        #[arg(long, value_name = "ID")]
        azolla: Option<AzollaId>,
        /// It expires after this time, as in 30d
        #[arg(long, value_name = "DURATION", value_parser = input::duration)]
        expires: Option<Duration>,
    },
    /// List tokens, without their secrets
    #[command(after_help = "\
Example:
  fernery token list")]
    List,
    /// Revoke a token; the next request with it is refused
    #[command(after_help = "\
The last operator token is revoked only with --yes or after a question: without one, nobody can operate the server.

Example:
  fernery token revoke 4f1c2a9d8e7b")]
    Revoke {
        /// The id that `fernery token list` shows, not the secret
        id: String,
        /// Do not ask, also if it is the last operator token
        #[arg(long)]
        yes: bool,
    },
}

pub(super) async fn run(token: Token, client: &Client, screen: Screen) -> Outcome {
    match token {
        Token::New { role, name, streams, azolla, expires } => {
            if !streams.is_empty() && role != Role::Worker {
                return Err(Failure::usage(format!(
                    "--streams works only for worker tokens, not for {role} tokens"
                )));
            }
            match (role, &azolla) {
                (Role::Visitor, None) => {
                    return Err(Failure::usage(
                        "a visitor token needs --azolla NAME: the azolla of the other server",
                    ));
                }
                (Role::Visitor, Some(_)) | (_, None) => {}
                (_, Some(_)) => {
                    return Err(Failure::usage(format!(
                        "--azolla works only for visitor tokens, not for {role} tokens"
                    )));
                }
            }
            let request = NewTokenRequest {
                role,
                name: name.unwrap_or_else(|| role.to_string()),
                streams: streams.iter().map(|s| s.trim().to_string()).collect(),
                azolla_id: azolla,
                expires_at: None,
                expires_in_seconds: expires.map(|d| d.as_secs().max(1)),
                token_id: None,
            };
            let reply = client.new_token(&request).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            let made = reply.read()?;
            // Only the secret goes to stdout, so that it can be stored in a variable or a file.
            remark(&format!(
                "token {} with the role {}; its secret is shown only now:",
                made.info.token_id, made.info.role
            ));
            screen.line(&super::screen::plain(&made.token))
        }
        Token::List => {
            let reply = client.tokens().await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            let rows: Vec<_> = reply.read()?.tokens.into_iter().map(row).collect();
            screen.table(&["TOKEN", "NAME…", "ROLE", "FOR…", "CREATED", "EXPIRES", "REVOKED"], rows)
        }
        Token::Revoke { id, yes } => {
            let is_last = is_last_operator(client, &id).await?;
            if is_last && !yes {
                const LAST: &str =
                    "it is the last operator token that works: without it nobody can operate this server";
                if !input::can_ask() {
                    return Err(Failure::conflict(LAST).hint(
                        "create another one first (`fernery token new --role operator`), or pass --yes",
                    ));
                }
                input::confirmed(&format!("{LAST}. Revoke it? [y/N] "), "nothing was revoked")?;
            }
            let reply = client.revoke_token(&id).await?;
            if is_last {
                remark(
                    "to get a new one, delete operator.token in the data directory and restart the server",
                );
            }
            let line = format!("{} is revoked", super::screen::plain(&id));
            if screen.json { screen.json_body(&reply.body) } else { screen.line(&line) }
        }
    }
}

/// Whether no other operator token works.
async fn is_last_operator(client: &Client, id: &str) -> Outcome<bool> {
    let now = door::wall_clock();
    let works = |token: &&TokenInfo| {
        token.role == Role::Operator
            && token.revoked_at.is_none()
            && token.expires_at.is_none_or(|at| now < at)
    };
    let tokens = client.tokens().await?.read()?.tokens;
    let mut working = tokens.iter().filter(works);
    Ok(working.next().is_some_and(|only| only.token_id == id) && working.next().is_none())
}

fn row(token: TokenInfo) -> Vec<Cell> {
    let streams = match (&token.azolla_id, token.streams.is_empty()) {
        (Some(azolla), _) => format!("as {azolla}"),
        (None, true) => "all".to_string(),
        (None, false) => token.streams.join(","),
    };
    vec![
        token.token_id.into(),
        token.name.into(),
        token.role.into(),
        streams.into(),
        token.created_at.into(),
        Cell::maybe(token.expires_at),
        Cell::maybe(token.revoked_at),
    ]
}

//! Paged lists: as many rows as were asked for, whatever the page size of the server.

use super::failure::{Failure, Outcome};
use super::screen::{Cell, Screen, json_inert, remark};
use clap::Args;
use fernery_client::ClientError;
use fernery_client::client::Reply;
use fernery_core::limits;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::Write;

/// How much of a list.
#[derive(Debug, Args)]
pub(super) struct Paging {
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = limits::PAGE_ROWS_DEFAULT, conflicts_with = "all",
          value_parser = rows)]
    limit: u32,
    /// List everything
    #[arg(long)]
    pub(super) all: bool,
    /// Continue a list: its `next_cursor`
    #[arg(long)]
    cursor: Option<String>,
}

impl Paging {
    /// List everything.
    pub(super) fn everything() -> Self {
        Self { all: true, ..Self::first() }
    }

    /// What is printed where nobody says how much.
    pub(super) fn first() -> Self {
        Self { limit: limits::PAGE_ROWS_DEFAULT, all: false, cursor: None }
    }
}

fn rows(text: &str) -> Result<u32, String> {
    let rows = text.parse().ok().filter(|rows| *rows > 0);
    rows.ok_or_else(|| "a whole number from 1 on; --all lists everything".to_string())
}

/// A list that people and programs can read.
pub(super) struct Listing<T> {
    /// Under which key a page holds its rows.
    pub(super) key: &'static str,
    /// What stands over the columns.
    pub(super) heads: &'static [&'static str],
    /// The rows of a page.
    pub(super) rows: fn(T) -> Vec<Vec<Cell>>,
}

/// Rows that are looked through at most for rows that are shown.
const LOOKED_MAX: usize = 5_000;

/// Prints a list; `fetch` gets page after page, with the number of rows and the start.
pub(super) async fn list<T: DeserializeOwned>(
    screen: Screen,
    listing: &Listing<T>,
    paging: &Paging,
    fetch: impl AsyncFn(u32, Option<String>) -> Result<Reply<T>, ClientError>,
) -> Outcome {
    list_most(screen, listing, paging, fetch).await.map(drop)
}

/// The same where `rows` may leave some out; answers how many it left out.
pub(super) async fn list_most<T: DeserializeOwned>(
    screen: Screen,
    listing: &Listing<T>,
    paging: &Paging,
    fetch: impl AsyncFn(u32, Option<String>) -> Result<Reply<T>, ClientError>,
) -> Outcome<usize> {
    let (mut looked, mut hidden) = (0, 0);
    let mut left = if paging.all { usize::MAX } else { paging.limit as usize };
    let mut cursor = paging.cursor.clone();
    let mut columns = Vec::new();
    let mut printed = 0;
    loop {
        let wanted = u32::try_from(left).unwrap_or(u32::MAX).min(limits::PAGE_ROWS_MAX);
        let reply = fetch(wanted, cursor).await?;
        let (items, next) = raw_page(listing.key, &reply)?;
        let mut shown = items.len();
        if screen.json {
            print_items(listing.key, &items, printed)?;
        } else {
            let rows = (listing.rows)(reply.read()?);
            shown = rows.len();
            screen.more_rows(listing.heads, rows, &mut columns)?;
        }
        printed += shown;
        looked += items.len();
        hidden += items.len() - shown;
        left = left.saturating_sub(shown);
        cursor = next;
        if left == 0 || cursor.is_none() || (hidden > 0 && looked >= LOOKED_MAX) {
            break;
        }
    }
    if screen.json {
        let next = serde_json::to_string(&cursor).unwrap_or_else(|_| "null".into());
        let open = if printed == 0 { format!("{{\"{}\":[", listing.key) } else { String::new() };
        screen.line(&format!("{open}],\"next_cursor\":{}}}", json_inert(&next)))?;
    } else if cursor.is_some() {
        remark("there are more; --all lists all");
    }
    Ok(hidden)
}

fn raw_page<'a, T>(key: &str, reply: &'a Reply<T>) -> Outcome<(Vec<&'a RawValue>, Option<String>)> {
    let unexpected =
        |why: String| ClientError::Unexpected { status: reply.status, why, server: reply.server.clone() };
    let bad = |e: serde_json::Error| Failure::from(unexpected(e.to_string()));
    let page: BTreeMap<String, &RawValue> = serde_json::from_slice(&reply.body).map_err(bad)?;
    let Some(items) = page.get(key) else { return Err(unexpected(format!("no {key} in it")).into()) };
    let next =
        page.get("next_cursor").map_or(Ok(None), |next| serde_json::from_str(next.get())).map_err(bad)?;
    Ok((serde_json::from_str(items.get()).map_err(bad)?, next))
}

/// Items are printed page by page, unchanged, so that a long list needs little memory.
fn print_items(key: &str, items: &[&RawValue], printed: usize) -> Outcome {
    let mut out = std::io::stdout().lock();
    for (i, item) in items.iter().enumerate() {
        let before = if printed + i == 0 { format!("{{\"{key}\":[") } else { ",".into() };
        write!(out, "{before}{}", json_inert(item.get()))?;
    }
    Ok(())
}

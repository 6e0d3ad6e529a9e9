//! What one segment of the spool holds: `@`, a checksum, a blank, an entry as JSON, a line feed.
//!
//! A result is kept to the byte and may hold line feeds between its tokens, but no JSON has an `@` after one. So a line
//! that begins with `@` begins an entry, also behind damage.

use super::super::report::{End, Proof, Report};
use fernery_core::AttemptId;
use serde::{Deserialize, Serialize};
use std::ops::Range;

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum EntryRef<'a> {
    Report { proof: &'a Proof, end: &'a End },
    Settled(&'a [AttemptId]),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    Report { proof: Proof, end: End },
    Settled(Vec<AttemptId>),
}

/// What was read of a segment.
#[derive(Default)]
pub(super) struct Read {
    pub(super) reports: Vec<Report>,
    pub(super) settled: Vec<AttemptId>,
    /// Where it could not be read.
    pub(super) damaged: Vec<Range<usize>>,
}

/// Appends a report.
pub(super) fn write_report(out: &mut Vec<u8>, report: &Report) {
    write(out, &EntryRef::Report { proof: &report.proof, end: &report.end });
}

/// Appends a note that these attempts are settled.
pub(super) fn write_settled(out: &mut Vec<u8>, attempts: &[AttemptId]) {
    write(out, &EntryRef::Settled(attempts));
}

fn write(out: &mut Vec<u8>, entry: &EntryRef<'_>) {
    let start = out.len();
    out.extend_from_slice(b"@0000000000000000 ");
    let json = out.len();
    if serde_json::to_writer(&mut *out, entry).is_err() {
        // Cannot happen: every part has a JSON form, and memory takes every byte.
        out.truncate(start);
        return;
    }
    let sum = format!("{:016x}", checksum(&out[json..]));
    out[start + 1..json - 1].copy_from_slice(sum.as_bytes());
    out.push(b'\n');
}

/// Reads a segment, past any damage.
pub(super) fn read(bytes: &[u8]) -> Read {
    let mut read = Read::default();
    let mut start = 0;
    while start < bytes.len() {
        let end = next_start(bytes, start + 1);
        match entry(&bytes[start..end]) {
            Some(Entry::Report { proof, end }) => read.reports.push(Report { proof, end, job: None }),
            Some(Entry::Settled(attempts)) => read.settled.extend(attempts),
            None => read.damaged.push(start..end),
        }
        start = end;
    }
    read
}

fn next_start(bytes: &[u8], from: usize) -> usize {
    let begins = |at: &usize| bytes[*at] == b'@' && bytes[*at - 1] == b'\n';
    (from..bytes.len()).find(begins).unwrap_or(bytes.len())
}

fn entry(bytes: &[u8]) -> Option<Entry> {
    let rest = bytes.strip_prefix(b"@")?.strip_suffix(b"\n")?;
    let (sum, json) = rest.split_at_checked(16)?;
    let json = json.strip_prefix(b" ")?;
    let sum = u64::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    if sum != checksum(json) {
        return None;
    }
    serde_json::from_slice(json).ok()
}

/// FNV-1a: detects damage by a disk or a cut write; it need not withstand an attacker.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

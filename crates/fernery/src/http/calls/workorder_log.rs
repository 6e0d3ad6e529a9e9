//! The output of a workorder's executor while it works, in parts, for people to read. The log is a file of the process that
//! ran it; the database says whether more may come.

use super::named::{named, unknown};
use crate::http::access::repeats::LINES;
use crate::http::wire::answer::{Call, Replied, Reply};
use fernery_client::wire::WorkorderLog;
use fernery_core::artifact::{ObjectiveId, WorkorderId, WorkorderStatus};
use fernery_core::names::showable;
use fernery_engine::pipeline::reading;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes of a log in one answer.
const PART_BYTES_MAX: u64 = 64 << 10;

/// `GET /v1/workorders/{id}/log`
pub async fn read(call: Call) -> Replied {
    let id: WorkorderId = named(&call)?;
    let from = call.query.number("from", 0..=i64::MAX as u64)?.unwrap_or(0);
    let asked = id.clone();
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| reading::workorder_by_id(sql, &asked)).await?;
    let work = found.ok_or_else(unknown(&call, "workorder"))?;
    // Read before the file: an executor writes its last line before its workorder is EXECUTED.
    let executed = work.workorder.status == WorkorderStatus::Executed;
    // A gate is named as an artifact is, and so is its file.
    let gate: Option<ObjectiveId> = call.query.parsed("gate")?;
    let over = work.judged || executed && gate.is_none();
    let file = call.server.settings.pipeline.log_file(&id, gate.as_ref().map(ObjectiveId::as_str));
    let reading = tokio::task::spawn_blocking(move || file.and_then(|file| part_of(&file, from, over)));
    let none = WorkorderLog { text: String::new(), next: from, ended: over, here: false };
    Reply::json(200, &reading.await.ok().flatten().unwrap_or(none))
}

fn part_of(file: &Path, from: u64, over: bool) -> Option<WorkorderLog> {
    let bytes = match bytes_from(file, from) {
        Ok(bytes) => bytes,
        Err(error) => {
            if error.kind() != ErrorKind::NotFound
                && LINES.is_first("log unreadable", &file.to_string_lossy())
            {
                tracing::warn!(%error, file = %file.display(), "cannot read the log of a workorder");
            }
            return None;
        }
    };
    Some(part(&bytes, from, over))
}

/// One byte more than a part has; it shows whether there is a next part.
fn bytes_from(file: &Path, from: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(file)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(PART_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The part for these bytes, which start at `from`. A character that is cut off at the end comes with the next part.
fn part(bytes: &[u8], from: u64, over: bool) -> WorkorderLog {
    let room = usize::try_from(PART_BYTES_MAX).unwrap_or(usize::MAX);
    let more = bytes.len() > room;
    let bytes = &bytes[..bytes.len().min(room)];
    let ended = over && !more;
    let told = if ended { bytes } else { &bytes[..bytes.len() - unfinished(bytes)] };
    let text = showable(&String::from_utf8_lossy(told));
    WorkorderLog { text, next: from + told.len() as u64, ended, here: true }
}

/// How many bytes at the end belong to a character that is cut off.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let begun = tail.iter().rposition(|byte| byte & 0b1100_0000 != 0b1000_0000);
    begun.map_or(0, |at| {
        let rest = &tail[at..];
        let incomplete = std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
        if incomplete { rest.len() } else { 0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_put_together_are_the_whole_log_without_what_a_terminal_obeys() {
        let log = "Größe \u{1b}[2J\n\t€".repeat(20_000).into_bytes();
        let (mut from, mut text) = (0, String::new());
        loop {
            let until = log.len().min(from + PART_BYTES_MAX as usize + 1);
            let part = part(&log[from..until], from as u64, true);
            assert!(part.here && part.next - from as u64 <= PART_BYTES_MAX);
            text.push_str(&part.text);
            from = part.next as usize;
            if part.ended {
                break;
            }
        }
        assert_eq!(from, log.len());
        assert_eq!(text, "Größe \u{fffd}[2J\n\t€".repeat(20_000));
    }

    #[test]
    fn half_a_character_waits_for_its_rest_until_the_run_is_over() {
        let euro = "€".as_bytes();
        for half in [&euro[..1], &euro[..2]] {
            let bytes = [b"ab", half].concat();
            assert_eq!((part(&bytes, 5, false).text.as_str(), part(&bytes, 5, false).next), ("ab", 7));
            let last = part(&bytes, 5, true);
            assert_eq!((last.text.as_str(), last.next), ("ab\u{fffd}", 5 + bytes.len() as u64));
        }
        assert_eq!(part(b"a\xff", 0, false).text, "a\u{fffd}", "what is no character at all is told at once");
        assert_eq!(
            part(b"", 9, false),
            WorkorderLog { text: String::new(), next: 9, ended: false, here: true }
        );
    }
}

//! `fernery capture -`: every line of stdin is a capture, a thousand to a call.

use super::Place;
use super::deliver::{self, Tally, Unstored};
use crate::cli::Global;
use crate::cli::capture;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::screen::{Screen, counted, json_inert, remark};
use fernery_client::wire::CaptureRequest;
use fernery_core::limits;
use serde_json::json;
use std::io::{BufRead, Read};

/// Bytes that are held at once.
const BATCH_BYTES: usize = limits::BODY_BYTES_MAX / 4;
/// Line numbers named in an error.
const LINES_NAMED: usize = 20;

/// A line that is too long to be a capture.
#[derive(Debug, PartialEq)]
struct TooLong {
    line: u64,
    bytes: u64,
}

pub(super) async fn run(
    request: &dyn Fn(Vec<u8>) -> CaptureRequest,
    place: &Place,
    global: &Global,
    screen: Screen,
) -> Outcome {
    let mut lines = Lines { reader: std::io::stdin().lock(), number: 0, too_long: Vec::new() };
    let mut tally = Tally::default();
    let mut kept_total = 0;
    let mut server = None;
    loop {
        let batch = lines.batch().map_err(|error| Failure::usage(format!("cannot read stdin: {error}")))?;
        if batch.is_empty() {
            break;
        }
        let kept = place.save(batch.into_iter().map(request).collect())?;
        kept_total += kept.len();
        // Once one capture has to wait, the rest waits too.
        if tally.waits.is_none() {
            match server.get_or_insert_with(|| capture::server(global)) {
                Ok(server) => tally.add(deliver::send_all(&server.client, &place.spool, kept).await),
                Err(Unstored::Later(why)) => tally.waits = Some(Unstored::Later(why.clone())),
                Err(Unstored::Blocked(why) | Unstored::Never(why)) => {
                    tally.waits = Some(Unstored::Blocked(why.clone()));
                }
            }
        }
    }
    if kept_total == 0 && lines.too_long.is_empty() {
        return Err(Failure::usage("stdin is empty: every line that is not empty becomes a capture"));
    }
    if let (Some(Ok(server)), None) = (&server, &tally.waits) {
        capture::deliver_rest(&server.client, place).await;
    }
    let waiting = kept_total - tally.stored - tally.refused.len();
    tell(&tally, waiting, &lines.too_long, place, screen)?;
    let failed = match (tally.waits, tally.refused.pop(), lines.too_long.first()) {
        (Some(Unstored::Blocked(why) | Unstored::Never(why)), ..) => {
            let why = match &server {
                Some(Ok(server)) => server.explain_refusal(why),
                _ => why,
            };
            let dir = place.spool.dir().display();
            let kept = counted(waiting, "capture");
            why.hint(format_args!("{kept} kept in {dir} until delivered"))
        }
        (_, Some((path, why)), _) => {
            why.context("refused").hint(format_args!("it is kept in {}", path.display()))
        }
        (_, None, Some(_)) => {
            let most = limits::CAPTURE_BYTES_MAX;
            let named = lines.too_long.iter().take(LINES_NAMED);
            let named: Vec<_> = named.map(|l| format!("line {} ({} bytes)", l.line, l.bytes)).collect();
            let more = lines.too_long.len().saturating_sub(LINES_NAMED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let named = named.join(", ");
            Failure::failed(
                "too_large",
                format!("not captured: {named}{more}; a capture has at most {most} bytes"),
            )
        }
        (_, None, None) => return Ok(()),
    };
    Err(if screen.json { Failure::told() } else { failed })
}

fn tell(tally: &Tally, waiting: usize, too_long: &[TooLong], place: &Place, screen: Screen) -> Outcome {
    if screen.json {
        let refused: Vec<_> = tally
            .refused
            .iter()
            .map(|(path, why)| json!({ "kept_in": path.display().to_string(), "why": why.message() }))
            .collect();
        let too_long: Vec<_> = too_long.iter().map(|l| json!({ "line": l.line, "bytes": l.bytes })).collect();
        let kept_in = (waiting > 0).then(|| place.spool.dir().display().to_string());
        let said = json!({
            "captured": tally.stored + waiting, "stored": tally.stored, "kept": waiting, "kept_in": kept_in,
            "refused": refused, "too_large": too_long,
        });
        return screen.line(&json_inert(&said.to_string()));
    }
    screen.line(&format!("{} captured", tally.stored + waiting))?;
    if let Some(Unstored::Later(why)) = &tally.waits {
        remark(&place.says(why));
    }
    Ok(())
}

struct Lines<R> {
    reader: R,
    number: u64,
    too_long: Vec<TooLong>,
}

impl<R: BufRead> Lines<R> {
    /// The next lines that are not empty, without their ends; none at the end of all.
    fn batch(&mut self) -> std::io::Result<Vec<Vec<u8>>> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < limits::CAPTURES_MAX && bytes < BATCH_BYTES {
            let mut line = Vec::new();
            // One byte more for the line end, and one to detect a longer line.
            let most = limits::CAPTURE_BYTES_MAX as u64 + 2;
            if (&mut self.reader).take(most).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            self.number += 1;
            let ended = line.pop_if(|last| *last == b'\n').is_some();
            if ended && line.last() == Some(&b'\r') {
                line.pop();
            }
            if line.len() > limits::CAPTURE_BYTES_MAX {
                let rest = if ended { 0 } else { self.rest_of_line()? };
                self.too_long.push(TooLong { line: self.number, bytes: line.len() as u64 + rest });
            } else if !line.trim_ascii().is_empty() {
                bytes += line.len();
                batch.push(line);
            }
        }
        Ok(batch)
    }

    /// Passes over what is left of a line; answers how much that was.
    fn rest_of_line(&mut self) -> std::io::Result<u64> {
        let mut passed = 0;
        loop {
            let there = self.reader.fill_buf()?;
            let end = there.iter().position(|byte| *byte == b'\n');
            let (bytes, at_end) = (end.unwrap_or(there.len()), end.is_some() || there.is_empty());
            self.reader.consume(if end.is_some() { bytes + 1 } else { bytes });
            passed += bytes as u64;
            if at_end {
                return Ok(passed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> (Vec<Vec<u8>>, Vec<TooLong>) {
        let reader = std::io::BufReader::with_capacity(7, text);
        let mut lines = Lines { reader, number: 0, too_long: Vec::new() };
        let mut all = Vec::new();
        loop {
            let batch = lines.batch().unwrap();
            if batch.is_empty() {
                return (all, lines.too_long);
            }
            all.extend(batch);
        }
    }

    #[test]
    fn lines_are_taken_without_their_ends_and_empty_ones_are_none() {
        let (lines, too_long) = read(b"one\n\n \t\r\ntwo\r\n\xff\n three");
        assert_eq!(lines, [&b"one"[..], b"two", b"\xff", b" three"]);
        assert!(too_long.is_empty());
    }

    #[test]
    fn a_line_that_is_too_long_is_named_and_the_others_are_taken() {
        let most = limits::CAPTURE_BYTES_MAX;
        let text = [vec![b'a'; most], vec![b'b'; most + 1], vec![b'c'; most + 1_000], b"end".to_vec()];
        let (lines, too_long) = read(&text.join(&b'\n'));
        assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [most, 3]);
        let named: Vec<_> = too_long.iter().map(|l| (l.line, l.bytes)).collect();
        assert_eq!(named, [(2, most as u64 + 1), (3, most as u64 + 1_000)]);
    }
}

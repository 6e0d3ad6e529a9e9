//! Parses the answers of Redis. An answer of an unexpected form counts as empty.

use fernery_core::StreamName;
use fernery_engine::transport::{Away, Hint, MessageId, Note};
use redis::Value;

/// A message of a stream.
pub(super) struct Entry {
    pub(super) id: String,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Entry {
    /// The hint in it; `None` if the message does not have exactly our fields, each once.
    pub(super) fn hint(&self, stream: &StreamName) -> Option<Hint> {
        let field = |name: &str| {
            let mut found = self.fields.iter().filter(|(key, _)| key == name.as_bytes());
            let value = found.next().filter(|_| found.next().is_none())?;
            std::str::from_utf8(&value.1).ok()
        };
        let (place, version) = Note::read_enqueue_id(field("enqueue_id")?)?;
        let note = Note { stream: stream.clone(), job_id: field("job_id")?.parse().ok()?, place, version };
        Some(Hint { message: self.id.parse::<MessageId>().ok()?, note })
    }
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        _ => None,
    }
}

fn text(value: Value) -> Option<String> {
    String::from_utf8(bytes(value)?).ok()
}

fn array(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(n) => u64::try_from(*n).ok(),
        _ => None,
    }
}

/// `[[id, [field, value, …]], …]`. A message that was deleted has no fields.
pub(super) fn entries(value: Value) -> Vec<Entry> {
    let entry = |value| {
        let mut parts = array(value)?.into_iter();
        let id = text(parts.next()?)?;
        let mut values = array(parts.next()?).unwrap_or_default().into_iter();
        let mut fields = Vec::new();
        while let (Some(key), Some(value)) = (values.next(), values.next()) {
            fields.push((bytes(key)?, bytes(value)?));
        }
        Some(Entry { id, fields })
    };
    array(value).unwrap_or_default().into_iter().filter_map(entry).collect()
}

/// The entries found in each stream, by its index, and the streams whose group was created again.
pub(super) type Found = (Vec<(usize, Vec<Entry>)>, Vec<usize>);

/// The answer of the reading script.
pub(super) fn read(answer: Option<Value>) -> Result<Found, Away> {
    if let Some(Value::ServerError(error)) = &answer {
        return Err(Away(error.to_string()));
    }
    let taken_apart = || {
        let mut parts = array(answer?)?.into_iter();
        let mut found = Vec::new();
        for stream in array(parts.next()?)? {
            let mut stream = array(stream)?.into_iter();
            found.push((number(&stream.next()?)? as usize, entries(stream.next()?)));
        }
        let anew = array(parts.next()?)?.iter().filter_map(number).map(|n| n as usize).collect();
        Some((found, anew))
    };
    taken_apart().ok_or_else(|| Away("Redis answered a read with an unknown form".into()))
}

/// The answer of XREADGROUP for one stream: `[[stream, entries]]`, as a map in the newer protocol, or nil if there is nothing to
/// read. `None` if the command was refused; then nothing was read.
pub(super) fn read_one(answer: Option<Value>) -> Result<Option<Vec<Entry>>, Away> {
    let taken_apart = match answer {
        Some(Value::Nil) => Some(Vec::new()),
        Some(Value::ServerError(_)) => return Ok(None),
        Some(Value::Map(streams)) => streams.into_iter().next().map(|(_, found)| entries(found)),
        Some(found) => array(found)
            .and_then(|streams| array(streams.into_iter().next()?)?.into_iter().nth(1))
            .map(entries),
        None => None,
    };
    taken_apart.map(Some).ok_or_else(|| Away("Redis answered a read with an unknown form".into()))
}

/// `[next, entries, …]` of XAUTOCLAIM.
pub(super) fn claimed(value: Value) -> Option<(String, Vec<Entry>)> {
    let mut parts = array(value)?.into_iter();
    Some((text(parts.next()?)?, entries(parts.next()?)))
}

/// The number of pending messages, from XPENDING; `None` without a group.
pub(super) fn pending(value: Value) -> Option<u64> {
    number(array(value)?.first()?)
}

/// `last-generated-id` of XINFO STREAM.
pub(super) fn newest(value: Value) -> Option<MessageId> {
    pairs(value)
        .into_iter()
        .find(|(key, _)| key == "last-generated-id")
        .and_then(|(_, id)| text(id)?.parse().ok())
}

/// A reader of a stream.
pub(super) struct Reader {
    pub(super) name: String,
    pub(super) pending: u64,
    pub(super) idle_ms: u64,
}

/// The readers that XINFO CONSUMERS lists.
pub(super) fn consumers(value: Value) -> Vec<Reader> {
    let reader = |value| {
        let (mut name, mut pending, mut idle_ms) = (None, None, None);
        for (key, value) in pairs(value) {
            match key.as_str() {
                "name" => name = text(value),
                "pending" => pending = number(&value),
                "idle" => idle_ms = number(&value),
                _ => {}
            }
        }
        Some(Reader { name: name?, pending: pending?, idle_ms: idle_ms? })
    };
    array(value).unwrap_or_default().into_iter().filter_map(reader).collect()
}

fn pairs(value: Value) -> Vec<(String, Value)> {
    if let Value::Map(pairs) = value {
        return pairs.into_iter().filter_map(|(key, value)| Some((text(key)?, value))).collect();
    }
    let mut values = array(value).unwrap_or_default().into_iter();
    let mut pairs = Vec::new();
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        if let Some(key) = text(key) {
            pairs.push((key, value));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn hint_of(id: &str, fields: &[&str]) -> Option<Hint> {
        let fields = Value::Array(fields.iter().map(|text| bulk(text)).collect());
        let entry = entries(Value::Array(vec![Value::Array(vec![bulk(id), fields])])).pop().unwrap();
        entry.hint(&StreamName::stored("s"))
    }

    #[test]
    fn only_a_message_as_we_write_them_is_read() {
        let job = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";
        let hint = hint_of("5-1", &["job_id", job, "enqueue_id", "12-3"]).unwrap();
        assert_eq!(
            (hint.note.place, hint.note.version, hint.message.to_string()),
            (12, 3, "5-1".to_string())
        );
        for fields in [
            &["job_id", job][..],
            &["job_id", "x", "enqueue_id", "12-3"],
            &["job_id", job, "enqueue_id", "12"],
            &["job_id", job, "job_id", job, "enqueue_id", "12-3"],
            &["enqueue_id", "12-3"],
            &[],
        ] {
            assert_eq!(hint_of("5-1", fields), None, "{fields:?}");
        }
        assert_eq!(hint_of("18446744073709551615-1", &["job_id", job, "enqueue_id", "12-3"]), None);
    }

    #[test]
    fn an_answer_that_makes_no_sense_is_an_error_and_no_panic() {
        for answer in [Value::Nil, Value::Int(1), Value::Array(vec![]), Value::Array(vec![Value::Int(1)])] {
            assert!(read(Some(answer)).is_err());
        }
        assert!(read(None).is_err());
        assert!(consumers(Value::Array(vec![Value::Nil])).is_empty());
        assert_eq!(newest(Value::Nil), None);
    }
}

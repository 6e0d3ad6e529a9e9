//! Where the next page of a list starts, as opaque text.
//!
//! The text carries a checksum over the position and the filter: a cursor that was changed, or that belongs to another
//! list, is refused. It grants nothing: the filter of the request decides what is shown.

use crate::http::problem::{Code, Refusal, Refused};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

const CHECKSUM_BYTES: usize = 8;

fn checksum(position: &[u8], filter: &str) -> [u8; CHECKSUM_BYTES] {
    let mut sha = Sha256::new();
    sha.update(b"fernery cursor 1\0");
    sha.update((filter.len() as u64).to_le_bytes());
    sha.update(filter);
    sha.update(position);
    let mut first = [0; CHECKSUM_BYTES];
    first.copy_from_slice(&sha.finalize()[..CHECKSUM_BYTES]);
    first
}

/// Writes a position in the list that `filter` describes.
pub fn write(cursor: &impl Serialize, filter: &str) -> String {
    let mut bytes = serde_json::to_vec(cursor).unwrap_or_default();
    bytes.extend(checksum(&bytes, filter));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a position in the list that `filter` describes.
pub fn read<T: DeserializeOwned>(text: &str, filter: &str) -> Result<T, Refused> {
    let position = || {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (position, sum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
        (checksum(position, filter) == sum).then(|| serde_json::from_slice(position).ok())?
    };
    position().ok_or_else(foreign)
}

/// The refusal of a cursor that this server did not give out.
pub fn foreign() -> Refused {
    let detail = "the cursor does not belong to this list; start again without a cursor";
    Refusal::field(Code::BadCursor, "?cursor", detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fernery_core::JobId;
    use fernery_engine::store::Cursor;

    #[test]
    fn a_cursor_works_for_its_own_list_only() {
        let job_id: JobId = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        let text = write(&Cursor::Below(job_id), "jobs status=DEAD");
        assert_eq!(read::<Cursor>(&text, "jobs status=DEAD").unwrap(), Cursor::Below(job_id));
        assert!(read::<Cursor>(&text, "jobs").is_err());
        for forged in ["", "x", &text[1..], &text[..text.len() - 2], &format!("{text}AA")] {
            assert!(read::<Cursor>(forged, "jobs status=DEAD").is_err(), "{forged}");
        }
    }
}

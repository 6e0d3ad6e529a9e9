//! Bytes as hexadecimal digits in lower case.

use std::fmt::Write as _;

/// Two digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

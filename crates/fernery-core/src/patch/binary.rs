//! Content that changes as a whole: base 85 over zlib, as git writes it, unpacked here so that its size is known.

use super::lines::{Flaw, Lines};
use super::{Body, Head, is_nothing};
use crate::limits;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use sha1::{Digest, Sha1};

const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Both directions, as git always writes them. `unpacked` counts over the whole patch.
pub(super) fn read(lines: &mut Lines<'_>, head: &Head, unpacked: &mut u64) -> Result<Body, Flaw> {
    let number = lines.number();
    lines.next();
    let Some((old, new)) = &head.ids else {
        return Err(Flaw::new(number, "content without object ids: git diff --full-index"));
    };
    let bytes = block(lines, head.is_new, new, unpacked)?;
    block(lines, head.is_deleted, old, unpacked)?;
    Ok(Body::Binary { bytes })
}

/// One direction, from a file or from nothing to the object `id`; answers the size of the content that it makes.
fn block(lines: &mut Lines<'_>, from_nothing: bool, id: &str, unpacked: &mut u64) -> Result<u64, Flaw> {
    let begins = lines.number();
    let flaw = |why: &str| Flaw::new(begins, why);
    let header = lines.next().unwrap_or_default();
    let (kind, size) = header.split_once(' ').ok_or_else(|| flaw("`literal` or `delta` and a size"))?;
    let size: u64 = match size.parse() {
        Ok(number) if size.bytes().all(|b| b.is_ascii_digit()) => number,
        _ => return Err(flaw("`literal` or `delta` and a size")),
    };
    if !matches!(kind, "literal" | "delta") {
        return Err(flaw("`literal` or `delta` and a size"));
    }
    if kind == "delta" && from_nothing {
        return Err(flaw("a delta needs a file to start from"));
    }
    let mut packed = Vec::new();
    loop {
        let number = lines.number();
        match lines.next() {
            Some("") => break,
            Some(line) => line_85(line, &mut packed).ok_or_else(|| Flaw::new(number, "is not base 85"))?,
            None => return Err(Flaw::new(number, "the content is cut off")),
        }
    }
    let left = limits::PATCH_UNPACKED_BYTES_MAX.saturating_sub(*unpacked);
    let too_large = || flaw("its content is larger than is allowed when it is unpacked");
    if size > left {
        return Err(too_large());
    }
    let content = decompress_to_vec_zlib_with_limit(&packed, size as usize + 1)
        .map_err(|_| flaw("its content cannot be unpacked, or is larger than it says"))?;
    if content.len() as u64 != size {
        return Err(flaw("its content has another size than it says"));
    }
    let made = match kind {
        "delta" => delta_size(&content).ok_or_else(|| flaw("its delta is damaged"))?,
        _ => {
            // git takes an object that it has for what it is called, and looks no further.
            let nothing = size == 0 && is_nothing(id);
            if !nothing && object_id(&content) != id {
                return Err(flaw("its content is not the object that is named"));
            }
            size
        }
    };
    *unpacked += made.max(size);
    if *unpacked > limits::PATCH_UNPACKED_BYTES_MAX { Err(too_large()) } else { Ok(made) }
}

/// What git calls a file with this content.
fn object_id(content: &[u8]) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", content.len()));
    hash.update(content);
    crate::hex(&hash.finalize())
}

/// One line: its length as a letter, then five digits for four bytes.
fn line_85(line: &str, out: &mut Vec<u8>) -> Option<()> {
    let (length, digits) = line.as_bytes().split_first()?;
    let length = match length {
        b'A'..=b'Z' => length - b'A' + 1,
        b'a'..=b'z' => length - b'a' + 27,
        _ => return None,
    } as usize;
    if digits.len() != length.div_ceil(4) * 5 {
        return None;
    }
    let start = out.len();
    for five in digits.chunks_exact(5) {
        let mut value = 0_u64;
        for digit in five {
            value = value * 85 + DIGITS.iter().position(|d| d == digit)? as u64;
        }
        out.extend(u32::try_from(value).ok()?.to_be_bytes());
    }
    // What fills the last four bytes up is nothing.
    let filling = out.split_off(start + length);
    filling.iter().all(|byte| *byte == 0).then_some(())
}

/// The size of what a delta makes: the second of the two numbers that it begins with.
fn delta_size(delta: &[u8]) -> Option<u64> {
    let mut bytes = delta.iter();
    let mut number = || {
        let mut value = 0_u64;
        for shift in (0..63).step_by(7) {
            let byte = bytes.next()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    };
    number()?;
    number()
}

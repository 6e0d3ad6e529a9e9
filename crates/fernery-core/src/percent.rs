//! Percent-encoding of URLs, in one place. Decoding is strict: what is broken is refused, not passed on as it is.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// One segment of a path or one value of a query: everything but unreserved characters is encoded.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Whether two hexadecimal digits follow every percent sign.
pub fn is_well_formed(text: &str) -> bool {
    text.split('%').skip(1).all(|after| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// Undoes the encoding; `None` where it is broken or not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    if !is_well_formed(text) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok().map(Into::into)
}

/// As [`decode`], of a name or a value in a query string, where a plus sign is a space.
pub fn decode_query(text: &str) -> Option<String> {
    decode(&text.replace('+', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_encodings_are_refused() {
        for bad in ["%", "%2", "%zz", "%+f", "%ff", "a%", "%2%20"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
        assert_eq!(decode("a%2Fb%3a+").as_deref(), Some("a/b:+"));
        assert_eq!(decode_query("a%2Bb+c").as_deref(), Some("a+b c"));
    }

    #[test]
    fn what_was_encoded_is_decoded_to_the_same() {
        assert_eq!(encode("a-z.~_ /?&%+ü"), "a-z.~_%20%2F%3F%26%25%2B%C3%BC");
        for text in ["", "build", "a/b:c", "100 %", "ü€"] {
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        }
    }
}

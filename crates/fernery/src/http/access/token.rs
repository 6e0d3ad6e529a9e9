//! The form of a token: `fern_<id>_<secret><checksum>`.
//!
//! The id (12 hexadecimal digits) is public and names the row. The secret (64 digits, 256 random bits) is shown once; only
//! its SHA-256 is kept. The checksum (8 digits) lets a leak scanner, and this parser, tell a token from noise.

use fernery_engine::door;
use sha2::{Digest, Sha256};
use std::fmt;
use subtle::ConstantTimeEq;

const PREFIX: &str = "fern_";
const ID_CHARS: usize = 12;
const SECRET_CHARS: usize = 64;
const CHECKSUM_CHARS: usize = 8;

/// A whole token, secret included. Its debug form hides the secret.
#[derive(Clone)]
pub struct TokenText(String);

impl TokenText {
    /// A new one.
    pub fn random() -> Self {
        let id = hex(&door::random_bytes::<{ ID_CHARS / 2 }>());
        let secret = hex(&door::random_bytes::<{ SECRET_CHARS / 2 }>());
        let body = format!("{PREFIX}{id}_{secret}");
        let checksum = checksum(&body);
        Self(body + &checksum)
    }

    /// Checks the form; says nothing about whether the token is known.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let (id, tail) = rest.split_once('_')?;
        let shaped = id.len() == ID_CHARS && tail.len() == SECRET_CHARS + CHECKSUM_CHARS;
        let digits = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !shaped || !digits(id) || !digits(tail) {
            return None;
        }
        let body = &text[..text.len() - CHECKSUM_CHARS];
        (checksum(body) == text[body.len()..]).then(|| Self(text.to_string()))
    }

    /// The public id.
    pub fn id(&self) -> &str {
        &self.0[PREFIX.len()..PREFIX.len() + ID_CHARS]
    }

    /// The digest of the secret, as stored.
    pub fn secret_hash(&self) -> [u8; 32] {
        let start = PREFIX.len() + ID_CHARS + 1;
        Sha256::digest(&self.0[start..start + SECRET_CHARS]).into()
    }

    /// Whether this is the token whose hash is `kept`; in constant time.
    pub fn matches(&self, kept: &[u8; 32]) -> bool {
        self.secret_hash().ct_eq(kept).into()
    }

    /// The whole token, secret included.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenText({}…)", self.id())
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn checksum(body: &str) -> String {
    hex(&Sha256::digest(body)[..CHECKSUM_CHARS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognised_by_its_form_alone() {
        let token = TokenText::random();
        let again = TokenText::parse(token.reveal()).unwrap();
        assert_eq!(again.id(), token.id());
        assert!(again.matches(&token.secret_hash()));
        assert!(!TokenText::random().matches(&token.secret_hash()));
        let mut typo = token.reveal().to_string();
        typo.replace_range(30..31, if &typo[30..31] == "0" { "1" } else { "0" });
        for bad in ["", "fern_", "fern_x_y", &typo, &token.reveal()[1..], &token.reveal().to_uppercase()] {
            assert!(TokenText::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_token_does_not_print_its_secret() {
        let token = TokenText::random();
        assert!(format!("{token:?}").len() < 40);
    }
}

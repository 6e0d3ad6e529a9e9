//! The form of a token: `fern_<id>_<secret><checksum>`. The secrets of sessions and of sign-in links have the same form with
//! another prefix, so that none can be taken for another.
//!
//! The id (12 hexadecimal digits) is public and names the row. The secret (64 digits, 256 random bits) is shown once; only
//! its SHA-256 is kept. The checksum (8 digits) lets a leak scanner, and this parser, tell a token from noise.

use fernery_core::hex;
use fernery_engine::door;
use sha2::{Digest, Sha256};
use std::fmt;
use subtle::ConstantTimeEq;

const ID_CHARS: usize = 12;
const SECRET_CHARS: usize = 64;
const CHECKSUM_CHARS: usize = 8;

/// What a secret is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secret {
    /// A token: in the Authorization header of a program.
    Token,
    /// A session: in the cookie of a browser.
    Session,
    /// A link: once, in the path of a page.
    Link,
}

impl Secret {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Token => "fern_",
            Self::Session => "ferns_",
            Self::Link => "fernl_",
        }
    }
}

/// A whole token, secret included. Its debug form hides the secret.
#[derive(Clone)]
pub struct TokenText {
    text: String,
    of: Secret,
}

impl TokenText {
    /// A new token.
    pub fn random() -> Self {
        Self::random_as(Secret::Token)
    }

    /// A new token with an id that somebody chose; `None`: it is no id of a token.
    pub fn random_under(id: &str) -> Option<Self> {
        let is_id = id.len() == ID_CHARS && id.bytes().all(is_digit);
        is_id.then(|| Self::made(Secret::Token, id))
    }

    /// A new secret.
    pub fn random_as(of: Secret) -> Self {
        Self::made(of, &hex(&door::random_bytes::<{ ID_CHARS / 2 }>()))
    }

    fn made(of: Secret, id: &str) -> Self {
        let secret = hex(&door::random_bytes::<{ SECRET_CHARS / 2 }>());
        let body = format!("{}{id}_{secret}", of.prefix());
        let checksum = checksum(&body);
        Self { text: body + &checksum, of }
    }

    /// Checks the form of a token; says nothing about whether the token is known.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_as(Secret::Token, text)
    }

    /// The same for another secret.
    pub fn parse_as(of: Secret, text: &str) -> Option<Self> {
        let rest = text.strip_prefix(of.prefix())?;
        let (id, tail) = rest.split_once('_')?;
        let shaped = id.len() == ID_CHARS && tail.len() == SECRET_CHARS + CHECKSUM_CHARS;
        let digits = |text: &str| text.bytes().all(is_digit);
        if !shaped || !digits(id) || !digits(tail) {
            return None;
        }
        let body = &text[..text.len() - CHECKSUM_CHARS];
        (checksum(body) == text[body.len()..]).then(|| Self { text: text.to_string(), of })
    }

    /// The public id.
    pub fn id(&self) -> &str {
        let start = self.of.prefix().len();
        &self.text[start..start + ID_CHARS]
    }

    /// The digest of the secret, as stored.
    pub fn secret_hash(&self) -> [u8; 32] {
        Sha256::digest(self.secret()).into()
    }

    fn secret(&self) -> &str {
        let start = self.of.prefix().len() + ID_CHARS + 1;
        &self.text[start..start + SECRET_CHARS]
    }

    /// What the forms of a session carry: nobody can say it who has only seen the hash.
    pub fn form_key(&self) -> String {
        hex(&Sha256::digest(format!("form {}", self.secret()))[..16])
    }

    /// Whether this is the token whose hash is `kept`; in constant time.
    pub fn matches(&self, kept: &[u8; 32]) -> bool {
        self.secret_hash().ct_eq(kept).into()
    }

    /// The whole token, secret included.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenText({}…)", self.id())
    }
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
    fn no_secret_is_taken_for_another() {
        let all = [Secret::Token, Secret::Session, Secret::Link];
        for made in all {
            let text = TokenText::random_as(made);
            for read in all {
                assert_eq!(
                    TokenText::parse_as(read, text.reveal()).is_some(),
                    made == read,
                    "{made:?} {read:?}"
                );
            }
        }
    }

    #[test]
    fn a_token_does_not_print_its_secret() {
        let token = TokenText::random();
        assert!(format!("{token:?}").len() < 40);
    }
}

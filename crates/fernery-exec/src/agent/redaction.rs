//! Removes the secrets that an agent was given from its output, however the output is cut into pieces: a possible
//! beginning of a secret is held back until it is decided.

/// The replacement for a secret.
pub(super) const INSTEAD: &str = "[secret]";
/// Shortest secret that is looked for: shorter ones would match by chance.
pub(super) const SECRET_BYTES_MIN: usize = 8;

/// One stream of an agent's output.
#[derive(Debug)]
pub(super) struct Redaction {
    /// The longest first, since one may begin like another.
    secrets: Vec<Vec<u8>>,
    held: Vec<u8>,
}

impl Redaction {
    pub(super) fn new(secrets: &[String]) -> Self {
        let mut secrets: Vec<Vec<u8>> = secrets.iter().map(|secret| secret.clone().into_bytes()).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets, held: Vec::new() }
    }

    /// Takes a piece of output; answers what can be shown of it now.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.secrets.is_empty() {
            return bytes.to_vec();
        }
        self.held.extend_from_slice(bytes);
        self.shown(true)
    }

    /// The output has ended. A secret that was cut off is replaced too, if at least [`SECRET_BYTES_MIN`] bytes of it
    /// came.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let broken_off = self.secrets.iter().any(|secret| secret.starts_with(&self.held));
        if broken_off && self.held.len() >= SECRET_BYTES_MIN {
            self.held.clear();
            return INSTEAD.into();
        }
        self.shown(false)
    }

    fn shown(&mut self, more_may_come: bool) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let (mut shown, mut at) = (Vec::with_capacity(held.len()), 0);
        while at < held.len() {
            let rest = &held[at..];
            let begins = |secret: &&Vec<u8>| secret.len() > rest.len() && secret.starts_with(rest);
            if more_may_come && self.secrets.iter().any(|secret| begins(&secret)) {
                self.held = rest.to_vec();
                break;
            }
            match self.secrets.iter().find(|secret| rest.starts_with(secret)) {
                Some(secret) => {
                    shown.extend_from_slice(INSTEAD.as_bytes());
                    at += secret.len();
                }
                None => {
                    shown.push(held[at]);
                    at += 1;
                }
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(secrets: &[&str], pieces: &[&[u8]]) -> String {
        let secrets: Vec<String> = secrets.iter().map(ToString::to_string).collect();
        let mut redaction = Redaction::new(&secrets);
        let mut all: Vec<u8> = pieces.iter().flat_map(|piece| redaction.take(piece)).collect();
        all.extend(redaction.finish());
        String::from_utf8_lossy(&all).into_owned()
    }

    #[test]
    fn a_secret_is_caught_wherever_the_output_is_cut() {
        let text = b"key sk-0123456789, again: sk-0123456789sk-0123456789\nsk-0 sk-sk-0123456789.";
        let wanted = "key [secret], again: [secret][secret]\nsk-0 sk-[secret].";
        for at in 0..=text.len() {
            let (before, after) = text.split_at(at);
            assert_eq!(shown(&["sk-0123456789"], &[before, after]), wanted, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(shown(&["sk-0123456789"], &bytes), wanted);
        assert_eq!(shown(&[], &bytes), String::from_utf8_lossy(text));
    }

    #[test]
    fn of_secrets_that_begin_alike_nothing_is_left() {
        let both = ["sk-01234567", "sk-01234567-and-more"];
        assert_eq!(
            shown(&both, &[b"a sk-01234567", b"-and-more b sk-01234567 c"]),
            "a [secret] b [secret] c"
        );
        assert_eq!(shown(&both, &[b"a sk-01234567"]), "a [secret]");
    }

    #[test]
    fn what_is_held_back_comes_out_at_the_end() {
        assert_eq!(shown(&["sk-0123456789"], &[b"a line\nsk-"]), "a line\nsk-");
        assert_eq!(shown(&["sk-0123456789"], &[b"cut off: sk-01234567"]), "cut off: [secret]");
        let mut redaction = Redaction::new(&["sk-0123456789".to_string()]);
        assert_eq!(redaction.take(b"a line\n"), b"a line\n", "a whole line never waits");
    }
}

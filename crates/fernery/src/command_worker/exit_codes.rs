//! A set of exit codes as people write it: `64,65,70-78`, or `none`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A set of exit codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitCodes(Vec<RangeInclusive<u8>>);

impl ExitCodes {
    /// Whether this code is in it.
    pub fn contains(&self, code: i32) -> bool {
        u8::try_from(code).is_ok_and(|code| self.0.iter().any(|range| range.contains(&code)))
    }
}

impl FromStr for ExitCodes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(Vec::new()));
        }
        let code = |text: &str| match text.trim().parse::<u8>() {
            Ok(0) => Err("0 is success".to_string()),
            Ok(code) => Ok(code),
            Err(_) => Err(format!("{text:?} is not an exit code; expected codes like 64,65,70-78, or none")),
        };
        let range = |part: &str| match part.split_once('-') {
            None => code(part).map(|code| code..=code),
            Some((first, last)) => {
                let range = code(first)?..=code(last)?;
                if range.is_empty() {
                    Err(format!("{part:?} is a range that ends before it starts"))
                } else {
                    Ok(range)
                }
            }
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for ExitCodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(f, "none");
        }
        for (i, range) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match (range.start(), range.end()) {
                (first, last) if first == last => write!(f, "{comma}{first}")?,
                (first, last) => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_codes_reads_as_it_is_written() {
        let codes: ExitCodes = "64,65,70-78".parse().unwrap();
        assert_eq!(codes.to_string(), "64,65,70-78");
        let inside: Vec<i32> = (0..=255).filter(|code| codes.contains(*code)).collect();
        assert_eq!(inside, [64, 65, 70, 71, 72, 73, 74, 75, 76, 77, 78]);
        assert!(!codes.contains(-1) && !codes.contains(320));
        assert_eq!("none".parse::<ExitCodes>().unwrap().to_string(), "none");
        assert!("1-255".parse::<ExitCodes>().unwrap().contains(255));
    }

    #[test]
    fn what_is_no_exit_code_is_refused() {
        for bad in ["", "0", "256", "-1", "5-", "9-3", "1,,2", "x", "64;65"] {
            assert!(bad.parse::<ExitCodes>().is_err(), "{bad:?}");
        }
    }
}

//! Which files of a repository a command names itself: `sh ci/check` runs what ci/check says, so a gate with it relies on that
//! file whatever else it lists.

/// Files that a command may name, as paths from the root, whether they are there or not. A program that is looked up in PATH is
/// none of them.
pub fn named_files(argv: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let program = argv.first().filter(|program| program.contains('/'));
    for word in program.into_iter().chain(argv.iter().skip(1)) {
        if let Some(path) = from_root(word)
            && !found.contains(&path)
        {
            found.push(path);
        }
    }
    found
}

/// Modules that a command lets Python run (`-m`), as paths from the root without an ending. Python looks in the folder it is in
/// before it looks where its tools are installed.
pub fn named_modules(argv: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_next = false;
    for word in words(argv) {
        let glued = word.strip_prefix("-m").filter(|module| !module.is_empty());
        let module = glued.or(is_next.then_some(word));
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        if let Some(module) = module.filter(|module| module.chars().all(is_name)) {
            found.push(module.replace('.', "/"));
        }
        // Other letters may stand before it: `-Im`.
        let is_option = word.strip_prefix('-').is_some_and(|letters| letters.ends_with('m'));
        is_next = is_option && word[1..].chars().all(|c| c.is_ascii_alphabetic());
    }
    found
}

/// Whether Python takes a file for this module or, if the file is new, for the package at its root.
pub(super) fn is_of_module(module: &str, file: &str, is_new: bool) -> bool {
    let is = |module: &str| {
        let Some(rest) = file.strip_prefix(module) else { return false };
        let rest = rest.strip_prefix("/__init__").or_else(|| rest.strip_prefix("/__main__")).unwrap_or(rest);
        rest.starts_with('.') && !rest.contains('/')
    };
    is(module) || (is_new && is(module.split('/').next().unwrap_or_default()))
}

/// The words after the program, each as it is and, since it may be a line for a shell or `--option=value`, in its parts.
fn words(argv: &[String]) -> impl Iterator<Item = &str> {
    let apart = |c: char| c.is_whitespace() || ";&|()<>'\"`=$".contains(c);
    let program = argv.first().filter(|program| program.contains('/'));
    program.into_iter().chain(argv.iter().skip(1)).flat_map(move |word| {
        let parts = word.split(apart).filter(move |part| !part.is_empty() && part.len() < word.len());
        std::iter::once(word.as_str()).chain(parts)
    })
}

/// A path without its detours; `None`: it leads elsewhere, or is an option.
fn from_root(word: &str) -> Option<String> {
    if word.starts_with(['/', '-']) || word.ends_with('/') {
        return None;
    }
    let mut path: Vec<&str> = Vec::new();
    for part in word.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(path.pop()?),
            part => path.push(part),
        }
    }
    (!path.is_empty()).then(|| path.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_files_by_whole_words() {
        let of = |argv: &[&str]| named_files(&argv.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(of(&["sh", "ci/check"]), ["ci/check"]);
        assert_eq!(of(&["./ci//x/../check", "-v", "ci/check"]), ["ci/check"]);
        assert_eq!(of(&["sh", "-c", "cd a; ./b.sh&&c"]), ["cd a; ./b.sh&&c"]);
        assert_eq!(of(&["tool", "/etc/passwd", "../x", "a/../..", "src/", "."]), [""; 0]);
        assert_eq!(of(&[]), [""; 0]);
    }

    #[test]
    fn a_module_is_what_python_would_take_for_it() {
        let of = |argv: &[&str]| named_modules(&argv.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(of(&["python3", "-m", "unittest", "-v"]), ["unittest"]);
        assert_eq!(of(&["python3", "-Im", "a.b"]), ["a/b"]);
        assert_eq!(of(&["python3", "-mpytest"]), ["pytest"]);
        assert_eq!(of(&["sh", "-c", "cd . && python3 -m  pytest"]), ["pytest"]);
        assert_eq!(of(&["python3", "--m", "x", "-m"]), [""; 0]);
        for (file, changed, new) in [
            ("a/b.py", true, true),
            ("a/b/__main__.py", true, true),
            ("a.py", false, true),
            ("a/__init__.py", false, true),
            ("a/c.py", false, false),
            ("a/b/c.py", false, false),
            ("ab.py", false, false),
        ] {
            assert_eq!(
                (is_of_module("a/b", file, false), is_of_module("a/b", file, true)),
                (changed, new),
                "{file}"
            );
        }
    }
}

//! What holds for every template of the pages.

use std::path::{Path, PathBuf};

/// The templates of the pages.
fn templates(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            templates(&path, found);
        } else if path.extension().is_some_and(|end| end == "html") {
            found.push(path);
        }
    }
}

/// Forms whose button has no equivalent: they sign a browser in, or send what another form has sent.
const WITHOUT_WAYS: &[&str] = &["sign_in.html", "link.html", "doorway.html", "kept.html"];

#[test]
fn every_button_shows_the_same_from_elsewhere() {
    let mut found = Vec::new();
    templates(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/pages"), &mut found);
    let mut forms = 0;
    for path in found {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let text = std::fs::read_to_string(&path).expect("a template");
        for form in text.split("<form method=\"post\"").skip(1) {
            let form = form.split("</form>").next().expect("an end");
            let shown = form.split("{{").skip(1).filter_map(|part| part.split("}}").next());
            let ways = shown.map(str::trim).any(|it| {
                it.contains("ways") || matches!(it, "way" | "group.one" | "group.rest" | "group.purge")
            });
            assert!(ways || WITHOUT_WAYS.contains(&name), "a form of {name} shows no command: {form}");
            forms += 1;
        }
    }
    assert!(forms > 30, "only {forms} forms were found");
}

#[test]
fn every_key_of_a_page_stands_on_the_page_of_keys() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/pages");
    let told = std::fs::read_to_string(folder.join("keys.html")).expect("the page of keys");
    let mut found = Vec::new();
    templates(&folder, &mut found);
    let mut keys = 0;
    for path in found {
        let text = std::fs::read_to_string(&path).expect("a template");
        for key in text.split("data-key=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(told.contains(&format!("<kbd>{key}</kbd>")), "{key} of {}", path.display());
            keys += 1;
        }
    }
    assert!(keys > 10, "only {keys} keys were found");
}

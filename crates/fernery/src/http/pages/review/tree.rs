//! The files of a patch as a tree of folders, by name. The patch itself stands in the order of risk: here a risky file says why.

use super::super::show::inert;
use super::diff::FileShown;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Folders in folders that are shown as such; a path that goes on below stands in one line. A browser has a limit of its own.
const DEPTH_MAX: usize = 12;

#[derive(Default)]
struct Folder<'f> {
    folders: BTreeMap<&'f str, Folder<'f>>,
    /// Each with what of its path is below this folder.
    files: BTreeMap<&'f str, Vec<&'f FileShown>>,
}

/// The tree as HTML; nothing for a patch of one file.
pub(super) fn tree(files: &[FileShown]) -> String {
    if files.len() < 2 {
        return String::new();
    }
    let mut root = Folder::default();
    for file in files {
        root.put(&file.path.0, file, 0);
    }
    let mut html = String::new();
    root.write(&mut html);
    html
}

impl<'f> Folder<'f> {
    fn put(&mut self, path: &'f str, file: &'f FileShown, depth: usize) {
        match path.split_once('/') {
            Some((folder, rest)) if depth < DEPTH_MAX && !folder.is_empty() => {
                self.folders.entry(folder).or_default().put(rest, file, depth + 1);
            }
            // A file that becomes a link is in a patch twice.
            _ => self.files.entry(path).or_default().push(file),
        }
    }

    fn count(&self) -> usize {
        let below: usize = self.folders.values().map(Self::count).sum();
        below + self.files.values().map(Vec::len).sum::<usize>()
    }

    fn write(&self, html: &mut String) {
        html.push_str("<ul>");
        for (name, folder) in &self.folders {
            let mut names = vec![*name];
            let mut folder = folder;
            // Folders with nothing but one folder in them stand in one line.
            while let (true, Some((next, only))) =
                (folder.files.is_empty() && folder.folders.len() == 1, folder.folders.first_key_value())
            {
                names.push(next);
                folder = only;
            }
            html.push_str("<li><details open><summary><bdi>");
            others(html, &names.join("/"));
            let count = folder.count();
            let _ =
                write!(html, "/</bdi> <span class=dim>{count} {}</span></summary>", plural(count, "file"));
            folder.write(html);
            html.push_str("</details>");
        }
        for (name, files) in &self.files {
            for file in files {
                leaf(html, name, file);
            }
        }
        html.push_str("</ul>\n");
    }
}

fn leaf(html: &mut String, name: &str, file: &FileShown) {
    let _ = write!(html, "<li><a href=\"#file-{}\"><bdi>", file.place);
    others(html, name);
    let _ = write!(
        html,
        "</bdi></a> <span class=num><span class=plus>+{}</span> <span class=minus>−{}</span></span>",
        file.insertions, file.deletions
    );
    if !file.risk.is_empty() {
        let _ = write!(html, " <span class=\"tag late\">{}</span>", file.risk);
    }
    if !file.change.is_empty() {
        let _ = write!(html, " <span class=tag>{}</span>", file.change);
    }
    let viewed = if file.viewed == Some(true) { "viewed" } else { "" };
    let _ = write!(html, " <span class=viewed data-viewed-of=\"{}\">{viewed}</span>", file.place);
    if file.comments > 0 {
        let _ =
            write!(html, " <span class=dim>{} {}</span>", file.comments, plural(file.comments, "comment"));
    }
    html.push('\n');
}

fn plural(count: usize, one: &str) -> String {
    if count == 1 { one.to_string() } else { format!("{one}s") }
}

/// What others wrote; writing to a string does not fail.
fn others(html: &mut String, text: &str) {
    let _ = inert(html, text, ' ');
}

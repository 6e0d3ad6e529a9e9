//! What survives what. A process that dies is a spool that is dropped, or bytes that are cut off, without a word.

use super::super::job::tests::job;
use super::super::report::{End, Report};
use super::*;
use crate::wire::ErrorReport;
use tempfile::TempDir;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    (folder, path)
}

fn open(path: &Path) -> Opened {
    Spool::open(path).unwrap()
}

/// The success of job `n`, whose result has a line feed between its tokens.
fn success(n: u32) -> Report {
    Report::of(&job(n), End::Completed(serde_json::from_str(&format!("{{\n\"n\":{n}.50}}")).unwrap()))
}

fn failure(n: u32) -> Report {
    let error = ErrorReport { code: "c".into(), message: "m\n@".into(), stack: None, retryable: false };
    Report::of(&job(n), End::Failed(error))
}

fn attempts(reports: &[Report]) -> Vec<AttemptId> {
    reports.iter().map(|report| report.proof.attempt_id).collect()
}

fn files(path: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix))
        .collect();
    files.sort();
    files
}

fn text(report: &Report) -> String {
    serde_json::to_string(&report.item()).unwrap()
}

#[test]
fn what_was_kept_comes_back_to_the_byte_and_in_order() {
    let (_folder, path) = folder();
    let kept = [success(1), failure(2), success(3)];
    open(&path).spool.save(&kept).unwrap();
    let again = open(&path);
    assert!(again.damaged.is_none());
    assert_eq!(
        again.leftovers.iter().map(text).collect::<Vec<_>>(),
        kept.iter().map(text).collect::<Vec<_>>()
    );
    assert!(text(&again.leftovers[0]).contains("{\n\"n\":1.50}"));
}

#[test]
fn what_is_settled_does_not_come_back() {
    let (_folder, path) = folder();
    let mut spool = open(&path).spool;
    spool.save(&[success(1), success(2), success(3)]).unwrap();
    spool.forget(&attempts(&[success(1), success(3)]));
    drop(spool);
    let mut again = open(&path);
    assert_eq!(attempts(&again.leftovers), attempts(&[success(2)]));
    again.spool.forget(&attempts(&again.leftovers));
    drop(again);
    assert!(open(&path).leftovers.is_empty());
}

#[test]
fn a_spool_with_nothing_to_tell_takes_no_room() {
    let (_folder, path) = folder();
    let mut spool = open(&path).spool;
    for n in 0..100 {
        spool.save(&[success(n)]).unwrap();
        spool.forget(&attempts(&[success(n)]));
    }
    let sizes: Vec<u64> = files(&path, SEGMENT_PREFIX).iter().map(|f| f.metadata().unwrap().len()).collect();
    assert_eq!(sizes, [0]);
    drop(spool);
    open(&path);
    assert!(files(&path, SEGMENT_PREFIX).is_empty());
}

#[test]
fn a_long_spool_is_cut_into_segments_that_go_when_they_are_settled() {
    let (_folder, path) = folder();
    let mut spool = open(&path).spool;
    let large = |n| {
        let result = serde_json::value::to_raw_value(&"x".repeat(1 << 20)).unwrap();
        Report::of(&job(n), End::Completed(result))
    };
    for n in 0..20 {
        spool.save(&[large(n)]).unwrap();
    }
    assert_eq!(files(&path, SEGMENT_PREFIX).len(), 3);
    let (first, rest): (Vec<_>, Vec<_>) =
        (0..20).map(|n| large(n).proof.attempt_id).partition(|attempt| spool.unsettled[attempt] == 1);
    spool.forget(&first);
    assert_eq!(files(&path, SEGMENT_PREFIX).len(), 2);
    drop(spool);
    assert_eq!(attempts(&open(&path).leftovers), rest);
}

/// A write that the power cut anywhere: whole entries are read, the rest is set aside, nothing panics.
#[test]
fn a_write_cut_at_any_byte_loses_only_unacknowledged_entries() {
    let (_folder, path) = folder();
    let mut spool = open(&path).spool;
    spool.save(&[success(1)]).unwrap();
    let promised = files(&path, SEGMENT_PREFIX)[0].metadata().unwrap().len();
    spool.save(&[failure(2)]).unwrap();
    drop(spool);
    let segment = files(&path, SEGMENT_PREFIX)[0].clone();
    let whole = fs::read(&segment).unwrap();
    for cut in 0..=whole.len() {
        let read = entries::read(&whole[..cut]);
        let damaged = (cut as u64 != promised && cut != whole.len() && cut > 0) as usize;
        assert_eq!(read.damaged.len(), damaged, "cut at {cut}");
    }
    let borders = [0, promised as usize, whole.len()];
    let cuts = borders
        .iter()
        .flat_map(|border| border.saturating_sub(2)..border + 3)
        .filter(|cut| *cut <= whole.len());
    for cut in cuts {
        let (_folder, path) = folder();
        open(&path);
        fs::write(path.join("reports-00000001.spool"), &whole[..cut]).unwrap();
        let again = open(&path);
        let expected = match cut {
            n if n == whole.len() => 2,
            n if n as u64 >= promised => 1,
            _ => 0,
        };
        assert_eq!(again.leftovers.len(), expected, "cut at {cut}");
        assert_eq!(again.damaged.is_none(), borders.contains(&cut), "cut at {cut}");
        drop(again);
        let third = open(&path);
        assert_eq!(third.leftovers.len(), expected, "cut at {cut}, opened again");
        assert!(third.damaged.is_none(), "damage is found once");
    }
}

#[test]
fn a_damaged_entry_is_set_aside_and_its_neighbours_are_still_reported() {
    let (_folder, path) = folder();
    open(&path).spool.save(&[success(1), success(2), success(3)]).unwrap();
    let segment = files(&path, SEGMENT_PREFIX)[0].clone();
    let whole = fs::read(&segment).unwrap();
    let second = whole.windows(2).position(|window| window == b"\n@").unwrap() + 1;
    for place in [second, second + 5, second + 17, second + 40] {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        let (_folder, path) = folder();
        open(&path);
        fs::write(path.join("reports-00000007.spool"), bytes).unwrap();
        let again = open(&path);
        let (entries, aside) = again.damaged.clone().unwrap();
        let told = attempts(&again.leftovers);
        assert!(told.contains(&success(3).proof.attempt_id) && told.len() <= 2, "at {place}");
        assert_eq!(entries, 1);
        assert!(fs::read(&aside).unwrap().len() > 100);
        assert_eq!(aside.metadata().unwrap().mode() & 0o777, 0o600);
        drop(again);
        assert_eq!(attempts(&open(&path).leftovers), told, "what can be read stays");
    }
}

#[test]
fn any_bytes_can_be_opened() {
    let nonsense: [&[u8]; 8] = [
        b"\0\0\0\0",
        b"@",
        b"@\n@\n@",
        b"\n\n\n",
        b"@0000000000000000 {}\n",
        b"@zzzzzzzzzzzzzzzz {}\n",
        "@äääääääääääääääää\n".as_bytes(),
        &[0xff; 4096],
    ];
    for bytes in nonsense {
        let (_folder, path) = folder();
        open(&path);
        fs::write(path.join("reports-00000001.spool"), bytes).unwrap();
        let again = open(&path);
        assert!(again.leftovers.is_empty() && again.damaged.is_some());
        assert_eq!(fs::read(again.damaged.unwrap().1).unwrap(), bytes);
    }
}

/// The process dies after the new segment was written and before the damaged one was deleted.
#[test]
fn a_report_in_two_segments_is_told_once() {
    let (_folder, path) = folder();
    open(&path).spool.save(&[success(1)]).unwrap();
    fs::copy(path.join("reports-00000001.spool"), path.join("reports-00000002.spool")).unwrap();
    let again = open(&path);
    assert_eq!(again.leftovers.len(), 1);
}

/// A report that is kept again lies in the newer segment, and that one goes only with the last of its reports.
#[test]
fn keeping_a_report_again_loses_no_other_report() {
    let (_folder, path) = folder();
    let mut spool = open(&path).spool;
    spool.save(&[success(1)]).unwrap();
    spool.current = None;
    spool.save(&[success(1), success(2)]).unwrap();
    spool.current = None;
    spool.save(&[success(3)]).unwrap();
    spool.forget(&attempts(&[success(1)]));
    assert_eq!(files(&path, SEGMENT_PREFIX).len(), 2, "only the first has nothing to tell");
    drop(spool);
    assert_eq!(attempts(&open(&path).leftovers), attempts(&[success(2), success(3)]));
}

#[test]
fn what_another_has_left_is_taken_over_once() {
    let (folder, path) = folder();
    let left = folder.path().join("left");
    assert_eq!(gather_reports(&left, &path).unwrap(), Gathered::default());
    assert!(!left.exists(), "looking makes nothing");
    open(&left).spool.save(&[success(1), failure(2)]).unwrap();
    open(&path).spool.save(&[success(3)]).unwrap();
    assert_eq!(gather_reports(&left, &path).unwrap().reports, 2);
    assert_eq!(gather_reports(&left, &path).unwrap().reports, 0);
    assert!(open(&left).leftovers.is_empty());
    assert_eq!(attempts(&open(&path).leftovers), attempts(&[success(3), success(1), failure(2)]));
}

#[test]
fn what_cannot_be_taken_over_stays_where_it_is() {
    let (folder, path) = folder();
    let left = folder.path().join("left");
    let mut holder = open(&left);
    holder.spool.save(&[success(1)]).unwrap();
    assert!(gather_reports(&left, &path).unwrap_err().to_string().contains("in use"));
    drop(holder);
    fs::write(&path, "in the way").unwrap();
    assert!(gather_reports(&left, &path).is_err());
    assert_eq!(attempts(&open(&left).leftovers), attempts(&[success(1)]));
}

#[test]
fn one_process_at_a_time_and_the_message_names_the_other() {
    let (_folder, path) = folder();
    let holder = open(&path);
    let refused = Spool::open(&path).unwrap_err();
    assert!(refused.contains(&format!("in use by process {}", std::process::id())), "{refused}");
    drop(holder);
    open(&path);
}

#[test]
fn lease_tokens_are_for_the_owner_only() {
    let (_folder, path) = folder();
    open(&path).spool.save(&[success(1)]).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for file in files(&path, "") {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn an_open_directory_is_closed_if_it_is_empty_and_refused_if_it_is_somebody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made-by-hand");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    open(&path);
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);

    let path = folder.path().join("home");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("letter.txt"), "x").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = Spool::open(&path).unwrap_err();
    assert!(refused.contains("mode 755"), "{refused}");
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o755);
}

/// The directory is gone and cannot be made again, as with a disk that went away.
#[test]
fn a_spool_that_cannot_be_written_says_so_and_heals_when_it_can_be_again() {
    let (_folder, path) = folder();
    let mut spool = open(&path).spool;
    spool.save(&[success(1)]).unwrap();
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, "in the way").unwrap();
    for _ in 0..3 {
        assert!(spool.save(&[success(2)]).is_err());
        assert!(spool.save(&[]).is_err());
    }
    spool.forget(&attempts(&[success(1), success(2)]));
    fs::remove_file(&path).unwrap();
    spool.save(&[]).unwrap();
    spool.save(&[success(3)]).unwrap();
    assert!(Spool::open(&path).is_err(), "it is locked again");
    drop(spool);
    assert_eq!(attempts(&open(&path).leftovers), attempts(&[success(3)]));
}

#[test]
fn a_full_disk_leaves_no_half_entry_behind() {
    let (_folder, path) = folder();
    let mut spool = open(&path).spool;
    spool.save(&[success(1)]).unwrap();
    // A file that takes no more bytes, in place of the segment.
    let number = spool.current.as_ref().unwrap().number;
    let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
    let segment = std::mem::replace(&mut spool.current.as_mut().unwrap().file, full);
    let error = spool.save(&[success(2)]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    drop(segment);
    spool.save(&[success(3)]).unwrap();
    assert_ne!(spool.current.as_ref().unwrap().number, number, "nobody knows what is in the old one");
    drop(spool);
    let again = open(&path);
    assert!(again.damaged.is_none());
    assert_eq!(attempts(&again.leftovers), attempts(&[success(1), success(3)]));
}

use super::*;

fn request(raw: &[u8]) -> CaptureRequest {
    CaptureRequest { capture_id: Some(CaptureId::stored(&door::artifact_id())), ..carried(raw.to_vec()) }
}

fn spool() -> (tempfile::TempDir, Spool) {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::at(dir.path().join("a/captures"));
    (dir, spool)
}

#[test]
fn a_kept_capture_is_found_after_its_command_has_ended() {
    let (_dir, spool) = spool();
    assert!(spool.left_behind(9).unwrap().kept.is_empty());
    let requests = vec![request(b"one"), request(b"\xff two")];
    let kept = spool.save(requests.clone()).unwrap();
    assert!(spool.left_behind(9).unwrap().kept.is_empty(), "they are about to be sent");
    drop(kept);
    let found = spool.left_behind(9).unwrap().kept;
    assert_eq!(found.iter().map(|kept| kept.request.clone()).collect::<Vec<_>>(), requests);
    assert_eq!(raw(&found[1].request).unwrap(), b"\xff two");
    assert_eq!(spool.left_behind(1).unwrap().kept.len(), 1);
    spool.forget(&found[0]);
    spool.forget(&found[0]);
    assert_eq!(spool.left_behind(9).unwrap().kept.len(), 1);
}

#[test]
fn many_are_kept_with_one_sync() {
    let (_dir, spool) = spool();
    let many: Vec<_> = (0..20).map(|n| request(format!("{n}").as_bytes())).collect();
    spool.save(many.clone()).unwrap();
    let found = spool.left_behind(100).unwrap().kept;
    assert_eq!(found.into_iter().map(|kept| kept.request).collect::<Vec<_>>(), many);
}

#[test]
fn damaged_files_are_set_aside_and_unfinished_ones_are_left() {
    let (_dir, spool) = spool();
    spool.save(vec![request(b"good")]).unwrap();
    for (name, text) in [("a.json", "{"), ("b.json", "{}"), ("c.json", r#"{"capture_id":"c"}"#)] {
        fs::write(spool.dir().join(name), text).unwrap();
    }
    fs::write(spool.dir().join(".new-x"), "{").unwrap();
    let found = spool.left_behind(9).unwrap();
    assert_eq!((found.kept.len(), found.damaged.len()), (1, 3));
    assert!(found.damaged.iter().all(|path| path.exists() && path.parent().unwrap().ends_with("refused")));
    assert!(spool.dir().join(".new-x").exists());
    assert!(spool.left_behind(9).unwrap().damaged.is_empty());
}

#[test]
fn unfinished_files_are_removed_after_an_hour() {
    let (_dir, spool) = spool();
    spool.save(vec![request(b"good")]).unwrap();
    for (name, minutes) in [(".new-old", 61), (".new-young", 59), ("other", 600)] {
        let file = File::create(spool.dir().join(name)).unwrap();
        let at = door::wall_clock().as_millis() as u64 - minutes * 60_000;
        file.set_modified(UNIX_EPOCH + Duration::from_millis(at)).unwrap();
    }
    assert_eq!(spool.left_behind(9).unwrap().kept.len(), 1);
    let there = [".new-old", ".new-young", "other"].map(|name| spool.dir().join(name).exists());
    assert_eq!(there, [false, true, true]);
}

#[test]
fn captures_for_a_hindered_inbox_do_not_hold_up_others() {
    let (_dir, spool) = spool();
    let of = |azolla: &str| CaptureRequest { azolla_id: azolla.parse().ok(), ..request(b"x") };
    spool.save(vec![of("a"), of("a"), of("b")]).unwrap();
    let hindered = Hindered::from([(Some("a".parse().unwrap()), "no".to_string())]);
    let found = spool.left_behind_but(2, &hindered).unwrap().kept;
    assert_eq!(
        found.iter().map(|kept| kept.request.azolla_id.as_ref().unwrap().as_str()).collect::<Vec<_>>(),
        ["b"]
    );
}

#[test]
fn if_one_cannot_be_kept_none_is() {
    let (_dir, spool) = spool();
    let twice = request(b"the same id");
    assert!(spool.save(vec![request(b"other"), twice.clone(), twice]).is_err());
    assert_eq!(fs::read_dir(spool.dir()).unwrap().count(), 0);
}

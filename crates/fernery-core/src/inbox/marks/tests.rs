use super::*;
use crate::inbox::chaos::Chaos;

/// A Monday noon in UTC.
fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

fn read(text: &str) -> Marks {
    read_line(text, now(), &Zone::UTC)
}

/// All that was said, on one line.
fn said(text: &str) -> String {
    let marks = read(text);
    let mut parts = vec![marks.title];
    let grade = |name: &str, value: Option<u8>| value.map(|value| format!("{name}{value}"));
    parts.extend(grade("i", marks.importance));
    parts.extend(grade("u", marks.urgency));
    parts.extend(marks.due_at.map(|at| at.to_string()[..16].replace("T23:59", "")));
    for (sign, names) in [("+", marks.projects), ("@", marks.contexts), ("#", marks.labels)] {
        parts.extend(names.iter().map(|name| format!("{sign}{name}")));
    }
    parts.extend(marks.done.then(|| "done".to_string()));
    parts.extend(marks.done_on.map(|date| format!("done on {date}")));
    parts.extend(marks.written_on.map(|date| format!("written on {date}")));
    parts.join(" | ")
}

#[test]
fn what_is_certainly_a_mark_is_read_and_leaves_the_title() {
    for (text, expected) in [
        ("(A) fix --verbose +cli-tool @me due:fri", "fix --verbose | i0 | u2 | 2026-11-20 | +cli-tool | @me"),
        ("call mom tomorrow 5pm #family p1", "call mom | i0 | u1 | 2026-11-17T17:00 | #family"),
        ("call mom tomorrow at 9.", "call mom | u1 | 2026-11-17T09:00"),
        ("(B) b", "b | i1"),
        ("(Z) z", "z | i4"),
        ("p2 answer the mail", "answer the mail | i1"),
        ("P3 answer the mail", "answer the mail | i2"),
        ("!! answer", "answer | i1"),
        ("answer !!!", "answer | i0"),
        ("answer it!!", "answer it | i1"),
        ("answer asap", "answer | u0"),
        ("+a do it +b @c @d", "+a do it | +a | +b | @c | @d"),
        ("pay rent due:2026-11-30 @bank", "pay rent | u3 | 2026-11-30 | @bank"),
        ("pay due:2026-11-01 rent", "pay rent | u0 | 2026-11-01"),
        ("pay due:fri 5pm rent", "pay rent | u2 | 2026-11-20T17:00"),
        ("pay rent today", "pay rent | u1 | 2026-11-16"),
        ("pay rent in 3 days", "pay rent | u2 | 2026-11-19"),
        ("pay rent on 12 may", "pay rent | u4 | 2027-05-12"),
        ("pay rent by next monday", "pay rent | u2 | 2026-11-23"),
        ("pay rent eow", "pay rent | u2 | 2026-11-22"),
        ("pay rent - friday", "pay rent - friday | u2 | 2026-11-20"),
        ("pay rent, next week", "pay rent | u2 | 2026-11-23"),
        ("pay rent 2026-12-24", "pay rent | u4 | 2026-12-24"),
        ("ship it project:web priority:H", "ship it | i0 | +web"),
        ("ship it due:2026-12-01T17:30Z project:Web, ok", "ship it ok | u3 | 2026-12-01T17:30 | +Web"),
        (
            "x 2026-11-15 2026-11-01 (A) pay rent",
            "pay rent | i0 | done | done on 2026-11-15 | written on 2026-11-01",
        ),
        ("(A) 2026-11-01 pay rent", "pay rent | i0 | written on 2026-11-01"),
        ("p4\tlook\\x0D\nsecond line +no", "look | i3"),
    ] {
        assert_eq!(said(text), expected, "{text}");
    }
}

#[test]
fn what_is_only_maybe_a_mark_stays_in_the_title() {
    for (text, expected) in [
        ("fix --verbose +1 bug", ""),
        ("learn C++", ""),
        ("write to a@b.c", ""),
        ("read https://x.org/y#anchor", ""),
        ("see #123", ""),
        ("make it #fff", ""),
        ("may I ask", ""),
        ("sun is shining", ""),
        ("that is where he sat", " | u2 | 2026-11-21"),
        ("look at the sun", " | u2 | 2026-11-22"),
        ("http1 and ap1 and p12", ""),
        ("meet @ noon", ""),
        ("costs 5$ or $5", ""),
        ("option (a) is better than (A)", ""),
        ("(a) do it", ""),
        ("x is undefined", ""),
        ("Great news!", ""),
        ("notes from monday", ""),
        ("report since 2026-12-01", ""),
        ("what happened on 2026-11-01", ""),
        ("it is not urgent", ""),
        ("this is urgent", " | u0"),
        ("do it asap!", " | u0"),
        ("urgent: pay rent", " | u0"),
        ("fix the p1 incident now", " | i0"),
        ("talk to @bob", " | @bob"),
        ("ask @bob about +web today or later", " | u1 | 2026-11-16 | +web | @bob"),
        ("report for friday", " | u2 | 2026-11-20"),
        ("tomorrow call mom", " | u1 | 2026-11-17"),
        ("monday call mom", " | u2 | 2026-11-23"),
        ("meet by friday with bob", " | u2 | 2026-11-20"),
        ("meet friday with bob", ""),
        ("march 3 people through", " | u4 | 2027-03-03"),
        ("\"call mom tomorrow p1\"", ""),
        ("run `x due:fri` then", ""),
        ("due: fri-day", ""),
        ("due:never", ""),
        ("tomorrow", " | u1 | 2026-11-17"),
        ("+", ""),
        ("2026-11-01 old news", ""),
        ("5pm", ""),
        ("to do:", ""),
        ("note -", ""),
        ("ratio:3 at https://x.org:80/due:fri", ""),
    ] {
        assert_eq!(said(text), format!("{text}{expected}"), "{text}");
    }
}

#[test]
fn a_title_is_never_empty_and_never_long() {
    for (text, expected) in [
        ("", "(empty capture)"),
        (" \n\t\n", "(empty capture)"),
        ("\u{200b}\u{202e}", "(empty capture)"),
        ("\n\n  second  \n", "second"),
        ("(A) p1 !!! +x @y", "(A) p1 !!! +x @y"),
        ("\\x00\\xFF", "\\x00\\xFF"),
    ] {
        assert_eq!(read(text).title, expected, "{text:?}");
    }
    let long = read(&"word ".repeat(900));
    assert!(long.title.chars().count() <= 120 && long.title.ends_with("word…"), "{}", long.title);
}

#[test]
fn a_day_ends_where_the_writer_is() {
    let tokyo: Zone = "Asia/Tokyo".parse().unwrap();
    let late = "2026-11-16T16:00:00Z".parse().unwrap();
    let due_at = read_line("pay rent today", late, &tokyo).due_at.unwrap();
    assert_eq!(due_at.to_string(), "2026-11-17T14:59:59.000Z");
    let berlin: Zone = "Europe/Berlin".parse().unwrap();
    let due_at = read_line("wake up due:2027-03-28T02:30", now(), &berlin).due_at.unwrap();
    assert_eq!(due_at.to_string(), "2027-03-28T01:00:00.000Z");
}

#[test]
fn any_text_can_be_read() {
    let mut chaos = Chaos::new(5);
    for _ in 0..5_000 {
        let text = chaos.text(12);
        let at = Timestamp::from_millis(chaos.upto(1 << 31) as i64 * 100_000);
        let marks = read_line(&text, at, &Zone::UTC);
        assert!(!marks.title.is_empty() && marks.title.chars().count() <= 120, "{text:?}");
        assert!(
            marks.importance.is_none_or(|grade| grade <= 4) && marks.urgency.is_none_or(|grade| grade <= 4)
        );
        assert!(marks.due_at.is_none() || marks.urgency.is_some());
    }
}

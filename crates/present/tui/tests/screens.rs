//! Each screen at three sizes, and each state that a screen can be in.
#![allow(clippy::unwrap_used)]

mod common;

use common::{empty, text, view};
use ullage_tui::{Asked, Key, Known, Screen, Standing, View};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

fn keys(view: &mut View, typed: &str) {
    for sign in typed.chars() {
        assert_eq!(view.key(Key::Char(sign)), Asked::Draw, "{sign}");
    }
}

#[test]
fn each_screen_at_each_size() {
    for (key, name, _) in Screen::ALL {
        for (width, height) in SIZES {
            let mut view = view(4);
            view.key(Key::Char(key));
            insta::assert_snapshot!(format!("{name}_{width}x{height}"), text(&mut view, width, height));
        }
    }
}

#[test]
fn states() {
    let mut shown = Vec::new();
    let mut snapshot = |name: &str, view: &mut View| shown.push(format!("== {name}\n{}", text(view, 80, 16)));
    let mut reading = empty();
    snapshot("reading", &mut reading);
    reading.known = Some(Known {
        outcome: "was killed by SIGKILL after 11 min 40 s".into(),
        peak_bytes: Some(9 << 30),
        findings: vec!["The memory limit of cgroup /job was met".into()],
    });
    snapshot("reading, with the verdict", &mut reading);
    reading.state(std::sync::Arc::new(common::state(3, 4)));
    keys(&mut reading, "6");
    snapshot("and its first sample", &mut reading);
    reading = empty();
    reading.standing = Standing::Live;
    snapshot("no sample yet", &mut reading);
    reading.standing = Standing::Lost("no such directory".into());
    snapshot("lost", &mut reading);
    let mut frozen = view(4);
    keys(&mut frozen, " ");
    frozen.state(std::sync::Arc::new(common::state(700, 4)));
    snapshot("frozen while it goes on", &mut frozen);
    (0..60).for_each(|_| assert_eq!(frozen.key(Key::Left), Asked::Draw));
    snapshot("sixty steps back, before the kill", &mut frozen);
    frozen.key(Key::Escape);
    keys(&mut frozen, "/WORK");
    snapshot("a filter being typed", &mut frozen);
    frozen.key(Key::Enter);
    keys(&mut frozen, "s");
    snapshot("filtered and sorted", &mut frozen);
    let mut folded = view(40);
    folded.key(Key::Down);
    folded.key(Key::Enter);
    snapshot("folded", &mut folded);
    folded.key(Key::Enter);
    folded.key(Key::End);
    snapshot("the end of many", &mut folded);
    folded.standing = Standing::Ended("killed by SIGKILL after 11 min 40 s".into());
    keys(&mut folded, "G5");
    snapshot("ended", &mut folded);
    insta::assert_snapshot!("states", shown.join("\n"));
}

#[test]
fn stepping_goes_back_to_each_reading_and_forth_again() {
    let mut view = view(2);
    let newest = text(&mut view, 80, 24);
    view.key(Key::Left);
    let before = text(&mut view, 80, 24);
    assert!(before.contains("FROZEN 1.0 s ago") && before.contains("8 min 39 s"), "{before}");
    view.key(Key::Char('g'));
    let first = text(&mut view, 80, 24);
    assert!(first.contains("3.52 GiB"), "{first}");
    view.key(Key::Escape);
    assert_eq!(text(&mut view, 80, 24), newest);
}

#[test]
fn q_quits_but_not_while_a_filter_is_typed() {
    let mut view = view(1);
    keys(&mut view, "/q");
    view.key(Key::Enter);
    assert_eq!(view.key(Key::Char('q')), Asked::Quit);
}

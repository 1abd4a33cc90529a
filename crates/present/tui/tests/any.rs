//! Whatever the size of the terminal, the keys and the names: a frame, and nothing in it that steers a terminal.
#![allow(clippy::unwrap_used)]

mod common;

use common::{empty, screen, state, view};
use proptest::prelude::*;
use std::sync::Arc;
use ullage_job_state::{Exit, Happened, Identity, Weight};
use ullage_model::At;
use ullage_tui::{Key, Rect, View};

fn key() -> impl Strategy<Value = Key> {
    let named = [
        Key::Up,
        Key::Down,
        Key::Left,
        Key::Right,
        Key::FarLeft,
        Key::FarRight,
        Key::PageUp,
        Key::PageDown,
        Key::Home,
        Key::End,
        Key::Enter,
        Key::Escape,
        Key::Backspace,
    ];
    prop_oneof![
        prop::sample::select(named.to_vec()),
        prop::sample::select("123456?vhgGsj k/[]".chars().collect::<Vec<_>>()).prop_map(Key::Char),
        any::<char>().prop_map(Key::Char),
    ]
}

fn steers(text: &str) -> bool {
    text.chars().any(|c| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c))
}

fn hostile(name: &str) -> View {
    let mut view = empty();
    view.heading.command = vec![name.to_owned()];
    let mut state = state(1, 2);
    for process in &mut state.processes {
        process.identity = Arc::new(Identity {
            name: name.to_owned(),
            role: ullage_model::Role::Other,
            command: vec![name.to_owned()],
            ..Identity::clone(&process.identity)
        });
    }
    state.processes[1].exited = Some(Arc::new(Exit { at: At(5), how: name.to_owned(), failed: true }));
    state.memory.categories.push((name.to_owned(), 5));
    let mut segments = Vec::clone(state.segments.as_ref().unwrap());
    segments[0].name = name.to_owned();
    state.segments = Some(Arc::new(segments));
    view.state(Arc::new(state));
    view.happened(Happened { at: At(1), weight: Weight::Failure, text: name.to_owned() });
    view
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn sizes_and_keys(
        workers in 0_u32..70,
        steps in prop::collection::vec((key(), 0_u16..220, 0_u16..70), 1..25),
    ) {
        let mut view = empty();
        (1..40).for_each(|n| view.state(Arc::new(state(n * 15, workers))));
        for (n, (key, width, height)) in (600_u64..).zip(steps) {
            view.resized(width, height);
            view.key(key);
            let area = Rect::new(0, 0, width, height);
            prop_assert_eq!(view.draw(area).area, area);
            view.state(Arc::new(state(n, workers)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn hostile_names_steer_nothing(name in "[\u{1b}\u{9b}\u{7}\r\n\u{202e}\u{200f}a-c\\[;0-9mJH]{0,40}", width in 10_u16..150) {
        let mut view = hostile(&name);
        for sign in "123456?".chars() {
            view.key(Key::Char(sign));
            let drawn = screen(&view.draw(Rect::new(0, 0, width, 24)));
            prop_assert!(!steers(&drawn), "{drawn:?}");
        }
    }
}

#[test]
fn drawing_twice_gives_the_same_cells() {
    let view = view(9);
    let area = Rect::new(0, 0, 120, 40);
    assert_eq!(view.draw(area), view.draw(area));
}

//! What does a message of the agent say, where a field of it cannot be read? All that the others say.
//!
//! An agent speaks from inside a program that fails, and may be of another version than the reader. A field of an
//! unexpected type is no reason to lose an exception report: it is left out, alone, as if it had not been sent.

use serde_json::{Map, Value};
use ullage_model::AgentMessage;

/// One message of the agent; none where it is not one.
pub fn parse_message(bytes: &[u8]) -> Option<AgentMessage> {
    read_message(bytes).map(|(message, _)| message)
}

/// The same, and how many of its fields could not be read.
pub(crate) fn read_message(bytes: &[u8]) -> Option<(AgentMessage, u64)> {
    if let Ok(message) = serde_json::from_slice(bytes) {
        return Some((message, 0));
    }
    let Value::Object(mut fields) = serde_json::from_slice(bytes).ok()? else { return None };
    let kind = fields.remove("kind")?;
    let base = Map::from_iter([("kind".to_owned(), kind)]);
    // Some kinds need one field to be anything.
    let base = if is_message(&base, &Map::new()) {
        base
    } else {
        let needed = fields.iter().map(|(name, value)| Map::from_iter([(name.clone(), value.clone())]));
        let needed = needed.into_iter().find(|one| is_message(&base, one))?;
        together(&base, &needed)
    };
    let mut unread = 0;
    let reads = |some: &Value| some.as_object().is_some_and(|some| is_message(&base, some));
    let Value::Object(readable) = sift(Value::Object(fields), &reads, &mut unread)? else { return None };
    let message = serde_json::from_value(Value::Object(together(&base, &readable))).ok()?;
    Some((message, unread))
}

fn together(base: &Map<String, Value>, others: &Map<String, Value>) -> Map<String, Value> {
    let both = base.iter().chain(others);
    both.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn is_message(base: &Map<String, Value>, others: &Map<String, Value>) -> bool {
    serde_json::from_value::<AgentMessage>(Value::Object(together(base, others))).is_ok()
}

/// What of a value can be read. Each part is tried by itself in the place of the whole: no field depends on another.
fn sift(value: Value, reads: &dyn Fn(&Value) -> bool, unread: &mut u64) -> Option<Value> {
    if reads(&value) {
        return Some(value);
    }
    let parts = match value {
        Value::Object(fields) if reads(&Value::Object(Map::new())) => {
            let parts = fields.into_iter().filter_map(|(name, part)| {
                let whole = |part: &Value| Value::Object(Map::from_iter([(name.clone(), part.clone())]));
                let part = sift(part, &|part| reads(&whole(part)), unread)?;
                Some((name, part))
            });
            Value::Object(parts.collect())
        }
        Value::Array(items) if reads(&Value::Array(Vec::new())) => {
            let items = items.into_iter();
            let whole = |item: &Value| reads(&Value::Array(vec![item.clone()]));
            Value::Array(items.filter_map(|item| sift(item, &whole, unread)).collect())
        }
        _ => {
            *unread += 1;
            return None;
        }
    };
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_model::ExceptionReport;

    fn exception(text: &str) -> (ExceptionReport, u64) {
        match read_message(text.as_bytes()) {
            Some((AgentMessage::Exception(report), unread)) => (*report, unread),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_unreadable_field_is_left_out_alone() {
        let (report, unread) = exception(
            r#"{"kind":"exception","left":"main","name":null,"type_name":"OSError","errno":"twelve","text":"x",
            "counts":{"fds":1024,"nofile":-1,"mappings":[]},
            "stack":["a",7,"b"],"loader":{"workers":2,"batch_size":"all","weight":{"objects":7,"arrays":0.5}},"new in a later version":{"a":1}}"#,
        );
        assert_eq!(
            (report.type_name.as_str(), report.text.as_str(), report.name.as_str()),
            ("OSError", "x", "")
        );
        assert_eq!((report.errno, report.counts.fds, report.counts.nofile), (None, Some(1024), None));
        assert_eq!(report.stack, ["a", "b"]);
        let loader = report.loader.unwrap();
        assert_eq!((loader.workers, loader.batch_size), (2, None));
        assert_eq!(loader.weight.map(|weight| (weight.objects, weight.arrays)), Some((7, 0)));
        assert_eq!(unread, 7);
    }

    #[test]
    fn a_part_that_is_no_object_leaves_the_others() {
        let (report, unread) = exception(r#"{"kind":"exception","type_name":"E","counts":7,"chain":"none"}"#);
        assert_eq!((report.type_name.as_str(), unread), ("E", 2));
        assert_eq!(report.counts, Default::default());
    }

    #[test]
    fn what_is_readable_is_read_as_before() {
        let (report, unread) = exception(r#"{"kind":"exception","type_name":"E","unheard of":7}"#);
        assert_eq!((report.type_name.as_str(), unread), ("E", 0));
    }

    #[test]
    fn a_kind_that_needs_a_field_goes_on_with_it() {
        let read = read_message(br#"{"kind":"process","worker":-1,"name":"P","target":7}"#);
        let Some((AgentMessage::Process { name, worker, target, .. }, 2)) = read else { panic!("{read:?}") };
        assert_eq!((name.as_str(), worker, target.as_str()), ("P", None, ""));
        assert_eq!(read_message(br#"{"kind":"process","name":7,"worker":1}"#), None);
    }

    #[test]
    fn figures_that_are_none_leave_the_others() {
        let read =
            read_message(br#"{"kind":"memory","figures":{"anonymous":1.5,"blocks":null,"tensors":"many"}}"#);
        let Some((AgentMessage::Memory { figures }, 2)) = read else { panic!("{read:?}") };
        assert_eq!(figures.into_iter().collect::<Vec<_>>(), [("anonymous".to_owned(), 1.5)]);
    }

    #[test]
    fn nonsense_is_none() {
        for text in
            ["", "[]", "7", "{}", r#"{"kind":7}"#, r#"{"kind":"unheard of","a":1}"#, r#"{"kind":"bye"#]
        {
            assert_eq!(read_message(text.as_bytes()), None, "{text}");
        }
    }
}

//! The JSON of every verdict against docs/schema/verdict-1.json, checked by a small reader of that file's
//! subset of JSON Schema (a full validator would bring a hundred crates into the build).

mod verdicts;

use serde_json::{json, Value};
use ullage_report::json as report;

const SCHEMA: &str = include_str!("../../../../docs/schema/verdict-1.json");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema file is JSON")
}

#[test]
fn every_verdict_fits_the_schema() {
    let schema = schema();
    for (name, verdict) in verdicts::all() {
        let errors = check(&schema, &schema, &report::verdict(&verdict), name);
        assert!(errors.is_empty(), "{errors:#?}");
    }
}

#[test]
fn the_schema_names_every_key_that_is_written() {
    let schema = schema();
    let value = report::verdict(&verdicts::crash_established());
    let known = |object: &Value, place: &Value| {
        let names = place["properties"].as_object().expect("properties");
        for key in object.as_object().expect("object").keys() {
            assert!(names.contains_key(key), "{key} is not in the schema");
        }
    };
    known(&value, &schema);
    known(&value["outcome"], &schema["properties"]["outcome"]);
    known(&value["memory"], &schema["properties"]["memory"]);
    known(&value["cost"], &schema["properties"]["cost"]);
    let growing = report::verdict(&verdicts::growing());
    known(&growing["growth"], &schema["$defs"]["growth"]);
    known(&value["findings"][0], &schema["$defs"]["finding"]);
    known(&value["findings"][0]["process"], &schema["$defs"]["process"]);
    known(&value["findings"][0]["evidence"][0], &schema["$defs"]["evidence"]);
    known(&value["limits"][0], &schema["$defs"]["limit"]);
    let value = report::verdict(&verdicts::left_behind());
    let segments = &schema["properties"]["segments"];
    known(&value["segments"], segments);
    known(&value["segments"]["orphans"], &schema["$defs"]["segmentTotal"]);
    known(&value["segments"]["largest"][0], &schema["$defs"]["segment"]);
    known(&value["segments"]["largest"][0]["creator"], &schema["$defs"]["segmentCreator"]);
    known(&value["segments"]["by_creator"][0], &segments["properties"]["by_creator"]["items"]);
    known(&value["segments"]["tmpfs"][0], &segments["properties"]["tmpfs"]["items"]);
    let left = &segments["properties"]["left_behind"]["anyOf"][1];
    known(&value["segments"]["left_behind"], left);
    known(&value["segments"]["left_behind"]["managed"], &left["properties"]["managed"]);
}

#[test]
fn segments_have_the_documented_shape() {
    let value = report::verdict(&verdicts::left_behind());
    let segments = &value["segments"];
    assert_eq!(segments["by_kind"]["torch"], json!({"count": 1200, "bytes": 600 << 20, "not_told": 0}));
    assert_eq!(segments["largest"][0]["creator"]["process"]["role"], json!("loader worker 0"));
    assert_eq!(segments["largest"][1]["allocated_bytes"], json!({"missing": "no permission"}));
    assert_eq!(segments["largest"][1]["creator"]["of"], json!("unknown"));
    assert_eq!(segments["left_behind"]["segments"][0]["name"], json!("torch_4750_*"));
    assert_eq!(segments["left_behind"]["managed"]["managers"][0]["pid"], json!(4760));
    assert_eq!(report::verdict(&verdicts::healthy()).get("segments"), None, "never read");
}

#[test]
fn the_checker_sees_what_is_wrong() {
    let schema = schema();
    let good = report::verdict(&verdicts::crash_established());
    type Spoil = fn(&mut Value);
    let spoil: [(&str, Spoil); 7] = [
        ("schema number", |v| v["schema"] = json!(2)),
        ("missing key", |v| drop(v.as_object_mut().expect("object").shift_remove("healthy"))),
        ("type", |v| v["run"] = json!(3)),
        ("enum", |v| v["outcome"]["kind"] = json!("vanished")),
        ("range", |v| v["findings"][0]["confidence"] = json!(1.5)),
        ("limit", |v| v["limits"][0]["limit"] = json!("infinite")),
        ("missing without its reason", |v| v["limits"][0]["used"] = json!({"missing": 3})),
    ];
    for (what, change) in spoil {
        let mut bad = good.clone();
        change(&mut bad);
        assert!(!check(&schema, &schema, &bad, "").is_empty(), "{what} went unseen");
    }
}

#[test]
fn keys_stand_in_the_documented_order() {
    let text = report::verdict_text(&verdicts::crash_established());
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let keys = |v: &Value| v.as_object().expect("object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        keys(&value)[..11],
        [
            "schema",
            "run",
            "command",
            "outcome",
            "healthy",
            "findings",
            "limits",
            "memory",
            "undetermined",
            "not_seen",
            "cost"
        ]
    );
    assert_eq!(keys(&value["outcome"]), ["kind", "code", "signal", "by"]);
    assert_eq!(
        keys(&value["findings"][0])[..8],
        ["cause", "title", "severity", "confidence", "status", "process", "evidence", "fixes"]
    );
    assert_eq!(keys(&value["findings"][0]["process"]), ["pid", "start", "role", "name"]);
    assert_eq!(
        keys(&value["findings"][0]["evidence"][0])[..6],
        ["what", "value", "limit", "unit", "source", "at"]
    );
    assert_eq!(
        keys(&value["limits"][0])[..6],
        ["name", "scope", "used", "limit", "slope_per_s", "time_left_s"]
    );
    assert!(text.ends_with("}\n"));
}

#[test]
fn values_have_the_documented_shape() {
    let value = report::verdict(&verdicts::crash_established());
    assert_eq!(value["findings"][0]["evidence"][0]["value"], json!(65_530), "no fraction on a count");
    assert_eq!(value["findings"][0]["evidence"][0]["at"], json!(12.3));
    assert_eq!(value["limits"][4]["limit"], json!("unlimited"));
    assert_eq!(value["limits"][4]["headroom"], json!(null));
    assert_eq!(value["findings"][0]["process"]["role"], json!("trainer"));
    let value = report::verdict(&verdicts::missing_values());
    assert_eq!(value["limits"][0]["used"], json!({"missing": "ended before it could be read"}));
    assert_eq!(value["limits"][1]["limit"], json!({"missing": "not offered by this kernel"}));
    assert_eq!(value["findings"][0]["evidence"][0]["value"], json!({"missing": "no permission"}));
    assert_eq!(value["memory"]["peak_bytes"], json!({"missing": "no sample was taken"}));
    let value = report::verdict(&verdicts::memcg());
    assert_eq!(value["findings"][0]["process"], json!(null));
    assert_eq!(
        value["outcome"],
        json!({"kind": "oom-kill", "code": null, "signal": 9, "by": "kernel memcg"})
    );
}

/// What is wrong with `value` by `schema`, one line each.
fn check(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut errors = Vec::new();
    for (word, rule) in schema.as_object().expect("a schema is an object") {
        match word.as_str() {
            "$schema" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let name = rule.as_str().and_then(|r| r.strip_prefix("#/$defs/")).expect("a local reference");
                assert!(root["$defs"][name].is_object(), "no definition {name}");
                errors.extend(check(root, &root["$defs"][name], value, place));
            }
            "const" if rule != value => errors.push(format!("{place}: {value} is not {rule}")),
            "const" => {}
            "enum" if !rule.as_array().expect("enum").contains(value) => {
                errors.push(format!("{place}: {value} is none of {rule}"));
            }
            "enum" => {}
            "type" => {
                let allowed = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                if !allowed.iter().any(|t| is_type(value, t.as_str().expect("type name"))) {
                    errors.push(format!("{place}: {value} is not of type {rule}"));
                }
            }
            "minimum" if value.as_f64() < rule.as_f64() => {
                errors.push(format!("{place}: {value} is too small"))
            }
            "maximum" if value.as_f64() > rule.as_f64() => {
                errors.push(format!("{place}: {value} is too large"))
            }
            "minimum" | "maximum" => {}
            "anyOf" => {
                let any = rule.as_array().expect("anyOf");
                if !any.iter().any(|s| check(root, s, value, place).is_empty()) {
                    errors.push(format!("{place}: {value} fits none of {rule}"));
                }
            }
            "required" => {
                for key in rule.as_array().expect("required") {
                    if value.get(key.as_str().expect("key")).is_none() {
                        errors.push(format!("{place}: {key} is missing"));
                    }
                }
            }
            "properties" => {
                for (key, inner) in rule.as_object().expect("properties") {
                    if let Some(found) = value.get(key) {
                        errors.extend(check(root, inner, found, &format!("{place}.{key}")));
                    }
                }
            }
            "additionalProperties" => {
                let named = &schema["properties"];
                for (key, found) in value.as_object().into_iter().flatten() {
                    match rule {
                        _ if named.get(key).is_some() => {}
                        Value::Bool(false) => errors.push(format!("{place}: {key} is not allowed")),
                        inner => errors.extend(check(root, inner, found, &format!("{place}.{key}"))),
                    }
                }
            }
            "items" => {
                for (i, found) in value.as_array().into_iter().flatten().enumerate() {
                    errors.extend(check(root, rule, found, &format!("{place}[{i}]")));
                }
            }
            other => panic!("the schema uses {other}, which this test does not know"),
        }
    }
    errors
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("unknown type {other}"),
    }
}

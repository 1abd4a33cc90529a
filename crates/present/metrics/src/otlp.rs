//! Samples as OTLP: the protobuf message that a collector of OpenTelemetry takes at `/v1/metrics`.
//!
//! A name is Prometheus' own without its unit, which OTLP has a field for: Prometheus, which puts both together again, calls
//! a series that was pushed as it calls one that it scraped. Source: opentelemetry-proto 1.7, `metrics.proto`, `common.proto`;
//! OpenTelemetry, "Prometheus and OpenMetrics Compatibility".

use crate::metric::{Kind, Metric};
use crate::samples::Samples;
use prost::Message;

/// AGGREGATION_TEMPORALITY_CUMULATIVE: since the run began.
const CUMULATIVE: i32 = 2;
const SCOPE: &str = "ullage";

/// All of them, as they were at this time in nanoseconds since 1970; `resource` says who sends them.
pub fn otlp(samples: &Samples, resource: &[(String, String)], at_unix_ns: u64, version: &str) -> Vec<u8> {
    let mut metrics: Vec<OneMetric> = Vec::new();
    let mut metric_before = None;
    for (metric, run, labels, value) in samples.each() {
        if metric_before.replace(metric) != Some(metric) {
            metrics.push(OneMetric::new(metric));
        }
        let named = metric.labels().iter().zip(labels).filter(|(_, value)| !value.is_empty());
        let attributes = std::iter::once(attribute("run", run));
        let attributes = attributes.chain(named.map(|(name, value)| attribute(name, value))).collect();
        let point = Point { time_unix_nano: at_unix_ns, value: Some(value), attributes };
        match metrics.last_mut() {
            Some(OneMetric { gauge: Some(gauge), .. }) => gauge.points.push(point),
            Some(OneMetric { sum: Some(sum), .. }) => sum.points.push(point),
            _ => {}
        }
    }
    let scope = Scope { name: SCOPE.into(), version: version.into() };
    let resource =
        Resource { attributes: resource.iter().map(|(key, value)| attribute(key, value)).collect() };
    let of_resource = ResourceMetrics {
        resource: Some(resource),
        scopes: vec![ScopeMetrics { scope: Some(scope), metrics }],
    };
    Request { resources: vec![of_resource] }.encode_to_vec()
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { string: Some(value.into()) }) }
}

impl OneMetric {
    fn new(metric: Metric) -> OneMetric {
        let (name, unit) = name_and_unit(metric.name());
        let of = |kind| metric.kind() == kind;
        OneMetric {
            name,
            description: metric.help().into(),
            unit: unit.into(),
            gauge: of(Kind::Gauge).then(Gauge::default),
            sum: of(Kind::Counter).then(|| Sum {
                points: Vec::new(),
                temporality: CUMULATIVE,
                monotonic: true,
            }),
        }
    }
}

/// `ullage_memory_bytes` is `ullage.memory` in `By`.
fn name_and_unit(prometheus: &str) -> (String, &'static str) {
    const UNITS: [(&str, &str); 4] =
        [("_bytes_per_second", "By/s"), ("_bytes", "By"), ("_seconds", "s"), ("_ratio", "1")];
    let whole = prometheus.trim_end_matches("_total");
    let found = UNITS.iter().find_map(|(suffix, unit)| Some((whole.strip_suffix(suffix)?, *unit)));
    let (name, unit) = found.unwrap_or((whole, ""));
    (name.replacen('_', ".", 1), unit)
}

// The messages, as far as they are sent: what is left out has its default.

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<OneMetric>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

/// `gauge` and `sum` are of one `oneof`: just one of them is there.
#[derive(Clone, PartialEq, Message)]
struct OneMetric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(message, optional, tag = "5")]
    gauge: Option<Gauge>,
    #[prost(message, optional, tag = "7")]
    sum: Option<Sum>,
}

#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(message, repeated, tag = "1")]
    points: Vec<Point>,
}

#[derive(Clone, PartialEq, Message)]
struct Sum {
    #[prost(message, repeated, tag = "1")]
    points: Vec<Point>,
    #[prost(int32, tag = "2")]
    temporality: i32,
    #[prost(bool, tag = "3")]
    monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Point {
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    /// Of a `oneof`, so that a 0 is sent as well.
    #[prost(double, optional, tag = "4")]
    value: Option<f64>,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    string: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_makes_the_same_name_of_name_and_unit() {
        for metric in Metric::ALL {
            let (name, unit) = name_and_unit(metric.name());
            let suffix = match unit {
                "By/s" => "_bytes_per_second",
                "By" => "_bytes",
                "s" => "_seconds",
                "1" => "_ratio",
                _ => "",
            };
            let total = if metric.kind() == Kind::Counter { "_total" } else { "" };
            assert_eq!(format!("{}{suffix}{total}", name.replace('.', "_")), metric.name());
            assert!(name.starts_with("ullage.") && !name.ends_with("_total"), "{name}");
        }
    }

    #[test]
    fn each_sample_is_a_point_of_its_metric() {
        let now =
            serde_json::json!({"run": "r", "oom_kills": 0, "memory": {"categories": {"heap": 7, "shm": 3}}});
        let samples = Samples::live(&now);
        let sender = [("host.name".to_owned(), "n1".to_owned())];
        let request = Request::decode(&otlp(&samples, &sender, 5, "0.1")[..]).unwrap();
        let of_resource = &request.resources[0];
        assert_eq!(of_resource.resource.as_ref().unwrap().attributes, [attribute("host.name", "n1")]);
        let metrics = &of_resource.scopes[0].metrics;
        let memory = metrics.iter().find(|metric| metric.name == "ullage.memory").unwrap();
        let point = |value: f64, category: &str| Point {
            time_unix_nano: 5,
            value: Some(value),
            attributes: vec![attribute("run", "r"), attribute("category", category)],
        };
        assert_eq!(memory.gauge.as_ref().unwrap().points, [point(7.0, "heap"), point(3.0, "shm")]);
        assert_eq!((memory.unit.as_str(), &memory.sum), ("By", &None));
        let kills = metrics.iter().find(|metric| metric.name == "ullage.oom_kills").unwrap();
        let sum = kills.sum.as_ref().unwrap();
        assert_eq!((sum.points[0].value, sum.temporality, sum.monotonic), (Some(0.0), 2, true));
        // A command of nothing is no attribute.
        let info = metrics.iter().find(|metric| metric.name == "ullage.run_info").unwrap();
        assert_eq!(info.gauge.as_ref().unwrap().points[0].attributes, [attribute("run", "r")]);
    }
}

//! `ullage serve --otlp [URL]`: how the live runs stand, pushed to a collector of OpenTelemetry.
//!
//! A thread of its own sends all that a scrape would show, once an interval, and says once that nobody takes it. What is
//! not taken is not kept: the next push says how it is then. Source: OpenTelemetry, "Protocol Exporter" and "SDK environment
//! variables".

use crate::live_runs::LiveRuns;
use crate::printer;
use anyhow::{bail, Context};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use ullage_metrics::otlp;
use ullage_report::format;

/// Where a collector on this machine listens by default.
const DEFAULT: &str = "http://localhost:4318";
const PATH: &str = "/v1/metrics";
const INTERVAL: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(10);
/// Characters of what a collector says where it takes nothing.
const MOST_SAID: usize = 200;

/// Where, how often and as whom.
#[derive(Debug, PartialEq)]
pub struct Settings {
    url: String,
    interval: Duration,
    timeout: Duration,
    headers: Vec<(String, String)>,
    resource: Vec<(String, String)>,
}

impl Settings {
    /// Of `--otlp URL` (empty where it has none) and the variables of OpenTelemetry; `host` is this machine's name.
    ///
    /// # Errors
    /// Where a collector could never be reached by them: another protocol, no URL of HTTP, a number that is none.
    pub fn new(url: &str, host: &str, variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Settings> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        // One for metrics goes before one for everything.
        let of = |name: &str| {
            set(&format!("OTEL_EXPORTER_OTLP_METRICS_{name}"))
                .or_else(|| set(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        if let Some(protocol) = of("PROTOCOL").filter(|protocol| protocol != "http/protobuf") {
            if url.is_empty() {
                bail!("OTEL_EXPORTER_OTLP_PROTOCOL={protocol}: ullage pushes http/protobuf only, so name the collector's URL for that: --otlp {DEFAULT}{PATH}");
            }
        }
        let url = match url {
            "" => match (set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"), set("OTEL_EXPORTER_OTLP_ENDPOINT")) {
                // As it is: https://opentelemetry.io/docs/specs/otel/protocol/exporter/#endpoint-urls-for-otlphttp
                (Some(whole), _) => whole,
                (None, base) => {
                    format!("{}{PATH}", base.as_deref().unwrap_or(DEFAULT).trim_end_matches('/'))
                }
            },
            url => url.to_owned(),
        };
        if url.starts_with("https://") {
            bail!("{url}: ullage speaks no TLS. Push to a collector on this machine (http://…), which passes it on");
        }
        if !url.strip_prefix("http://").is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')) {
            bail!("{url:?} is no URL of a collector, such as {DEFAULT}{PATH}");
        }
        let milliseconds = |name: &str, value: Option<String>, otherwise: Duration| match value {
            None => Ok(otherwise),
            Some(text) => match text.trim().parse::<u64>() {
                Ok(number) if number > 0 => Ok(Duration::from_millis(number)),
                _ => bail!("{name}={text}: it must be a whole number of milliseconds"),
            },
        };
        let interval = "OTEL_METRIC_EXPORT_INTERVAL";
        let interval = milliseconds(interval, set(interval), INTERVAL)?;
        let timeout = milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", of("TIMEOUT"), TIMEOUT)?;
        let mut resource = pairs(&set("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
        if let Some(name) = set("OTEL_SERVICE_NAME") {
            resource.retain(|(key, _)| key != "service.name");
            resource.push(("service.name".into(), name));
        }
        // One `ullage serve` on a node: its host tells it from others.
        for (key, value) in [("service.name", "ullage"), ("service.instance.id", host), ("host.name", host)] {
            if !resource.iter().any(|(there, _)| there == key) {
                resource.push((key.into(), value.into()));
            }
        }
        Ok(Settings { url, interval, timeout, headers: pairs(&of("HEADERS").unwrap_or_default()), resource })
    }

    /// Where it is pushed to.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// `key1=value1,key2=value2`, with what RFC 3986 escapes.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |one: &str| {
        let (key, value) = one.split_once('=')?;
        Some((key.trim().to_owned(), unescaped(value.trim()))).filter(|(key, _)| !key.is_empty())
    };
    text.split(',').filter_map(pair).collect()
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = match after {
            [a, b, ..] if *first == b'%' => {
                std::str::from_utf8(&[*a, *b]).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok())
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Pushes from now on, in a thread of its own.
///
/// # Errors
/// Where there is no thread.
pub fn begin(settings: Settings, home: PathBuf) -> anyhow::Result<()> {
    let push = move || {
        let agent = ureq::Agent::new_with_config(
            ureq::Agent::config_builder()
                .timeout_global(Some(settings.timeout))
                .http_status_as_error(false)
                .build(),
        );
        let (mut runs, mut said) = (LiveRuns::below(home), false);
        loop {
            let began = Instant::now();
            if let Err(error) = push(&agent, &settings, &mut runs) {
                if !std::mem::replace(&mut said, true) {
                    printer::remark(&format!("no metrics at {} (--otlp): {error:#}", settings.url));
                }
            } else if std::mem::take(&mut said) {
                printer::remark(&format!("metrics are taken again at {} (--otlp)", settings.url));
            }
            std::thread::sleep(settings.interval.saturating_sub(began.elapsed()));
        }
    };
    std::thread::Builder::new()
        .name("otlp".into())
        .spawn(push)
        .context("metrics cannot be pushed (--otlp)")?;
    Ok(())
}

fn push(agent: &ureq::Agent, settings: &Settings, runs: &mut LiveRuns) -> anyhow::Result<()> {
    let samples = runs.samples();
    if samples.is_empty() {
        return Ok(());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    let message = otlp(&samples, &settings.resource, now, env!("CARGO_PKG_VERSION"));
    let mut request = agent.post(&settings.url).header("content-type", "application/x-protobuf");
    for (name, value) in &settings.headers {
        request = request.header(name, value);
    }
    let mut answer = request.send(&message[..])?;
    if !answer.status().is_success() {
        let said = answer.body_mut().read_to_string().unwrap_or_default();
        let line = format::clean(
            &said.lines().next().unwrap_or_default().chars().take(MOST_SAID).collect::<String>(),
        );
        bail!("it answers {} {line}", answer.status());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str, variables: &[(&str, &str)]) -> anyhow::Result<Settings> {
        let there = |name: &str| {
            variables.iter().find(|(there, _)| *there == name).map(|(_, value)| (*value).to_owned())
        };
        Settings::new(url, "n1", there)
    }

    #[test]
    fn the_variables_of_opentelemetry_say_where_and_how() {
        let plain = of("", &[]).unwrap();
        assert_eq!(
            (plain.url(), plain.interval, plain.timeout),
            ("http://localhost:4318/v1/metrics", INTERVAL, TIMEOUT)
        );
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        assert_eq!(of("", &[base]).unwrap().url(), "http://c:4318/v1/metrics");
        let whole = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://c/x");
        assert_eq!(of("", &[base, whole]).unwrap().url(), "http://c/x");
        assert_eq!(
            of("http://d:9090/api/v1/otlp/v1/metrics", &[base, whole]).unwrap().url(),
            "http://d:9090/api/v1/otlp/v1/metrics"
        );
        let set = of(
            "",
            &[
                ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
                ("OTEL_EXPORTER_OTLP_TIMEOUT", "9"),
                ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "7"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "a=b%20c, x = y,=,z"),
                ("OTEL_RESOURCE_ATTRIBUTES", "team=vision,service.name=other"),
                ("OTEL_SERVICE_NAME", "mine"),
            ],
        )
        .unwrap();
        assert_eq!((set.interval, set.timeout), (Duration::from_millis(1500), Duration::from_millis(7)));
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(set.headers, [pair("a", "b c"), pair("x", "y")]);
        let resource = [
            ("team", "vision"),
            ("service.name", "mine"),
            ("service.instance.id", "n1"),
            ("host.name", "n1"),
        ];
        assert_eq!(set.resource, resource.map(|(key, value)| pair(key, value)));
    }

    #[test]
    fn what_could_never_arrive_is_refused_with_the_way_out() {
        for (url, variables, says) in [
            ("https://c/v1/metrics", &[][..], "no TLS"),
            ("c:4318", &[], "no URL"),
            ("http://", &[], "no URL"),
            ("", &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "--otlp http://localhost:4318/v1/metrics"),
            ("", &[("OTEL_METRIC_EXPORT_INTERVAL", "0")], "OTEL_METRIC_EXPORT_INTERVAL=0"),
            ("", &[("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")], "milliseconds"),
        ] {
            let error = format!("{:#}", of(url, variables).unwrap_err());
            assert!(error.contains(says), "{error}");
        }
        assert!(of("http://c/", &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).is_ok(), "it was named");
    }

    #[test]
    fn escapes_that_are_none_stand_as_they_are() {
        for (text, whole) in [("%41b%", "Ab%"), ("%zz%4", "%zz%4"), ("%C3%A9", "é"), ("%FF", "\u{fffd}")] {
            assert_eq!(unescaped(text), whole);
        }
    }
}

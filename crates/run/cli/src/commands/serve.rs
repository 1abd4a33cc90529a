//! `ullage serve`: one port a node, where Prometheus reads the metrics of all live runs of this user; with `--otlp` they are
//! pushed as well.

use crate::arguments::ServeArguments;
use crate::http_server::{serve, Answer, Request};
use crate::live_runs::LiveRuns;
use crate::{home, otlp_push, printer};
use anyhow::Context;
use std::io::Write;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use ullage_metrics::{text, Format};

/// An answer stands for so long: a client that asks all the time takes no core from the job. Half of the time between two
/// samples.
const STANDS: Duration = Duration::from_millis(500);

/// Serves until it is ended.
pub fn run(arguments: &ServeArguments) -> anyhow::Result<u8> {
    let home = home::home()?;
    let push = arguments.otlp.as_deref().map(|url| {
        let host = rustix::system::uname();
        let variable = |name: &str| std::env::var(name).ok();
        otlp_push::Settings::new(url, &host.nodename().to_string_lossy(), variable)
    });
    let push = push.transpose()?;
    let mut metrics = Metrics { runs: LiveRuns::below(home.clone()), latest: None };
    let listener = TcpListener::bind(&arguments.listen)
        .with_context(|| format!("cannot listen on {} (--listen)", arguments.listen))?;
    let address = listener.local_addr()?;
    printer::note(&format!("metrics of your live runs: http://{address}/metrics"));
    if let Some(settings) = push {
        printer::note(&format!("pushed to {}", settings.url()));
        otlp_push::begin(settings, home)?;
    }
    serve(&listener, |request| metrics.answer(request))?;
    Ok(0)
}

struct Metrics {
    runs: LiveRuns,
    latest: Option<(Instant, Format, bool, Answer)>,
}

impl Metrics {
    fn answer(&mut self, request: &Request) -> Answer {
        match request.path.as_str() {
            "/metrics" => self.metrics(wanted(&request.accept), accepts_gzip(&request.accept_encoding)),
            "/-/ready" | "/-/healthy" => Answer::line("200 OK", "ullage is ready"),
            "/" => Answer::line("200 OK", "ullage: the metrics are at /metrics"),
            _ => Answer::line("404 Not Found", "not here: the metrics are at /metrics"),
        }
    }

    fn metrics(&mut self, format: Format, gzip: bool) -> Answer {
        let stands = |(at, of, packed, _): &&(Instant, Format, bool, Answer)| {
            at.elapsed() < STANDS && (*of, *packed) == (format, gzip)
        };
        if let Some((.., answer)) = self.latest.as_ref().filter(stands) {
            return answer.clone();
        }
        let text = text(&self.runs.samples(), format).into_bytes();
        let body = if gzip { packed(&text) } else { text };
        let answer = Answer { status: "200 OK", content_type: format.content_type(), gzip, body };
        self.latest = Some((Instant::now(), format, gzip, answer.clone()));
        answer
    }
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    // Writing into memory cannot fail.
    let _ = packed.write_all(text);
    packed.finish().unwrap_or_default()
}

/// OpenMetrics for those that ask for it; Prometheus does.
fn wanted(accept: &str) -> Format {
    match accept.contains("application/openmetrics-text") {
        true => Format::OpenMetrics,
        false => Format::Classic,
    }
}

/// `gzip`, not `gzip;q=0` (RFC 9110, 12.5.3).
fn accepts_gzip(accept: &str) -> bool {
    accept.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_a_client_accepts_is_what_it_gets() {
        let mut metrics = Metrics { runs: LiveRuns::below("/nowhere".into()), latest: None };
        let mut asked = |accept: &str, encoding: &str| {
            let request =
                Request { path: "/metrics".into(), accept: accept.into(), accept_encoding: encoding.into() };
            metrics.answer(&request)
        };
        let open = asked("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "gzip");
        assert!(open.gzip && open.content_type.starts_with("application/openmetrics-text"));
        let mut text = String::new();
        flate2::read::GzDecoder::new(&open.body[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, "# EOF\n");
        let classic = asked("*/*", "identity, gzip;q=0");
        assert!(!classic.gzip && classic.body.is_empty() && classic.content_type.starts_with("text/plain"));
    }

    #[test]
    fn other_pages_say_where_the_metrics_are() {
        let mut metrics = Metrics { runs: LiveRuns::below("/nowhere".into()), latest: None };
        for (path, status) in [("/", "200 OK"), ("/-/ready", "200 OK"), ("/x", "404 Not Found")] {
            let answer = metrics.answer(&Request { path: path.into(), ..Request::default() });
            assert_eq!(answer.status, status, "{path}");
        }
    }
}

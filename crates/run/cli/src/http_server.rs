//! A small HTTP/1.1 server for a page or two that are read again and again: one thread, one poll(2), and a bound on all that a
//! client can hold.
//!
//! httparse reads the heads. What a client does not finish in time is closed, and where there are too many, the one that has
//! waited longest goes: half-open clients delay nobody.

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Clients at a time.
const MOST_CLIENTS: usize = 128;
/// Bytes of a request's head. Prometheus sends less than 500.
const MOST_HEAD: usize = 8 << 10;
const MOST_HEADERS: usize = 64;
/// How long a request may take to come, and an answer to be taken.
const DONE_WITHIN: Duration = Duration::from_secs(10);
/// How long a client may stay without a request: twice the longest interval at which Prometheus usually scrapes.
const STAYS: Duration = Duration::from_secs(120);
/// How long to wait where no more clients can be accepted, because all descriptors are in use.
const FULL: Duration = Duration::from_millis(100);

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Without what follows a `?`.
    pub path: String,
    /// Accept.
    pub accept: String,
    /// Accept-Encoding.
    pub accept_encoding: String,
}

/// What is answered.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Status and reason.
    pub status: &'static str,
    /// Content-Type.
    pub content_type: &'static str,
    /// The body is compressed by gzip.
    pub gzip: bool,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// A line of text.
    pub fn line(status: &'static str, text: &str) -> Answer {
        let body = format!("{text}\n").into_bytes();
        Answer { status, content_type: "text/plain; charset=utf-8", gzip: false, body }
    }
}

/// Answers until the listener fails.
///
/// # Errors
/// Where the system can no longer wait for clients.
pub fn serve(listener: &TcpListener, mut answer: impl FnMut(&Request) -> Answer) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut clients: Vec<Client> = Vec::new();
    let mut full_until = None;
    loop {
        let now = Instant::now();
        clients.retain(|client| client.until > now);
        full_until = full_until.filter(|until| *until > now);
        let next = clients.iter().map(|client| client.until).chain(full_until).min();
        let ready = wait(listener, &clients, full_until.is_some(), next.map(|next| next - now))?;
        let mut is_ready = ready.into_iter();
        let has_new = is_ready.next().unwrap_or(false);
        // Those that are ready and fail, or have had their last answer, go.
        clients.retain_mut(|client| match is_ready.next() {
            Some(true) => client.go_on(&mut answer),
            _ => true,
        });
        if has_new && !accept(listener, &mut clients) {
            full_until = Some(Instant::now() + FULL);
        }
    }
}

/// Which are ready: the listener, then the clients.
fn wait(
    listener: &TcpListener,
    clients: &[Client],
    full: bool,
    timeout: Option<Duration>,
) -> std::io::Result<Vec<bool>> {
    let news = if full { PollFlags::empty() } else { PollFlags::IN };
    let mut fds = vec![PollFd::new(listener, news)];
    fds.extend(clients.iter().map(|client| {
        let wants = if client.output.is_empty() { PollFlags::IN } else { PollFlags::OUT };
        PollFd::new(&client.stream, wants)
    }));
    // A millisecond more: nobody is asked just before their time is over.
    let timeout = timeout.and_then(|time| Timespec::try_from(time + Duration::from_millis(1)).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) => Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(rustix::io::Errno::INTR) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// All that wait to be accepted. False where no more can be.
fn accept(listener: &TcpListener, clients: &mut Vec<Client>) -> bool {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                if clients.len() >= MOST_CLIENTS {
                    // The oldest are in front.
                    clients.remove(0);
                }
                if stream.set_nonblocking(true).is_ok() {
                    let _ = stream.set_nodelay(true);
                    clients.push(Client::new(stream));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            // It was gone before it was accepted.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
            Err(_) => return false,
        }
    }
}

struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    /// The answer that is being written is the last.
    is_last: bool,
    /// When it is closed.
    until: Instant,
}

/// What the bytes of a client are.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    /// Not all of a head is there.
    Part,
    /// A request, as long as this; the client stays for another one, and takes no body where it asks by HEAD.
    Whole { length: usize, request: Request, stays: bool, no_body: bool },
    /// Nothing that is answered here.
    Bad(&'static str),
}

impl Client {
    fn new(stream: TcpStream) -> Client {
        let until = Instant::now() + DONE_WITHIN;
        Client { stream, input: Vec::new(), output: Vec::new(), written: 0, is_last: false, until }
    }

    /// Reads or writes what there is. False where it is to be closed.
    fn go_on(&mut self, answer: &mut impl FnMut(&Request) -> Answer) -> bool {
        if self.output.is_empty() && !self.read() {
            return false;
        }
        loop {
            if !self.output.is_empty() {
                match self.write() {
                    Some(true) if self.is_last => return false,
                    Some(true) => {}
                    Some(false) => return true,
                    None => return false,
                }
            }
            // Another request may have come with the one before.
            if !self.take_request(answer) {
                return true;
            }
        }
    }

    fn read(&mut self) -> bool {
        let mut buffer = [0; 2 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(length) => {
                if self.input.is_empty() {
                    self.until = Instant::now() + DONE_WITHIN;
                }
                self.input.extend_from_slice(&buffer[..length]);
                true
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// True where all is written; none where it cannot be.
    fn write(&mut self) -> Option<bool> {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return None,
                Ok(length) => self.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        (self.written, self.output) = (0, Vec::new());
        let stays = if self.input.is_empty() { STAYS } else { DONE_WITHIN };
        self.until = Instant::now() + stays;
        Some(true)
    }

    /// Makes the answer of a request that is there. False where none is.
    fn take_request(&mut self, answer: &mut impl FnMut(&Request) -> Answer) -> bool {
        let (answer, no_body) = match head(&self.input) {
            Head::Part if self.input.len() <= MOST_HEAD => return false,
            Head::Part => (self.refused("431 Request Header Fields Too Large"), false),
            Head::Bad(status) => (self.refused(status), false),
            Head::Whole { length, request, stays, no_body } => {
                self.input.drain(..length);
                self.is_last = !stays;
                (answer(&request), no_body)
            }
        };
        self.output = written(&answer, self.is_last, no_body);
        self.until = Instant::now() + DONE_WITHIN;
        true
    }

    fn refused(&mut self, status: &'static str) -> Answer {
        self.is_last = true;
        self.input.clear();
        Answer::line(status, status)
    }
}

fn head(input: &[u8]) -> Head {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Head::Part,
        Err(_) => return Head::Bad("400 Bad Request"),
    };
    let values = |name: &str| {
        let same = |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
        let text = |header: &httparse::Header<'_>| String::from_utf8_lossy(header.value).into_owned();
        parsed.headers.iter().filter(same).map(text).collect::<Vec<_>>().join(",")
    };
    let method = parsed.method.unwrap_or_default();
    let body = values("Content-Length");
    // Where a body begins and ends is not asked: its bytes would be taken for the next request.
    if !values("Transfer-Encoding").is_empty() || !(body.is_empty() || body == "0") {
        return Head::Bad("413 Content Too Large");
    }
    if !matches!(method, "GET" | "HEAD") {
        return Head::Bad("405 Method Not Allowed");
    }
    let connection = values("Connection").to_ascii_lowercase();
    let stays = match parsed.version {
        Some(1) => !connection.contains("close"),
        _ => connection.contains("keep-alive"),
    };
    let path = parsed.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let request = Request { path, accept: values("Accept"), accept_encoding: values("Accept-Encoding") };
    Head::Whole { length, request, stays, no_body: method == "HEAD" }
}

fn written(answer: &Answer, is_last: bool, no_body: bool) -> Vec<u8> {
    let encoding = if answer.gzip { "Content-Encoding: gzip\r\n" } else { "" };
    let connection = if is_last { "close" } else { "keep-alive" };
    let allow = if answer.status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\n{encoding}{allow}Vary: Accept, Accept-Encoding\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
        answer.status,
        answer.content_type,
        answer.body.len()
    );
    let mut bytes = head.into_bytes();
    if !no_body {
        bytes.extend_from_slice(&answer.body);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::SocketAddr;

    /// A server that answers with the path.
    fn started() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(&listener, |request| Answer::line("200 OK", &request.path)));
        address
    }

    fn answered(stream: &TcpStream) -> (String, String) {
        let mut reader = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line == "\r\n" || line.is_empty() {
                break;
            }
            if let Some(text) = line.strip_prefix("Content-Length: ") {
                length = text.trim().parse().unwrap();
            }
            head += &line;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    fn asked(address: SocketAddr, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        answered(&stream)
    }

    #[test]
    fn a_client_stays_for_another_request_and_its_query_is_left_out() {
        let mut stream = TcpStream::connect(started()).unwrap();
        for n in 0..3 {
            write!(stream, "GET /{n}?x=1 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let (head, body) = answered(&stream);
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("keep-alive"), "{head}");
            assert_eq!(body, format!("/{n}\n"));
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let address = started();
        for (request, status) in [
            ("\0\x01\r\n\r\n".to_owned(), "400"),
            ("POST / HTTP/1.1\r\n\r\n".into(), "405"),
            ("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello".into(), "413"),
            ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".into(), "413"),
            (format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(MOST_HEAD)), "431"),
        ] {
            let (head, _) = asked(address, &request);
            assert!(head.starts_with(&format!("HTTP/1.1 {status}")) && head.contains("close"), "{head}");
        }
    }

    #[test]
    fn half_open_and_silent_clients_delay_nobody() {
        let address = started();
        // More than may be there at a time: the first ones are closed.
        let half_open: Vec<TcpStream> = (0..3 * MOST_CLIENTS)
            .map(|n| {
                let mut stream = TcpStream::connect(address).unwrap();
                if n % 2 == 0 {
                    stream.write_all(b"GET /metrics HT").unwrap();
                }
                stream
            })
            .collect();
        for _ in 0..20 {
            assert_eq!(asked(address, "GET /y HTTP/1.0\r\n\r\n").1, "/y\n");
        }
        let mut closed = &half_open[0];
        assert!(closed.read(&mut [0; 1]).is_ok_and(|length| length == 0) || closed.write(&[0]).is_err());
    }

    #[test]
    fn an_answer_of_any_size_is_written_as_it_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let large = "x".repeat(8 << 20);
        let body = large.clone();
        std::thread::spawn(move || serve(&listener, |_| Answer::line("200 OK", &body)));
        // One that takes nothing, and one that takes all.
        let mut silent = TcpStream::connect(address).unwrap();
        silent.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(asked(address, "GET / HTTP/1.1\r\n\r\n").1.len(), large.len() + 1);
    }

    #[test]
    fn two_requests_at_once_have_two_answers_and_a_head_has_no_body() {
        let mut stream = TcpStream::connect(started()).unwrap();
        stream.write_all(b"HEAD /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
        assert!(!text.contains("\r\n\r\n/a") && text.ends_with("\r\n\r\n/b\n"), "{text}");
    }
}

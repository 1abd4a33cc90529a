//! `ullage mark`: how a script that is no Python says what happens now. It speaks over the agent's socket, as the agent does.

use crate::arguments::MarkArguments;
use crate::printer;
use anyhow::Context;
use rustix::net::{
    connect, send, socket_with, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use ullage_model::names;

/// Marks. A script runs the same without `ullage run`, so nothing that goes wrong here ends it.
pub fn run(arguments: &MarkArguments) -> anyhow::Result<u8> {
    let Some(path) = std::env::var_os(names::ENV_AGENT_SOCKET) else {
        printer::note("nothing was marked: this is no part of an `ullage run` (or of one with --no-agent)");
        return Ok(0);
    };
    if let Err(error) = say(std::path::Path::new(&path), &arguments.text.join(" ")) {
        printer::note(&format!("nothing was marked: {error:#}"));
    }
    Ok(0)
}

fn say(path: &std::path::Path, text: &str) -> anyhow::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?).context("the run cannot be reached")?;
    let message = serde_json::json!({"kind": "mark", "text": text}).to_string();
    send(&socket, message.as_bytes(), SendFlags::NOSIGNAL).context("the run does not listen")?;
    Ok(())
}

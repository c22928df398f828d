//! A client that speaks enough of memcached's text protocol to see what a server says, lies too: one command at a time.
//! It shares nothing with what it tests. Form: protocol.txt of memcached.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{LINE_SIZE_MAX, VALUE_SIZE_MAX};
use crate::process::PATIENCE;

/// A value that came for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name that the server gave with it.
    pub name: String,
    /// Its octets.
    pub value: Vec<u8>,
    /// The number that a write with `cas` repeats.
    pub unique: u64,
}

/// A connection to memcached, or to what says that it is. All methods fail as the stream does: `WouldBlock` if nothing
/// comes in time, `UnexpectedEof` if the server closes, `InvalidData` if it does not keep to the protocol or sends more
/// than [`LINE_SIZE_MAX`] or [`VALUE_SIZE_MAX`] allow. Then what comes next has no meaning.
#[derive(Debug)]
pub struct CacheClient {
    stream: BufReader<TcpStream>,
}

impl CacheClient {
    /// Connects from where the calling thread is. It waits for an answer as long as [`PATIENCE`].
    ///
    /// # Errors
    /// If nobody accepts.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(CacheClient { stream: BufReader::new(stream) })
    }

    /// Sets how long it waits for octets of an answer.
    ///
    /// # Errors
    /// If it is no time at all.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(patience))
    }

    /// Sends octets as they are.
    ///
    /// # Errors
    /// If the stream fails.
    pub fn send(&mut self, octets: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(octets)
    }

    /// The next line that comes, without its end.
    ///
    /// # Errors
    /// See [`CacheClient`].
    pub fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.by_ref().take(LINE_SIZE_MAX as u64).read_until(b'\n', &mut line)?;
        if line.len() < LINE_SIZE_MAX && !line.ends_with(b"\n") {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let text = line.strip_suffix(b"\r\n").and_then(|text| str::from_utf8(text).ok());
        text.map(str::to_owned).ok_or(ErrorKind::InvalidData.into())
    }

    /// What `gets` finds under these names, as the server tells it: other names too, or one twice.
    ///
    /// # Errors
    /// See [`CacheClient`].
    pub fn gets(&mut self, names: &[&str]) -> io::Result<Vec<Found>> {
        self.send(format!("gets {}\r\n", names.join(" ")).as_bytes())?;
        let mut found = Vec::new();
        loop {
            let line = self.line()?;
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["END"] => return Ok(found),
                ["VALUE", name, _, size, unique] => {
                    let (size, unique) = (size.parse().ok(), unique.parse().ok());
                    let (Some(size), Some(unique)) = (size, unique) else { break };
                    found.push(Found { name: name.to_owned(), value: self.value(size)?, unique });
                }
                _ => break,
            }
        }
        Err(ErrorKind::InvalidData.into())
    }

    fn value(&mut self, size: usize) -> io::Result<Vec<u8>> {
        if size > VALUE_SIZE_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut value = vec![0; size + 2];
        self.stream.read_exact(&mut value)?;
        if !value.ends_with(b"\r\n") {
            return Err(ErrorKind::InvalidData.into());
        }
        value.truncate(size);
        Ok(value)
    }

    /// Stores a value whatever there is; the line of the answer.
    ///
    /// # Errors
    /// See [`CacheClient`].
    pub fn set(&mut self, name: &str, value: &[u8]) -> io::Result<String> {
        self.write("set", name, value, "")
    }

    /// Stores a value if there is none; the line of the answer.
    ///
    /// # Errors
    /// See [`CacheClient`].
    pub fn add(&mut self, name: &str, value: &[u8]) -> io::Result<String> {
        self.write("add", name, value, "")
    }

    /// Stores a value if the one that came with `unique` is still there; the line of the answer.
    ///
    /// # Errors
    /// See [`CacheClient`].
    pub fn cas(&mut self, name: &str, value: &[u8], unique: u64) -> io::Result<String> {
        self.write("cas", name, value, &format!(" {unique}"))
    }

    fn write(&mut self, verb: &str, name: &str, value: &[u8], rest: &str) -> io::Result<String> {
        let head = format!("{verb} {name} 0 0 {}{rest}\r\n", value.len());
        self.send(&[head.as_bytes(), value, b"\r\n"].concat())?;
        self.line()
    }

    /// What memcached counts under this name; `None` if it does not count that.
    ///
    /// # Errors
    /// See [`CacheClient`].
    pub fn count(&mut self, name: &str) -> io::Result<Option<u64>> {
        self.send(b"stats\r\n")?;
        let mut count = None;
        loop {
            let line = self.line()?;
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["END"] => return Ok(count),
                ["STAT", counted, value] if counted == name => count = value.parse().ok(),
                ["STAT", ..] => {}
                _ => return Err(ErrorKind::InvalidData.into()),
            }
        }
    }
}

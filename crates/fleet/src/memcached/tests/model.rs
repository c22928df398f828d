//! A store as it should be, and a server that speaks for one in text. It reads strictly: what memcached would refuse is
//! a panic here.

use std::collections::BTreeMap;

use super::super::{COMMAND_SIZE_MAX, Name, Request, Response, Value};

/// Values with their tokens, as a client that needs no protocol sees them.
#[derive(Debug, Default)]
pub(super) struct Store {
    values: BTreeMap<Name, (Vec<u8>, u64)>,
    token: u64,
}

impl Store {
    pub(super) fn answer(&mut self, request: &Request) -> Response {
        match request {
            Request::Gets { names } => {
                Response::Values(names.iter().filter_map(|name| self.get(name)).collect())
            }
            Request::Add { name, .. } if self.values.contains_key(name) => Response::NotStored,
            Request::Cas { name, token, .. }
                if self.values.get(name).is_some_and(|(_, own)| own != token) =>
            {
                Response::Exists
            }
            Request::Cas { name, .. } if !self.values.contains_key(name) => Response::NotFound,
            Request::Add { name, value } | Request::Cas { name, value, .. } => {
                self.token += 1;
                self.values.insert(name.clone(), (value.clone(), self.token));
                Response::Stored
            }
        }
    }

    /// The token of a value, 0 if there is none.
    pub(super) fn token(&self, name: &Name) -> u64 {
        self.values.get(name).map_or(0, |&(_, token)| token)
    }

    pub(super) fn remove(&mut self, name: &Name) {
        self.values.remove(name);
    }

    fn get(&self, name: &Name) -> Option<Value> {
        let (octets, token) = self.values.get(name)?;
        Some(Value { name: name.clone(), octets: octets.clone(), token: *token })
    }
}

/// A store behind the protocol.
#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) store: Store,
    inbox: Vec<u8>,
}

impl Server {
    /// Octets of a client; returns what is said to the commands that are complete.
    pub(super) fn received(&mut self, octets: &[u8]) -> Vec<u8> {
        self.inbox.extend_from_slice(octets);
        let mut out = Vec::new();
        while let Some((size, said)) = self.command() {
            self.inbox.drain(..size);
            out.extend(said);
        }
        out
    }

    /// Octets of the first command and the response to it, if it is complete.
    fn command(&mut self) -> Option<(usize, Vec<u8>)> {
        let end = self.inbox.iter().position(|&octet| octet == b'\n')? + 1;
        assert!(end <= COMMAND_SIZE_MAX, "a line of {end} octets");
        let line = str::from_utf8(&self.inbox[..end]).unwrap().strip_suffix("\r\n").unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let name = |word: &str| Name::new(word).unwrap();
        let value = |size: &str| {
            let size: usize = size.parse().unwrap();
            let value =
                self.inbox.get(end..end + size + 2)?.strip_suffix(b"\r\n").expect("a value has an end");
            Some((end + size + 2, value.to_vec()))
        };
        let (size, request) = match words[..] {
            ["gets", ref names @ ..] => {
                (end, Request::Gets { names: names.iter().map(|word| name(word)).collect() })
            }
            ["add", word, "0", "0", size] => {
                let (end, value) = value(size)?;
                (end, Request::Add { name: name(word), value })
            }
            ["cas", word, "0", "0", size, token] => {
                let (end, value) = value(size)?;
                (end, Request::Cas { name: name(word), value, token: token.parse().unwrap() })
            }
            _ => panic!("{line}"),
        };
        Some((size, shown(&self.store.answer(&request))))
    }
}

/// A response in text. doc/protocol.txt.
pub(super) fn shown(response: &Response) -> Vec<u8> {
    match response {
        Response::Values(values) => {
            let mut out = Vec::new();
            for value in values {
                let (size, token) = (value.octets.len(), value.token);
                out.extend(format!("VALUE {} 0 {size} {token}\r\n", value.name).into_bytes());
                out.extend_from_slice(&value.octets);
                out.extend_from_slice(b"\r\n");
            }
            out.extend_from_slice(b"END\r\n");
            out
        }
        Response::Stored => b"STORED\r\n".to_vec(),
        Response::NotStored => b"NOT_STORED\r\n".to_vec(),
        Response::Exists => b"EXISTS\r\n".to_vec(),
        Response::NotFound => b"NOT_FOUND\r\n".to_vec(),
        Response::Refused(refusal) => format!("{refusal}\r\n").into_bytes(),
    }
}

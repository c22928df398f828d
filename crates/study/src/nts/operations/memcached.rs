//! A get of the document of keys, as it lies in memcached for the server of the other tasks: memcached's text protocol
//! on a connection that is open.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use authentick_report::study::nts::{Ladder, Operation, Settings as NtsSettings, Store};
use authentick_rig::processors::{Processor, pinned};

use super::{Brought, Came, Subject, measure};
use crate::Error;
use crate::nts::bench::Bench;

/// What asks for the document that our servers share cookie keys by.
const ASK: &[u8] = b"get authentick/study/cookie-keys/document\r\n";
/// The end of an answer.
const END: &[u8] = b"END\r\n";
/// The largest answer that is read.
const ANSWER_SIZE_MAX: usize = 1 << 20;
/// How long a server may take until its document lies there, and how often it is looked.
const THERE_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// A connection to memcached.
struct Client {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        Ok(Client { stream, answer: Vec::new() })
    }

    /// Gets the document; returns its size, 0 if there is none.
    fn get(&mut self) -> io::Result<usize> {
        self.stream.write_all(ASK)?;
        self.answer.clear();
        let mut buffer = [0; 16 * 1024];
        while !self.answer.ends_with(END) {
            let size = self.stream.read(&mut buffer)?;
            if size == 0 || self.answer.len() > ANSWER_SIZE_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.answer.extend_from_slice(&buffer[..size]);
        }
        size_of(&self.answer).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// The size of the only value in an answer, 0 of none; `None` if it is no answer.
fn size_of(answer: &[u8]) -> Option<usize> {
    if answer == END {
        return Some(0);
    }
    let end = answer.iter().position(|octet| *octet == b'\n')?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let size: usize = head.strip_prefix("VALUE ")?.trim_end().rsplit(' ').next()?.parse().ok()?;
    // Head, value, line end, and the end of the answer.
    (answer.len() == end + 1 + size + 2 + END.len()).then_some(size)
}

/// The document's size, once it is there.
fn wait(client: &mut Client) -> Result<usize, String> {
    let deadline = Instant::now() + THERE_MAX;
    loop {
        match client.get().map_err(|error| in_words(&error))? {
            0 if Instant::now() > deadline => {
                return Err("the server has put no document of keys into memcached".to_owned());
            }
            0 => std::thread::sleep(LOOK_EVERY),
            size => return Ok(size),
        }
    }
}

fn in_words(error: &io::Error) -> String {
    format!("memcached does not give the document of keys: {error}")
}

/// Gets from the memcached of a server that does nothing else meanwhile.
pub(super) fn measured(bench: &Bench<'_>, settings: &NtsSettings) -> Result<Came, Error> {
    let ladder = Ladder::WholeCore(Store::Memcached);
    if let Some(why) = bench.why_no_ladder(ladder) {
        return Ok(Err(why));
    }
    let loaded = match bench.begin(ladder, None)? {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    let Some(address) = loaded.memcached() else {
        return Err(Error::Bug("a server with memcached has none".to_owned()));
    };
    let work = || {
        let mut client = Client::connect(address).map_err(|error| in_words(&error))?;
        let size = wait(&mut client)?;
        let get = Subject::single(Operation::MemcachedGet, move || match client.get() {
            Ok(found) if found > 0 => Ok(()),
            Ok(_) => Err("the document of keys has gone from memcached".to_owned()),
            Err(error) => Err(in_words(&error)),
        });
        Ok((measure(vec![get], settings, bench.caller.stop)?, size))
    };
    let found: Result<_, String> = pinned(Processor::First, || loaded.at_server(work))?;
    let memcached = bench.memcached_of(ladder.store());
    let brought = |(measured, size): (Option<_>, usize)| {
        measured.map(|measured| Brought { measured, memcached, size: size as u64 })
    };
    Ok(found.map(brought))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_has_the_size_of_its_value_and_what_is_none_is_refused() {
        assert_eq!(size_of(b"VALUE a/b 0 5\r\n12\r\n5\r\nEND\r\n"), Some(5));
        assert_eq!(size_of(b"END\r\n"), Some(0));
        for bad in ["VALUE a 0 6\r\n12345\r\nEND\r\n", "VALUE a 0\r\nx\r\nEND\r\n", "ERROR\r\nEND\r\n"] {
            assert_eq!(size_of(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn get_reads_until_the_end_of_the_answer_however_it_comes() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for part in ["VALUE x 0 9\r\n1234", "END\r\n\r\nEND", "\r\n"] {
                stream.write_all(part.as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
            let mut asked = vec![0; ASK.len()];
            stream.read_exact(&mut asked).unwrap();
            assert_eq!(asked, ASK);
        });
        let mut client = Client::connect(address).unwrap();
        assert_eq!(client.get().unwrap(), 9);
        server.join().unwrap();
        assert!(client.get().is_err(), "it has gone");
    }
}

//! Servers that somebody else runs, as whoever measures them names them: `NAME=HOST:PORT[:KEPORT]`.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Server;

/// More of them are not measured in one study.
pub const GIVEN_COUNT_MAX: usize = 8;

/// The most characters of a name.
const NAME_SIZE_MAX: usize = 24;

/// What such a server is called in tables, in names of tasks and on the command line: at most 24 ASCII letters, digits
/// and hyphens, of which the first is no hyphen; and not as a server that the study starts itself. Names are in the
/// order of their octets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name {
    /// Zeros follow the last character.
    octets: [u8; NAME_SIZE_MAX],
    size: u8,
}

impl Name {
    /// As a text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.octets[..usize::from(self.size)]).expect("a name is ASCII")
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), out)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

impl FromStr for Name {
    type Err = String;

    /// # Errors
    /// What is wrong with it and what to write, in half a sentence.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if text.is_empty()
            || text.len() > NAME_SIZE_MAX
            || text.starts_with('-')
            || !text.chars().all(is_good)
        {
            return Err(format!(
                "{text:?} is no name of a server; write up to {NAME_SIZE_MAX} letters, digits and hyphens"
            ));
        }
        if Server::BUILT_IN.iter().any(|server| server.key().eq_ignore_ascii_case(text)) {
            return Err(format!(
                "{text:?} is a server that the study starts itself; give yours another name"
            ));
        }
        let mut octets = [0; NAME_SIZE_MAX];
        octets[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Name { octets, size: text.len() as u8 })
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.as_str().to_owned()
    }
}

/// What belongs to a server by its name: `NAME=VALUE`.
///
/// # Errors
/// What is wrong with it and what to write, in half a sentence.
pub fn of_name<T: FromStr>(text: &str) -> Result<(Name, T), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("{text:?} names no server; write NAME=VALUE"))?;
    let value = Some(value).filter(|value| !value.is_empty()).and_then(|value| value.parse().ok());
    let value =
        value.ok_or_else(|| format!("{text:?} has nothing of use after the name; write NAME=VALUE"))?;
    Ok((name.parse()?, value))
}

/// A server that somebody else runs, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// What it is called.
    pub name: Name,
    /// Its host: a name, or an address without brackets.
    pub host: String,
    /// The port of NTP.
    pub port: u16,
    /// The port of its key exchange; null if it is not asked for NTS.
    pub ke_port: Option<u16>,
}

impl Given {
    /// The host with one of its ports, as a command line has it.
    #[must_use]
    pub fn at(&self, port: u16) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{port}", self.host),
            false => format!("{}:{port}", self.host),
        }
    }

    /// Why these are not measured in one study, in a sentence with what to do.
    ///
    /// # Errors
    /// If a name is there twice, or there are too many.
    pub fn check_all(all: &[Given]) -> Result<(), String> {
        if all.len() > GIVEN_COUNT_MAX {
            return Err(format!("{} servers are more than the {GIVEN_COUNT_MAX} of one study", all.len()));
        }
        let is_like = |one: &Given, other: &Given| {
            let [one, other] = [one, other].map(|given| given.name.as_str());
            one.eq_ignore_ascii_case(other)
        };
        for (index, given) in all.iter().enumerate() {
            if all[..index].iter().any(|other| is_like(other, given)) {
                return Err(format!("{:?} names two servers; give each a name of its own", given.name));
            }
        }
        Ok(())
    }
}

impl FromStr for Given {
    type Err = String;

    /// Reads `NAME=HOST:PORT` or `NAME=HOST:PORT:KEPORT`; an IPv6 address stands in brackets.
    ///
    /// # Errors
    /// What is wrong with it and what to write, in half a sentence.
    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "write NAME=HOST:PORT, or NAME=HOST:PORT:KEPORT for NTS; [ADDRESS] for IPv6";
        let (name, place) = text.split_once('=').ok_or_else(|| format!("there is no name; {FORM}"))?;
        let name = name.parse()?;
        let (host, ports) = match place.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
            Some((address, ports)) => {
                let (plain, zone) =
                    address.split_once('%').map_or((address, None), |(plain, zone)| (plain, Some(zone)));
                let is_zone = |zone: &str| !zone.is_empty() && !zone.contains(['%', '/', ' ', '[', ']']);
                let plain = plain.parse::<Ipv6Addr>().ok().filter(|_| zone.is_none_or(is_zone));
                let plain =
                    plain.ok_or_else(|| format!("there is no IPv6 address in the brackets; {FORM}"))?;
                (zone.map_or_else(|| plain.to_string(), |zone| format!("{plain}%{zone}")), ports)
            }
            None => {
                let (host, ports) =
                    place.split_once(':').ok_or_else(|| format!("{place:?} has no port; {FORM}"))?;
                let is_good = |c: char| c.is_alphanumeric() || "-._".contains(c);
                if host.is_empty() || host.starts_with('-') || !host.chars().all(is_good) {
                    return Err(format!("{host:?} is no host; {FORM}"));
                }
                (host.to_owned(), ports)
            }
        };
        let port = |text: &str| match text.parse::<u16>() {
            Ok(port) if port > 0 => Ok(port),
            Ok(_) | Err(_) => Err(format!("{text:?} is no port; {FORM}")),
        };
        let (ntp, ke) = ports.split_once(':').map_or((ports, None), |(ntp, ke)| (ntp, Some(ke)));
        Ok(Given { name, host, port: port(ntp)?, ke_port: ke.map(port).transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_with_their_ports() {
        for (text, name, host, port, ke_port) in [
            ("cfnts=198.18.0.1:123", "cfnts", "198.18.0.1", 123, None),
            ("NTPsec-1=time.example:1123:4460", "NTPsec-1", "time.example", 1123, Some(4460)),
            ("a=[2001:db8::1]:123:4460", "a", "2001:db8::1", 123, Some(4460)),
            ("a=[fe80::1%eth0]:123", "a", "fe80::1%eth0", 123, None),
        ] {
            let given: Given = text.parse().unwrap();
            assert_eq!((given.name.as_str(), given.host.as_str()), (name, host), "{text}");
            assert_eq!((given.port, given.ke_port), (port, ke_port), "{text}");
        }
        let given: Given = "a=[2001:db8::1]:123:4460".parse().unwrap();
        assert_eq!(given.at(given.port), "[2001:db8::1]:123");
        assert_eq!("a=[fe80::1%2]:1".parse::<Given>().unwrap().at(7), "[fe80::1%2]:7");
        assert_eq!("a=b:1".parse::<Given>().unwrap().at(7), "b:7");
    }

    #[test]
    fn what_names_no_server_is_refused_with_the_reason_and_the_remedy() {
        for (text, why) in [
            ("198.18.0.1:123", "there is no name; write NAME=HOST:PORT"),
            ("=198.18.0.1:123", "is no name of a server; write up to 24 letters"),
            ("c_f=a:1", "is no name of a server"),
            ("-c=a:1", "is no name of a server"),
            ("abcdefghijklmnopqrstuvwxy=a:1", "is no name of a server"),
            ("Chrony=a:1", "is a server that the study starts itself; give yours another name"),
            ("facebook-time=a:1", "is a server that the study starts itself"),
            ("c=a", "\"a\" has no port"),
            ("c=:1", "is no host"),
            ("c=a b:1", "is no host"),
            ("c=a:0", "\"0\" is no port"),
            ("c=a:1:70000", "\"70000\" is no port"),
            ("c=a:1:2:3", "\"2:3\" is no port"),
            ("c=2001:db8::1", "is no port"),
            ("c=[a]:1", "no IPv6 address in the brackets"),
        ] {
            let error = text.parse::<Given>().unwrap_err();
            assert!(error.contains(why) && error.contains("; "), "{text}: {error}");
        }
    }

    #[test]
    fn what_belongs_to_a_server_is_said_with_its_name() {
        assert_eq!(of_name::<u32>("a=7"), Ok(("a".parse().unwrap(), 7)));
        assert_eq!(of_name::<String>("a=b=c").unwrap().1, "b=c");
        for (text, why) in [
            ("7", "names no server"),
            ("a=", "nothing of use"),
            ("a=x", "nothing of use"),
            ("=1", "is no name"),
        ] {
            let error = of_name::<u32>(text).unwrap_err();
            assert!(error.contains(why) && error.contains("; write"), "{text}: {error}");
        }
    }

    #[test]
    fn names_are_ordered_kept_as_texts_and_there_once() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        assert!(name("a") < name("ab") && name("ab") < name("b"));
        let stored = serde_json::to_string(&name("ab")).unwrap();
        assert_eq!((stored.as_str(), serde_json::from_str::<Name>(&stored).unwrap()), ("\"ab\"", name("ab")));
        assert!(serde_json::from_str::<Name>("\"chrony\"").is_err());
        let given = |name: &str| format!("{name}=a:1").parse::<Given>().unwrap();
        assert!(Given::check_all(&[given("a"), given("b")]).is_ok());
        assert!(Given::check_all(&[given("a"), given("A")]).unwrap_err().contains("names two servers"));
        let many: Vec<Given> = (0..=GIVEN_COUNT_MAX).map(|index| given(&format!("s{index}"))).collect();
        assert!(Given::check_all(&many).unwrap_err().contains("9 servers are more than the 8"));
    }
}

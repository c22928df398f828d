//! DNS messages, as far as a server of one name needs them: a query is read, and answered in at most a few octets more.
//! RFC 1035 section 4.

use std::net::Ipv4Addr;

/// Octets of a header.
const HEADER_SIZE: usize = 12;
/// The most octets of a name, with the lengths of its labels. RFC 1035 section 3.1.
const NAME_SIZE_MAX: usize = 255;
/// The most octets of a label; longer ones would be pointers.
const LABEL_SIZE_MAX: usize = 63;
/// Types and class. RFC 1035 section 3.2.
const TYPE_A: u16 = 1;
const TYPE_ANY: u16 = 255;
const CLASS_IN: u16 = 1;
/// Flags of a header: a response, its authority, and those of a query that go back: opcode and recursion desired.
const RESPONSE: u16 = 0x8000;
const OPCODE: u16 = 0x7800;
const AUTHORITATIVE: u16 = 0x0400;
const RECURSION_DESIRED: u16 = 0x0100;
/// Where the question's name is: a pointer behind the header. RFC 1035 section 4.1.4.
const NAME_POINTER: u16 = 0xC000 | HEADER_SIZE as u16;

/// How a query ends. RFC 1035 section 4.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// With an answer, or none of this type.
    NoError = 0,
    /// It cannot be read.
    FormatError = 1,
    /// There is no such name.
    NameError = 3,
    /// It is no query.
    NotImplemented = 4,
    /// It is of another class.
    Refused = 5,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) code: Code,
    /// Whether it has the address.
    pub(super) has_address: bool,
    pub(super) octets: Vec<u8>,
}

/// A name as it is in a message, in lower case: labels after their lengths, with the empty one at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name(Vec<u8>);

impl Name {
    /// A name of labels between dots, as `ntp.test`; `None` if there can be no such name.
    pub(super) fn new(text: &str) -> Option<Self> {
        let mut octets = Vec::with_capacity(text.len() + 2);
        for label in text.strip_suffix('.').unwrap_or(text).split('.') {
            let size = u8::try_from(label.len()).ok().filter(|size| (1..=63).contains(size))?;
            octets.push(size);
            octets.extend(label.bytes().map(|octet| octet.to_ascii_lowercase()));
        }
        octets.push(0);
        (octets.len() <= NAME_SIZE_MAX).then_some(Name(octets))
    }

    /// Octets of the name at the beginning, if it is whole and without pointers: a question has nothing to point to.
    fn measure(octets: &[u8]) -> Option<usize> {
        let mut size = 0;
        loop {
            let label = usize::from(*octets.get(size)?);
            size += 1 + label;
            if label > LABEL_SIZE_MAX || size > NAME_SIZE_MAX || size > octets.len() {
                return None;
            }
            if label == 0 {
                return Some(size);
            }
        }
    }
}

/// What a server says to `query` that knows this name at this address; `None` to what is no message, or a response.
pub(super) fn answer(query: &[u8], name: &Name, address: Ipv4Addr) -> Option<Response> {
    let header: &[u8; HEADER_SIZE] = query.first_chunk()?;
    let flags = u16::from_be_bytes([header[2], header[3]]);
    if flags & RESPONSE != 0 {
        return None;
    }
    let reply = Reply { id: [header[0], header[1]], flags };
    if flags & OPCODE != 0 {
        return Some(reply.without_question(Code::NotImplemented));
    }
    let Some((question, asked)) = Question::parse(query) else {
        return Some(reply.without_question(Code::FormatError));
    };
    let code = match asked.class == CLASS_IN {
        false => Code::Refused,
        true if asked.name.eq_ignore_ascii_case(&name.0) => Code::NoError,
        true => Code::NameError,
    };
    let has_address = code == Code::NoError && matches!(asked.kind, TYPE_A | TYPE_ANY);
    let mut octets = reply.header(code, 1, u16::from(has_address));
    octets.extend(question);
    if has_address {
        octets.extend([NAME_POINTER, TYPE_A, CLASS_IN].iter().flat_map(|word| word.to_be_bytes()));
        // To be kept for no time: each look-up is to be one.
        octets.extend(0u32.to_be_bytes());
        octets.extend(4u16.to_be_bytes());
        octets.extend(address.octets());
    }
    Some(Response { code, has_address, octets })
}

/// The only question of a query.
struct Question<'a> {
    name: &'a [u8],
    kind: u16,
    class: u16,
}

impl<'a> Question<'a> {
    /// The question, and its octets. What follows it, such as EDNS, is not read.
    fn parse(query: &'a [u8]) -> Option<(&'a [u8], Self)> {
        let word = |octets: &[u8], start| Some(u16::from_be_bytes(*octets.get(start..)?.first_chunk()?));
        if word(query, 4)? != 1 {
            return None;
        }
        let rest = query.get(HEADER_SIZE..)?;
        let size = Name::measure(rest)?;
        let (kind, class) = (word(rest, size)?, word(rest, size + 2)?);
        Some((&rest[..size + 4], Question { name: &rest[..size], kind, class }))
    }
}

/// What of a query goes back with every response.
struct Reply {
    id: [u8; 2],
    flags: u16,
}

impl Reply {
    fn header(&self, code: Code, questions: u16, answers: u16) -> Vec<u8> {
        let flags = RESPONSE | AUTHORITATIVE | self.flags & (OPCODE | RECURSION_DESIRED) | code as u16;
        let words = [flags, questions, answers, 0, 0];
        self.id.into_iter().chain(words.into_iter().flat_map(u16::to_be_bytes)).collect()
    }

    fn without_question(&self, code: Code) -> Response {
        Response { code, has_address: false, octets: self.header(code, 0, 0) }
    }
}

#[cfg(test)]
mod tests {
    use authentick_crypto::Entropy;

    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
    const TYPE_AAAA: u16 = 28;

    fn query(name: &[u8], kind: u16, class: u16) -> Vec<u8> {
        let mut query = vec![0xAB, 0xCD, 0x01, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        query.extend(name);
        query.extend(kind.to_be_bytes().into_iter().chain(class.to_be_bytes()));
        query
    }

    fn said(query: &[u8]) -> Response {
        answer(query, &Name::new("ntp.Test").unwrap(), ADDRESS).unwrap()
    }

    #[test]
    fn address_is_told_under_its_name_in_any_case() {
        let query = query(b"\x03nTp\x04test\0", TYPE_A, CLASS_IN);
        let found = said(&query);
        assert_eq!((found.code, found.has_address), (Code::NoError, true));
        let expected = [
            &[0xAB, 0xCD, 0x85, 0, 0, 1, 0, 1, 0, 0, 0, 0],
            &query[12..],
            &[0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 198, 18, 0, 1],
        ];
        assert_eq!(found.octets, expected.concat());
    }

    #[test]
    fn other_types_have_no_answer_and_other_names_do_not_exist() {
        let own = said(&query(b"\x03ntp\x04test\0", TYPE_AAAA, CLASS_IN));
        assert_eq!((own.code, own.has_address, own.octets[7]), (Code::NoError, false, 0));
        for name in [&b"\x03ntq\x04test\0"[..], b"\x03ntp\0", b"\x04test\0", b"\0", b"\x01a\x03ntp\x04test\0"]
        {
            assert_eq!(said(&query(name, TYPE_A, CLASS_IN)).code, Code::NameError, "{name:?}");
        }
        assert_eq!(said(&query(b"\x03ntp\x04test\0", TYPE_A, 3)).code, Code::Refused);
    }

    #[test]
    fn what_follows_the_question_is_not_read() {
        let mut query = query(b"\x03ntp\x04test\0", TYPE_A, CLASS_IN);
        query[11] = 1;
        query.extend(b"\0\0\x29\x04\xD0\0\0\0\0\0\0");
        let found = said(&query);
        assert!(found.has_address && found.octets[11] == 0);
    }

    #[test]
    fn what_cannot_be_read_is_told_so_and_responses_get_none() {
        let whole = query(b"\x03ntp\x04test\0", TYPE_A, CLASS_IN);
        let name = Name::new("ntp.test").unwrap();
        for size in 0..whole.len() {
            let code = answer(&whole[..size], &name, ADDRESS).map(|response| response.code);
            assert_eq!(code, (size >= HEADER_SIZE).then_some(Code::FormatError), "{size}");
        }
        let long = [b"\x3F".to_vec(), vec![b'a'; 63]].concat().repeat(4);
        let wide = [&b"\x40"[..], &[b'a'; 64], b"\0"].concat();
        for bad in [&b"\xC0\x0C"[..], &wide, &[&long[..], b"\0"].concat()] {
            assert_eq!(said(&query(bad, TYPE_A, CLASS_IN)).code, Code::FormatError, "{bad:?}");
        }
        for (octet, value, code) in
            [(5, 2, Code::FormatError), (5, 0, Code::FormatError), (2, 0x10, Code::NotImplemented)]
        {
            let mut changed = whole.clone();
            changed[octet] = value;
            let found = said(&changed);
            assert_eq!((found.code, found.octets.len()), (code, HEADER_SIZE));
        }
        let mut response = whole.clone();
        response[2] |= 0x80;
        assert_eq!(answer(&response, &name, ADDRESS), None);
    }

    #[test]
    fn names_that_cannot_be_are_refused() {
        let label = "a".repeat(63);
        let longest = [label.as_str(); 3].join(".") + "." + &label[..61];
        assert_eq!(Name::new(&longest).unwrap().0.len(), NAME_SIZE_MAX);
        assert_eq!(Name::new("a.b."), Name::new("A.B"));
        for bad in ["", ".", "a..b", &format!("{label}a.b"), &format!("{longest}a")] {
            assert_eq!(Name::new(bad), None, "{bad}");
        }
    }

    /// Damaged queries, of which some are whole: no answer is longer than its question asks for, and each is a response
    /// to it.
    #[test]
    fn any_octets_are_answered_within_bounds_or_not_at_all() {
        let (whole, name) = (query(b"\x03ntp\x04test\0", TYPE_A, CLASS_IN), Name::new("ntp.test").unwrap());
        let (mut entropy, mut answered) = (Entropy::from_seed(5), [0; 6]);
        for _ in 0..50_000 {
            let mut damaged = whole.clone();
            for _ in 0..entropy.u64() % 4 {
                let place = entropy.u64() as usize % damaged.len();
                damaged[place] = entropy.u64() as u8;
            }
            damaged.truncate(damaged.len() - (entropy.u64() % 3) as usize);
            let Some(response) = answer(&damaged, &name, ADDRESS) else { continue };
            answered[response.code as usize] += 1;
            assert!(response.octets.len() <= damaged.len() + 16);
            assert_eq!(response.octets[..2], damaged[..2]);
            assert_eq!((response.octets[2] & 0x80, response.octets[3]), (0x80, response.code as u8));
        }
        assert!(answered.iter().zip(0..).all(|(count, code)| code == 2 || *count > 0), "{answered:?}");
    }
}

//! Phase 1: which suite, and the server's certificate chain.

use authentick_crypto::Entropy;
use authentick_crypto::kdf::sha256;
use authentick_crypto::kem::PublicKey;
use authentick_wire::Writer;
use authentick_wire::antp::{
    C1_SIZE, Chain, Chunk, HASH_SIZE, Message, NegotiationRequest, NegotiationResponse, Suite, SuiteList,
    emit_padding, negotiation_response_size,
};
use authentick_wire::limits::{
    ANTP_CHAIN_SIZE_MAX, ANTP_PAYLOAD_SIZE_DEFAULT, ANTP_PAYLOAD_SIZE_MAX, FIELD_HEADER_SIZE, HEADER_SIZE,
};
use authentick_wire::time::NtpTime;

use super::session::{KeyExchange, WrongKem};
use super::{Check, inspect, put_again, put_header, token};
use crate::antp::transcript;
use crate::mutant::{Place, holds};

/// Responses that a negotiation takes before it gives up: twice what the longest chain needs.
const ROUND_COUNT_MAX: usize = 2 * ANTP_CHAIN_SIZE_MAX.div_ceil(CHUNK_SIZE_USUAL);
const CHUNK_SIZE_USUAL: usize = 884;

/// A certificate chain from an earlier negotiation, which was checked and need not be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldChain {
    octets: Vec<u8>,
    hash: [u8; HASH_SIZE],
}

impl HeldChain {
    /// Keeps the chain of a negotiation.
    #[must_use]
    pub fn new(chain: &Chain<'_>) -> Self {
        HeldChain { octets: chain.octets().to_vec(), hash: sha256(&[chain.octets()]) }
    }

    /// The encoded chain, for a file.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }
}

/// What a client asks for.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Suites, the best first.
    pub suites: SuiteList,
    /// The largest datagram to send and to accept, in octets of UDP payload, at most [`ANTP_PAYLOAD_SIZE_MAX`].
    pub payload_size_max: usize,
    /// The chain that the server had last time.
    pub held: Option<HeldChain>,
}

impl Offer {
    /// P-256 alone, datagrams of the cautious size, and no chain.
    ///
    /// # Panics
    /// Never: one suite makes a list.
    #[must_use]
    pub fn p256() -> Self {
        Offer {
            suites: SuiteList::new(&[Suite::P256]).expect("one suite makes a list"),
            payload_size_max: ANTP_PAYLOAD_SIZE_DEFAULT,
            held: None,
        }
    }
}

/// How far a negotiation is.
#[derive(Debug)]
pub enum Progress {
    /// A part of the chain is missing: send another request.
    More,
    /// All of it is here.
    Done(Negotiated),
}

/// A negotiation that is under way.
#[derive(Clone, Debug)]
pub struct Negotiation {
    offer: Offer,
    token: NtpTime,
    /// The field of the last request, for the transcript.
    field: Vec<u8>,
    answered: bool,
    round_count: usize,
    /// The hash and size that the server announced.
    announced: Option<([u8; HASH_SIZE], usize)>,
    chain: Vec<u8>,
}

impl Negotiation {
    /// A negotiation of which nothing is sent yet.
    #[must_use]
    pub fn new(mut offer: Offer) -> Self {
        let range = (negotiation_response_size(Some(4)), ANTP_PAYLOAD_SIZE_MAX);
        offer.payload_size_max = offer.payload_size_max.clamp(range.0, range.1) / 4 * 4;
        Negotiation {
            offer,
            token: NtpTime::ZERO,
            field: Vec::new(),
            answered: true,
            round_count: 0,
            announced: None,
            chain: Vec::new(),
        }
    }

    /// Writes the next request to `out` and returns its size, which is that of the response it wants. The one before is
    /// not answered any more.
    ///
    /// # Panics
    /// If `out` is shorter than the offer's largest datagram.
    pub fn request(&mut self, entropy: &mut Entropy, out: &mut [u8]) -> usize {
        self.token = token(entropy);
        self.answered = false;
        let held = self.offer.held.as_ref().map_or([0; HASH_SIZE], |held| held.hash);
        let asked = NegotiationRequest {
            suites: self.offer.suites,
            nonce: &entropy.array(),
            held: &held,
            chain_offset: u16::try_from(self.chain.len()).expect("a chain is at most ANTP_CHAIN_SIZE_MAX"),
            payload_size_max: u16::try_from(self.offer.payload_size_max).expect("it is at most 1232"),
        };
        let wanted = match (&self.announced, &self.offer.held) {
            (None, Some(_)) => negotiation_response_size(None),
            (None, None) => self.offer.payload_size_max,
            (Some((_, size)), _) => {
                let left = size - self.chain.len();
                negotiation_response_size(Some(left)).min(self.offer.payload_size_max)
            }
        };
        let field_size = NegotiationRequest::field_size(self.offer.suites.as_slice().len());
        // A padding field has at least 16 octets; eight suites leave room for it in the smallest response.
        let padding = wanted - HEADER_SIZE - field_size;
        const ROOM: &str = "the buffer holds the offer's largest datagram";
        let mut writer = Writer::new(out);
        put_header(&mut writer, self.token);
        emit_padding(&mut writer, padding).expect(ROOM);
        let start = writer.offset();
        asked.emit(&mut writer).expect(ROOM);
        let size = writer.offset();
        self.field.clear();
        self.field.extend_from_slice(&out[start..size]);
        size
    }

    /// Writes the first m1 once more, under a fresh token and with the same nonce, as the first of a negotiation of its
    /// own. No client does that; it is a load.
    ///
    /// # Panics
    /// If `out` is shorter than the offer's largest datagram, or nothing was sent yet.
    pub fn again(&self, entropy: &mut Entropy, out: &mut [u8]) -> (Self, usize) {
        assert!(!self.field.is_empty(), "there is a request to send again");
        let token = token(entropy);
        let mut again = Negotiation::new(self.offer.clone());
        let wanted = match &again.offer.held {
            Some(_) => negotiation_response_size(None),
            None => again.offer.payload_size_max,
        };
        let size = put_again(token, wanted - HEADER_SIZE - self.field.len(), &self.field, out);
        again.token = token;
        again.answered = false;
        again.field.clone_from(&self.field);
        (again, size)
    }

    /// The random number by which the last request is found when its answer comes.
    #[must_use]
    pub const fn token(&self) -> NtpTime {
        self.token
    }

    /// How many responses it has taken.
    #[must_use]
    pub const fn round_count(&self) -> usize {
        self.round_count
    }

    /// Takes a datagram. A good one that leaves the chain incomplete asks for another request.
    ///
    /// # Errors
    /// On a datagram that fails a check: the negotiation keeps waiting. [`Check::Chain`] makes the next request begin
    /// anew.
    pub fn receive(&mut self, datagram: &[u8]) -> Result<Progress, Check> {
        let (_, found) = inspect(datagram, self.token, self.answered)?;
        let (response, chunk) = match found.message {
            Message::NegotiationResponse(response, chunk) => (response, chunk),
            Message::Error(error) => return Err(Check::Server(error.code)),
            _ => return Err(Check::Phase),
        };
        let list = self.offer.suites.as_slice();
        //= antp#clients-1
        let is_offered = list.contains(&response.suite) && response.suites.contains(response.suite);
        if !holds(Place::SuiteOffered, is_offered) {
            return Err(Check::Suite(response.suite));
        }
        //= antp#clients-1
        let best = list.iter().find(|&&suite| response.suites.contains(suite));
        if !holds(Place::Choice, best == Some(&response.suite)) {
            return Err(Check::Choice(response.suite));
        }
        //= antp#clients-3
        if self.round_count >= ROUND_COUNT_MAX {
            return Err(Check::Chain);
        }
        self.round_count += 1;
        self.take(&response, chunk)?;
        let size = usize::from(response.chain_size);
        if self.chain.len() < size {
            self.answered = true;
            return Ok(Progress::More);
        }
        //= antp#clients-2
        let is_announced =
            sha256(&[&self.chain]) == *response.chain_hash && Chain::parse(&self.chain).is_ok();
        if !holds(Place::ChainHash, is_announced) {
            self.begin_anew();
            return Err(Check::Chain);
        }
        self.answered = true;
        let head = &found.field(datagram)[FIELD_HEADER_SIZE..][..NegotiationResponse::HEAD_SIZE];
        Ok(Progress::Done(Negotiated {
            suite: response.suite,
            state: *response.state,
            h1: transcript::negotiation(&self.field, head),
            chain: std::mem::take(&mut self.chain),
        }))
    }

    /// Adds a chunk to the chain.
    fn take(&mut self, response: &NegotiationResponse<'_>, chunk: Option<Chunk<'_>>) -> Result<(), Check> {
        let announced = (*response.chain_hash, usize::from(response.chain_size));
        if let Some(held) = &self.offer.held
            && held.hash == announced.0
        {
            self.chain.clone_from(&held.octets);
            self.announced = Some(announced);
            return Ok(());
        }
        let has_changed = self.announced.is_some_and(|before| before != announced);
        let at = if has_changed { 0 } else { self.chain.len() };
        match chunk {
            //= antp#clients-2
            Some(chunk) if usize::from(chunk.offset) == at && !chunk.octets.is_empty() => {
                self.chain.truncate(at);
                self.chain.extend_from_slice(chunk.octets);
            }
            // The request was small in the hope that the chain is still the same, or asked for a part of another one.
            _ if self.offer.held.is_some() || has_changed => self.chain.clear(),
            _ => return Err(Check::Chunk),
        }
        self.offer.held = None;
        self.announced = Some(announced);
        Ok(())
    }

    fn begin_anew(&mut self) {
        self.announced = None;
        self.offer.held = None;
        self.chain.clear();
        self.answered = true;
    }
}

/// A finished negotiation. Its certificates have the hash that was announced; whether to trust them is yet to be said.
#[derive(Clone, Debug)]
pub struct Negotiated {
    suite: Suite,
    state: [u8; C1_SIZE],
    h1: [u8; HASH_SIZE],
    chain: Vec<u8>,
}

impl Negotiated {
    /// The server's choice, the best that both have by the client's order.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// The certificate chain, to be checked: path, name, dates, usage.
    ///
    /// # Panics
    /// Never: the chain was parsed when it was complete.
    #[must_use]
    pub fn chain(&self) -> Chain<'_> {
        Chain::parse(&self.chain).expect("the chain was parsed when it was complete")
    }

    /// h1.
    #[must_use]
    pub const fn transcript(&self) -> &[u8; HASH_SIZE] {
        &self.h1
    }

    /// Writes m3 to `out`; `key` is that of the leaf certificate, or a pinned one, and the caller trusts it. C1 lasts a
    /// minute, and for as many key exchanges as the client likes.
    ///
    /// # Errors
    /// If the key is not one of the suite.
    ///
    /// # Panics
    /// If `out` is shorter than the request, at most 392 octets.
    pub fn exchange(
        &self,
        key: &PublicKey,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> Result<(KeyExchange, usize), WrongKem> {
        KeyExchange::new(self.suite, &self.state, self.h1, key, entropy, out)
    }
}

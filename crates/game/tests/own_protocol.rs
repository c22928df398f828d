//! How to play with a protocol and a strategy of your own: everything that it takes.
//!
//! The protocol is NTP with a watchword: a server that is genuine says it, and so does everybody who has heard it. The
//! strategy and the search both find that.

use authentick_crypto::Entropy;
use authentick_game::model::Party;
use authentick_game::protocol::{Client, Family, Heard, Plain, Protocol, Secret};
use authentick_game::schedule::{Limits, Start, search};
use authentick_game::strategy::{Expected, Strategy};
use authentick_game::verdict::Verdict;
use authentick_sim::Server;
use authentick_wire::header::{Header, ReferenceId};
use authentick_wire::time::{NtpSpan, NtpTime};

const WATCHWORD: ReferenceId = ReferenceId(*b"OPEN");

#[derive(Debug)]
struct Watchword;

impl Protocol for Watchword {
    fn name(&self) -> &'static str {
        "watchword"
    }

    fn says(&self) -> &'static str {
        "NTP whose server says a word that only it knows, until it has said it"
    }

    fn family(&self) -> Family {
        Family::Other
    }

    fn bound(&self) -> Option<NtpSpan> {
        None
    }

    fn server(&self, party: Party, seed: u64) -> Server {
        let mut server = Plain { bound: None }.server(party, seed);
        server.snapshot.reference_id = WATCHWORD;
        server
    }

    fn client(&self, party: Party, server: &mut Server, seed: u64) -> Box<dyn Client> {
        Box::new(Listener(Plain { bound: None }.client(party, server, seed)))
    }

    fn forge(&self, _: Option<&Secret>, _: &[u8], header: &Header) -> Option<Vec<u8>> {
        let mut octets = [0; 48];
        header.emit(&mut octets);
        Some(octets.to_vec())
    }

    fn corrupt(&self, _: &Server, _: &[Vec<u8>]) -> Option<Secret> {
        None
    }
}

/// A plain client that listens for the word.
#[derive(Debug)]
struct Listener(Box<dyn Client>);

impl Client for Listener {
    fn ask(&mut self, now: NtpTime, second: u64, entropy: &mut Entropy) -> Option<Vec<u8>> {
        self.0.ask(now, second, entropy)
    }

    fn receive(&mut self, message: &[u8], now: NtpTime, second: u64) -> Heard {
        match message.first_chunk().map(Header::parse) {
            Some(header) if header.reference_id == WATCHWORD => self.0.receive(message, now, second),
            _ => Heard::Rejected("not the word".to_owned()),
        }
    }

    fn secret(&mut self) -> Option<Secret> {
        None
    }

    fn fork(&self) -> Box<dyn Client> {
        Box::new(Listener(self.0.fork()))
    }
}

const OVERHEAR: Strategy = Strategy {
    id: "overhear",
    title: "listen to the word, and say it",
    says: "A secret that is sent is none.",
    play: |play| {
        let request = play.request();
        let overheard = play.serve(&request);
        let forged = play.forge(None, &request);
        let forged = play.spliced(&forged, &overheard[0], "reference-id");
        play.deliver_all(&[forged]);
    },
    expected: Expected::all(Verdict::WinAuthentication),
};

#[test]
fn strategy_of_ones_own_is_played_against_a_protocol_of_ones_own() {
    let played = OVERHEAR.play(&Watchword, 1);
    assert_eq!((played.verdict, played.expected), (Verdict::WinAuthentication, None));
    let without_the_word = Strategy {
        play: |play| {
            let request = play.request();
            let forged = play.forge(None, &request);
            play.deliver_all(&[forged]);
        },
        ..OVERHEAR
    };
    assert_eq!(without_the_word.play(&Watchword, 1).verdict, Verdict::Reject);
}

#[test]
fn search_needs_no_strategy() {
    let found = search(&Watchword, 1, Start::Keyed, Limits::new(2, 4));
    let attack = found.attacks.iter().find(|attack| attack.class == "response, receive changed").unwrap();
    assert_eq!((attack.verdict, attack.moves.len()), (Verdict::WinAuthentication, 2), "{attack:?}");
}

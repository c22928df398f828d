//! The bodies of the fuzz targets of this crate; `fuzz/` calls them with new octets, the tests with the kept corpus.

pub use crate::memcached::fuzzing::memcached_response;

use crate::acknowledgement::{Acknowledgement, Answer};
use crate::claim::{Claim, NONCE_SIZE};
use crate::document::{Document, REVOKED_COUNT_MAX};
use crate::kept::Kept;
use crate::name::Name;
use crate::rules::{Heard, Node, Origin, Start};
use crate::toy::Toy;

fn name(text: &str) -> Name {
    Name::new(text).expect("it is a name")
}

/// Any octets as what another member said, after one that says what it is: what is understood means the same when it
/// is written again, and a node that hears it keeps nothing lower than what it has, in a form that it reads after a
/// restart. Returns whether it was understood.
pub fn fleet_message(octets: &[u8]) -> bool {
    let Some((kind, text)) = octets.split_first() else { return false };
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let (fleet, peer) = (name("f"), name("b"));
    let first = Document::first(fleet.clone(), name("a"), Toy::first());
    let kept = if kind & 8 == 0 { Some(first) } else { None };
    let claim = Claim { term: 2, taker: name("a"), nonce: [7; NONCE_SIZE] };
    let claim = (kind & 16 != 0).then_some(claim);
    let kept = Kept { document: kept, claim, ..Kept::default() };
    let start = if kind & 32 == 0 { Start::Welcomed } else { Start::Stored };
    let members = ["a", "b", "c"].map(name);
    let mut node = Node::new(fleet.clone(), name("a"), members, start, kept, [1; NONCE_SIZE]);
    let heard = match kind & 7 {
        0 => match Document::<Toy>::parse(text) {
            Err(_) => return false,
            Ok(document) => {
                assert_eq!(Document::parse(&document.emit()).as_ref(), Ok(&document));
                let origin = if kind & 64 == 0 { Origin::Store } else { Origin::Welcome };
                node.hear_document(&document, origin)
            }
        },
        1 => match Claim::parse(text, &fleet) {
            Err(_) => return false,
            Ok(claim) => {
                assert_eq!(Claim::parse(&claim.emit(&fleet), &fleet).as_ref(), Ok(&claim));
                node.hear_claim(&claim)
            }
        },
        2 => match Acknowledgement::parse(text, &fleet, &peer) {
            Err(_) => return false,
            Ok(said) => {
                assert_eq!(Acknowledgement::parse(&said.emit(), &fleet, &peer).as_ref(), Ok(&said));
                node.hear_acknowledgement(&said);
                let healed = node.heal(1, &[peer, name("c")].into(), &mut 9);
                healed.ok().flatten().map_or(Heard::Nothing, |kept| Heard::Keep(Box::new(kept)))
            }
        },
        3 => match Answer::<Toy>::parse(text, &fleet, &peer) {
            Err(_) => return false,
            Ok(answer) => {
                assert_eq!(Answer::parse(&answer.emit(&fleet), &fleet, &peer).as_ref(), Ok(&answer));
                node.hear_answer(&answer);
                let taken = node.take_over(&[name("c")].into());
                taken.map_or(Heard::Nothing, |kept| Heard::Keep(Box::new(kept)))
            }
        },
        _ => match Kept::<Toy>::parse(text) {
            Err(_) => return false,
            Ok(kept) => {
                assert_eq!(Kept::parse(&kept.emit()).as_ref(), Ok(&kept));
                Heard::Nothing
            }
        },
    };
    if let Heard::Keep(kept) = heard {
        assert!(kept.order() >= node.on_disk().order(), "a document fell");
        assert!(kept.term() >= node.on_disk().term(), "a term fell");
        assert!(kept.revoked().is_superset(&node.on_disk().revoked()), "a revocation was forgotten");
        assert!(kept.revoked().len() <= REVOKED_COUNT_MAX, "more is revoked than can be remembered");
        assert_eq!(Kept::parse(&kept.emit()).as_ref(), Ok(&*kept));
        node.kept(*kept);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(target: &str) -> Vec<Vec<u8>> {
        let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let entries = std::fs::read_dir(folder).expect("the corpus is kept");
        entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect()
    }

    #[test]
    fn kept_messages_have_no_finding_and_are_understood() {
        let inputs = corpus("fleet_message");
        let understood = inputs.iter().filter(|octets| fleet_message(octets)).count();
        assert!(understood >= 10, "{understood} of {}", inputs.len());
    }

    /// Writes a message of each kind, to begin with.
    #[test]
    #[ignore = "writes into the corpus"]
    fn write_seeds() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/fleet_message");
        std::fs::create_dir_all(folder).unwrap();
        let mut document = Document::first(name("f"), name("a"), Toy::first());
        document.order.version = 2;
        document.until.insert(1, 3);
        document.revoked.insert(9);
        let claim = Claim { term: 2, taker: name("a"), nonce: [7; NONCE_SIZE] };
        let mut kept = Kept { document: Some(document.clone()), claim: None, dropped: [8].into() };
        let node = |kept: &Kept<Toy>| {
            Node::new(
                name("f"),
                name("b"),
                ["a", "c"].map(name),
                Start::Welcomed,
                kept.clone(),
                [1; NONCE_SIZE],
            )
        };
        let answer = |document| Answer { node: name("b"), claim: claim.clone(), document, dropped: vec![8] };
        let mut seeds = vec![
            (0, document.emit().to_string()),
            (8, document.emit().to_string()),
            (64, document.emit().to_string()),
            (72, document.emit().to_string()),
            (40, document.emit().to_string()),
            (1, claim.emit(&name("f"))),
            (17, claim.emit(&name("f")).replace("claim 2", "claim 3")),
            (2, node(&kept).acknowledgement().emit()),
            (10, node(&Kept::default()).acknowledgement().emit()),
            (19, answer(Some(document)).emit(&name("f")).to_string()),
            (27, answer(None).emit(&name("f")).to_string()),
            (4, kept.emit().to_string()),
        ];
        kept.claim = Some(claim);
        seeds.push((4, kept.emit().to_string()));
        for (index, (kind, text)) in seeds.into_iter().enumerate() {
            std::fs::write(format!("{folder}/seed-{index:02}"), [&[kind], text.as_bytes()].concat()).unwrap();
        }
    }
}

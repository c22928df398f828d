//! What each rule says, one by one. That they suffice is shown by the model.

use std::collections::BTreeSet;

use authentick_proto::generations::Role;
use authentick_proto::limits::KEY_COUNT_MAX;

use super::*;
use crate::claim::NONCE_SIZE;
use crate::document::Order;
use crate::text::TextError;
use crate::toy::Toy;

fn name(text: &str) -> Name {
    Name::new(text).expect("it is a name")
}

fn names(text: &str) -> BTreeSet<Name> {
    text.split(' ').filter(|text| !text.is_empty()).map(name).collect()
}

fn first() -> Document<Toy> {
    Document::first(name("f"), name("a"), Toy::first())
}

fn node(me: &str, document: Option<Document<Toy>>) -> Node<Toy> {
    let kept = Kept { document, ..Kept::default() };
    Node::new(name("f"), name(me), names("a b c"), Start::Welcomed, kept, [1; NONCE_SIZE])
}

fn kept(heard: Heard<Toy>) -> Kept<Toy> {
    match heard {
        Heard::Keep(kept) => *kept,
        other => panic!("{other:?}"),
    }
}

/// The document after `node` has rotated with all acknowledgements.
fn rotate(node: &mut Node<Toy>, rotation: Rotation, keep: usize, made: &mut u8) -> Document<Toy> {
    let kept = node.rotate(rotation, keep, &names("b c"), made).expect("it may rotate");
    node.kept(kept);
    node.on_disk().document.clone().expect("it has rotated")
}

fn retired(node: &Node<Toy>) -> Vec<u32> {
    let keys = node.in_force().expect("it serves").keys.clone();
    keys.retired.iter().map(|(id, _)| *id).collect()
}

#[test]
fn what_the_disk_refuses_opens_and_is_not_acknowledged() {
    let (mut writer, mut member) = (node("a", Some(first())), node("b", Some(first())));
    let next = rotate(&mut writer, Rotation::Due, 7, &mut 2);
    let refused = kept(member.hear_document(&next, Origin::Store));
    member.not_kept(refused.clone());
    let used = member.in_force().expect("it serves");
    assert_eq!((used.keys.current, used.beside), (first().keys.current, Some(&next.keys)));
    let said = member.acknowledgement();
    assert_eq!(said.document, Some((first().order, first().digest())));
    assert_eq!((said.seals, &said.opens[..]), (Some(1), &[1, 2, 3][..]));
    writer.hear_acknowledgement(&said);
    assert_eq!(writer.waiting(), names("b c"));
    // The disk is there again.
    member.kept(refused);
    let said = member.acknowledgement();
    assert_eq!((&said.document, said.seals), (&Some((next.order.clone(), next.digest())), Some(2)));
    assert_eq!(member.in_force().expect("it serves").beside, None);
    writer.hear_acknowledgement(&said);
    assert_eq!(writer.waiting(), names("c"));
}

#[test]
fn highest_of_what_the_disk_refuses_opens_though_the_store_repeats_an_older_one() {
    let (mut writer, mut member, mut made) = (node("a", Some(first())), node("b", Some(first())), 2);
    let next = rotate(&mut writer, Rotation::Due, 7, &mut made);
    let last = rotate(&mut writer, Rotation::Due, 7, &mut made);
    for document in [&next, &last, &next] {
        let refused = kept(member.hear_document(document, Origin::Store));
        member.not_kept(refused);
    }
    assert_eq!(member.in_force().expect("it serves").beside, Some(&last.keys));
    // What the disk takes then may be the older one; the higher one is heard again.
    let taken = kept(member.hear_document(&next, Origin::Store));
    member.kept(taken);
    assert_eq!(member.in_force().expect("it serves").beside, None);
    assert!(matches!(member.hear_document(&last, Origin::Store), Heard::Keep(_)));
}

/// Identifiers alone do not tell what is in force: who took over without a writer may have made another key of the
/// number that the writer's next one has.
#[test]
fn what_opens_beside_the_document_is_told_by_its_digest() {
    let mut member = node("b", Some(first()));
    assert_eq!(member.beside(), None);
    let mut of_another = first();
    of_another.order = Order { term: 2, version: 2, writer: name("a") };
    of_another.keys.future.1 = 99;
    let refused = kept(member.hear_document(&of_another, Origin::Store));
    let before = member.acknowledgement();
    member.not_kept(refused);
    assert_eq!(member.acknowledgement(), before);
    assert_eq!(member.beside(), Some(of_another.digest()));
}

#[test]
fn claim_that_the_disk_refuses_changes_nothing_of_what_opens() {
    let next = rotate(&mut node("a", Some(first())), Rotation::Due, 7, &mut 2);
    let mut member = node("b", Some(first()));
    let claim = Claim { term: 2, taker: name("c"), nonce: [2; NONCE_SIZE] };
    let refused = kept(member.hear_claim(&claim));
    member.not_kept(refused.clone());
    assert_eq!(member.in_force().expect("it serves").beside, None);
    // Nor does it take away what the disk had refused before.
    let document = kept(member.hear_document(&next, Origin::Store));
    member.not_kept(document);
    member.not_kept(refused);
    assert_eq!(member.in_force().expect("it serves").beside, Some(&next.keys));
}

#[test]
fn node_without_a_document_serves_once_one_is_on_its_disk() {
    let mut newcomer = node("b", None);
    assert_eq!(newcomer.hear_document(&first(), Origin::Store), Heard::Nothing);
    let said = newcomer.acknowledgement();
    assert_eq!((said.nonce, said.document, said.seals), (Some([1; NONCE_SIZE]), None, None));
    let welcomed = node("a", Some(first())).welcome(&newcomer.acknowledgement()).map(|(nonce, _)| nonce);
    assert_eq!(welcomed, Some([1; NONCE_SIZE]));
    assert_eq!(node("c", Some(first())).welcome(&newcomer.acknowledgement()), None);
    let welcome = kept(newcomer.hear_document(&first(), Origin::Welcome));
    newcomer.not_kept(welcome.clone());
    assert_eq!(newcomer.in_force(), None);
    newcomer.kept(welcome);
    assert_eq!(newcomer.acknowledgement().nonce, None);
    assert_eq!(newcomer.in_force().map(|used| used.keys.current), Some(first().keys.current));
    // Told so, it takes what the store has.
    let mut stored = Node { start: Start::Stored, ..node("b", None) };
    assert_eq!(kept(stored.hear_document(&first(), Origin::Store)).document, Some(first()));
}

#[test]
fn keys_that_descend_from_other_first_keys_replace_nothing_however_high() {
    let another = Document::first(name("f"), name("b"), Toy::another_first());
    let (mut a, mut b) = (node("a", Some(first())), node("b", Some(another.clone())));
    let mut higher = another.clone();
    higher.order = Order { term: 3, version: 40, writer: name("c") };
    for document in [&another, &higher] {
        assert_eq!(a.hear_document(document, Origin::Store), Heard::Refused(Clash::Lineage));
    }
    // Nor does the lower one, which is told of all the same.
    assert_eq!(b.hear_document(&first(), Origin::Store), Heard::Refused(Clash::Lineage));
    assert!(a.is_stranger(&b.acknowledgement()) && b.is_stranger(&a.acknowledgement()));
    assert!(!a.is_stranger(&node("c", None).acknowledgement()));
    assert!(!node("c", None).is_stranger(&a.acknowledgement()));
    // Neither counts as having what the other waits for.
    a.hear_acknowledgement(&b.acknowledgement());
    assert_eq!(a.waiting(), names("b c"));
    // Who has nothing takes either, and stays with it.
    let mut stored = Node { start: Start::Stored, ..node("c", None) };
    let taken = kept(stored.hear_document(&another, Origin::Store));
    stored.kept(taken);
    assert_eq!(stored.hear_document(&first(), Origin::Store), Heard::Refused(Clash::Lineage));
    // The same keys, of whoever made a document of them, are no strangers.
    let same = Document::first(name("f"), name("b"), Toy::first());
    assert_eq!(kept(a.hear_document(&same, Origin::Store)).document, Some(same));
}

#[test]
fn take_over_goes_on_from_no_document_of_other_first_keys() {
    let another = Document::first(name("f"), name("b"), Toy::another_first());
    let mut taker = node("a", Some(first()));
    let claimed = taker.claim([2; NONCE_SIZE]);
    taker.kept(claimed.clone());
    for (me, document) in [("b", &another), ("c", &first())] {
        let mut member = node(me, Some(document.clone()));
        let claim = kept(member.hear_claim(claimed.claim.as_ref().expect("it has claimed")));
        member.kept(claim);
        taker.hear_answer(&member.answer().expect("it keeps a claim"));
    }
    assert_eq!(taker.take_over(&names("")), Err(Why::Strangers(names("b"))));
    let next = taker.take_over(&names("b")).expect("b is left out").document.expect("it has one");
    assert_eq!((next.lineage, next.keys), (first().lineage, Toy::first()));
    // Who has nothing itself goes on from whom it does not leave out.
    taker.kept.document = None;
    assert!(matches!(taker.take_over(&names("")), Err(Why::Strangers(_))));
    let next = taker.take_over(&names("c")).expect("c is left out").document.expect("it has one");
    assert_eq!(next.lineage, another.lineage);
}

#[test]
fn keys_are_promised_for_as_many_periods_as_are_kept() {
    let (mut writer, mut made) = (node("a", Some(first())), 2);
    let mut promised = Vec::new();
    for rotation in [Rotation::Due, Rotation::ByHand, Rotation::Due, Rotation::Due] {
        let document = rotate(&mut writer, rotation, 2, &mut made);
        promised.push(document.promised(2));
    }
    // All that a rotation leaves, by the writer's own `keep`; by a shorter one less.
    assert_eq!(promised, [vec![2, 1], vec![3, 2, 1], vec![4, 3, 2, 1], vec![5, 4, 3, 2]]);
    let mut document = writer.on_disk().document.clone().expect("it has one");
    assert_eq!(document.promised(1), [5, 4]);
    document.revoked.insert(4);
    assert_eq!(document.promised(2), [5, 3, 2]);
}

#[test]
fn strangers_are_not_heard() {
    let mut stranger = node("a", None).acknowledgement();
    stranger.node = name("z");
    let mut writer = node("a", Some(first()));
    assert_eq!(writer.welcome(&stranger), None);
    stranger.document = Some((first().order, first().digest()));
    stranger.claim = Some(Claim { term: 7, taker: name("z"), nonce: [7; NONCE_SIZE] });
    stranger.dropped = vec![1];
    let before = writer.clone();
    writer.hear_acknowledgement(&stranger);
    assert_eq!(writer, before);
    writer.hear_acknowledgement(&Acknowledgement { node: name("b"), ..stranger.clone() });
    assert_eq!(writer.waiting(), names("c"));
    assert_eq!((writer.term_heard, &writer.revoked_heard), (7, &[1].into()));
    // Nor are they where a node takes over.
    let mut taker = node("c", Some(first()));
    taker.kept(taker.claim([3; NONCE_SIZE]));
    let claim = stranger.claim.expect("it has claimed");
    let before = taker.clone();
    taker.hear_answer(&Answer { node: name("z"), claim, document: None, dropped: vec![1] });
    assert_eq!(taker, before);
}

#[test]
fn members_that_remember_more_than_can_be_revoked_fill_no_memory() {
    let mut writer = node("a", Some(first()));
    let mut said = node("b", Some(first())).acknowledgement();
    for from in [100, 100, 2_000, 10_000] {
        said.dropped = (from..).take(REVOKED_COUNT_MAX).collect();
        writer.hear_acknowledgement(&said);
        assert_eq!(writer.revoked_heard.len(), REVOKED_COUNT_MAX);
    }
}

#[test]
fn two_documents_or_keys_of_one_name_are_refused() {
    let mut member = node("b", Some(first()));
    let other = Document { fleet: name("g"), ..first() };
    assert_eq!(member.hear_document(&other, Origin::Welcome), Heard::Refused(Clash::Fleet));
    let other = Document { period: 1, ..first() };
    assert_eq!(member.hear_document(&other, Origin::Store), Heard::Refused(Clash::Document));
    assert_eq!(member.hear_document(&first(), Origin::Store), Heard::Nothing);
    let higher = Order { version: 2, ..first().order };
    let keys = Toy { current: (1, 9), ..Toy::first() };
    let other = Document { order: higher.clone(), keys, ..first() };
    assert_eq!(member.hear_document(&other, Origin::Store), Heard::Refused(Clash::Key(1)));
    // A future key has not sealed anything.
    let other = Document { order: higher, keys: Toy { future: (2, 9), ..Toy::first() }, ..first() };
    assert_eq!(kept(member.hear_document(&other, Origin::Store)).document, Some(other));
}

#[test]
fn another_future_key_hides_no_other_clash() {
    let next = rotate(&mut node("a", Some(first())), Rotation::Due, 7, &mut 2);
    let mut member = node("b", Some(next.clone()));
    let keys = Toy { future: (3, 9), retired: vec![(1, 9)], ..next.keys.clone() };
    let other = Document { order: Order { version: 3, ..next.order.clone() }, keys, ..next };
    assert_eq!(member.hear_document(&other, Origin::Store), Heard::Refused(Clash::Key(1)));
}

#[test]
fn rotation_waits_for_all_members_and_names_them() {
    let mut writer = node("a", Some(first()));
    let rotate = |writer: &Node<Toy>, leave: &str| {
        writer
            .rotate(Rotation::Due, 7, &names(leave), &mut 2)
            .map(|kept| kept.order().map(|order| order.version))
    };
    let refusal = rotate(&writer, "").unwrap_err();
    assert_eq!(refusal, Refusal::Waiting(names("b c")));
    assert_eq!(refusal.to_string(), "not acknowledged by b, c");
    writer.hear_acknowledgement(&node("b", Some(first())).acknowledgement());
    assert_eq!(rotate(&writer, ""), Err(Refusal::Waiting(names("c"))));
    assert_eq!(rotate(&writer, "c"), Ok(Some(2)));
    writer.hear_acknowledgement(&node("c", Some(first())).acknowledgement());
    assert_eq!(rotate(&writer, ""), Ok(Some(2)));
    assert_eq!(rotate(&node("b", Some(first())), "a c"), Err(Refusal::NotWriter(name("a"))));
    assert_eq!(rotate(&node("a", None), "b c"), Err(Refusal::Nothing));
    let heard = kept(writer.hear_claim(&Claim { term: 2, taker: name("b"), nonce: [2; NONCE_SIZE] }));
    writer.kept(heard);
    assert_eq!(rotate(&writer, ""), Err(Refusal::Claimed(name("b"), 2)));
}

#[test]
fn keys_that_sealed_within_the_periods_to_keep_stay() {
    let (mut writer, mut made) = (node("a", Some(first())), 2);
    for rotation in 1..=4 {
        rotate(&mut writer, Rotation::Due, 2, &mut made);
        assert_eq!(retired(&writer).len(), rotation.min(2), "{rotation}");
    }
    // By hand, as often as anybody likes: nothing goes before its periods are over.
    for rotation in 1..=3 {
        rotate(&mut writer, Rotation::ByHand, 2, &mut made);
        assert_eq!(retired(&writer).len(), 2 + rotation);
    }
    rotate(&mut writer, Rotation::Due, 2, &mut made);
    let before = retired(&writer);
    assert!(before.len() > 2, "{before:?}");
    rotate(&mut writer, Rotation::ByHandDropping, 2, &mut made);
    assert_eq!(retired(&writer).len(), 2);
    let document = writer.on_disk().document.clone().expect("it has one");
    let known: BTreeSet<u32> = document.keys.identifiers().into_iter().map(|(_, id)| id).collect();
    assert!(document.until.keys().all(|id| known.contains(id)), "{document:?}");
}

#[test]
fn rotation_that_has_no_room_for_keys_to_keep_does_not_take_place() {
    let (mut writer, mut made) = (node("a", Some(first())), 2);
    for _ in 0..KEY_COUNT_MAX - 2 {
        rotate(&mut writer, Rotation::ByHand, 1, &mut made);
    }
    let rotate = |rotation| writer.rotate(rotation, 1, &names("b c"), &mut 200).map(drop);
    assert_eq!(rotate(Rotation::ByHand), Err(Refusal::Full));
    assert_eq!(rotate(Rotation::ByHandDropping), Ok(()));
}

#[test]
fn revoked_key_is_gone_whatever_its_role_was() {
    let (mut writer, mut made) = (node("a", Some(first())), 2);
    rotate(&mut writer, Rotation::Due, 7, &mut made);
    let none = BTreeSet::new();
    let revoke = |writer: &Node<Toy>, id, leave: &BTreeSet<Name>| {
        let document = writer.revoke(id, 7, leave, &mut 9)?.document.expect("it has one");
        assert_eq!((document.revoked.contains(&id), document.order.version), (true, 3));
        assert!(!document.until.contains_key(&id));
        Ok::<_, Refusal>(document.keys.identifiers())
    };
    let (current, future, gone) = (Role::Current, Role::Future, Role::Retired);
    assert_eq!(revoke(&writer, 1, &none), Ok(vec![(current, 2), (future, 3)]));
    assert_eq!(revoke(&writer, 3, &none), Ok(vec![(current, 2), (future, 4), (gone, 1)]));
    // What seals next has to be known everywhere.
    assert_eq!(revoke(&writer, 2, &none), Err(Refusal::Waiting(names("b c"))));
    assert_eq!(revoke(&writer, 2, &names("b c")), Ok(vec![(current, 3), (future, 4), (gone, 1)]));
    assert_eq!(revoke(&writer, 7, &none), Err(Refusal::Unknown(7)));
}

#[test]
fn taker_waits_for_answers_to_its_own_claim_and_goes_on_from_the_highest() {
    let mut writer = node("a", Some(first()));
    let next = rotate(&mut writer, Rotation::Due, 7, &mut 2);
    let (mut taker, mut member) = (node("c", Some(first())), node("b", Some(next.clone())));
    assert_eq!(taker.take_over(&names("")), Err(Why::NotClaimed));
    taker.kept(taker.claim([3; NONCE_SIZE]));
    let claim = taker.on_disk().claim.clone().expect("it has claimed");
    assert_eq!((claim.term, taker.take_over(&names("a"))), (2, Err(Why::Waiting(names("b")))));
    let heard = kept(member.hear_claim(&claim));
    member.kept(heard);
    assert_eq!(member.take_over(&names("a c")), Err(Why::Claimed(name("c"), 2)));
    taker.hear_answer(&member.answer().expect("it answers"));
    assert_eq!(taker.take_over(&names("")), Err(Why::Waiting(names("a"))));
    let taken = taker.take_over(&names("a")).expect("all have answered");
    let document = taken.document.clone().expect("it has one");
    assert_eq!(document.order, Order { term: 2, version: 3, writer: name("c") });
    assert_eq!(document.keys, next.keys);
    taker.kept(taken);
    assert!(taker.writes().is_ok());
    // The writer hears of it, and is none any more.
    let heard = kept(writer.hear_document(&document, Origin::Store));
    writer.kept(heard);
    assert_eq!(writer.writes(), Err(Refusal::NotWriter(name("c"))));
}

#[test]
fn taker_remembers_what_was_revoked_of_the_keys_that_it_takes_up() {
    // It revoked the future key as the writer; who took over without it goes on with that key.
    let mut taker = node("a", Some(first()));
    let revoked = taker.revoke(2, 7, &names(""), &mut 2).expect("it may");
    taker.kept(revoked);
    let order = Order { term: 2, version: 2, writer: name("c") };
    let mut member = node("b", Some(Document { order, ..first() }));
    taker.hear_acknowledgement(&member.acknowledgement());
    taker.kept(taker.claim([3; NONCE_SIZE]));
    let heard = kept(member.hear_claim(taker.on_disk().claim.as_ref().expect("it has claimed")));
    member.kept(heard);
    taker.hear_answer(&member.answer().expect("it answers"));
    let taken = taker.take_over(&names("c")).expect("all have answered");
    assert_eq!(taken.document.as_ref().and_then(|document| document.key(Role::Future)), Some(2));
    assert_eq!(taken.revoked(), [2].into());
    // It makes another one as soon as it writes.
    taker.kept(taken);
    let healed = taker.heal(7, &names(""), &mut 3).expect("it writes").expect("there is something");
    assert_eq!((healed.document.expect("it has one").revoked, healed.dropped), ([2].into(), [].into()));
}

#[test]
fn nobody_takes_over_where_nobody_has_keys() {
    let alone = Node::new(name("f"), name("a"), [], Start::Welcomed, Kept::<Toy>::default(), [1; NONCE_SIZE]);
    let mut alone = alone;
    alone.kept(alone.claim([1; NONCE_SIZE]));
    assert_eq!(alone.take_over(&names("")), Err(Why::Nothing));
}

/// A version of the first document in which these are revoked.
fn revoking(version: u64, revoked: impl IntoIterator<Item = u32>) -> Document<Toy> {
    let order = Order { version, ..first().order };
    Document { order, revoked: revoked.into_iter().collect(), ..first() }
}

/// Identifiers that no key here has: one less than can be remembered.
fn all_but_one() -> impl Iterator<Item = u32> {
    (100..).take(REVOKED_COUNT_MAX - 1)
}

#[test]
fn document_with_which_more_is_revoked_than_can_be_remembered_is_refused() {
    let mut member = node("b", Some(revoking(1, all_but_one())));
    let fits = kept(member.hear_document(&revoking(2, [7]), Origin::Store));
    assert_eq!((fits.dropped.len(), fits.revoked().len()), (REVOKED_COUNT_MAX - 1, REVOKED_COUNT_MAX));
    assert_eq!(Kept::parse(&fits.emit()).as_ref(), Ok(&fits));
    let refused = Clash::TooManyRevoked(REVOKED_COUNT_MAX + 1);
    assert_eq!(member.hear_document(&revoking(2, [7, 8]), Origin::Store), Heard::Refused(refused));
    assert_eq!(
        refused.to_string(),
        "4097 keys would be revoked here in all, and no more than 4096 can be remembered"
    );
    // What was revoked in both counts once.
    let known = all_but_one().chain([7]);
    assert_eq!(kept(member.hear_document(&revoking(2, known), Origin::Store)).dropped, [].into());
    // Nor is more than that read from a disk.
    let more = Kept { document: Some(revoking(2, [7, 8])), ..fits };
    assert_eq!(Kept::<Toy>::parse(&more.emit()).map(drop), Err(TextError::TooMany("dropped")));
}

#[test]
fn writer_revokes_no_more_than_can_be_remembered() {
    let mut writer = node("a", None);
    writer.kept(Kept { document: Some(revoking(1, all_but_one())), dropped: [7].into(), claim: None });
    let said = Acknowledgement { dropped: vec![6], ..node("b", Some(first())).acknowledgement() };
    writer.hear_acknowledgement(&said);
    // What it remembers itself is no more than before.
    let healed = writer.heal(7, &names(""), &mut 2).expect("there is room").expect("there is something");
    assert_eq!((healed.revoked().len(), healed.dropped.len()), (REVOKED_COUNT_MAX, 0));
    writer.kept(healed);
    assert_eq!(writer.heal(7, &names(""), &mut 2).map(drop), Err(Refusal::TooManyRevoked));
    assert_eq!(writer.revoke(2, 7, &names(""), &mut 2).map(drop), Err(Refusal::TooManyRevoked));
    assert!(writer.rotate(Rotation::Due, 7, &names("b c"), &mut 2).is_ok());
}

#[test]
fn taker_takes_up_no_more_than_can_be_remembered() {
    let mut taker = node("c", Some(revoking(1, all_but_one())));
    taker.kept(taker.claim([3; NONCE_SIZE]));
    let claim = taker.on_disk().claim.clone().expect("it has claimed");
    let mut taken = |dropped| {
        let answer = Answer { node: name("b"), claim: claim.clone(), document: None, dropped };
        taker.hear_answer(&answer);
        taker.take_over(&names("a")).map(|kept| kept.revoked().len())
    };
    assert_eq!(taken(vec![7, 8]), Err(Why::TooManyRevoked(REVOKED_COUNT_MAX + 1)));
    assert_eq!(taken(vec![7]), Ok(REVOKED_COUNT_MAX));
}

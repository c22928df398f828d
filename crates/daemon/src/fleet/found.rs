//! What lies in a server, as the crate of the rules reads it.

use authentick_fleet::Asker;

use super::keys::{FleetKind, Shared};
use super::server::Value;
use crate::config::Fleet;

/// What lies in a server.
pub(crate) type Found<K> = authentick_fleet::Found<Shared<K>, Value>;

/// Something that a member said.
pub(crate) type Said<K> = authentick_fleet::Said<Shared<K>>;

/// The node that a configuration names, about keys of one kind.
pub(crate) fn asker<K: FleetKind>(fleet: &Fleet) -> Asker {
    Asker { fleet: fleet.id.clone(), me: fleet.node.clone(), members: fleet.members.clone(), kind: K::NAME }
}

#[cfg(test)]
mod tests {
    use authentick_crypto::Entropy;
    use authentick_fleet::seal::{SEAL_KEY_SIZE, SealKeys, Topic};
    use authentick_fleet::{Document, Name};
    use authentick_proto::antp::state_key::StateKeys;
    use authentick_proto::keyset::KeySet;
    use zeroize::Zeroizing;

    use super::*;
    use crate::keystore::KeyKind;

    /// What lies where it should not, and why, as it is read for keys of the kind `K` where a document of theirs would
    /// be.
    fn strange<K: FleetKind>(seals: &SealKeys, sealed: &[u8]) -> Vec<&'static str> {
        let [fleet, me] = ["fleet", "a"].map(|name| Name::new(name).unwrap());
        let asker = Asker { fleet, members: vec![me.clone()], me, kind: K::NAME };
        let place = asker.name(Topic::Document);
        let values = asker.names().iter().map(|name| (*name == place).then(|| sealed.to_vec())).collect();
        let found = authentick_fleet::Found::<Shared<K>, Vec<u8>>::of(&asker, None, seals, values);
        assert_eq!(found.document.is_none(), !found.strange.is_empty());
        found.strange.into_values().collect()
    }

    fn first<K: FleetKind>() -> String {
        let [fleet, writer] = ["fleet", "a"].map(|name| Name::new(name).unwrap());
        let keys = Shared(K::generate(0, &mut Entropy::from_seed(1)));
        Document::first(fleet, writer, keys).emit().to_string()
    }

    #[test]
    fn what_was_said_of_one_kind_of_keys_counts_for_nothing_of_the_other() {
        let fleet = Name::new("fleet").unwrap();
        let seals = SealKeys::new(fleet, &[Zeroizing::new([7; SEAL_KEY_SIZE])]).unwrap();
        let mut entropy = Entropy::from_seed(2);
        let mut seal = |kind, text: &str| seals.seal(Topic::Document, kind, text, &mut entropy);
        let (cookies, state) = (KeySet::NAME, StateKeys::NAME);
        let (of_cookies, of_state) = (first::<KeySet>(), first::<StateKeys>());
        assert!(strange::<KeySet>(&seals, &seal(cookies, &of_cookies)).is_empty());
        assert!(strange::<StateKeys>(&seals, &seal(state, &of_state)).is_empty());
        // Sealed for its own kind, and put into the place of the other.
        let nobody = ["no seal key of ours has sealed it"];
        assert_eq!(strange::<KeySet>(&seals, &seal(state, &of_state)), nobody);
        assert_eq!(strange::<StateKeys>(&seals, &seal(cookies, &of_cookies)), nobody);
        // And where a member itself has taken one for the other, it is not understood.
        for why in [
            strange::<KeySet>(&seals, &seal(cookies, &of_state)),
            strange::<StateKeys>(&seals, &seal(state, &of_cookies)),
        ] {
            assert!(matches!(why[..], [why] if why.contains("not understood")), "{why:?}");
        }
    }
}

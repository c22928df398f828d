//! How many names go into one request, so that the values fit into its response.
//!
//! Nobody knows before how large values are. Those that were read last are taken to be as large as they were; where a
//! response was too large all the same, half as many are asked for next. Nothing here asks anything.

use std::collections::HashMap;

use authentick_fleet::memcached::{Name, RESPONSE_SIZE_MAX};

/// Octets that the values of one request are expected to have, at most: they may grow by a third until they are read
/// again.
const PART_SIZE: usize = RESPONSE_SIZE_MAX / 4 * 3;

/// What is known of the sizes of values.
#[derive(Debug, Default)]
pub(super) struct Parts(HashMap<Name, usize>);

impl Parts {
    /// How many of `names`, which are some, go into one request: the first so many.
    pub(super) fn first(&self, names: &[Name]) -> usize {
        let mut sum = 0;
        let fits = |name: &&Name| {
            sum += self.0.get(*name).copied().unwrap_or_default();
            sum <= PART_SIZE
        };
        names.iter().take_while(fits).count().max(1)
    }

    /// The value of a name has so many octets.
    pub(super) fn note(&mut self, name: &Name, size: usize) {
        self.0.insert(name.clone(), size);
    }

    /// The values of `names` are together more than one response may have.
    pub(super) fn halve(&mut self, names: &[Name]) {
        let size = PART_SIZE / (names.len() / 2).max(1);
        for name in names {
            let known = self.0.entry(name.clone()).or_default();
            *known = size.max(*known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_halved_until_each_has_one_name_and_grow_with_what_is_known() {
        let names: Vec<Name> = (0..9).map(|index| Name::new(&index.to_string()).unwrap()).collect();
        let mut parts = Parts::default();
        for (count, fits) in [(9, 9), (9, 4), (4, 2), (2, 1), (1, 1)] {
            assert_eq!(parts.first(&names), fits);
            parts.halve(&names[..count.min(fits)]);
        }
        assert_eq!(parts.first(&names[4..]), 4, "the second half was halved once");
        names.iter().for_each(|name| parts.note(name, PART_SIZE / 3));
        assert_eq!(parts.first(&names), 3);
        parts.note(&names[1], PART_SIZE + 1);
        assert_eq!(
            (parts.first(&names), parts.first(&names[1..])),
            (1, 1),
            "what fits nowhere is asked for alone"
        );
    }
}

//! What `game` is told.

use clap::{Args, Subcommand, ValueEnum};

#[derive(Args, Debug)]
pub(crate) struct Game {
    #[command(subcommand)]
    pub(crate) scheme: GameScheme,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GameScheme {
    /// Message authentication codes: what the drafts on MACs for NTP argue, as programs
    Mac(GameMac),
}

#[derive(Args, Debug)]
pub(crate) struct GameMac {
    /// What to play
    #[arg(value_enum, default_value_t = GameProgram::All)]
    pub(crate) program: GameProgram,
    /// What decides keys, nonces and messages: the same number has the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// `limits`: numbers of messages to have in the table, such as 1000000 or 2^40; several with commas
    #[arg(long, value_name = "Q", value_delimiter = ',', value_parser = power_of_two)]
    pub(crate) queries: Vec<f64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A program of the game of MACs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GameProgram {
    /// MD5 and its like: a longer message from one tag
    LengthExtension,
    /// GMAC under a repeated nonce
    GmacNonce,
    /// Poly1305 under a repeated nonce
    #[value(name = "poly1305-nonce")]
    Poly1305Nonce,
    /// HMAC, CMAC and GMAC-SIV before the same adversary
    Others,
    /// Three ways of replacing a GMAC key in time
    Refresh,
    /// Salts that associations share
    Salt,
    /// How many messages a key may authenticate
    Limits,
    /// All of them
    All,
}

/// A number of messages, as its base-2 logarithm.
fn power_of_two(text: &str) -> Result<f64, String> {
    const MOST_LOG2: f64 = 128.0;
    let log2 = match text.strip_prefix("2^") {
        Some(exponent) => exponent.parse::<f64>().ok(),
        None => text.parse::<u128>().ok().filter(|count| *count > 0).map(|count| (count as f64).log2()),
    };
    log2.filter(|log2| (0.0..=MOST_LOG2).contains(log2))
        .ok_or_else(|| format!("no number of messages from 1 to 2^{MOST_LOG2}, such as 1000000 or 2^40"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_messages_may_be_a_power_of_two() {
        assert_eq!(
            (power_of_two("1"), power_of_two("2^40"), power_of_two("1024")),
            (Ok(0.0), Ok(40.0), Ok(10.0))
        );
        assert!(
            ["0", "-1", "2^", "2^129", "2^-1", "2^nan", "1.5", ""]
                .iter()
                .all(|text| power_of_two(text).is_err())
        );
    }
}

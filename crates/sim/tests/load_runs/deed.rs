//! What the world does to a request, and what that makes of it in truth.

use authentick_crypto::Entropy;
use authentick_generator::Scheme;
use authentick_report::load::Cause;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    Answered,
    Failed(Cause),
}

/// What the world does to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    /// The server's answer comes in time.
    Answered,
    /// It comes in time, and its last datagram twice.
    AnsweredTwice,
    /// A kiss that somebody forged comes first, then the server's answer, in time.
    KissedAndAnswered,
    /// Somebody forges a message of the network about the request, and the server's answer comes in time.
    RefusedAndAnswered,
    /// The server's answer comes between the first timeout and the second.
    AnsweredLate,
    /// It comes after the second.
    AnsweredTooLate,
    /// The request does not arrive, or nobody serves.
    LostThere,
    /// The answer does not arrive.
    LostBack,
    /// The network says that nobody listens.
    Refused,
    /// The network says that it does not get there.
    Unreachable,
    /// The network says that something does not get there, and not what.
    Vague,
    /// The request comes back as it is.
    Reflected,
    /// Somebody forges a kiss instead of the answer.
    Kissed,
    /// Somebody forges a refusal of the key or cookie.
    Refusal,
    /// The server has lost the keys of its cookies, and says so.
    KeysLost,
    /// One bit of the answer's tag is wrong.
    Tampered,
    /// The answer has stratum 16, and its leap indicator says that the clock is not synchronised.
    BadStratum,
    /// The leap indicator says that the clock is not synchronised, and the stratum is a good one.
    BadLeap,
    /// The answer is cut within its header, after the origin timestamp.
    Shortened,
    /// It is cut before the end of that.
    CutOff,
    /// Some octets follow the answer.
    Lengthened,
    /// Instead of the answer comes one to another request, which nobody made, or one without an origin timestamp.
    Stranger,
    /// The host has no room for a request within an operation.
    NoRoom,
}

impl Deed {
    /// A deed that is drawn for a request of a scheme; `kind` worlds only answer.
    pub(crate) fn draw(scheme: Scheme, kind: bool, entropy: &mut Entropy) -> Deed {
        if kind || entropy.u64() % 100 < 45 {
            return Deed::Answered;
        }
        let deeds: &[Deed] = match scheme {
            Scheme::Plain => &[Deed::BadStratum, Deed::BadLeap],
            Scheme::Mac | Scheme::Nts | Scheme::Mix { .. } => {
                &[Deed::Tampered, Deed::Refusal, Deed::KissedAndAnswered]
            }
            Scheme::AntpNegotiate | Scheme::AntpExchange | Scheme::Antp | Scheme::AntpFull => {
                &[Deed::Tampered, Deed::KissedAndAnswered]
            }
            Scheme::Ke => &[],
        };
        let index = (entropy.u64() % (EVERYWHERE.len() + deeds.len()) as u64) as usize;
        *EVERYWHERE.get(index).unwrap_or_else(|| &deeds[index - EVERYWHERE.len()])
    }

    /// What a request comes to in truth.
    pub(crate) fn truth(self, scheme: Scheme) -> End {
        let cause = match self {
            Deed::Answered | Deed::AnsweredTwice | Deed::KissedAndAnswered | Deed::RefusedAndAnswered => {
                return End::Answered;
            }
            Deed::AnsweredLate => Cause::Late,
            // What belongs to no request is no request's cause. An operation that the host breaks off was sent.
            Deed::AnsweredTooLate
            | Deed::LostThere
            | Deed::LostBack
            | Deed::Vague
            | Deed::CutOff
            | Deed::Stranger
            | Deed::NoRoom => Cause::Timeout,
            Deed::Refused => Cause::Refused,
            Deed::Unreachable => Cause::Unreachable,
            Deed::Reflected | Deed::Shortened | Deed::Lengthened => Cause::Malformed,
            Deed::Kissed => Cause::Kiss,
            Deed::Refusal if scheme == Scheme::Mac => Cause::CryptoNak,
            Deed::Refusal | Deed::KeysLost => Cause::Ntsn,
            Deed::Tampered => Cause::BadTag,
            Deed::BadStratum => Cause::BadStratum,
            Deed::BadLeap => Cause::BadLeap,
        };
        End::Failed(cause)
    }
}

/// What is done to requests of every scheme.
const EVERYWHERE: &[Deed] = &[
    Deed::AnsweredTwice,
    Deed::RefusedAndAnswered,
    Deed::AnsweredLate,
    Deed::AnsweredTooLate,
    Deed::LostThere,
    Deed::LostBack,
    Deed::Refused,
    Deed::Unreachable,
    Deed::Vague,
    Deed::Reflected,
    Deed::Kissed,
    Deed::Shortened,
    Deed::CutOff,
    Deed::Lengthened,
    Deed::Stranger,
];

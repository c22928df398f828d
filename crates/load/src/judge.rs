//! Certificate chains of ANTP, judged by roots and this host's clock.

use authentick_crypto::kem::PublicKey;
use authentick_generator::{Guide, Judge};
use authentick_ke::tls::{KeyUse, PathVerifier, Roots, public_key_info};
use authentick_net::clock::unix_seconds;
use authentick_proto::antp::client::Negotiated;
use authentick_proto::antp::kem;
use rustls::pki_types::{CertificateDer, ServerName};

use crate::plan::Plan;

/// How `plan` wants ANTP spoken; `roots` are trusted if it names no authorities.
///
/// # Errors
/// A sentence on what is missing or unknown.
pub(crate) fn guide(plan: &Plan, roots: Option<Roots>) -> Result<Guide, String> {
    let antp = plan.antp.ok_or("the plan does not say how ANTP is spoken")?;
    let (roots, name) = trust(plan, roots)?;
    let path = PathVerifier::new(&roots, name).map_err(|bad| bad.to_string())?;
    Guide::new(antp, plan.ntp.is_ipv4(), Box::new(Verifier { path })).map_err(|unknown| unknown.to_string())
}

/// Whom `plan` trusts, and the name that the server must have; `roots` are trusted if it names no authorities.
///
/// # Errors
/// A sentence on what is missing.
pub(crate) fn trust(plan: &Plan, roots: Option<Roots>) -> Result<(Roots, ServerName<'static>), String> {
    let roots = match &plan.authorities_pem {
        Some(pem) => Roots::from_pem(pem.as_bytes())?,
        None => roots.ok_or("no certificate authorities are trusted; name some")?,
    };
    let name = ServerName::try_from(plan.server_name.clone())
        .map_err(|_| format!("{:?} is no name that a certificate can have", plan.server_name))?;
    Ok((roots, name))
}

/// Paths to the roots that are trusted.
#[derive(Debug)]
struct Verifier {
    path: PathVerifier,
}

impl Verifier {
    fn judged(&self, negotiated: &Negotiated) -> Result<PublicKey, String> {
        let (suite, chain) = (negotiated.suite(), negotiated.chain());
        let chain: Vec<CertificateDer<'_>> = chain.certificates().map(CertificateDer::from).collect();
        self.path.verify(&chain, KeyUse::of(suite), unix_seconds()).map_err(|bad| bad.to_string())?;
        let spki = chain.first().and_then(|leaf| public_key_info(leaf)).ok_or("the leaf is broken")?;
        let kem = kem(suite).ok_or_else(|| format!("{suite} is not known here"))?;
        PublicKey::from_spki(kem, spki).map_err(|bad| bad.to_string())
    }
}

impl Judge for Verifier {
    fn public_key(&self, negotiated: &Negotiated) -> Option<PublicKey> {
        self.judged(negotiated).inspect_err(|distrust| log::debug!("{distrust}")).ok()
    }
}

//! Certificate chains of ANTP, judged by roots and this host's clock.

use authentick_client::trust::{Anchor, Dates, Times, judge};
use authentick_crypto::kem::PublicKey;
use authentick_generator::{Guide, Judge, Missing};
use authentick_ke::tls::Roots;
use authentick_proto::antp::client::Negotiated;
use rustls::pki_types::ServerName;

use crate::plan::Plan;

/// How `plan` wants ANTP spoken; `roots` are trusted if it names no authorities.
///
/// # Errors
/// A sentence on what is missing or unknown.
pub(crate) fn guide(plan: &Plan, roots: Option<Roots>) -> Result<Guide, String> {
    let antp = plan.antp.ok_or_else(|| Missing::Guide.to_string())?;
    let (roots, name) = trust(plan, roots)?;
    let anchor = Anchor::authorities(&roots, name).map_err(|bad| bad.to_string())?;
    Guide::new(antp, plan.ntp.is_ipv4(), Box::new(ByClock(anchor))).map_err(|unknown| unknown.to_string())
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

/// Trust in authorities, by the clock.
#[derive(Debug)]
struct ByClock(Anchor);

impl Judge for ByClock {
    fn public_key(&self, negotiated: &Negotiated) -> Option<PublicKey> {
        let dates = Dates::At(Times::exactly_now());
        judge(&self.0, &dates, &negotiated.chain(), negotiated.suite())
            .inspect_err(|untrusted| log::debug!("{untrusted}"))
            .ok()
            .map(|believed| believed.key)
    }
}

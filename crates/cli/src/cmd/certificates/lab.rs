//! `authentick certificates lab`: an authority of one's own, and a server's certificate from it.
//!
//! The authority's files are made once and never written again; the server's are replaced as a whole, so the command
//! renews a certificate too. Everything is P-256. There is no list of revoked certificates: this is for a lab.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use authentick_client::trust::rfc3339;
use authentick_crypto::Entropy;
use authentick_ke::tls::{CertificateInfo, KeyUse, certificates, chain_warnings, public_key_info, to_pem};
use authentick_net::clock::unix_seconds;
use authentick_net::privilege;
use authentick_net::replace::{self, Refused};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, DnsName};

use crate::args::LabCertificate;
use crate::exit::{Exit, Failure};
use crate::{files, output};

/// The group that reads keys of the packaged server.
const GROUP: &str = "authentick";
const DAY: Duration = Duration::from_secs(86_400);
/// Validity of an authority: longer than that of any certificate that is made together with it.
const AUTHORITY_DAYS: u32 = 3660;
/// Host clocks of a lab may be behind by so many days.
const SLACK_DAYS: u32 = 1;

const READABLE: u32 = 0o644;
const PRIVATE: u32 = 0o600;

pub(super) fn run(arguments: &LabCertificate) -> Result<Exit, Failure> {
    let LabCertificate { names, out, days } = arguments;
    for name in names {
        check_name(name)?;
    }
    DirBuilder::new().recursive(true).mode(0o755).create(out).map_err(unwritable(out))?;
    // The configuration does not know the folder of this shell.
    let out = out.canonicalize().map_err(unwritable(out))?;
    let authority = Authority::find_or_make(&out)?;
    let days = u32::from(*days);
    let end = unix_seconds() + u64::from(days) * DAY.as_secs();
    if i64::try_from(end).is_ok_and(|end| end > authority.info.not_after) {
        let message = format!(
            "--days {days}: the authority in {} ends before, on {}; give fewer days, or another --out",
            authority.file.display(),
            day(authority.info.not_after)
        );
        return Err(Exit::Configuration.because(message));
    }
    let stem = names[0].replace('*', "_").replace(':', "-");
    let [chain, key] = ["", "-key"].map(|kind| out.join(format!("{stem}{kind}.pem")));
    let (certificate, private) = authority.issue(names, days)?;
    write_key(&key, &private)?;
    let text = certificate + &to_pem(std::slice::from_ref(&authority.certificate));
    replace::replace_with_mode(&chain, text.as_bytes(), READABLE).map_err(refused)?;
    output::result(&format!(
        "written {}: for {}, until {}\nwritten {}\n\nin the server's configuration:\n[nts]\n\
         certificate-chain = {chain:?}\nprivate-key = {key:?}\n\n\
         for clients: --ca {ca} (chrony: ntstrustedcerts {ca})\n",
        chain.display(),
        names.join(", "),
        day(i64::try_from(end).unwrap_or(i64::MAX)),
        key.display(),
        ca = authority.file.display()
    ));
    Ok(Exit::Done)
}

/// Refuses what no certificate can have as a name, and what would not be the name of a file.
fn check_name(name: &str) -> Result<(), Failure> {
    let is_address = name.parse::<IpAddr>().is_ok();
    let is_name = DnsName::try_from(name.strip_prefix("*.").unwrap_or(name)).is_ok();
    match is_address || is_name {
        true => Ok(()),
        false => {
            let expected = "expected a DNS name (with letters beyond ASCII as xn--...), *.NAME, or an address without \
                            brackets, port and zone";
            Err(Exit::Usage.because(format!("invalid name {name:?}: {expected}")))
        }
    }
}

/// An authority and what it signs with.
struct Authority {
    file: PathBuf,
    certificate: CertificateDer<'static>,
    info: CertificateInfo,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// The one in a folder; a new one if there is none.
    fn find_or_make(folder: &Path) -> Result<Self, Failure> {
        let [file, key_file] = ["ca.pem", "ca-key.pem"].map(|name| folder.join(name));
        let is_there = |path: &Path| fs::symlink_metadata(path).is_ok();
        let lone = |there: &Path, missing: &Path| {
            let remedy = "put it back, remove the other file, or give another --out";
            files::wrong(there, &format!("it is there, and {} is missing", missing.display()), remedy)
        };
        match (is_there(&file), is_there(&key_file)) {
            (true, true) => {
                let authority = Authority::read(file, &key_file)?;
                authority.tell("reused");
                Ok(authority)
            }
            (true, false) => Err(lone(&file, &key_file)),
            (false, true) => Err(lone(&key_file, &file)),
            (false, false) => {
                make(&file, &key_file)?;
                let authority = Authority::read(file, &key_file)?;
                authority.tell("written");
                Ok(authority)
            }
        }
    }

    fn tell(&self, done: &str) {
        let CertificateInfo { not_after, .. } = self.info;
        let (file, title) = (self.file.display(), self.info.title());
        output::result(&format!("{done} {file}: authority {title}, until {}\n", day(not_after)));
    }

    fn read(file: PathBuf, key_file: &Path) -> Result<Self, Failure> {
        const REMEDY: &str = "give another --out for a new authority";
        let wrong = |problem: &str| files::wrong(&file, problem, REMEDY);
        let pem = files::read("--out", &file)?;
        let found =
            certificates(&pem).map_err(|defect| files::wrong(&file, &defect.problem, &defect.remedy))?;
        let info = CertificateInfo::parse(&found[0]).ok_or_else(|| wrong("the certificate is not X.509"))?;
        let key = String::from_utf8(files::read("--out", key_file)?).ok();
        let key = key.and_then(|text| KeyPair::from_pem(&text).ok());
        let key = key.ok_or_else(|| files::wrong(key_file, "no PEM private key that can sign", REMEDY))?;
        let public = public_key_info(&found[0]);
        if public != Some(key.subject_public_key_info().as_slice()) {
            return Err(files::wrong(key_file, "the key does not belong to ca.pem", REMEDY));
        }
        let made_here = || wrong("its name is not one that this command gives");
        let issuer = issuer(info.subject.strip_prefix("CN=").ok_or_else(made_here)?, key);
        Ok(Authority { file, certificate: found[0].clone(), info, issuer })
    }

    /// A certificate for these names, PEM, and its private key.
    fn issue(&self, names: &[String], days: u32) -> Result<(String, String), Failure> {
        let mut params = CertificateParams::new(names).map_err(internal)?;
        params.distinguished_name.push(DnType::CommonName, &names[0]);
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        valid_for(&mut params, days);
        let key = KeyPair::generate().map_err(internal)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(internal)?;
        // An authority that something else made may not issue, or have a name in another form.
        let chain = [certificate.der().clone(), self.certificate.clone()];
        match chain_warnings(&chain, KeyUse::Signature, unix_seconds()).into_iter().next() {
            Some(defect) => {
                Err(files::wrong(&self.file, &defect.problem, "give another --out for a new authority"))
            }
            None => Ok((certificate.pem(), key.serialize_pem())),
        }
    }
}

/// What signs for an authority of this name, as [`make`] has it.
fn issuer(name: &str, key: KeyPair) -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    Issuer::new(params, key)
}

/// Makes an authority; its files must not be there.
fn make(file: &Path, key_file: &Path) -> Result<(), Failure> {
    let [a, b, c, d] = Entropy::from_system()?.array::<4>();
    let mut params = CertificateParams::default();
    // Trust stores find an authority by its name: two labs must not have the same.
    let name = format!("authentick lab authority {a:02x}{b:02x}{c:02x}{d:02x}");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid_for(&mut params, AUTHORITY_DAYS);
    let key = KeyPair::generate().map_err(internal)?;
    let certificate = params.self_signed(&key).map_err(internal)?;
    create(key_file, &key.serialize_pem(), PRIVATE)?;
    create(file, &certificate.pem(), READABLE)
}

fn valid_for(params: &mut CertificateParams, days: u32) {
    let now = date_time_ymd(1970, 1, 1) + Duration::from_secs(unix_seconds());
    (params.not_before, params.not_after) = (now - SLACK_DAYS * DAY, now + days * DAY);
}

/// Writes a file that is not there.
fn create(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path).map_err(unwritable(path))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(unwritable(path))
}

/// Writes the server's key, for its owner alone; as root, where the packaged server's group exists, for that too.
fn write_key(path: &Path, text: &str) -> Result<(), Failure> {
    let group = if privilege::is_root() { privilege::find_group(GROUP).ok().flatten() } else { None };
    let written = match group {
        Some(group) => replace::replace_for_group(path, text.as_bytes(), (0, group)),
        None => replace::replace(path, text.as_bytes(), None),
    };
    written.map_err(refused)
}

fn refused((path, error): Refused) -> Failure {
    unwritable(&path)(error)
}

fn unwritable(path: &Path) -> impl Fn(std::io::Error) -> Failure {
    move |error| {
        let problem = match error.kind() {
            ErrorKind::AlreadyExists => "something else made it meanwhile; run this again",
            _ => "give a directory that can be written with --out",
        };
        files::unwritable(path, &error, problem)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
fn internal(error: rcgen::Error) -> Failure {
    Exit::Internal.because(format!("cannot make a certificate: {error}"))
}

/// The day of an instant in Unix seconds.
fn day(unix_seconds: i64) -> String {
    let text = rfc3339(u64::try_from(unix_seconds).unwrap_or(0).min(253_402_300_799));
    text.split('T').next().unwrap_or_default().to_owned()
}

//! Agents on this machine that stand for hosts of unequal strength, and who proves what to whom.
//!
//! The note's three hosts serviced 25, 35 and 40 of a hundred requests. Ours get processor time in that relation: as
//! root by quotas of control groups (version 1), otherwise by priorities on one processor that they share.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use authentick_daemon::replace::replace;
use authentick_net::affinity;
use authentick_net::privilege::is_root;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize,
};

use super::helper::{Helper, is_there, this_program};
use crate::exit::{Exit, Failure};

/// Where the kernel's processor controller is.
const CONTROLLER: &str = "/sys/fs/cgroup/cpu";
/// What groups of studies are called.
const GROUP: &str = "authentick-study-";
/// The time over which a quota is kept. Short, so that a process is slow rather than stopped and started.
const PERIOD_US: u32 = 20_000;
/// Shares of a processor, as 2,452 : 3,502 : 3,929 of the note's Table 2.
const SHARES: [f64; 3] = [0.22, 0.31, 0.35];
/// Priorities whose weights in the kernel, 526 : 820 : 1024, come close to that.
const NICE: [&str; 3] = ["3", "1", "0"];

/// Makes processor time scarce for a process; it is free again when this goes away.
#[derive(Debug)]
pub(super) struct Quota(PathBuf);

impl Quota {
    /// A quota of `share` processors; `None` where control groups of version 1 cannot be made.
    pub(super) fn new(name: &str, share: f64) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let folder = Path::new(CONTROLLER).join(format!("{GROUP}{}-{name}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let quota = Quota(folder);
        let quota_us = (f64::from(PERIOD_US) * share) as u32;
        let write = |file: &str, value: u32| fs::write(quota.0.join(file), value.to_string());
        write("cpu.cfs_period_us", PERIOD_US).and_then(|()| write("cpu.cfs_quota_us", quota_us)).ok()?;
        Some(quota)
    }

    /// Puts a process under the quota.
    pub(super) fn add(&self, pid: u32) -> Result<(), Failure> {
        Ok(fs::write(self.0.join("cgroup.procs"), pid.to_string())?)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Only an empty group goes away: whoever is left in it is set free first.
        for pid in fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = fs::write(Path::new(CONTROLLER).join("cgroup.procs"), pid);
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// Removes groups of studies that were killed.
pub(super) fn remove_orphans() {
    for entry in fs::read_dir(CONTROLLER).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let pid =
            name.strip_prefix(GROUP).and_then(|rest| rest.split_once('-')).map(|(pid, _)| pid.to_owned());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// How hosts are made unequal here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inequality {
    /// By quotas.
    Quotas,
    /// By priorities on one processor.
    Priorities,
    /// Not at all.
    None,
}

impl Inequality {
    /// The best that this machine lets us have.
    pub(super) fn find() -> Self {
        if Quota::new("probe", 0.5).is_some() {
            Inequality::Quotas
        } else if is_there("nice") {
            Inequality::Priorities
        } else {
            Inequality::None
        }
    }

    /// What is to be said of it.
    pub(super) fn remark(self) -> String {
        match self {
            Inequality::Quotas => format!(
                "Our hosts are processes of one machine, on its last processor, with quotas of {}, {} and {} of it.",
                SHARES[0], SHARES[1], SHARES[2]
            ),
            Inequality::Priorities => format!(
                "Our hosts are processes of one machine that share its last processor, with priorities (nice) {}, {} \
                 and {}; root would have given them quotas.",
                NICE[0], NICE[1], NICE[2]
            ),
            Inequality::None => {
                "Our hosts are processes of one machine, and equal: it grants neither quotas nor priorities."
                    .to_owned()
            }
        }
    }
}

/// A folder with certificates for the server, the agents and the coordinator, all of one authority.
#[derive(Debug)]
pub(super) struct Papers {
    folder: PathBuf,
}

impl Papers {
    /// Makes them.
    pub(super) fn new(folder: &Path) -> Result<Self, Failure> {
        let papers = Papers { folder: folder.to_owned() };
        papers.make().map_err(|problem| {
            Failure::new(Exit::Internal, format!("cannot make certificates: {problem}"))
        })?;
        Ok(papers)
    }

    fn make(&self) -> Result<(), Box<dyn std::error::Error>> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "authority of a study");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        fs::write(self.authority(), authority.pem())?;
        for (name, usage) in [
            ("server", ExtendedKeyUsagePurpose::ServerAuth),
            ("agent", ExtendedKeyUsagePurpose::ServerAuth),
            ("coordinator", ExtendedKeyUsagePurpose::ClientAuth),
        ] {
            let mut params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
            params.extended_key_usages = vec![usage];
            let key = KeyPair::generate()?;
            let certificate = params.signed_by(&key, &authority)?;
            fs::write(self.chain(name), certificate.pem() + &authority.pem())?;
            replace(&self.key(name), key.serialize_pem().as_bytes(), None).map_err(|(_, error)| error)?;
        }
        Ok(())
    }

    /// Adds what a server of ANTP proves itself by: for each suite of the paper a certificate under an authority with a
    /// key of the same kind, so that messages differ in size as the paper's do. Named `antp-ecdh` and `antp-rsa`.
    pub(super) fn add_antp(&self) -> Result<(), Failure> {
        self.make_antp().map_err(|problem| {
            Failure::new(Exit::Internal, format!("cannot make certificates for ANTP: {problem}"))
        })
    }

    fn make_antp(&self) -> Result<(), Box<dyn std::error::Error>> {
        let ecdh = || KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256);
        let rsa = || KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048);
        let mut authorities = String::new();
        for (name, keys) in [("antp-ecdh", [ecdh()?, ecdh()?]), ("antp-rsa", [rsa()?, rsa()?])] {
            let [issuing, own] = keys;
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name.push(rcgen::DnType::CommonName, format!("authority of {name}"));
            let authority = CertifiedIssuer::self_signed(params, issuing)?;
            let mut params = CertificateParams::new(["localhost".to_owned()])?;
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            fs::write(self.chain(name), params.signed_by(&own, &authority)?.pem())?;
            replace(&self.key(name), own.serialize_pem().as_bytes(), None).map_err(|(_, error)| error)?;
            authorities += &authority.pem();
        }
        Ok(fs::write(self.antp_authorities(), authorities)?)
    }

    pub(super) fn antp_authorities(&self) -> PathBuf {
        self.folder.join("antp-authorities.pem")
    }

    pub(super) fn authority(&self) -> PathBuf {
        self.folder.join("authority.pem")
    }

    pub(super) fn chain(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.pem"))
    }

    pub(super) fn key(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.key"))
    }
}

/// Three agents. Quotas outlive the processes under them.
#[derive(Debug)]
pub(super) struct Agents {
    helpers: Vec<Helper>,
    _quotas: Vec<Quota>,
}

impl Agents {
    /// Starts them; where `before` names addresses, each is to listen on its own if that is still free, so that a
    /// study that goes on knows its hosts by the same names.
    pub(super) fn start(papers: &Papers, inequality: Inequality, before: &[String]) -> Result<Self, Failure> {
        let mut agents = Agents { helpers: Vec::new(), _quotas: Vec::new() };
        for index in 0..SHARES.len() {
            let listen = before.get(index).filter(|address| is_free(address));
            let nice = match inequality {
                Inequality::Priorities => ["nice", "-n", NICE[index]].map(str::to_owned).to_vec(),
                Inequality::Quotas | Inequality::None => Vec::new(),
            };
            let mut command = this_program(&nice)?;
            command.args(["load", "agent", "--until-eof", "--unpinned", "--rate-max", "1e8", "--listen"]);
            command.arg(listen.map_or("127.0.0.1:0", String::as_str));
            command.arg("--certificate-chain").arg(papers.chain("agent"));
            command.arg("--private-key").arg(papers.key("agent"));
            command.arg("--coordinators-ca").arg(papers.authority());
            let helper = on_last_processor(|| Helper::start(command, "taking orders on "))?;
            if inequality == Inequality::Quotas
                && let Some(quota) = Quota::new(&format!("host{index}"), SHARES[index])
            {
                quota.add(helper.id())?;
                agents._quotas.push(quota);
            }
            agents.helpers.push(helper);
        }
        Ok(agents)
    }

    /// Their names, as `load --agents` takes them.
    pub(super) fn names(&self) -> Vec<String> {
        self.helpers.iter().map(|helper| helper.address.to_string()).collect()
    }
}

fn is_free(address: &str) -> bool {
    address.parse::<SocketAddr>().is_ok_and(|address| TcpListener::bind(address).is_ok())
}

/// Does `work` on a thread that may run on the last processor only, which processes that it starts inherit. The server
/// of the study runs on the first.
fn on_last_processor<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    pinned(|processors| processors.last().copied(), work)
}

/// The same on the first processor.
pub(super) fn on_first_processor<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    pinned(|processors| processors.first().copied(), work)
}

/// Where there is one processor alone, there is nothing to choose.
fn pinned<T: Send>(
    choose: impl FnOnce(&[usize]) -> Option<usize> + Send,
    work: impl FnOnce() -> T + Send,
) -> T {
    std::thread::scope(|scope| {
        let pinned = scope.spawn(|| {
            let allowed = affinity::allowed().unwrap_or_default();
            if let Some(processor) = choose(&allowed).filter(|_| allowed.len() > 1) {
                // Where it is refused, figures are less steady.
                let _ = affinity::pin(processor);
            }
            work()
        });
        match pinned.join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

//! Which files a server can reach, by Landlock: it reads the folders of what it reads again on SIGHUP, and writes its
//! state directory. Nothing else can be opened, created, removed or executed; and no TCP port can be bound but that of
//! metrics, nor connected to but those of the memcached servers that keys are shared through.
//!
//! Rules apply to folders, as a renewed file is a different file. Where a configured path leads through links, the
//! folder of every link and of every target is covered: certbot keeps `live/NAME/privkey.pem`, a link to
//! `../../archive/NAME/privkey2.pem`, which a renewal points to `privkey3.pem`; Kubernetes points `..data` to another
//! folder beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::config::Config;

/// The newest version whose rights are asked for; a kernel that has fewer enforces those.
const NEWEST: ABI = ABI::V6;
/// Where the kernel says which process holds the lock of a file.
const LOCKS: &str = "/proc/locks";
/// The kernel follows no more links in one path. path_resolution(7).
const LINK_COUNT_MAX: usize = 40;

/// The folders, and files in the root directory, that a server of `config` reads.
pub(super) fn readable(config: &Config) -> BTreeSet<PathBuf> {
    let files = config.files();
    let leap_seconds = config.leap_seconds.as_ref().map(|file| file.path.as_path());
    let files = files.iter().map(|(_, file)| *file).chain(leap_seconds);
    let mut readable: BTreeSet<PathBuf> = files.flat_map(folders).collect();
    readable.extend(config.own_files().iter().flat_map(|file| folders(file)));
    readable.extend(fs::canonicalize(config.folder()));
    readable.insert(LOCKS.into());
    readable
}

/// Restricts the calling thread, and those that it starts, to what is `readable`, and to the state directory and the
/// servers of `config`; returns what is in force, for a message.
pub(super) fn restrict(readable: &BTreeSet<PathBuf>, config: &Config) -> Result<String, String> {
    let reached = config.memcached_servers().map(|server| (server.port(), AccessNet::ConnectTcp));
    // It may be taken at the start, and free later.
    let of_metrics = config.metrics.as_ref().map(|metrics| (metrics.listen.port(), AccessNet::BindTcp));
    let ports: Vec<(u16, AccessNet)> = reached.chain(of_metrics.filter(|(port, _)| *port != 0)).collect();
    // One that is missing is made later, if there was no room for it.
    let is_there = |path: &&Path| path.parent().is_some() && path.exists();
    let state = config.state.path().ancestors().find(is_there);
    let status = enforce(readable, state, &ports, NEWEST);
    version_of(&status.map_err(|error| error.to_string())?).map(|version| format!("Landlock {version}"))
}

/// What the C library reads to look a name up: files, which may be links, and folders of its modules, of resolvers on
/// this host, and of caches. nsswitch.conf(5), resolv.conf(5), gai.conf(5), ld.so(8). None has keys in it.
const RESOLVER: [&str; 28] = [
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/hostname",
    "/etc/mdns.allow",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/dev/null",
    "/dev/urandom",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/nix/store",
    "/gnu/store",
    "/run/systemd/resolve",
    "/run/NetworkManager/resolv.conf",
    "/run/resolvconf",
    "/run/nscd",
    "/run/avahi-daemon",
    "/var/db/nscd",
    "/var/cache/nscd",
    "/sys/devices/system/cpu/online",
];
/// Where resolvers are connected to if an answer is too large for a datagram.
const DNS_PORT: u16 = 53;

/// Restricts the calling thread to what looking up a name reads.
pub(super) fn restrict_to_resolver() -> Result<(), RulesetError> {
    let readable = RESOLVER.map(PathBuf::from).into();
    enforce(&readable, [], &[(DNS_PORT, AccessNet::ConnectTcp)], NEWEST).map(drop)
}

/// Restricts the calling thread to no file and no port at all.
pub(super) fn restrict_to_nothing() -> Result<(), RulesetError> {
    enforce(&BTreeSet::new(), [], &[], NEWEST).map(drop)
}

/// The version that the kernel has.
pub(super) fn version() -> Result<u32, String> {
    // In a thread that ends at once, as rules apply to the thread that makes them.
    let tried = std::thread::spawn(|| enforce(&BTreeSet::new(), [], &[], NEWEST));
    match tried.join() {
        Ok(Ok(status)) => version_of(&status),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it could not be tried".to_owned()),
    }
}

fn version_of(status: &RestrictionStatus) -> Result<u32, String> {
    match (status.landlock, &status.ruleset) {
        (LandlockStatus::NotImplemented, _) => Err("this kernel has none".to_owned()),
        (LandlockStatus::NotEnabled, _) => Err("this kernel was started without it".to_owned()),
        (_, RulesetStatus::NotEnforced) => Err("the kernel did not enforce it".to_owned()),
        (LandlockStatus::Available { effective_abi, kernel_abi }, _) => {
            Ok(kernel_abi.unwrap_or(effective_abi as i32).unsigned_abs())
        }
    }
}

/// Paths for which there are rules, each with the device and inode that its rule is about.
pub(super) type Ruled = BTreeMap<PathBuf, Option<(u64, u64)>>;

/// The paths as they are now; to be called before there are rules.
pub(super) fn ruled(paths: impl IntoIterator<Item = PathBuf>) -> Ruled {
    paths.into_iter().map(|path| (path.clone(), inode(&path))).collect()
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Whether `path` leads, by its links as they are now, to what is `readable`. A folder that was removed and made again
/// is another one, without a rule. What cannot be looked at may be readable: its reader finds out.
pub(super) fn leads_into(readable: &Ruled, path: &Path) -> bool {
    let folder = || fs::canonicalize(path.parent()?).ok();
    let place = fs::canonicalize(path).ok().or_else(folder);
    let is_below = |place: &Path| {
        readable.iter().any(|(folder, ruled)| place.starts_with(folder) && *ruled == inode(folder))
    };
    place.is_none_or(|place| is_below(&place))
}

/// The folders that a path leads through as links would have it: that of the file, and of each link and its target.
fn folders(file: &Path) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::new();
    let mut add = |path: &Path| {
        let Some(Ok(folder)) = path.parent().map(fs::canonicalize) else { return };
        // A rule for the root directory would allow everything. Files there have their own rules.
        folders.insert(if folder.parent().is_some() { folder } else { path.to_owned() });
    };
    add(file);
    let names = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|component| component.as_os_str().to_owned()).collect()
    };
    // What is still to be walked, the next name last; and where that leads so far, without links.
    let (mut rest, mut at) = (names(file), PathBuf::new());
    let mut link_count = 0;
    while let Some(name) = rest.pop() {
        match Path::new(&name).components().next() {
            Some(Component::ParentDir) => {
                at.pop();
            }
            Some(Component::CurDir) | None => {}
            Some(Component::RootDir | Component::Prefix(_)) => at = PathBuf::from("/"),
            Some(Component::Normal(_)) => match fs::read_link(at.join(&name)) {
                Ok(target) if link_count < LINK_COUNT_MAX => {
                    link_count += 1;
                    add(&at.join(&name));
                    add(&at.join(&target));
                    rest.extend(names(&target));
                }
                _ => at.push(&name),
            },
        }
    }
    add(&at);
    folders
}

/// Restricts the calling thread, as far as the kernel can, with the rights of version `abi` and older; `ports` are
/// those of TCP that it may use, and how.
fn enforce<'a>(
    readable: &BTreeSet<PathBuf>,
    writable: impl IntoIterator<Item = &'a Path>,
    ports: &[(u16, AccessNet)],
    abi: ABI,
) -> Result<RestrictionStatus, RulesetError> {
    let all = AccessFs::from_all(abi);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = (read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::RemoveFile
        | AccessFs::MakeReg
        | AccessFs::MakeDir)
        & all;
    let mut ruleset = Ruleset::default().handle_access(all)?;
    // Versions that came later know of more than files.
    let (net, scope) = (AccessNet::from_all(abi), Scope::from_all(abi));
    if !net.is_empty() {
        ruleset = ruleset.handle_access(net)?;
    }
    if !scope.is_empty() {
        ruleset = ruleset.scope(scope)?;
    }
    let mut ruleset = ruleset.create()?;
    if !net.is_empty() {
        for (port, access) in ports {
            ruleset = ruleset.add_rule(NetPort::new(*port, *access))?;
        }
    }
    for (path, rights) in readable
        .iter()
        .map(|path| (path.as_path(), read))
        .chain(writable.into_iter().map(|path| (path, write)))
    {
        // A missing folder cannot be read now; whoever reads from it reports its absence.
        if let Ok(place) = PathFd::new(path) {
            let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(abi) };
            let rights: BitFlags<AccessFs> = rights;
            ruleset = ruleset.add_rule(PathBeneath::new(place, rights))?;
        }
    }
    ruleset.restrict_self()
}

#[cfg(test)]
mod tests;

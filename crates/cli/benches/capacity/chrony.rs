//! Debian's chrony as a server: of plain time, under symmetric keys, and under NTS.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Its configuration on these ports of NTP and of key exchange, written to `folder`, which has certificate and keys.
pub(crate) fn config(folder: &Path, ntp: u16, ke: u16) -> io::Result<PathBuf> {
    let config = folder.join("chrony.conf");
    let folder = folder.display();
    fs::write(
        &config,
        format!(
            "local stratum 1\nallow\nport {ntp}\nntsport {ke}\nntsserverkey {folder}/key.pem\n\
             ntsservercert {folder}/chain.pem\nkeyfile {folder}/keys\nbindcmdaddress /\ncmdport 0\n\
             pidfile {folder}/chrony.pid\nuser root\n"
        ),
    )?;
    Ok(config)
}

/// Writes symmetric keys for nobody else to read, as chrony and we want it.
pub(crate) fn write_keys(file: &Path, lines: &str) -> io::Result<()> {
    fs::write(file, lines)?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600))
}

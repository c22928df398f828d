//! Our server as a fleet of one, which shares its cookie keys with nobody through a memcached of its own: it reads and
//! writes there as often as any node.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use authentick_lab::certificates::{Lab, write_private};
use authentick_lab::peers;
use authentick_lab::process::{Process, text};
use authentick_rig::pair::Pair;

use super::{Error, Subject, authentick};

/// Where memcached listens.
const PORT: u16 = 11_311;

/// Starts both; `None` if there is no memcached.
pub(crate) fn start(pair: &Pair, files: &Lab, listen: IpAddr) -> Result<Option<[Process; 2]>, Error> {
    let peer = peers::folder().join("memcached");
    let program = peer.join("usr/bin/memcached");
    if !program.exists() {
        return Ok(None);
    }
    let mut memcached = pair.on_server(&program);
    memcached.env("LD_LIBRARY_PATH", peers::libraries(&peer));
    memcached.args(["-u", "root", "-U", "0", "-l", &listen.to_string(), "-p", &PORT.to_string()]);
    let seal = files.path().join("seal");
    write_private(&seal, &format!("authentick-fleet-seal 1\nkey 0 {}\n", "5a".repeat(32)));
    let server = SocketAddr::new(listen, PORT);
    let nts = format!(
        "cookie-keys = {{ store = \"memcached\" }}\n[fleet]\nid = \"bench\"\nnode = \"a\"\nmembers = [\"a\"]\n\
         servers = [\"{server}\"]\nseal-key = {seal:?}\nwriter = true\n"
    );
    let config = authentick(files, Subject::OursFleet, listen, &nts)?;
    let ours = Path::new(env!("CARGO_BIN_EXE_authentick"));
    let made = pair.on_server(ours).args(["keys", "generate", "--config"]).arg(&config).output()?;
    if !made.status.success() {
        return Err(text(&made).into());
    }
    let memcached = Process::start(&mut memcached);
    let server = Process::start(pair.on_server(ours).arg("serve").arg("--config").arg(config));
    Ok(Some([memcached, server]))
}

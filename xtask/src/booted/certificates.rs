//! A certificate for the server in a machine, and the authority that its clients trust.

use super::machine::Machine;

/// The name of the server. Nobody else has names that end so: RFC 6761 6.2.
pub(crate) const NAME: &str = "ntp.test";
/// Where a client that is not root reads it too.
pub(crate) const AUTHORITY: &str = "/etc/ssl/authority.pem";

/// Makes both for the server, and gives its name an address.
pub(crate) fn make(machine: &Machine) -> Result<(), String> {
    make_for(machine, NAME, &[NAME])?;
    machine.succeed(
        "install -o root -g root -m 644 /root/chain.pem /etc/authentick/chain.pem && \
         install -o root -g authentick -m 640 /root/key.pem /etc/authentick/key.pem",
    )?;
    Ok(())
}

/// Makes a certificate for a name, and the authority, with openssl; `names` are those that the machine can resolve.
pub(crate) fn make_for(machine: &Machine, name: &str, names: &[&str]) -> Result<(), String> {
    let hosts: String = names.iter().map(|name| format!("127.0.0.1 {name}\n")).collect();
    machine.write("/etc/hosts", &format!("127.0.0.1 localhost\n{hosts}"))?;
    machine.succeed(&format!(
        r#"set -e
        cd /root
        chmod 644 /etc/hosts
        umask 077
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca-key.pem -out {AUTHORITY} \
            -days 30 -subj "/CN=authority" -addext basicConstraints=critical,CA:TRUE
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -subj "/CN={name}" \
            -addext subjectAltName=DNS:{name} -out request.pem
        openssl x509 -req -in request.pem -CA {AUTHORITY} -CAkey ca-key.pem -CAserial authority.srl \
            -CAcreateserial -days 20 -copy_extensions copy -out chain.pem
        chmod 644 {AUTHORITY}"#
    ))?;
    Ok(())
}

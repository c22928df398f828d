//! Key exchanges of NTS, one after the other on each of some threads: a closed loop that shares TLS with the load
//! tester, and nothing of its engine.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use authentick_ke::client::{Ask, dial};
use authentick_ke::tls::{Roots, client_config};
use authentick_wire::ke::AeadId;
use rustls::pki_types::ServerName;

use super::Error;

/// Key exchanges at once.
pub(crate) const WINDOW: usize = 32;
/// How long one may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Measures, and prints what `load::Measured` reads: sent, answered, invalid, seconds.
pub(crate) fn measure([address, ca, milliseconds]: [&str; 3]) -> Result<(), Error> {
    let (address, duration): (SocketAddr, _) =
        (address.parse()?, Duration::from_millis(milliseconds.parse()?));
    let roots = Roots::from_pem(&std::fs::read(ca)?)?;
    let server_name = ServerName::try_from("ntp.test")?;
    let ask = Ask { tls: client_config(roots), server_name, aeads: vec![AeadId::SIV_CMAC_256] };
    let (sent, answered) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..WINDOW {
            scope.spawn(|| {
                while start.elapsed() < duration {
                    sent.fetch_add(1, Ordering::Relaxed);
                    let got = dial(&ask, &[address], TIMEOUT).is_ok();
                    // What ends after the time does not count: the rate is of those that ended within it.
                    if got && start.elapsed() < duration {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (sent, answered) = (sent.into_inner(), answered.into_inner());
    println!("{sent} {answered} 0 {}", duration.as_secs_f64());
    Ok(())
}
